//! Tests of the lane of Events against a scripted API, in virtual time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use http::Method;

use super::*;
use crate::{
    controller::{
        shutdown::{PhaseSender, phases},
        tests::fake_server::{self, Received, Response},
    },
    kube_api::{ApiClient, latest_value::LatestSender},
    shard::{CronJobIdentity, EventReason, NamespaceUpdate, ResourceVersion, Uid, held_shards::WHOLE},
    telemetry::metrics::Metrics,
};

#[derive(Clone)]
struct FakeApi {
    clock: Clock,
    latency: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    script: VecDeque<Response>,
    /// Milliseconds after the start, and the verb.
    requests: Vec<(u128, &'static str)>,
    /// Milliseconds after the start, and the namespace.
    namespaces: Vec<(u128, String)>,
    /// The count in each request.
    counts: Vec<u64>,
    /// Requests for namespaces with this prefix are never answered.
    silent_namespaces: &'static str,
    /// The server is unreachable until this time, in milliseconds after the start.
    down_until: u128,
}

impl Seen {
    fn is_silent(&self, namespace: &str) -> bool {
        !self.silent_namespaces.is_empty() && namespace.starts_with(self.silent_namespaces)
    }
}

impl FakeApi {
    async fn respond(self, received: Received) -> Response {
        let (response, is_silent) = {
            let mut seen = self.seen.lock().unwrap();
            let now = self.clock.boot().since_boot().as_millis();
            let verb = if received.method == Method::POST {
                "post"
            } else {
                "patch"
            };
            seen.requests.push((now, verb));
            seen.counts.push(received.body["count"].as_u64().unwrap());
            seen.namespaces.push((now, received.namespace().to_owned()));
            let down = (now < seen.down_until).then_some(Response::Unreachable);
            (
                down.or_else(|| seen.script.pop_front()),
                seen.is_silent(received.namespace()),
            )
        };
        if is_silent {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(self.latency).await;
        response.unwrap_or_else(stored)
    }

    fn client(&self) -> ApiClient {
        let api = self.clone();
        fake_server::client(&self.clock, 1, move |received| api.clone().respond(received))
    }
}

struct Bench {
    clock: Clock,
    api: FakeApi,
    queue: EventQueue,
    phases: PhaseSender,
    burst: LatestSender<bool>,
    metrics: EventMetrics,
    all_metrics: Metrics,
    task: tokio::task::JoinHandle<()>,
}

impl Bench {
    fn new(script: Vec<Response>, latency: Duration) -> Bench {
        Bench::within(&ManagedNamespaces::default(), script, latency)
    }

    fn within(namespaces: &ManagedNamespaces, script: Vec<Response>, latency: Duration) -> Bench {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
        let seen = Seen {
            script: script.into(),
            ..Seen::default()
        };
        let api = FakeApi {
            clock: clock.clone(),
            latency,
            seen: Arc::new(Mutex::new(seen)),
        };
        let (phases, burst) = (phases(), LatestSender::new(false));
        let all_metrics = Metrics::register();
        let metrics = all_metrics.events.clone();
        let channels = EventChannels {
            leadership: LatestSender::new(Leadership::of_one(WHOLE)).subscribe(),
            budget: EventBudget::default(),
            namespaces: namespaces.clone(),
            phase: phases.subscribe(),
            burst: burst.subscribe(),
        };
        let (queue, task) = EventTask::new(api.client(), clock.clone(), channels, metrics.clone());
        Bench {
            clock,
            api,
            queue,
            phases,
            burst,
            metrics,
            all_metrics,
            task: tokio::spawn(task.run()),
        }
    }

    fn push(&self, cron_job: &str, message: &str) {
        self.push_in("a", cron_job, message);
    }

    fn push_in(&self, namespace: &str, cron_job: &str, message: &str) {
        self.push_as(EventReason::SuccessfulCreate, namespace, cron_job, message);
    }

    fn push_as(&self, reason: EventReason, namespace: &str, cron_job: &str, message: &str) {
        let identity = CronJobIdentity {
            namespace: namespace.into(),
            name: cron_job.into(),
            uid: Uid::new(cron_job),
        };
        let event = CronJobEvent {
            cron_job: Arc::new(identity),
            resource_version: ResourceVersion(1),
            reason,
            message: message.to_owned(),
        };
        self.queue.push(event, self.clock.now());
    }

