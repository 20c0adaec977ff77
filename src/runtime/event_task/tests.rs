//! The lane of Events against a scripted API, in virtual time.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use super::*;
use crate::{
    runtime::{
        metrics::Metrics,
        shutdown::{PhaseSender, phases},
        watched::Watched,
    },
    state::{CronJobIdentity, EventReason, ResourceVersion, Uid},
};

#[derive(Clone)]
struct FakeApi {
    clock: Clock,
    latency: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    script: VecDeque<Answer<EventOutcome>>,
    /// Milliseconds after the start, and the verb.
    requests: Vec<(u128, &'static str)>,
}

impl FakeApi {
    async fn ask(&self, verb: &'static str) -> Answered<EventOutcome> {
        let answer = {
            let mut seen = self.seen.lock().unwrap();
            seen.requests.push((self.clock.boot().since_boot().as_millis(), verb));
            seen.script.pop_front()
        };
        tokio::time::sleep(self.latency).await;
        Answered {
            answer: answer.unwrap_or(Answer::Outcome(EventOutcome::Stored)),
            code: None,
            server_date: None,
        }
    }
}

impl EventApi for FakeApi {
    async fn post_event(&self, _namespace: &str, _body: Vec<u8>) -> Answered<EventOutcome> {
        self.ask("post").await
    }

    async fn patch_event(&self, _namespace: &str, _name: &str, _body: Vec<u8>) -> Answered<EventOutcome> {
        self.ask("patch").await
    }
}

struct Bench {
    clock: Clock,
    api: FakeApi,
    queue: EventQueue,
    phases: PhaseSender,
    burst: Watched<bool>,
    metrics: EventMetrics,
    task: tokio::task::JoinHandle<()>,
}

impl Bench {
    fn new(script: Vec<Answer<EventOutcome>>, latency: Duration) -> Bench {
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
        let (phases, burst) = (phases(), Watched::new(false));
        let metrics = Metrics::register().unwrap().events;
        let links = EventLinks {
            phase: phases.subscribe(),
            burst: burst.subscribe(),
        };
        let (queue, task) = EventTask::new(api.clone(), clock.clone(), links, metrics.clone());
        Bench {
            clock,
            api,
            queue,
            phases,
            burst,
            metrics,
            task: tokio::spawn(task.run()),
        }
    }

    fn push(&self, cron_job: &str, message: &str) {
        let identity = CronJobIdentity {
            namespace: "a".into(),
            name: cron_job.into(),
            uid: Uid::new(cron_job),
        };
        let event = CronJobEvent {
            cron_job: Arc::new(identity),
            resource_version: ResourceVersion(1),
            reason: EventReason::SuccessfulCreate,
            message: message.to_owned(),
        };
        self.queue.push(event, self.clock.now());
    }

