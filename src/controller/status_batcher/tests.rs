//! Tests of the batcher against a scripted API, in virtual time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use http::Method;
use jiff::Timestamp;

use super::*;
use crate::{
    controller::{
        shutdown::{PhaseSender, phases},
        tests::fake_server::{self, Received, Response, cron_job},
    },
    kube_api::{ApiClient, latest_value::LatestSender},
    shard::{
        CronJobIdentity, CronJobStatus, OrderAnswer, ResourceVersion, Term, Uid, held_shards::WHOLE, state::test_record,
    },
    telemetry::metrics::Metrics,
};

mod released;
mod slow_tenant;

/// A term of the only shard.
const fn of_term(term: u64) -> ShardTerm {
    ShardTerm {
        shard: WHOLE.shard,
        term: Term(term),
    }
}
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A status that is identified by its cursor.
fn status(cursor: i64) -> CronJobStatus {
    CronJobStatus {
        last_schedule_time: Some(Timestamp::from_second(cursor).unwrap()),
        ..CronJobStatus::default()
    }
}

pub(super) fn write(name: &str, version: u64, cursor: i64) -> StatusWrite {
    write_of("a", name, version, cursor)
}

fn write_of(namespace: &str, name: &str, version: u64, cursor: i64) -> StatusWrite {
    StatusWrite {
        cron_job: Arc::new(CronJobIdentity {
            namespace: namespace.into(),
            name: name.into(),
            uid: Uid::new(name),
        }),
        resource_version: ResourceVersion(version),
        retained_metadata: Arc::new("".into()),
        status: status(cursor),
        is_urgent: false,
    }
}

fn urgent(name: &str, version: u64, cursor: i64) -> StatusWrite {
    StatusWrite {
        is_urgent: true,
        ..write(name, version, cursor)
    }
}

/// Latency of the status writes of namespaces whose names begin with `slow`.
const SLOW_LATENCY: Duration = Duration::from_secs(29);

/// Answers according to a script, and stores with the next version after the end of the script.
#[derive(Clone)]
struct FakeApi {
    clock: Clock,
    latency: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    script: VecDeque<Response>,
    requests: Vec<Request>,
    n_in_flight: usize,
    n_in_flight_max: usize,
    /// The version of CronJobs that are read.
    read_version: u64,
}

/// Milliseconds after the start, the name, the version that the write is based on, and the cursor.
type Request = (u128, String, u64, i64);

impl FakeApi {
    async fn respond(self, received: Received) -> Response {
        let latency = if received.namespace().starts_with("slow") {
            SLOW_LATENCY
        } else {
            self.latency
        };
        if received.method == Method::GET {
            tokio::time::sleep(self.latency).await;
            let version = self.seen.lock().unwrap().read_version;
            return Response::Object(cron_job(received.namespace(), received.name(), version, "image"));
        }
        let version = &received.body["metadata"]["resourceVersion"];
        let version: u64 = version.as_str().unwrap().parse().unwrap();
        let cursor: Timestamp = received.body["status"]["lastScheduleTime"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let response = {
            let mut seen = self.seen.lock().unwrap();
            let at = self.clock.boot().since_boot().as_millis();
            seen.requests
                .push((at, received.name().to_owned(), version, cursor.as_second()));
            seen.n_in_flight += 1;
            seen.n_in_flight_max = seen.n_in_flight_max.max(seen.n_in_flight);
            seen.script.pop_front()
        };
        tokio::time::sleep(latency).await;
        self.seen.lock().unwrap().n_in_flight -= 1;
        response.unwrap_or_else(|| Response::stored(version + 10))
    }

    fn client(&self) -> ApiClient {
        let api = self.clone();
        fake_server::client(&self.clock, 1, move |received| api.clone().respond(received))
    }
}

struct Bench {
    clock: Clock,
    api: FakeApi,
    queue: Arc<StatusQueue>,
    answers: mpsc::Receiver<TermedAnswer>,
    leadership: LatestSender<Leadership>,
    phases: PhaseSender,
    burst: LatestSender<bool>,
    batcher: tokio::task::JoinHandle<()>,
}

impl Bench {
    fn new(script: Vec<Response>) -> Bench {
        Bench::with_latency(script, Duration::from_millis(5))
    }

