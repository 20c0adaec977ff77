//! Tests of the shard task, on a simulated clock.

use std::sync::Arc;

use http::Method;
use tokio::task::JoinHandle;

use super::*;
use crate::{
    controller::{
        dispatcher::{Dispatcher, DispatcherChannels},
        event_task::{EventBudget, EventChannels, EventTask},
        shutdown::{PhaseSender, phases},
        tests::fake_server::{self, Received, Response, record},
    },
    coordination::Leadership,
    kube_api::{ApiClient, latest_value::LatestSender},
    schedule::Zone,
    shard::{
        ConcurrencyPolicy, CronJobIdentity, CronJobRecord, CronJobSchedule, CronJobStatus, ManagedNamespaces,
        ResourceVersion, Scope, TroubleKind, TroubleThresholds, Uid, WatchedResource, held_shards::WHOLE,
        state::PanicAt,
    },
    telemetry::metrics::Metrics,
};

fn epoch() -> Timestamp {
    "2026-11-01T12:00:30Z".parse().unwrap()
}

fn cron_job(name: &str, schedule: &str) -> Input {
    let identity = CronJobIdentity {
        namespace: "a".into(),
        name: name.into(),
        uid: Uid::new(name),
    };
    Input::CronJobApplied(Box::new(CronJobRecord {
        identity: Arc::new(identity),
        resource_version: ResourceVersion(1),
        created: epoch() - SignedDuration::from_hours(1),
        is_deleting: false,
        has_status_of_other: false,
        schedule: CronJobSchedule::new(schedule, None, &Zone::utc()),
        starting_deadline_seconds: None,
        concurrency_policy: ConcurrencyPolicy::Allow,
        is_suspended: false,
        successful_jobs_history_limit: Some(3),
        failed_jobs_history_limit: Some(1),
        template: record(&fake_server::cron_job("a", name, 1, "image")).template,
        retained_metadata: Arc::new("".into()),
        trouble_thresholds: TroubleThresholds::default(),
        owner: None,
        status: CronJobStatus {
            last_schedule_time: Some(epoch() - SignedDuration::from_secs(30)),
            ..CronJobStatus::default()
        },
    }))
}

/// Records the creates and their times, in milliseconds after the start.
#[derive(Clone)]
struct FakeApi {
    clock: Clock,
    creates: mpsc::Sender<(u128, String)>,
}

impl FakeApi {
    async fn respond(self, received: Received) -> Response {
        match received.resource() {
            "jobs" if received.method == Method::POST => {
                let at = self.clock.boot().since_boot().as_millis();
                self.creates.send((at, received.name().to_owned())).await.unwrap();
                Response::stored(5)
            }
            "jobs" if received.method == Method::GET => Response::not_found(),
            "cronjobs" => Response::not_found(),
            _ => Response::stored(1),
        }
    }

    fn client(&self) -> ApiClient {
        let api = self.clone();
        fake_server::client(&self.clock, 1, move |received| api.clone().respond(received))
    }
}

/// Channels whose other ends are gone.
fn unconnected() -> LifecycleChannels {
    LifecycleChannels {
        commands: mpsc::channel(1).1,
        reports: mpsc::channel(1).0,
        version_requests: mpsc::channel(1).0,
        version_answers: mpsc::channel(1).1,
        relists: Vec::new(),
    }
}

struct Bench {
    clock: Clock,
    inputs: mpsc::Sender<Input>,
    creates: mpsc::Receiver<(u128, String)>,
    statuses: Arc<StatusQueue>,
    phases: PhaseSender,
    snapshot: LatestSender<ShardFigures>,
    shard: JoinHandle<()>,
    dispatcher: JoinHandle<()>,
    _leadership: LatestSender<Leadership>,
}

impl Bench {
    fn new() -> Bench {
        let mut shards = HeldShards::whole(vec![Scope::Cluster], SignedDuration::from_secs(2), epoch());
        shards.survey_cron_jobs(true);
        Bench::of(shards)
    }

