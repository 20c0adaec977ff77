//! Tests of the dispatcher against a scripted API, in virtual time.

use std::{collections::VecDeque, time::Duration};

use http::Method;
use jiff::SignedDuration;

use super::*;
use crate::{
    controller::{
        shutdown::{PhaseSender, phases},
        tests::fake_server::{self, Received, Response, cron_job, record},
    },
    kube_api::{
        ApiClient,
        latest_value::{LatestReceiver, LatestSender},
    },
    shard::{CronJobIdentity, JobCreate, JobDelete, JobLookUp, ShardTerm, Term, Uid, held_shards::WHOLE},
    telemetry::metrics::Metrics,
};

mod fence;
mod full_connections;
mod lateness;
mod reading;
mod released;
mod slow_tenant;
mod withdrawal;

/// A term of the only shard.
const fn of_term(term: u64) -> ShardTerm {
    ShardTerm {
        shard: WHOLE.shard,
        term: Term(term),
    }
}

pub(super) fn epoch() -> Timestamp {
    "2026-11-01T12:00:00Z".parse().unwrap()
}

fn after(seconds: i64) -> Timestamp {
    epoch() + SignedDuration::from_secs(seconds)
}

fn identity(namespace: &str, name: &str) -> Arc<CronJobIdentity> {
    Arc::new(CronJobIdentity {
        namespace: namespace.into(),
        name: name.into(),
        uid: Uid::new(name),
    })
}

fn order(namespace: &str, name: &str, deadline_secs: i64) -> JobCreate {
    JobCreate {
        run_token: None,
        cron_job: identity(namespace, name),
        name: name.into(),
        slot: epoch(),
        start: epoch(),
        scheduled_timestamp: "2026-11-01T12:00:00Z".into(),
        template: record(&cron_job(namespace, name, 1, IMAGE)).template,
        wanted_by: after(deadline_secs),
        expires_at: None,
        store_by: None,
        n_attempts_before: 0,
        is_on_time: true,
        late_from: Some(epoch()),
    }
}

pub(super) fn create(namespace: &str, name: &str, deadline_secs: i64) -> Request {
    Request::Create(order(namespace, name, deadline_secs))
}

fn expiring(name: &str, after_secs: i64) -> Request {
    Request::Create(JobCreate {
        expires_at: Some(after(after_secs)),
        ..order("a", name, 60)
    })
}

fn delete(namespace: &str, name: &str, is_for_replace: bool) -> Request {
    Request::Delete(JobDelete {
        cron_job: identity(namespace, name),
        namespace: namespace.into(),
        name: name.into(),
        uid: Uid::new(name),
        is_for_replace,
    })
}

pub(super) fn replace_delete(namespace: &str, name: &str) -> Request {
    delete(namespace, name, true)
}

pub(super) fn history_delete(namespace: &str, name: &str) -> Request {
    delete(namespace, name, false)
}

/// An answer that fills the channel of answers.
fn filler() -> TermedAnswer {
    let queued = Queued::new(history_delete("a", "filler"), WHOLE);
    queued.answered(queued.request.abandoned())
}

pub(super) fn look_up(namespace: &str, name: &str) -> Request {
    Request::LookUp(JobLookUp {
        cron_job: identity(namespace, name),
        namespace: namespace.into(),
        name: name.into(),
        listed_uid: None,
    })
}

/// Answers after a latency according to a script, and with success after the end of the script.
#[derive(Clone)]
struct FakeApi {
    clock: Clock,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// `None` for success.
    script: VecDeque<Option<Response>>,
    /// Milliseconds after the start, and the Job's name, or `read` and the CronJob's.
    requests: Vec<(i128, String)>,
    n_in_flight: usize,
    n_in_flight_max: usize,
    /// The image in the template of CronJobs that are read.
    image: &'static str,
    latency: Duration,
    /// Requests whose names begin with it are answered after `slow_latency`.
    slow_prefix: &'static str,
    slow_latency: Duration,
}

impl FakeApi {
    async fn respond(self, received: Received) -> Response {
        let is_read = received.resource() == "cronjobs";
        let name = [if is_read { "read " } else { "" }, received.name()].concat();
        let (response, latency, image) = {
            let mut seen = self.seen.lock().unwrap();
            let at = self.clock.boot().since_boot().as_millis().try_into().unwrap();
            seen.requests.push((at, name.clone()));
            seen.n_in_flight += 1;
            seen.n_in_flight_max = seen.n_in_flight_max.max(seen.n_in_flight);
            let is_slow = !seen.slow_prefix.is_empty() && name.starts_with(seen.slow_prefix);
            let latency = if is_slow { seen.slow_latency } else { seen.latency };
            (seen.script.pop_front().flatten(), latency, seen.image)
        };
        tokio::time::sleep(latency).await;
        self.seen.lock().unwrap().n_in_flight -= 1;
        response.unwrap_or_else(|| match received.method {
            Method::GET if is_read => Response::Object(cron_job(received.namespace(), received.name(), 1, image)),
            Method::GET => Response::not_found(),
            _ if fence::refuses(&received) => fence::refusal(),
            _ => Response::stored(1),
        })
    }