    fn with_latency(script: Vec<Response>, latency: Duration) -> Bench {
        Bench::within(&ManagedNamespaces::default(), script, latency)
    }

    fn within(namespaces: &ManagedNamespaces, script: Vec<Response>, latency: Duration) -> Bench {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let seen = Seen {
            script: script.into(),
            ..Seen::default()
        };
        let api = FakeApi {
            clock: clock.clone(),
            latency,
            seen: Arc::new(Mutex::new(seen)),
        };
        let queue = StatusQueue::new(Metrics::register().status, FLUSH_INTERVAL);
        let (answers_in, answers) = mpsc::channel(1_024);
        let leadership = LatestSender::new(Leadership::of_one(WHOLE));
        let phases = phases();
        let burst = LatestSender::new(false);
        let channels = StatusChannels {
            queue: queue.clone(),
            answers: answers_in,
            leadership: leadership.subscribe(),
            phase: phases.subscribe(),
            burst: burst.subscribe(),
            namespaces: namespaces.clone(),
        };
        let batcher = StatusBatcher::new(api.client(), clock.clone(), channels);
        let batcher = tokio::spawn(batcher.run());
        Bench {
            clock,
            api,
            queue,
            answers,
            leadership,
            phases,
            burst,
            batcher,
        }
    }

    fn push(&self, write: StatusWrite) {
        self.queue.push(WHOLE, write, self.clock.boot()).unwrap();
    }

