//! The figures of `dev` on its page.

use apisim::{Api, Options, WallClock};
use axum::{
    body::{Body, to_bytes},
    http::Request,
};
use tower::ServiceExt as _;

use super::*;
use crate::{
    cli::dev::{CONTROLLER, faults::Injection, in_process},
    kube_api::WatchItem,
    shard::{Input, JobCreator, JobRecord, ResourceVersion, Uid, state::test_record},
};

const BEGUN: &str = "2026-05-05T10:00:10Z";

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

fn job(uid: &str, slot: &str) -> WatchItem {
    WatchItem::Input(Input::JobApplied(Box::new(JobRecord {
        uid: Uid::new(uid),
        namespace: "default".into(),
        name: uid.into(),
        resource_version: ResourceVersion(1),
        controller: Some(test_record("a").identity.uid.clone()),
        scheduled: Some(at(slot)),
        finish: None,
        started: None,
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    })))
}

/// The text between the tags of a page.
fn visible_text(html: &str) -> String {
    let parts = html
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts.collect::<String>()
}

async fn get(router: &Router) -> String {
    let request = Request::get("/")
        .header("host", "127.0.0.1:6441")
        .body(Body::empty())
        .unwrap();
    let answer = router.clone().oneshot(request).await.unwrap();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn page_shows_faults_and_missed_and_doubled_runs_as_the_totals_do() {
    let clock = Clock::simulated(BEGUN.parse().unwrap());
    let api = Api::new(Options::default(), WallClock::starting_at(BEGUN.parse().unwrap()));
    let injection = Injection::begin(&api);
    let shared_board = Arc::new(SharedBoard::begin(clock.clone(), Some(injection), 7));
    let page = Page::new(in_process(&api, "page"), clock.clone(), Arc::clone(&shared_board));
    let router = page.router("127.0.0.1:6441".parse().unwrap()).unwrap();
    let mut record = test_record("a");
    record.created = at("10:00:00");
    record.status.last_schedule_time = None;
    let cron_job = WatchItem::Input(Input::CronJobApplied(Box::new(record)));
    shared_board.take(vec![cron_job]);
    let pass = async |seconds| {
        tokio::time::advance(std::time::Duration::from_secs(seconds)).await;
        shared_board.snapshot()
    };
    pass(51).await;
    shared_board.take(vec![job("1", "10:01:00"), job("2", "10:01:00")]);
    pass(60).await;
    pass(60).await;
    for _ in 0..100 {
        let request = Request::get("/api/v1/namespaces/default")
            .body(kube::client::Body::empty())
            .unwrap();
        let _may_fail = api.client(CONTROLLER).oneshot(request).await;
    }
    let snapshot = shared_board.snapshot();
    let totals = snapshot.totals_line();
    assert!(
        totals.contains("1 started, 1 waiting, 1 missed, 1 doubled; "),
        "{totals}"
    );
    let text = visible_text(&get(&router).await);
    let faults = snapshot.faults.unwrap();
    assert!(faults.total() > 0);
    for expected in [
        "CronJobs of cronwheel dev",
        "Number of CronJobs of --cronjobs that are still to be created: 7.",
        "since 5 May 10:00:10 UTC",
        "Runs1 started0 held back1 waiting1 missed1 doubled",
        &format!("Injected faults{} in all", faults.total()),
        "default/a: the run of 5 May 10:02 UTC was misseddefault/a: the run of 5 May 10:01 UTC was doubled",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
}

#[tokio::test]
async fn page_has_its_usual_port_or_a_free_one_unless_a_port_is_given() {
    let taken = listen(Some(0)).await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = listen(Some(port)).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("--page-port {port}: ")), "{error}");
    // One of the two gets the usual port, unless another program has it.
    let (first, second) = (listen(None).await.unwrap(), listen(None).await.unwrap());
    assert_ne!(first.local_addr().unwrap(), second.local_addr().unwrap());
    assert_ne!(second.local_addr().unwrap().port(), PORT);
}