    fn client(&self) -> ApiClient {
        let api = self.clone();
        fake_server::client(&self.clock, 4, move |received| api.clone().respond(received))
    }

    fn requests(&self) -> Vec<String> {
        self.seen
            .lock()
            .unwrap()
            .requests
            .iter()
            .map(|(_, name)| name.clone())
            .collect()
    }

    fn requests_at(&self) -> Vec<i128> {
        self.seen.lock().unwrap().requests.iter().map(|(at, _)| *at).collect()
    }
}

/// The image in the template of the orders.
const IMAGE: &str = "image";

/// Latency of an answer.
const LATENCY: Duration = Duration::from_millis(5);

struct Bench {
    clock: Clock,
    api: FakeApi,
    queue: Arc<DispatchQueue>,
    answers: mpsc::Receiver<TermedAnswer>,
    leadership: LatestSender<Leadership>,
    phases: PhaseSender,
    burst: LatestReceiver<bool>,
    metrics: Metrics,
    dispatcher: Option<Dispatcher>,
}

impl Bench {
    fn new(script: Vec<Option<Response>>) -> Bench {
        let clock = Clock::simulated(epoch());
        trust(&clock);
        Bench::with_clock(clock, script)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.api.seen.lock().unwrap()
    }

    fn with_clock(clock: Clock, script: Vec<Option<Response>>) -> Bench {
        Bench::within(&ManagedNamespaces::default(), clock, script)
    }

    fn within(namespaces: &ManagedNamespaces, clock: Clock, script: Vec<Option<Response>>) -> Bench {
        let metrics = Metrics::register();
        let seen = Seen {
            script: script.into(),
            image: IMAGE,
            latency: LATENCY,
            slow_latency: Duration::from_secs(5),
            ..Seen::default()
        };
        let api = FakeApi {
            clock: clock.clone(),
            seen: Arc::new(Mutex::new(seen)),
        };
        let queue = DispatchQueue::new(metrics.dispatch.clone());
        let (answers_in, answers) = mpsc::channel(1_024);
        let leadership = LatestSender::new(Leadership::of_one(WHOLE));
        let phases = phases();
        let burst_in = LatestSender::new(false);
        let burst = burst_in.subscribe();
        let channels = DispatcherChannels {
            queue: queue.clone(),
            answers: answers_in,
            leadership: leadership.subscribe(),
            phase: phases.subscribe(),
            burst: burst_in,
            namespaces: namespaces.clone(),
        };
        let dispatcher = Some(Dispatcher::new(api.client(), clock.clone(), channels, 128));
        Bench {
            clock,
            api,
            queue,
            answers,
            leadership,
            phases,
            burst,
            metrics,
            dispatcher,
        }
    }

    fn push(&self, request: Request) {
        self.queue.push(Queued::new(request, WHOLE), self.clock.now()).unwrap();
    }

    fn start(&mut self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(self.dispatcher.take().unwrap().run())
    }

    async fn answer(&mut self) -> String {
        let TermedAnswer { answer, .. } = self.answers.recv().await.unwrap();
        let (of, answer) = match answer {
            OrderAnswer::Create { cron_job, answer, .. } => (cron_job.to_string(), format!("{answer:?}")),
            OrderAnswer::Delete { delete, answer } => (delete.name.to_string(), format!("{answer:?}")),
            OrderAnswer::LookUp { look_up, answer } => (look_up.name.to_string(), format!("{answer:?}")),
            OrderAnswer::Status { .. } => panic!("not an answer about a Job: {answer:?}"),
        };
        format!("{of} {}", kind(&answer))
    }

    async fn n_answers(&mut self, count: usize) -> Vec<String> {
        let mut answers = Vec::new();
        for _ in 0..count {
            answers.push(self.answer().await);
        }
        answers
    }
}

/// Extracts the name of the variant from a `Debug` text.
fn kind(debug: &str) -> &str {
    debug.split([' ', '(']).next().unwrap()
}

fn trust(clock: &Clock) {
    clock.compare(SignedDuration::ZERO);
}

/// Answers whose `Date` is far from the time of the clock.
fn doubt(clock: &Clock) {
    clock.compare(SignedDuration::from_mins(1));
    assert!(!clock.is_fine());
}