    async fn pass(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    fn requests(&self) -> Vec<Request> {
        self.api.seen.lock().unwrap().requests.clone()
    }

    /// Returns the cursors of the answers so far, with the variant of each.
    fn answers(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        while let Ok(TermedAnswer { answer, .. }) = self.answers.try_recv() {
            let OrderAnswer::Status { sent, answer, .. } = answer else {
                panic!("not an answer about a status: {answer:?}")
            };
            let cursor = sent.last_schedule_time.unwrap().as_second();
            let answer = format!("{answer:?}");
            answers.push(format!("{cursor} {}", answer.split(' ').next().unwrap()));
        }
        answers
    }
}

fn request(at: u128, name: &str, version: u64, cursor: i64) -> Request {
    (at, name.to_owned(), version, cursor)
}

fn throttled(seconds: u64) -> Response {
    Response::throttled(Some(seconds))
}

#[tokio::test(start_paused = true)]
async fn changes_within_the_flush_interval_are_merged_into_one_write() {
    let mut bench = Bench::new(Vec::new());
    bench.push(write("one", 7, 1));
    bench.pass(400).await;
    bench.push(write("one", 7, 2));
    bench.pass(400).await;
    bench.push(write("one", 8, 3));
    bench.pass(10_000).await;
    assert_eq!(bench.requests(), [request(1_000, "one", 8, 3)]);
    assert_eq!(bench.answers(), ["3 Stored"]);
    assert_eq!(bench.queue.n_pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_write_is_sent_at_once_also_after_a_merge() {
    let bench = Bench::new(Vec::new());
    bench.push(urgent("one", 7, 1));
    bench.push(write("one", 7, 2));
    bench.push(write("two", 7, 3));
    bench.pass(100).await;
    bench.push(urgent("two", 7, 4));
    bench.pass(10_000).await;
    assert_eq!(bench.requests(), [request(0, "one", 7, 2), request(100, "two", 7, 4)]);
}

#[tokio::test(start_paused = true)]
async fn age_of_the_oldest_status_grows_while_the_server_throttles() {
    let bench = Bench::new(vec![throttled(30)]);
    let oldest = bench.queue.metrics.oldest.clone();
    let is_about = |secs: f64| (secs..secs + 0.1).contains(&oldest.age_secs());
    bench.push(write("one", 7, 1));
    for (millis, expected) in [(500, 0.5), (10_000, 10.5), (15_000, 25.5), (10_000, 0.0)] {
        bench.pass(millis).await;
        assert!(is_about(expected), "{expected}: {}", oldest.age_secs());
    }
    assert_eq!(bench.queue.n_pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn statuses_wait_at_most_ten_seconds_behind_a_burst() {
    let bench = Bench::new(Vec::new());
    bench.burst.set(true);
    bench.push(write("one", 7, 1));
    bench.pass(5_000).await;
    bench.push(write("two", 7, 2));
    bench.push(urgent("three", 7, 3));
    bench.pass(8_000).await;
    assert_eq!(
        bench.requests(),
        [request(5_000, "three", 7, 3), request(10_000, "one", 7, 1)]
    );
    bench.burst.set(false);
    bench.pass(1_000).await;
    assert_eq!(bench.requests()[2..], [request(13_000, "two", 7, 2)]);
}

#[tokio::test(start_paused = true)]
async fn fewer_urgent_statuses_are_in_flight_during_a_burst() {
    for (is_burst, n_at_once) in [(true, 8), (false, 32)] {
        let bench = Bench::with_latency(Vec::new(), Duration::from_secs(5));
        bench.burst.set(is_burst);
        for number in 0..100 {
            bench.push(urgent(&format!("urgent{number}"), 7, number));
        }
        bench.pass(100).await;
        assert_eq!(bench.requests().len(), n_at_once, "{is_burst}");
    }
}

#[tokio::test(start_paused = true)]
async fn old_statuses_take_turns_with_urgent_ones() {
    let bench = Bench::new(Vec::new());
    bench.burst.set(true);
    for number in 0..20 {
        bench.push(write(&format!("old{number}"), 7, number));
    }
    bench.pass(9_990).await;
    for number in 0..2_000 {
        bench.push(urgent(&format!("urgent{number}"), 7, number));
    }
    bench.pass(100).await;
    let requests = bench.requests();
    let n_before = requests.iter().filter(|(at, ..)| *at < 10_000).count();
    let names: Vec<&str> = requests[n_before..].iter().map(|(_, name, ..)| name.as_str()).collect();
    let last_old = names.iter().rposition(|name| name.starts_with("old"));
    assert!(last_old.is_some_and(|position| position < 40), "{names:?}");
    assert!(names.len() > 80, "urgent ones go on");
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_has_at_most_one_status_write_in_flight() {
    let mut bench = Bench::with_latency(Vec::new(), Duration::from_secs(3));
    bench.push(write("one", 7, 1));
    bench.pass(1_500).await;
    bench.push(write("one", 7, 2));
    bench.pass(20_000).await;
    assert_eq!(
        bench.requests(),
        [request(1_000, "one", 7, 1), request(4_000, "one", 17, 2)]
    );
    assert_eq!(bench.answers(), ["1 Stored", "2 Stored"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_equal_to_the_stored_status_is_not_sent() {
    let mut bench = Bench::with_latency(Vec::new(), Duration::from_secs(3));
    bench.push(write("one", 7, 1));
    bench.pass(1_500).await;
    bench.push(write("one", 9, 1));
    bench.pass(20_000).await;
    assert_eq!(bench.requests().len(), 1);
    assert_eq!(bench.answers(), ["1 Stored"]);
    assert_eq!(bench.queue.n_pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_also_answers_the_next_write_of_the_same_version() {
    let conflict = || vec![Response::status(409, "Conflict", "the object has been modified")];
    for (version, n_requests, expected) in [(7, 1, ["2 Conflict", "1 Conflict"]), (8, 2, ["1 Conflict", "2 Stored"])] {
        let mut bench = Bench::with_latency(conflict(), Duration::from_secs(3));
        bench.push(write("one", 7, 1));
        bench.pass(1_500).await;
        bench.push(write("one", version, 2));
        bench.pass(20_000).await;
        assert_eq!(bench.requests().len(), n_requests);
        assert_eq!(bench.answers(), expected);
        assert_eq!(bench.queue.n_pending(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_write_is_retried_with_the_newest_status() {
    let mut bench = Bench::new(vec![throttled(4), throttled(1)]);
    bench.push(write("one", 7, 1));
    bench.pass(3_000).await;
    bench.push(write("one", 8, 2));
    bench.pass(20_000).await;
    assert_eq!(
        bench.requests(),
        [
            request(1_000, "one", 7, 1),
            request(5_005, "one", 8, 2),
            request(6_010, "one", 8, 2)
        ]
    );
    assert_eq!(bench.answers(), ["2 Stored"], "a replaced write is not answered");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_always_throttled_fails_after_65_requests() {
    let mut bench = Bench::new((0..100).map(|_| throttled(1)).collect());
    bench.push(write("one", 7, 1));
    bench.pass(200_000).await;
    assert_eq!(bench.requests().len(), 65);
    assert_eq!(bench.answers(), ["1 Failed"]);
}

#[tokio::test(start_paused = true)]
async fn status_writes_stay_within_their_in_flight_limit() {
    let mut bench = Bench::new(Vec::new());
    for number in 0..300 {
        bench.push(write(&format!("job{number}"), 7, number));
    }
    bench.pass(5_000).await;
    assert_eq!(bench.answers().len(), 300);
    assert_eq!(bench.api.seen.lock().unwrap().n_in_flight_max, 32);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_outside_the_term_of_its_order() {
    let mut bench = Bench::new(Vec::new());
    bench.push(write("one", 7, 1));
    bench.leadership.send_modify(|leadership| leadership.begin(of_term(2)));
    bench.pass(5_000).await;
    assert!(bench.requests().is_empty());
    assert_eq!(bench.answers(), ["1 Abandoned"]);
}

/// The full channel of answers blocks the task between the decision and the send.
#[tokio::test(start_paused = true)]
async fn leadership_is_checked_again_before_the_write() {
    let bench = Bench::new(Vec::new());
    bench.batcher.abort();
    let (answers_in, mut answers) = mpsc::channel(1);
    let queue = StatusQueue::new(Metrics::register().status, FLUSH_INTERVAL);
    let channels = StatusChannels {
        queue: queue.clone(),
        answers: answers_in.clone(),
        leadership: bench.leadership.subscribe(),
        phase: bench.phases.subscribe(),
        burst: bench.burst.subscribe(),
        namespaces: ManagedNamespaces::default(),
    };
    let filler = Pending::new(write("filler", 7, 1), WHOLE, bench.clock.boot());
    answers_in.try_send(filler.answered(StatusOutcome::Gone)).unwrap();
    queue.push(WHOLE, urgent("one", 7, 2), bench.clock.boot()).unwrap();
    queue
        .push(of_term(0), urgent("stale", 7, 3), bench.clock.boot())
        .unwrap();
    tokio::spawn(StatusBatcher::new(bench.api.client(), bench.clock.clone(), channels).run());
    bench.pass(1_000).await;
    assert!(bench.requests().is_empty(), "the batcher is blocked");
    bench.leadership.send_modify(|leadership| leadership.begin(of_term(2)));
    let mut answered = Vec::new();
    for _ in 0..3 {
        let TermedAnswer { answer, .. } = answers.recv().await.unwrap();
        let OrderAnswer::Status { cron_job, answer, .. } = answer else {
            panic!("not an answer about a status: {answer:?}");
        };
        answered.push(format!("{cron_job} {answer:?}"));
    }
    assert_eq!(answered, ["filler Gone", "stale Abandoned", "one Abandoned"]);
    assert!(bench.requests().is_empty());
    assert_eq!(queue.n_pending(), 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_writes_all_pending_statuses() {
    let mut bench = Bench::new(vec![throttled(1)]);
    for number in 0..100 {
        bench.push(write(&format!("job{number}"), 7, number));
    }
    bench.phases.advance(Phase::FlushStatuses);
    (&mut bench.batcher).await.unwrap();
    let answers = bench.answers();
    assert_eq!(answers.len(), 100);
    assert!(answers.iter().all(|answer| answer.ends_with(" Stored")), "{answers:?}");
    let took = bench.clock.boot().since_boot();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_server_does_not_delay_the_shutdown() {
    let mut bench = Bench::with_latency(Vec::new(), Duration::from_hours(1));
    bench.push(write("one", 7, 1));
    bench.phases.advance(Phase::FlushStatuses);
    (&mut bench.batcher).await.unwrap();
    let took = bench.clock.boot().since_boot();
    assert!(
        took >= STATUS_GRACE && took < STATUS_GRACE + Duration::from_secs(1),
        "{took:?}"
    );
}

/// A write whose metadata is not in memory.
pub(super) fn without_metadata(name: &str, version: u64, cursor: i64) -> StatusWrite {
    let mut record = test_record(name);
    record.drop_metadata();
    StatusWrite {
        retained_metadata: record.retained_metadata,
        ..urgent(name, version, cursor)
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_cached_metadata_reads_the_cron_job_first() {
    let mut bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 7;
    bench.push(without_metadata("one", 7, 1));
    bench.pass(100).await;
    assert_eq!(
        bench.requests(),
        [request(5, "one", 7, 1)],
        "after the answer to the read"
    );
    assert_eq!(bench.answers(), ["1 Stored"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_with_a_read_waits_behind_a_burst_unless_it_is_urgent() {
    let bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 7;
    bench.burst.set(true);
    let not_urgent = |name, cursor| StatusWrite {
        is_urgent: false,
        ..without_metadata(name, 7, cursor)
    };
    bench.push(not_urgent("old", 1));
    bench.pass(9_000).await;
    bench.push(not_urgent("due", 2));
    bench.push(without_metadata("urgent", 7, 3));
    bench.pass(4_000).await;
    assert_eq!(
        bench.requests(),
        [request(9_005, "urgent", 7, 3), request(10_005, "old", 7, 1)]
    );
    bench.burst.set(false);
    bench.pass(1_000).await;
    assert_eq!(bench.requests()[2..], [request(13_005, "due", 7, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_write_conflicts_if_the_read_returns_another_version() {
    let mut bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 8;
    bench.push(without_metadata("one", 7, 1));
    bench.pass(100).await;
    assert_eq!(bench.requests(), []);
    assert_eq!(bench.answers(), ["1 Conflict"]);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_abandoned_if_the_shard_is_lost_during_the_read() {
    let mut bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 7;
    bench.push(without_metadata("one", 7, 1));
    bench.pass(2).await;
    bench.leadership.send_modify(|leadership| leadership.begin(of_term(2)));
    bench.pass(100).await;
    assert_eq!(bench.requests(), []);
    assert_eq!(bench.answers(), ["1 Abandoned"]);
}

#[tokio::test(start_paused = true)]
async fn at_most_eight_urgent_writes_with_a_read_are_in_flight() {
    let bench = Bench::with_latency(Vec::new(), Duration::from_millis(100));
    bench.api.seen.lock().unwrap().read_version = 7;
    for number in 0..40 {
        bench.push(StatusWrite {
            is_urgent: true,
            ..without_metadata(&format!("large{number}"), 7, number)
        });
    }
    bench.pass(10_000).await;
    let requests = bench.requests();
    assert_eq!(requests.len(), 40);
    let writes_begun_at = |at| requests.iter().filter(|request| request.0 == at).count();
    assert!(
        requests.iter().all(|request| writes_begun_at(request.0) <= 8),
        "{requests:?}"
    );
}