    fn of(shards: HeldShards) -> Bench {
        let clock = Clock::simulated(epoch());
        let metrics = Metrics::register();
        let (inputs, inputs_out) = mpsc::channel(16);
        let (answers_in, answers) = mpsc::channel(16);
        let (creates_in, creates) = mpsc::channel(16);
        let phases = phases();
        let leadership = LatestSender::new(Leadership::of_one(WHOLE));
        let burst = LatestSender::new(false);
        let dispatch = DispatchQueue::new(metrics.dispatch.clone());
        let statuses = StatusQueue::new(metrics.status.clone(), Duration::from_secs(1));
        let api = FakeApi {
            clock: clock.clone(),
            creates: creates_in,
        };
        let event_links = EventChannels {
            leadership: LatestSender::new(Leadership::of_one(WHOLE)).subscribe(),
            budget: EventBudget::default(),
            namespaces: ManagedNamespaces::default(),
            phase: phases.subscribe(),
            burst: burst.subscribe(),
        };
        let (events, _) = EventTask::new(api.client(), clock.clone(), event_links, metrics.events.clone());
        let dispatcher_links = DispatcherChannels {
            queue: dispatch.clone(),
            answers: answers_in,
            leadership: leadership.subscribe(),
            phase: phases.subscribe(),
            burst,
            namespaces: ManagedNamespaces::default(),
        };
        let dispatcher = Dispatcher::new(api.client(), clock.clone(), dispatcher_links, 8);
        let channels = ShardChannels {
            inputs: inputs_out,
            answers,
            dispatch,
            statuses: statuses.clone(),
            events,
            phase: phases.subscribe(),
            snapshot: metrics.shard.clone(),
            leadership: leadership.subscribe(),
            lifecycle: unconnected(),
            namespace_selector: None,
            are_namespaces_known: LatestSender::new(true),
        };
        let shard = ShardTask::new(shards, clock.clone(), epoch(), channels);
        Bench {
            clock,
            inputs,
            creates,
            statuses,
            phases,
            snapshot: metrics.shard,
            shard: tokio::spawn(shard.run()),
            dispatcher: tokio::spawn(dispatcher.run()),
            _leadership: leadership,
        }
    }

    async fn list(&self, cron_jobs: Vec<Input>) {
        let begun = [
            Input::list_begun(WatchedResource::CronJobs, Scope::Cluster),
            Input::list_begun(WatchedResource::Jobs, Scope::Cluster),
        ];
        let done = [
            Input::list_done(WatchedResource::CronJobs, Scope::Cluster),
            Input::list_done(WatchedResource::Jobs, Scope::Cluster),
        ];
        for input in begun.into_iter().chain(cron_jobs).chain(done) {
            self.inputs.send(input).await.unwrap();
        }
    }

