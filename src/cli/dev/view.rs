//! Keeps the figures current, and prints a line a minute. The figures come from watches, like any client's; the lateness
//! comes from the controller's metrics.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::Client;
use tokio::time::{MissedTickBehavior, interval};

use super::{
    board::Board,
    faults::Injection,
    lateness::{self, LatenessWindow},
    output::Output,
    snapshot::Snapshot,
};
use crate::{
    controller::clock::Clock,
    kube_api::{
        Decoder, NamespaceSelector, WatchItem,
        latest_value::{LatestReceiver, LatestSender},
        watch,
    },
    shard::Scope,
    telemetry::metrics::Metrics,
};

/// Interval between updates of the figures.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// The second of each minute that has a line: the starts of a whole minute, when most slots are due, are over.
const LINE_SECOND: i64 = 30;

/// Maximum number of watch items per update of the time.
const FACTS_MAX: usize = 512;

/// The state that the page and the lines show.
pub(super) struct SharedBoard {
    board: Mutex<Board>,
    clock: Clock,
    begun: Timestamp,
    /// The instant at which the end began. Later slots do not count.
    ended: OnceLock<Timestamp>,
    injection: Option<Injection>,
    /// Number of CronJobs that are still to be created.
    pub(super) n_to_fill: Arc<AtomicU32>,
    /// Changes with the figures.
    version: LatestSender<u64>,
}

impl SharedBoard {
    pub(super) fn begin(clock: Clock, injection: Option<Injection>, n_to_fill: u32) -> SharedBoard {
        SharedBoard {
            board: Mutex::default(),
            begun: clock.now(),
            clock,
            ended: OnceLock::new(),
            injection,
            n_to_fill: Arc::new(AtomicU32::new(n_to_fill)),
            version: LatestSender::new(0),
        }
    }

    /// From now on no slot becomes due.
    pub(super) fn end(&self) {
        let _is_first = self.ended.set(self.clock.now());
    }

    fn now(&self) -> Timestamp {
        self.ended.get().copied().unwrap_or_else(|| self.clock.now())
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, items: Vec<WatchItem>) {
        let (now, mut board) = (self.now(), self.board());
        for item in items {
            // An undecodable object still exists, and the controller reports it. A broken watch restarts.
            if let WatchItem::Input(input) | WatchItem::Undecodable { input: Some(input), .. } = item {
                board.take(input, now);
            }
        }
    }

    /// Returns the current state.
    pub(super) fn snapshot(&self) -> Snapshot {
        let now = self.now();
        Snapshot {
            now,
            begun: self.begun,
            figures: self.board().figures(now),
            faults: self.injection.as_ref().map(Injection::counts),
            n_to_fill: self.n_to_fill.load(Ordering::Relaxed),
        }
    }

    /// Marks the state as changed.
    pub(super) fn note_change(&self) {
        self.version.update(|version| version + 1);
    }

    /// Receives a number that changes with the state.
    pub(super) fn changes(&self) -> LatestReceiver<u64> {
        self.version.subscribe()
    }
}

/// The sources of the view.
pub(super) struct View {
    pub(super) output: Output,
    pub(super) client: Client,
    pub(super) shared_board: Arc<SharedBoard>,
}

impl View {
    /// Shows the state until it is dropped.
    pub(super) async fn run(self, metrics: Metrics) {
        let mut window = LatenessWindow::default();
        let decoder = Arc::<Decoder>::default();
        let cron_jobs = watch::cron_jobs(self.client.clone(), Scope::Cluster, decoder).boxed();
        let jobs = watch::jobs(self.client.clone(), Scope::Cluster).boxed();
        let namespaces = watch::namespaces(self.client.clone(), NamespaceSelector::every()).boxed();
        let calendars = watch::calendars(self.client.clone(), Scope::Cluster).boxed();
        let mut facts = stream::select_all([cron_jobs, jobs, namespaces, calendars]).ready_chunks(FACTS_MAX);
        let mut refreshes = interval(REFRESH_INTERVAL);
        refreshes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut shown = self.shared_board.snapshot();
        loop {
            tokio::select! {
                biased;
                _ = refreshes.tick() => {
                    window.add(self.shared_board.now(), lateness::read(&metrics.dispatch.lateness));
                    let snapshot = self.shared_board.snapshot();
                    if line_number(snapshot.now) != line_number(shown.now) {
                        self.output.line(snapshot.minute_line(window.lateness()));
                    }
                    if !snapshot.shows_the_same(&shown) {
                        self.shared_board.note_change();
                    }
                    shown = snapshot;
                }
                Some(items) = facts.next() => self.shared_board.take(items),
            }
        }
    }
}