#[tokio::test(start_paused = true)]
async fn every_request_is_answered_once_within_the_in_flight_limit() {
    let mut bench = Bench::new(Vec::new());
    for number in 0..500 {
        bench.push(create("a", &format!("job{number}"), 60));
    }
    bench.start();
    let mut answers = bench.n_answers(500).await;
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 500);
    assert!(answers.iter().all(|answer| answer.ends_with("Created")));
    assert!(bench.answers.try_recv().is_err());
    let seen = bench.api.seen.lock().unwrap();
    assert!(
        (64..=128).contains(&seen.n_in_flight_max),
        "{} in flight",
        seen.n_in_flight_max
    );
}

#[tokio::test(start_paused = true)]
async fn slow_creates_of_one_tenant_do_not_delay_other_tenants() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    for number in 0..200 {
        bench.push(create("slow", &format!("slow{number}"), 1));
        bench.push(create("b", &format!("b{number}"), 60));
        bench.push(create("c", &format!("c{number}"), 60));
    }
    bench.start();
    let mut n_quick = 0;
    while n_quick < 400 {
        n_quick += usize::from(!bench.answer().await.starts_with("slow"));
    }
    let took = bench.clock.boot().since_boot();
    assert!(took < Duration::from_millis(500), "the others took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_signalled_while_it_lasts() {
    let mut bench = Bench::new(Vec::new());
    for number in 0..100 {
        bench.push(create("a", &format!("job{number}"), 60));
    }
    bench.start();
    bench.burst.wait_for(|is_burst| *is_burst).await;
    bench.n_answers(100).await;
    bench.burst.wait_for(|is_burst| !*is_burst).await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_ends_while_the_dispatcher_waits_for_the_last_answers() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().latency = Duration::from_hours(1);
    for number in 0..100 {
        bench.push(create("a", &format!("job{number}"), 60));
    }
    bench.start();
    bench.burst.wait_for(|is_burst| *is_burst).await;
    bench.phases.advance(Phase::StopIntake);
    bench.burst.wait_for(|is_burst| !*is_burst).await;
    assert_eq!(bench.clock.boot().since_boot(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_request_is_retried_after_retry_after() {
    let mut bench = Bench::new(vec![Some(Response::throttled(Some(3)))]);
    bench.push(create("a", "one", 60));
    bench.start();
    assert_eq!(bench.answer().await, "one Created");
    assert_eq!(bench.api.requests_at(), [0, 3_005]);
    let text = bench.metrics.text();
    assert!(text.contains(r#"cronwheel_api_requests_total{code="429",resource="jobs",verb="create"} 1"#));
    assert!(text.contains("cronwheel_lateness_seconds_count 1"), "{text}");
    assert!(
        text.contains("cronwheel_lateness_seconds_sum 3.005"),
        "the attempt that creates the Job counts: {text}"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_time_of_creates_counts_until_none_waits() {
    let mut bench = Bench::new(vec![Some(Response::throttled(Some(30)))]);
    bench.push(create("a", "one", 60));
    bench.start();
    let waiting_since = bench.metrics.dispatch.creates_waiting_since.clone();
    for (secs, expected) in [(10, 10.0), (15, 25.0), (10, 0.0)] {
        tokio::time::sleep(Duration::from_secs(secs)).await;
        let age = waiting_since.age_secs();
        assert!((expected..expected + 0.1).contains(&(age + 0.05)), "{age}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_probed_by_one_request_at_a_time() {
    let mut bench = Bench::new((0..4).map(|_| Some(Response::Unreachable)).collect());
    bench.push(create("a", "one", 60));
    bench.start();
    // Waits for the first answer, so that the other requests find the lane closed.
    tokio::time::sleep(Duration::from_millis(20)).await;
    for number in 0..40 {
        bench.push(create("a", &format!("job{number}"), 61));
    }
    bench.n_answers(41).await;
    let at = bench.api.requests_at();
    assert_eq!(at[..5], [0, 105, 310, 715, 1_520]);
    assert!(
        at[5..].iter().all(|at| *at >= 1_525),
        "the other requests are sent after the answer to the probe: {at:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unsent_create_expires() {
    let mut bench = Bench::new(vec![Some(Response::throttled(Some(20)))]);
    bench.push(expiring("one", 15));
    bench.start();
    assert_eq!(bench.answer().await, "one Withdrawn");
    assert_eq!(bench.api.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_create_is_not_sent_again() {
    let mut bench = Bench::new(vec![Some(Response::Unreachable)]);
    bench.push(expiring("one", 15));
    bench.start();
    assert_eq!(bench.answer().await, "one Unanswered");
    assert_eq!(bench.api.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_create_without_expiry_fails_after_65_requests() {
    let mut bench = Bench::new((0..1_000).map(|_| Some(Response::throttled(None))).collect());
    bench.push(create("a", "one", 60));
    bench.start();
    assert_eq!(bench.answer().await, "one Failed");
    assert_eq!(bench.api.requests().len(), 65);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_outside_the_term_of_its_order() {
    let mut bench = Bench::new(Vec::new());
    bench.leadership.send_modify(|leadership| leadership.begin(of_term(2)));
    bench.push(create("a", "one", 60));
    bench.push(history_delete("a", "two"));
    bench.start();
    assert_eq!(bench.n_answers(2).await, ["one Abandoned", "two Abandoned"]);
    assert!(bench.api.requests().is_empty());
}

/// The full channel of answers blocks the task between the decision and the send.
#[tokio::test(start_paused = true)]
async fn leadership_and_expiry_are_checked_again_before_the_send() {
    async fn check(spoil: impl FnOnce(&Bench), expected: &str) {
        let mut bench = Bench::new(Vec::new());
        let dispatcher = bench.dispatcher.take().unwrap();
        let (answers_in, answers) = mpsc::channel(1);
        answers_in.try_send(filler()).unwrap();
        bench.answers = answers;
        bench
            .queue
            .push(Queued::new(expiring("one", 15), WHOLE), epoch())
            .unwrap();
        bench
            .queue
            .push(Queued::new(create("a", "stale", 90), of_term(0)), epoch())
            .unwrap();
        let channels = DispatcherChannels {
            answers: answers_in,
            ..dispatcher.channels
        };
        tokio::spawn(Dispatcher::new(bench.api.client(), bench.clock.clone(), channels, 128).run());
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(bench.api.requests().is_empty());
        spoil(&bench);
        assert_eq!(bench.n_answers(2).await, ["filler Abandoned", "stale Abandoned"]);
        assert_eq!(bench.answer().await, expected);
        assert!(bench.api.requests().is_empty());
    }
    check(|_| {}, "one Withdrawn").await;
    check(
        |bench| bench.leadership.send_modify(|leadership| leadership.begin(of_term(2))),
        "one Abandoned",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_clock_is_trusted() {
    let mut bench = Bench::with_clock(Clock::simulated(epoch()), Vec::new());
    bench.push(create("a", "one", 60));
    bench.start();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(bench.api.requests().is_empty());
    trust(&bench.clock);
    assert_eq!(bench.answer().await, "one Created");
}

#[tokio::test(start_paused = true)]
async fn a_create_for_a_future_slot_is_abandoned() {
    let mut bench = Bench::new(Vec::new());
    let early = JobCreate {
        slot: after(1),
        start: after(1),
        ..order("a", "one", 60)
    };
    bench.push(Request::Create(early));
    bench.start();
    assert_eq!(bench.answer().await, "one Abandoned");
}

#[tokio::test(start_paused = true)]
async fn shutdown_answers_requests_in_flight_and_abandons_queued_ones() {
    let mut bench = Bench::new(vec![Some(Response::throttled(Some(1)))]);
    for number in 0..100 {
        bench.push(create("a", &format!("job{number}"), 60));
    }
    let dispatcher = bench.start();
    tokio::time::sleep(Duration::from_millis(1)).await;
    bench.phases.advance(Phase::StopIntake);
    dispatcher.await.unwrap();
    let answers = bench.n_answers(100).await;
    let n_created = answers.iter().filter(|answer| answer.ends_with("Created")).count();
    let n_abandoned = answers.iter().filter(|answer| answer.ends_with("Abandoned")).count();
    assert_eq!(
        (n_created, n_abandoned),
        (63, 37),
        "64 were on the way, one of them was throttled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hanging_server_does_not_delay_the_shutdown() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().latency = Duration::from_hours(1);
    bench.push(create("a", "one", 60));
    let dispatcher = bench.start();
    tokio::time::sleep(Duration::from_millis(1)).await;
    bench.phases.advance(Phase::StopIntake);
    dispatcher.await.unwrap();
    let took = bench.clock.boot().since_boot();
    assert!(
        took >= IN_FLIGHT_GRACE && took < IN_FLIGHT_GRACE + Duration::from_secs(1),
        "{took:?}"
    );
}

#[test]
fn an_api_server_gets_at_most_34_seconds_to_store_a_job() {
    for (left_seconds, expected) in [(-1, 0), (0, 0), (10, 10), (34, 34), (58, 34)] {
        let order = JobCreate {
            store_by: Some(after(left_seconds)),
            ..order("a", "backup", 60)
        };
        let within = Request::Create(order).store_within(epoch());
        assert_eq!(within, Duration::from_secs(expected), "{left_seconds}");
    }
    assert_eq!(create("a", "short-lived", 60).store_within(epoch()), Duration::ZERO);
}
