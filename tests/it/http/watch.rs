//! Watch streams: relists, bookmarks, 410, and malformed objects.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cronwheel::{
    kube_api::{Decoder, WatchItem, watch},
    schedule::Zone,
    shard::{Input, ResourceVersion, Scope, input::WatchStage},
};
use futures::{Stream, StreamExt};
use serde_json::json;
use tokio::time::timeout;

use super::{Script, status};

fn decoder() -> Arc<Decoder> {
    Arc::new(Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    })
}

fn cron_job(name: &str, version: u64, suspend: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"shop","uid":"uid-{name}","resourceVersion":"{version}",
        "creationTimestamp":"2026-01-02T03:04:05Z"}},"spec":{{"schedule":"* * * * *","suspend":{suspend},"jobTemplate":{{}}}}}}"#
    )
    .replace('\n', "")
}

fn job(name: &str, version: u64, status: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"shop","uid":"uid-{name}","resourceVersion":"{version}",
        "ownerReferences":[{{"kind":"CronJob","uid":"c1","controller":true}}]}},"status":{status}}}"#
    )
    .replace('\n', "")
}

fn list(version: &str, continue_token: &str, items: &[String]) -> String {
    format!(
        r#"{{"kind":"CronJobList","apiVersion":"batch/v1","metadata":{{"resourceVersion":"{version}","continue":"{continue_token}"}},"items":[{}]}}"#,
        items.join(",")
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn bookmark(version: &str) -> String {
    event(
        "BOOKMARK",
        &format!(r#"{{"kind":"CronJob","apiVersion":"batch/v1","metadata":{{"resourceVersion":"{version}"}}}}"#),
    )
}

/// Returns a short description of an item. Returns `None` for the versions of a watch, and for missing permissions,
/// which an error also reports.
fn item_text(item: &WatchItem) -> Option<String> {
    let WatchItem::Input(Input::WatchUpdated(update)) = item else {
        return Some(object_text(item));
    };
    match update.stage {
        WatchStage::ListBegun => Some("begun".to_owned()),
        WatchStage::ListDone => Some("done".to_owned()),
        WatchStage::Watching(_)
        | WatchStage::Reached(_)
        | WatchStage::Unchanged { .. }
        | WatchStage::NotPermitted
        | WatchStage::Interrupted => None,
    }
}

async fn next_item(stream: &mut (impl Stream<Item = WatchItem> + Unpin)) -> String {
    loop {
        if let Some(text) = item_text(&stream.next().await.unwrap()) {
            return text;
        }
    }
}

fn object_text(item: &WatchItem) -> String {
    match item {
        WatchItem::Input(input) => input_text(input),
        WatchItem::Undecodable { error, cron_job, input } => {
            let identity = cron_job
                .as_ref()
                .map(|(identity, version)| format!("{}@{version}", identity.name));
            format!(
                "undecodable {} on {} so {}",
                error.field,
                identity.unwrap_or_default(),
                input.as_ref().map(input_text).unwrap_or_default()
            )
        }
        WatchItem::HistoryWentBack { newest, current } => format!("back from {newest} to {current}"),
        WatchItem::Error { message, .. } => format!("error {message}"),
    }
}

fn input_text(input: &Input) -> String {
    match input {
        Input::CronJobApplied(record) => format!("{}@{}", record.identity.name, record.resource_version),
        Input::JobApplied(record) | Input::JobModified(record) => {
            format!("{}@{}", record.name, record.resource_version)
        }
        Input::CronJobUndecodable(uid) | Input::JobUndecodable(uid) => format!("{uid} seen"),
        Input::CronJobDeleted(uid) | Input::JobDeleted { job: uid, .. } => format!("{uid} gone"),
        Input::JobReleased(uid) => format!("{uid} released"),
        Input::WatchUpdated(_) | Input::NamespaceUpdated(_) | Input::CalendarUpdated(_) => panic!("{input:?}"),
    }
}

/// Asserts that a stream yields exactly these items.
async fn check(stream: impl Stream<Item = WatchItem>, expected: &[&str]) {
    let mut stream = std::pin::pin!(stream);
    let mut items = Vec::new();
    // Time is virtual: it advances once nothing else can happen.
    while let Ok(item) = timeout(Duration::from_mins(1), stream.next()).await {
        items.extend(item_text(&item.unwrap()));
    }
    assert_eq!(items, expected);
}

async fn check_cron_jobs(script: &Script, expected: &[&str]) {
    check(watch::cron_jobs(script.client(), Scope::Cluster, decoder()), expected).await;
}

const LIST: &str = "GET /apis/batch/v1/cronjobs?&limit=2000";

/// The request for the current version, before an interrupted watch is opened again.
const PROBE: &str = "GET /apis/batch/v1/cronjobs?&limit=1";

#[tokio::test(start_paused = true)]
async fn watch_resumes_from_the_version_of_the_list_or_last_bookmark() {
    let first_watch = [
        event("ADDED", &cron_job("d", 12, "false")),
        event("DELETED", &cron_job("a", 13, "false")),
        bookmark("20"),
    ];
    let script = Script::default()
        .respond(
            200,
            list("", "more", &[cron_job("a", 3, "false"), cron_job("b", 4, "true")]),
        )
        .respond(200, list("11", "", &[cron_job("c", 5, "null")]))
        .respond(200, first_watch.concat())
        .respond(200, list("20", "", &[]))
        .respond(200, event("MODIFIED", &cron_job("d", 21, "true")))
        .respond(200, list("21", "", &[]));
    check_cron_jobs(
        &script,
        &["begun", "a@3", "b@4", "c@5", "done", "d@12", "uid-a gone", "d@21"],
    )
    .await;
    let watched = "GET /apis/batch/v1/cronjobs?&watch=true&timeoutSeconds=290&allowWatchBookmarks=true";
    assert_eq!(
        script.lines(),
        [
            LIST.to_owned(),
            format!("{LIST}&continue=more"),
            format!("{watched}&resourceVersion=11"),
            PROBE.to_owned(),
            format!("{watched}&resourceVersion=20"),
            PROBE.to_owned(),
            format!("{watched}&resourceVersion=21"),
        ]
    );
}

/// Counts the signs of life of a client's requests.
fn observed(client: kube::Client) -> (kube::Client, Arc<AtomicU64>) {
    let n_signs = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&n_signs);
    let on_activity = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    (watch::observed(client, on_activity), n_signs)
}

#[tokio::test(start_paused = true)]
async fn bookmark_is_a_sign_of_life_and_a_refusal_or_a_version_is_not() {
    let script = Script::default()
        .respond(200, list("11", "", &[]))
        .respond(403, status(403, "Forbidden", "no watch"))
        .respond(200, list("11", "", &[]))
        .respond(200, bookmark("20"));
    let (client, n_signs) = observed(script.client());
    check(
        watch::jobs(client, Scope::Cluster),
        &["begun", "done", "error no watch (403)"],
    )
    .await;
    assert_eq!(
        n_signs.load(Ordering::Relaxed),
        4,
        "the beginnings and the bodies of the list and of the watch"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_with_its_verb_and_the_error_of_the_client() {
    let script = Script::default()
        .respond(503, "")
        .respond(200, list("11", "", &[]))
        .respond(403, status(403, "Forbidden", "no watch"));
    let mut items = std::pin::pin!(watch::jobs(script.client(), Scope::Cluster));
    for expected in ["list", "watch"] {
        let failed = loop {
            if let Some(WatchItem::Error { verb, .. }) = items.next().await {
                break verb;
            }
        };
        assert_eq!(failed, expected);
    }

    let refused = tower::service_fn(|_: http::Request<kube::client::Body>| async {
        Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("connection refused"))
    });
    let (client, n_signs) = observed(kube::Client::new(refused, "default"));
    let mut stream = std::pin::pin!(watch::jobs(client, Scope::Cluster));
    stream.next().await;
    let error = next_item(&mut stream).await;
    assert!(error.ends_with("ServiceError: connection refused"), "{error}");
    assert_eq!(n_signs.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn namespace_scope_lists_only_that_namespace() {
    let script = Script::default().respond(200, list("11", "", &[job("j", 3, "{}")]));
    let stream = watch::jobs(script.client(), Scope::Namespace("shop".into()));
    check(stream, &["begun", "j@3", "done"]).await;
    assert_eq!(script.lines()[0], "GET /apis/batch/v1/namespaces/shop/jobs?&limit=2000");
}

#[tokio::test(start_paused = true)]
async fn expired_resource_version_causes_a_new_list() {
    let too_old = event("ERROR", &status(410, "Expired", "too old resource version: 11 (12)"));
    let script = Script::default()
        .respond(200, list("11", "", &[cron_job("a", 3, "false")]))
        .respond(200, too_old)
        .respond(200, list("15", "", &[cron_job("b", 14, "false")]))
        .respond(410, status(410, "Expired", "too old"))
        .respond(200, list("16", "", &[]));
    check_cron_jobs(
        &script,
        &[
            "begun",
            "a@3",
            "done",
            "error too old resource version: 11 (12) (410)",
            "begun",
            "b@14",
            "done",
            "error too old (410)",
            "begun",
            "done",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn list_begins_before_its_request_is_sent() {
    // Objects that are created while the server collects the list are missing from it. They must not count as deleted
    // when the list ends.
    let script = Script::default()
        .respond(403, status(403, "Forbidden", "cronjobs.batch is forbidden"))
        .respond(503, "")
        .respond(200, list("11", "", &[]));
    let mut stream = std::pin::pin!(watch::cron_jobs(script.client(), Scope::Cluster, decoder()));
    for n_lists in 0..3 {
        assert_eq!(next_item(&mut stream).await, "begun");
        assert_eq!(script.lines().len(), n_lists);
        let item = next_item(&mut stream).await;
        match n_lists {
            0 => assert_eq!(item, "error cronjobs.batch is forbidden (403)"),
            1 => assert!(item.starts_with("error "), "{item}"),
            _ => assert_eq!(item, "done"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failing_lists_are_retried_with_back_off() {
    check_back_off(&[(503, String::new())]).await;
}

#[tokio::test(start_paused = true)]
async fn list_with_an_expired_continue_token_is_retried_with_back_off() {
    let first_page = list("11", "more", &[cron_job("a", 3, "false")]);
    let expired = status(410, "Expired", "the provided continue parameter is too old");
    check_back_off(&[(200, first_page), (410, expired)]).await;
}

/// A load balancer answers in place of an API server that is away, and a restarting one refuses everything at first.
#[tokio::test(start_paused = true)]
async fn interrupted_watch_is_retried_within_two_seconds() {
    let mut script = Script::default()
        .respond(200, list("11", "", &[]))
        .respond(200, bookmark("12"));
    for code in [503, 429, 500, 502, 403, 504, 403] {
        script = script.respond(code, status(code, "", "away"));
    }
    let script = script.respond(200, list("12", "", &[])).respond(200, "");
    let mut stream = std::pin::pin!(watch::cron_jobs(script.client(), Scope::Cluster, decoder()));
    let open_again = WatchStage::Watching(ResourceVersion(12));
    let mut stages = Vec::new();
    let until_open = async {
        while stages.last() != Some(&open_again) {
            if let Some(WatchItem::Input(Input::WatchUpdated(update))) = stream.next().await {
                stages.push(update.stage);
            }
        }
    };
    // 0.2 + 0.4 + 0.8 + 1.6 + 2 + 2 + 2 seconds.
    timeout(Duration::from_secs(10), until_open).await.unwrap();
    let interrupted = WatchStage::Interrupted;
    assert_eq!(
        stages[3..],
        [
            WatchStage::Reached(ResourceVersion(12)),
            interrupted,
            interrupted,
            interrupted,
            interrupted,
            WatchStage::NotPermitted,
            interrupted,
            WatchStage::NotPermitted,
            open_again
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn watch_that_ends_at_once_is_reopened_with_back_off() {
    const N_WATCHES: usize = 5;
    let mut script = Script::default().respond(200, list("11", "", &[]));
    for _ in 0..N_WATCHES {
        script = script.respond(200, "").respond(200, list("11", "", &[]));
    }
    let mut stream = std::pin::pin!(watch::cron_jobs(script.client(), Scope::Cluster, decoder()));
    let mut attempts = std::pin::pin!(async {
        while script.lines().len() < 2 * N_WATCHES {
            stream.next().await.unwrap();
        }
    });
    // 0.2 + 0.4 + 0.8 + 1.6 seconds.
    assert!(timeout(Duration::from_millis(2_900), &mut attempts).await.is_err());
    assert!(timeout(Duration::from_millis(200), &mut attempts).await.is_ok());
}

/// Asserts that a list that always gets these answers is begun again with back-off.
async fn check_back_off(answers: &[(u16, String)]) {
    const N_LISTS: usize = 8;
    let mut script = Script::default();
    for (code, body) in answers.iter().cycle().take(N_LISTS * answers.len()) {
        script = script.respond(*code, body.clone());
    }
    let mut stream = std::pin::pin!(watch::cron_jobs(script.client(), Scope::Cluster, decoder()));
    let mut attempts = std::pin::pin!(async {
        while script.lines().len() < N_LISTS * answers.len() {
            stream.next().await.unwrap();
        }
    });
    // 0.2 + 0.4 + 0.8 + 1.6 + 3.2 + 6.4 + 10 seconds.
    assert!(timeout(Duration::from_secs(22), &mut attempts).await.is_err());
    assert!(timeout(Duration::from_secs(1), &mut attempts).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn undecodable_cron_job_does_not_stop_the_watch() {
    let watched = [
        event("MODIFIED", &cron_job("a", 12, "7")),
        event("MODIFIED", &cron_job("a", 13, "false")),
        event("DELETED", &cron_job("b", 14, r#""yes""#)),
        event("ADDED", r#"{"metadata":{"resourceVersion":"15"},"spec":[],"status":3}"#),
        event("MODIFIED", &cron_job("a", 16, "false").replace(r#""16""#, r#""?""#)),
        event("DELETED", &cron_job("a", 17, "false").replace(r#""17""#, r#""?""#)),
    ];
    let script = Script::default()
        .respond(
            200,
            list(
                "11",
                "",
                &[
                    cron_job("a", 3, "false"),
                    cron_job("b", 4, r#""yes""#),
                    r#"{"metadata":{"name":7},"spec":"?"}"#.to_owned(),
                    cron_job("c", 5, "false"),
                ],
            ),
        )
        .respond(200, watched.concat());
    check_cron_jobs(
        &script,
        &[
            "begun",
            "a@3",
            "undecodable spec.suspend on b@4 so uid-b seen",
            "undecodable spec on  so ",
            "c@5",
            "done",
            "undecodable spec.suspend on a@12 so uid-a seen",
            "a@13",
            "uid-b gone",
            "undecodable spec on  so ",
            "undecodable metadata.resourceVersion on  so uid-a seen",
            "uid-a gone",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn undecodable_job_is_not_treated_as_deleted() {
    // B-10.3: if the Job were deleted, another run could start in parallel.
    let watched = [
        event("MODIFIED", &job("k", 12, r#"{"startTime":1}"#)),
        event("DELETED", &job("k", 13, r#"{"startTime":1}"#)),
    ];
    let script = Script::default()
        .respond(
            200,
            list("11", "", &[job("j", 3, r#"{"startTime":1}"#), job("k", 4, "{}")]),
        )
        .respond(200, watched.concat());
    let stream = watch::jobs(script.client(), Scope::Cluster);
    check(
        stream,
        &[
            "begun",
            "undecodable status.startTime on  so uid-j seen",
            "k@4",
            "done",
            "undecodable status.startTime on  so uid-k seen",
            "uid-k released",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn invalid_json_event_causes_a_new_list() {
    let script = Script::default()
        .respond(200, list("11", "", &[]))
        .respond(200, "{\"type\":\"ADDED\",\"object\":oops}\n")
        .respond(200, list("12", "", &[cron_job("a", 12, "false")]));
    let mut stream = std::pin::pin!(watch::cron_jobs(script.client(), Scope::Cluster, decoder()));
    let mut items = Vec::new();
    for _ in 0..6 {
        items.push(next_item(&mut stream).await);
    }
    assert!(items[2].starts_with("error "), "{items:?}");
    items.remove(2);
    assert_eq!(items, ["begun", "done", "begun", "a@12", "done"]);
    assert_eq!(script.lines().iter().filter(|line| *line == LIST).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn list_items_of_a_real_api_server_are_decoded() {
    // Items of a list omit kind and version, and members are in the order in which Go writes them.
    let item = json!({"metadata": {"name": "a", "namespace": "shop", "uid": "uid-a", "resourceVersion": "3", "generation": 1,
        "creationTimestamp": "2026-01-02T03:04:05Z", "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}]},
        "spec": {"schedule": "*/5 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
            "jobTemplate": {"metadata": {}, "spec": {"template": {"spec": {"containers": []}}}},
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1},
        "status": {"lastScheduleTime": "2026-04-12T09:20:00Z"}});
    let script = Script::default().respond(200, list("11", "", &[item.to_string()]));
    check_cron_jobs(&script, &["begun", "a@3", "done"]).await;
}