/// Changes when a line is due, also after the clock was set.
fn line_number(now: Timestamp) -> i64 {
    (now.as_second() - LINE_SECOND).div_euclid(60)
}

#[cfg(test)]
mod tests {
    use apisim::{Api, Options, WallClock};
    use k8s_openapi::api::batch::v1::CronJob;
    use kube::api::PostParams;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::{
        cli::dev::in_process,
        kube_api::DecodeError,
        shard::{Input, WatchedResource, state::test_record},
    };

    #[test]
    fn an_undecodable_cron_job_stays_on_the_board_after_a_relist() {
        let mut now: Timestamp = "2026-05-05T10:00:00Z".parse().unwrap();
        let clock = Clock::simulated(now);
        let shared_board = SharedBoard::begin(clock.clone(), None, 0);
        let record = test_record("a");
        let undecodable = WatchItem::Undecodable {
            error: DecodeError {
                kind: "CronJob",
                namespace: "default".into(),
                name: "a".into(),
                field: "spec.suspend".into(),
                problem: "not a boolean".into(),
            },
            cron_job: None,
            input: Some(Input::CronJobUndecodable(record.identity.uid.clone())),
        };
        let list = |item| {
            let begun = Input::list_begun(WatchedResource::CronJobs, Scope::Cluster);
            let done = Input::list_done(WatchedResource::CronJobs, Scope::Cluster);
            shared_board.take(vec![WatchItem::Input(begun), item, WatchItem::Input(done)]);
        };
        list(WatchItem::Input(Input::CronJobApplied(Box::new(record))));
        list(undecodable);
        now += jiff::SignedDuration::from_mins(2);
        assert_eq!(shared_board.board().figures(now).runs.waiting, 1);
    }

    #[test]
    fn a_line_is_due_once_a_minute() {
        let number = |time: &str| line_number(format!("2026-05-05T{time}Z").parse().unwrap());
        assert_eq!(number("10:00:29.9"), number("09:59:30"));
        assert_eq!(number("10:00:30"), number("10:00:29.9") + 1);
        assert_eq!(number("10:01:29"), number("10:00:30"));
    }

    #[tokio::test(start_paused = true)]
    async fn each_minute_has_a_line() {
        let begun: Timestamp = "2026-05-05T10:00:10Z".parse().unwrap();
        let clock = Clock::simulated(begun);
        let api = Api::new(Options::default(), WallClock::starting_at(begun));
        let cron_job = json!({"metadata": {"name": "minutely"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
        }}}});
        let cron_job: CronJob = serde_json::from_value(cron_job).unwrap();
        let cron_jobs = kube::Api::default_namespaced(in_process(&api, "user"));
        cron_jobs.create(&PostParams::default(), &cron_job).await.unwrap();
        let (output, lines) = Output::captured();
        let shared_board = Arc::new(SharedBoard::begin(clock, None, 0));
        let view = View {
            output,
            client: in_process(&api, "view"),
            shared_board: Arc::clone(&shared_board),
        };
        let two_minutes = Duration::from_secs(125);
        timeout(two_minutes, view.run(Metrics::register())).await.unwrap_err();
        let expected = [
            "10:00:30 UTC: 0 due, 0 started, 0 running; so far 0 missed, 0 doubled",
            "10:01:30 UTC: 1 due, 0 started, 0 running; so far 0 missed, 0 doubled",
        ];
        assert_eq!(lines(), expected);
        assert_eq!(
            shared_board.snapshot().figures.runs.missed,
            1,
            "nobody started the run of 10:01"
        );
        assert!(shared_board.changes().get() >= 2, "a slot was due, and it was missed");
    }
}