    fn requests(&self) -> Vec<(u128, &'static str)> {
        self.api.seen.lock().unwrap().requests.clone()
    }
}

fn unavailable() -> Answer<EventOutcome> {
    Answer::Unavailable {
        retry_after: None,
        message: "connection refused".into(),
    }
}

fn unanswered() -> Answer<EventOutcome> {
    Answer::Outcome(EventOutcome::Unanswered {
        message: "no answer within 35 seconds".into(),
    })
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn events_are_sent_one_after_the_other_and_equal_ones_raise_a_count() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.push("one", "Created job x");
    bench.push("two", "Created job y");
    bench.push("one", "Created job x");
    pass(1).await;
    assert_eq!(bench.requests(), [(0, "post"), (5, "post"), (10, "patch")]);
    assert_eq!((bench.metrics.created.get(), bench.metrics.raised.get()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_to_patch_that_is_gone_is_created() {
    let script = vec![
        Answer::Outcome(EventOutcome::Stored),
        Answer::Outcome(EventOutcome::Gone),
    ];
    let bench = Bench::new(script, Duration::from_millis(5));
    bench.push("one", "Created job x");
    bench.push("one", "Created job x");
    pass(1).await;
    assert_eq!(bench.requests(), [(0, "post"), (5, "patch"), (10, "post")]);
    assert_eq!(bench.metrics.created.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_an_event_that_is_not_answered_is_sent_again() {
    let script = vec![
        unanswered(),
        Answer::Outcome(EventOutcome::Stored),
        unanswered(),
        Answer::Outcome(EventOutcome::Stored),
    ];
    let bench = Bench::new(script, Duration::from_secs(35));
    bench.push("one", "Created job x");
    bench.push("one", "Created job x");
    pass(300).await;
    assert_eq!(
        bench.requests(),
        [(0, "post"), (45_000, "post"), (80_000, "patch"), (125_000, "patch")]
    );
    assert_eq!((bench.metrics.created.get(), bench.metrics.raised.get()), (1, 1));
    assert_eq!(bench.metrics.dropped_failed.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_an_event_that_an_unanswered_try_has_stored_is_created() {
    let script = vec![unanswered(), Answer::Outcome(EventOutcome::Exists)];
    let bench = Bench::new(script, Duration::from_millis(5));
    bench.push("one", "Created job x");
    pass(60).await;
    assert_eq!(bench.requests(), [(0, "post"), (10_005, "post")]);
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_failed.get()),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn b_14_1_a_refusal_is_not_sent_again() {
    let message = "no".to_owned();
    let bench = Bench::new(
        vec![Answer::Outcome(EventOutcome::Rejected { message })],
        Duration::from_millis(5),
    );
    bench.push("one", "Created job x");
    pass(60).await;
    assert_eq!(bench.requests(), [(0, "post")]);
    assert_eq!(bench.metrics.dropped_failed.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn b_14_1_an_event_that_does_not_get_through_is_tried_for_two_minutes_dropped_and_counted() {
    for failure in [unavailable, unanswered] {
        let bench = Bench::new((0..1_000).map(|_| failure()).collect(), Duration::from_millis(5));
        bench.push("one", "Created job x");
        bench.push("two", "Created job y");
        pass(115).await;
        assert_eq!(bench.metrics.dropped_failed.get(), 0);
        pass(20).await;
        assert_eq!(bench.metrics.dropped_failed.get(), 1, "the first");
        pass(180).await;
        assert_eq!(bench.metrics.dropped_failed.get(), 2);
        let n_requests = bench.requests().len();
        assert!((12 * 2..=40 * 2).contains(&n_requests), "{n_requests}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_wait_behind_a_burst_but_not_for_ever() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    bench.burst.set(true);
    bench.push("one", "Created job x");
    pass(4).await;
    bench.push("two", "Created job y");
    pass(7).await;
    assert_eq!(bench.requests(), [(10_000, "post")]);
    bench.burst.set(false);
    pass(1).await;
    assert_eq!(bench.requests()[1..], [(11_000, "post")]);
}

#[tokio::test(start_paused = true)]
async fn what_the_queue_cannot_hold_is_dropped_and_counted() {
    let bench = Bench::new(Vec::new(), Duration::from_millis(5));
    for number in 0..=QUEUE_MAX {
        bench.push(&format!("job{number}"), "Created job x");
    }
    assert_eq!(bench.metrics.dropped_queue_full.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_what_is_left_is_sent_for_a_short_time() {
    let mut bench = Bench::new(Vec::new(), Duration::from_millis(300));
    for number in 0..10 {
        bench.push(&format!("job{number}"), "Created job x");
    }
    bench.phases.advance(Phase::FlushEvents);
    (&mut bench.task).await.unwrap();
    assert_eq!(bench.clock.boot().since_boot(), EVENT_GRACE);
    assert_eq!(
        (bench.metrics.created.get(), bench.metrics.dropped_shutdown.get()),
        (6, 4)
    );
}