    /// Observes answers of a server whose clock is ahead by `server_ahead`.
    fn compare_clocks(&self, server_ahead: SignedDuration) {
        self.clock.compare(server_ahead);
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_is_created_at_the_slot_and_its_status_follows() {
    let mut bench = Bench::new();
    bench.compare_clocks(SignedDuration::ZERO);
    bench
        .list(vec![cron_job("one", "* * * * *"), cron_job("two", "*/5 * * * *")])
        .await;
    let (at, name) = bench.creates.recv().await.unwrap();
    assert!((30_000..=30_002).contains(&at), "{at} ms");
    assert!(name.starts_with("one-"), "{name}");
    pass(1).await;
    assert_eq!(bench.statuses.n_pending(), 1);
    let figures = bench.snapshot.borrow();
    assert!(figures.is_synced);
    assert_eq!((figures.sizes.cron_jobs, figures.sizes.jobs), (2, 1));
    assert_eq!(
        (
            figures.outcome_counts.due_instants,
            figures.outcome_counts.open_instants
        ),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn cron_jobs_in_trouble_are_published_until_a_clock_alarm() {
    let bench = Bench::new();
    bench.compare_clocks(SignedDuration::ZERO);
    bench
        .list(vec![cron_job("one", "nonsense"), cron_job("two", "*/5 * * * *")])
        .await;
    let named = || {
        let report = Arc::clone(&bench.snapshot.borrow().troubles);
        let lines = report.named.iter().map(|trouble| {
            let (name, kind) = (&trouble.cron_job.name, trouble.kind.as_str());
            format!("{name} {kind}")
        });
        lines.collect::<Vec<_>>()
    };
    pass(12).await;
    assert_eq!(named(), ["two no_success", "one invalid"]);
    bench.compare_clocks(SignedDuration::from_hours(1));
    pass(2).await;
    assert_eq!(named(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn f_18_a_panic_on_one_cron_job_is_published_and_the_others_go_on() {
    let mut shards = HeldShards::whole(vec![Scope::Cluster], SignedDuration::from_secs(2), epoch());
    shards.survey_cron_jobs(true);
    shards.panic_on(|record, place| place == PanicAt::Evaluation && &*record.identity.name == "faulty");
    let mut bench = Bench::of(shards);
    bench.compare_clocks(SignedDuration::ZERO);
    bench
        .list(vec![cron_job("faulty", "* * * * *"), cron_job("sound", "* * * * *")])
        .await;
    for minute in 0..3 {
        let created = tokio::time::timeout(Duration::from_mins(2), bench.creates.recv()).await;
        let (at, name) = created.expect("the shard task goes on").unwrap();
        let due = 30_000 + 60_000 * minute;
        assert!(
            name.starts_with("sound-") && (due..=due + 2).contains(&at),
            "{name} {at} ms"
        );
    }
    let figures = bench.snapshot.borrow();
    assert_eq!((figures.n_panics, figures.n_cron_jobs_panicked), (1, 1));
    let in_trouble = figures
        .troubles
        .named
        .iter()
        .map(|trouble| (&*trouble.cron_job.name, trouble.kind));
    assert!(
        in_trouble
            .collect::<Vec<_>>()
            .contains(&("faulty", TroubleKind::Invalid))
    );
    assert!(!bench.shard.is_finished());
}

#[tokio::test(start_paused = true)]
async fn no_job_is_created_while_the_clock_is_in_doubt() {
    let mut bench = Bench::new();
    bench.list(vec![cron_job("one", "* * * * *")]).await;
    pass(120).await;
    assert!(!bench.snapshot.borrow().is_synced, "the shard has no time yet");
    bench.compare_clocks(SignedDuration::ZERO);
    let (at, _) = bench.creates.recv().await.unwrap();
    assert!(
        (120_000..121_000).contains(&at),
        "the slot missed meanwhile is started: {at} ms"
    );

    bench.compare_clocks(SignedDuration::from_hours(1));
    pass(300).await;
    assert!(bench.creates.try_recv().is_err(), "nothing is created during the alarm");
    bench.compare_clocks(SignedDuration::ZERO);
    let (at, _) = bench.creates.recv().await.unwrap();
    assert!((420_000..422_000).contains(&at), "{at} ms");
}

#[tokio::test(start_paused = true)]
async fn shutdown_creates_no_jobs_and_waits_for_answers() {
    let mut bench = Bench::new();
    bench.compare_clocks(SignedDuration::ZERO);
    bench.list(vec![cron_job("one", "* * * * *")]).await;
    pass(1).await;
    bench.phases.advance(Phase::StopIntake);
    bench.dispatcher.await.unwrap();
    pass(120).await;
    assert!(bench.creates.try_recv().is_err());
    assert!(!bench.shard.is_finished(), "answers may still come");
    bench.phases.advance(Phase::EndShards);
    bench.shard.await.unwrap();
}