    fn requests(&self) -> Vec<(u128, &'static str)> {
        self.api.seen.lock().unwrap().requests.clone()
    }
}

fn stored() -> Response {
    Response::stored(1)
}

fn unreachable() -> Response {
    Response::Unreachable
}

/// The API server gave up waiting for admission.
fn unanswered() -> Response {
    Response::status(504, "Timeout", "request did not complete within the allotted timeout")
}

fn already_exists() -> Response {
    Response::status(409, "AlreadyExists", "it exists")
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn equal_events_of_a_cron_job_raise_the_count() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.push("one", "Created job x");
    bench.push("two", "Created job y");
    bench.push("one", "Created job x");
    pass(1).await;
    assert_eq!(bench.requests(), [(0, "post"), (0, "post"), (0, "patch")]);
    assert_eq!((bench.metrics.created.get(), bench.metrics.raised.get()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_released_namespace_are_dropped() {
    let namespaces = ManagedNamespaces::selected();
    let select = |name: &str| namespaces.apply(NamespaceUpdate::selected(name.into()), Timestamp::UNIX_EPOCH);
    select("a");
    select("b");
    // The first attempt waits, and would be repeated.
    let script = vec![Response::throttled(Some(3))];
    let bench = Bench::within(&namespaces, script, Duration::from_millis(5));
    bench.push_in("a", "one", "Created job x");
    pass(1).await;
    bench.push_in("a", "two", "Created job y");
    bench.push_in("b", "three", "Created job z");
    bench.push_in("c", "four", "Created job w");
    namespaces.apply(NamespaceUpdate::Released("a".into()), Timestamp::UNIX_EPOCH);
    pass(60).await;
    assert_eq!(bench.requests(), [(0, "post"), (3_005, "post")]);
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_not_managed.get()),
        (1, 3)
    );
}

#[tokio::test(start_paused = true)]
async fn at_most_four_events_are_in_flight() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    for number in 0..10 {
        bench.push(&format!("job{number}"), "Created job x");
    }
    pass(1).await;
    let sent: Vec<u128> = bench.requests().iter().map(|(at, _)| *at).collect();
    assert_eq!(sent, [0, 0, 0, 0, 5, 5, 5, 5, 10, 10]);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_unanswered_events_do_not_delay_other_namespaces() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.api.seen.lock().unwrap().silent_namespaces = "silent";
    for number in 0..20 {
        bench.push_in("silent", &format!("silent{number}"), "Created job x");
    }
    for number in 0..50 {
        bench.push(&format!("job{number}"), "Created job x");
    }
    pass(11).await;
    assert_eq!(bench.metrics.created.get(), 50);
    bench.api.seen.lock().unwrap().silent_namespaces = "";
    pass(30).await;
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_failed.get()),
        (70, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn b_14_1_unanswered_events_of_many_namespaces_delay_others_by_seconds() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.api.seen.lock().unwrap().silent_namespaces = "silent";
    for number in 0..200 {
        let namespace = format!("silent{}", number % 20);
        bench.push_in(&namespace, &format!("silent{number}"), "Created job x");
    }
    pass(30).await;
    bench.push("one", "Created job x");
    pass(20).await;
    assert_eq!(bench.metrics.created.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_a_long_outage_drops_no_events() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.api.seen.lock().unwrap().down_until = 300_000;
    for number in 0..1_000 {
        bench.push(&format!("job{number}"), "Created job x");
    }
    pass(400).await;
    assert_eq!(bench.metrics.created.get(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_patched_event_that_is_gone_is_created_again() {
    let script = vec![stored(), Response::not_found()];
    let bench = Bench::new(script, Duration::from_millis(5));
    bench.push("one", "Created job x");
    pass(1).await;
    bench.push("one", "Created job x");
    pass(1).await;
    assert_eq!(bench.requests(), [(0, "post"), (1_000, "patch"), (1_005, "post")]);
    assert_eq!(bench.metrics.created.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_patch_before_its_event_creates_the_event() {
    let script = vec![unanswered(), Response::not_found(), stored(), already_exists()];
    let bench = Bench::new(script, Duration::from_millis(5));
    bench.push("one", "Created job x");
    bench.push("one", "Created job x");
    pass(60).await;
    assert_eq!(
        bench.requests(),
        [(0, "post"), (0, "patch"), (5, "post"), (15_000, "post")]
    );
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_failed.get()),
        (2, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn b_14_1_an_unanswered_create_is_retried_and_an_unanswered_patch_is_not() {
    let script = vec![unanswered(), stored(), unanswered(), stored()];
    let bench = Bench::new(script, Duration::from_secs(3));
    bench.push("one", "Created job x");
    pass(20).await;
    bench.push("one", "Created job x");
    pass(300).await;
    bench.push("one", "Created job x");
    pass(10).await;
    assert_eq!(
        bench.requests(),
        [(0, "post"), (15_000, "post"), (20_000, "patch"), (320_000, "patch")]
    );
    assert_eq!(bench.api.seen.lock().unwrap().counts, [1, 1, 2, 3]);
    assert_eq!((bench.metrics.created.get(), bench.metrics.raised.get()), (1, 1));
    assert_eq!(bench.metrics.dropped_failed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_wait_after_an_early_504_is_no_part_of_its_latency() {
    let bench = Bench::new(vec![unanswered()], Duration::from_secs(3));
    bench.push("one", "Created job x");
    pass(10).await;
    let latency = r#"cronwheel_api_request_duration_seconds_sum{resource="events",verb="create"} 3"#;
    let text = bench.all_metrics.text();
    assert!(text.lines().any(|line| line == latency), "{text}");
    pass(10).await;
    assert_eq!(bench.requests(), [(0, "post"), (15_000, "post")]);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_already_exists_after_an_unanswered_try_counts_as_created() {
    let script = vec![unanswered(), already_exists()];
    let bench = Bench::new(script, Duration::from_millis(5));
    bench.push("one", "Created job x");
    pass(60).await;
    assert_eq!(bench.requests(), [(0, "post"), (15_000, "post")]);
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_failed.get()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn b_14_1_a_refused_event_is_not_retried() {
    let bench = Bench::new(vec![Response::status(403, "Forbidden", "no")], Duration::from_millis(5));
    bench.push("one", "Created job x");
    pass(60).await;
    assert_eq!(bench.requests(), [(0, "post")]);
    assert_eq!(bench.metrics.dropped_failed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_a_failing_event_is_dropped_after_many_attempts() {
    let failures: [(fn() -> Response, u32); 2] = [(unreachable, RETRIES_MAX), (unanswered, UNANSWERED_RETRIES_MAX)];
    for (failure, n_retries) in failures {
        let bench = Bench::new((0..1_000).map(|_| failure()).collect(), Duration::from_millis(5));
        bench.push("one", "Created job x");
        bench.push("two", "Created job y");
        pass(120).await;
        assert_eq!(bench.metrics.dropped_failed.get(), 0);
        pass(1_000).await;
        assert_eq!(bench.metrics.dropped_failed.get(), 2);
        assert_eq!(bench.requests().len(), 2 * (1 + n_retries as usize));
    }
}

#[tokio::test(start_paused = true)]
async fn events_wait_at_most_ten_seconds_behind_a_burst() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.burst.set(true);
    bench.push("one", "Created job x");
    pass(4).await;
    bench.push("two", "Created job y");
    pass(7).await;
    assert_eq!(bench.requests(), [(10_000, "post"), (10_000, "post")]);
    bench.burst.set(false);
    pass(1).await;
    bench.burst.set(true);
    bench.push("three", "Created job z");
    pass(1).await;
    bench.burst.set(false);
    pass(1).await;
    assert_eq!(bench.requests()[2..], [(13_000, "post")]);
}

#[tokio::test(start_paused = true)]
async fn events_over_the_queue_limit_are_dropped_and_counted() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    for number in 0..=QUEUE_MAX {
        bench.push(&format!("job{number}"), "Created job x");
    }
    assert_eq!(bench.metrics.dropped_queue_full.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_flushes_events_for_a_limited_time() {
    let mut bench = Bench::new(Vec::new(), Duration::from_millis(300));
    for number in 0..90 {
        bench.push(&format!("job{number}"), "Created job x");
    }
    bench.phases.advance(Phase::FlushEvents);
    (&mut bench.task).await.unwrap();
    assert_eq!(bench.clock.boot().since_boot(), EVENT_GRACE);
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_shutdown.get()),
        (3 * u64::from(EVENTS_IN_FLIGHT_MAX), 78)
    );
}

#[tokio::test(start_paused = true)]
async fn failing_cron_jobs_of_one_tenant_hide_no_events_of_others() {
    const MINUTES: u64 = 20;
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    for minute in 0..MINUTES {
        for number in 0..5_000 {
            bench.push_as(EventReason::FailedCreate, "offender", &format!("job{number}"), "quota");
        }
        pass(30).await;
        bench.push_as(EventReason::FailedCreate, "innocent", &format!("one{minute}"), "no");
        bench.push_as(EventReason::FailedCreate, "innocent", "again", "no");
        pass(30).await;
    }
    let namespaces = bench.api.seen.lock().unwrap().namespaces.clone();
    let per_second_max = u64::from(EventBudget::PER_SECOND_DEFAULT);
    let n_allowed = per_second_max * 60 * (MINUTES + 1);
    assert!(
        namespaces.len() as u64 <= n_allowed,
        "{} of {n_allowed}",
        namespaces.len()
    );
    assert!(bench.metrics.dropped_over_budget.get() > 5_000);
    let of_innocent: Vec<u128> = namespaces
        .iter()
        .filter(|(_, namespace)| namespace == "innocent")
        .map(|(at, _)| at % 60_000)
        .collect();
    assert!(of_innocent.len() >= 40, "{of_innocent:?}");
    assert!(
        of_innocent.iter().all(|at| (30_000..35_000).contains(at)),
        "{of_innocent:?}"
    );
}
