//! Provides the clock guard with answers of the API server, and reports its verdict.
//!
//! This task probes every connection at a fixed interval, so that each connection is open when a slot is due, even after
//! hours. While the clocks are in doubt it probes often.

use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture, join_all};

use super::{
    Session,
    clock::{Clock, ClockVerdict},
    recorded_send::send_recorded,
    shutdown::Phase,
    tasks::Task,
};
use crate::{
    controller::connections::N_WRITE_CONNECTIONS,
    kube_api::ApiClient,
    shard::BootInstant,
    telemetry::metrics::{ApiCall, ClockMetrics},
};

/// Interval of probes: a drift of a second per minute is noticed in time. It is well below the minutes after which
/// proxies and load balancers close idle connections.
const INTERVAL: Duration = Duration::from_secs(10);

/// The same interval while the clocks are in doubt. It does not divide a second, so that the answers narrow the skew
/// down.
const INTERVAL_IN_DOUBT: Duration = Duration::from_millis(270);

/// Timeout of a probe. On a dead connection a probe would otherwise hang for as long as a request may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

/// Minimum interval between two warnings about replaced connections.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum interval between two reads of the clock, since a step of it makes a probe due at once.
const CLOCK_READ_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The task that probes the API server for the clock guard.
pub struct ClockTask {
    api: ApiClient,
    n_connections: usize,
    clock: Clock,
    metrics: ClockMetrics,
    /// The instant of the last probes.
    probed_at: Option<BootInstant>,
    logged_verdict: ClockVerdict,
    was_holding: bool,
    /// The number of replaced connections that are not logged yet.
    n_unreported: u64,
    /// The last warning about replaced connections.
    reported_at: Option<BootInstant>,
}

impl Session {
    pub(super) fn spawn_clock(&self) -> Task {
        let (api, metrics) = (self.connections.writes.clone(), self.metrics.clock.clone());
        let task = ClockTask::new(api, N_WRITE_CONNECTIONS, self.clock.clone(), metrics);
        self.start_until("clock", Phase::End, task.run())
    }
}

impl ClockTask {
    /// Creates a task for this clock that probes over `n_connections` connections.
    pub fn new(api: ApiClient, n_connections: usize, clock: Clock, metrics: ClockMetrics) -> ClockTask {
        ClockTask {
            api,
            n_connections,
            clock,
            metrics,
            probed_at: None,
            logged_verdict: ClockVerdict::Unknown,
            was_holding: false,
            n_unreported: 0,
            reported_at: None,
        }
    }

    /// Probes and reports; never returns.
    pub async fn run(mut self) {
        let mut verdict = self.clock.watch_verdict();
        // The first answers may change the verdict before the other connections answer.
        let mut probes: Option<BoxFuture<'static, ()>> = None;
        loop {
            // Reading the clock detects a step.
            self.clock.now();
            self.report_verdict();
            let pause = match probes {
                Some(_) => CLOCK_READ_INTERVAL_MAX,
                None => self.until_probe().min(CLOCK_READ_INTERVAL_MAX),
            };
            tokio::select! {
                biased;
                () = verdict.changed() => {}
                Some(()) = OptionFuture::from(probes.as_mut()) => probes = None,
                () = tokio::time::sleep(pause) => {
                    if probes.is_none() && self.until_probe().is_zero() {
                        probes = Some(self.probe_all());
                    }
                }
            }
        }
    }

    fn until_probe(&self) -> Duration {
        let interval = if self.clock.is_in_doubt() {
            INTERVAL_IN_DOUBT
        } else {
            INTERVAL
        };
        let due = self.probed_at.map(|probed_at| probed_at + interval);
        due.map_or(Duration::ZERO, |due| due.since(self.clock.boot()))
    }

    /// Probes every connection.
    fn probe_all(&mut self) -> BoxFuture<'static, ()> {
        self.probed_at = Some(self.clock.boot());
        let (api, clock, metrics) = (self.api.clone(), self.clock.clone(), self.metrics.api.clone());
        let n_connections = self.n_connections;
        Box::pin(async move {
            // Concurrent probes take the least busy connection each, so they spread over all.
            let probe = |_| send_recorded(&clock, &metrics, ApiCall::Probe, api.probe());
            // Probes without an answer in time are given up: the next ones follow.
            let _ = tokio::time::timeout(PROBE_PATIENCE, join_all((0..n_connections).map(probe))).await;
        })
    }

    fn report_verdict(&mut self) {
        let (verdict, skew) = (self.clock.verdict(), self.clock.skew());
        let skew_seconds = skew.map_or(0.0, |skew| skew.as_secs_f64());
        self.metrics.skew.set(skew_seconds);
        self.metrics.alarm.set(i64::from(verdict == ClockVerdict::Alarm));
        if verdict != self.logged_verdict {
            match verdict {
                ClockVerdict::Alarm => {
                    tracing::error!(
                        skew_seconds,
                        "the clock differs too much from the API server's: no Job starts"
                    );
                }
                ClockVerdict::Fine => tracing::info!(skew_seconds, "the clock agrees with the API server's"),
                ClockVerdict::Unknown => {}
            }
            self.logged_verdict = verdict;
        }
        let is_holding = self.clock.is_holding_step();
        if is_holding && !self.was_holding {
            tracing::warn!(
                "the wall clock was stepped: the step takes effect when an answer of the API server confirms it"
            );
        }
        self.was_holding = is_holding;
        self.report_retired();
    }

    /// Counts replaced connections, and logs them at most once a minute: while the clock of an API server is wrong, its
    /// connections are replaced again and again.
    fn report_retired(&mut self) {
        let counter = &self.metrics.retired_connections;
        // Clock and counter belong to the process, which may have had other tasks before this one.
        let n_new = self.clock.n_retired_connections().saturating_sub(counter.get());
        counter.inc_by(n_new);
        self.n_unreported += n_new;
        let now = self.clock.boot();
        let is_due = self.reported_at.is_none_or(|at| now.since(at) >= WARNING_INTERVAL);
        if self.n_unreported > 0 && is_due {
            tracing::warn!(
                connections = std::mem::take(&mut self.n_unreported),
                "the clocks of this replica and of an API server differ: the connections to that server are replaced, \
                 and new ones may reach another server"
            );
            self.reported_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::{
        controller::tests::{
            captured_log::CapturedLog,
            fake_server::{self, Response},
        },
        kube_api::http::{ApiConnection, ServerDate},
        telemetry::metrics::Metrics,
    };

    #[derive(Clone)]
    struct FakeApi {
        clock: Clock,
        n_probes: Arc<AtomicUsize>,
        hangs: bool,
    }

    impl FakeApi {
        fn client(&self) -> ApiClient {
            let FakeApi {
                clock, n_probes, hangs, ..
            } = self.clone();
            fake_server::client(&clock, 1, move |_| {
                n_probes.fetch_add(1, Ordering::Relaxed);
                async move {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    Response::stored(1)
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn probes_are_frequent_until_the_clock_is_known() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
            hangs: false,
        };
        let metrics = Metrics::register().clock;
        tokio::spawn(ClockTask::new(api.client(), 1, clock.clone(), metrics).run());
        let n_probes = || api.n_probes.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((n_probes(), clock.verdict()), (2, ClockVerdict::Fine));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!((10..=13).contains(&n_probes()), "{} probes", n_probes());
    }

    #[tokio::test(start_paused = true)]
    async fn probes_continue_when_the_first_answers_change_the_verdict() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let n_answered = Arc::<AtomicUsize>::default();
        let answered = Arc::clone(&n_answered);
        let api = fake_server::client(&clock, 4, move |received| {
            let answered = Arc::clone(&answered);
            async move {
                tokio::time::sleep(Duration::from_millis(1 + 20 * received.connection as u64)).await;
                answered.fetch_add(1, Ordering::Relaxed);
                Response::stored(1)
            }
        });
        let metrics = Metrics::register().clock;
        tokio::spawn(ClockTask::new(api, 4, clock.clone(), metrics).run());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            (n_answered.load(Ordering::Relaxed), clock.verdict()),
            (4, ClockVerdict::Fine)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn every_connection_is_probed_despite_answers_over_others() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
            hangs: false,
        };
        let metrics = Metrics::register().clock;
        tokio::spawn(ClockTask::new(api.client(), 4, clock.clone(), metrics).run());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = api.n_probes.load(Ordering::Relaxed);
        for _ in 0..100 {
            clock.observe_answer(clock.boot(), Some(clock.now()));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(api.n_probes.load(Ordering::Relaxed) - before, 40);
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_step_is_probed_within_a_second() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
            hangs: false,
        };
        let metrics = Metrics::register().clock;
        tokio::spawn(ClockTask::new(api.client(), 1, clock.clone(), metrics).run());
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let before = api.n_probes.load(Ordering::Relaxed);
        clock.step_wall(SignedDuration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        assert!(
            api.n_probes.load(Ordering::Relaxed) > before,
            "the step triggers a probe"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!clock.is_holding_step(), "the answer confirms the step");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_probe_times_out() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
            hangs: true,
        };
        let metrics = Metrics::register().clock;
        tokio::spawn(ClockTask::new(api.client(), 1, clock, metrics).run());
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(api.n_probes.load(Ordering::Relaxed), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_session_does_not_warn_of_connections_again() {
        let log = CapturedLog::begin();
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let wrong = ServerDate {
            at: clock.now() + SignedDuration::from_hours(1),
            connection: Some(ApiConnection::new()),
        };
        for _ in 0..2 {
            clock.observe_answer(clock.boot(), Some(wrong.clone()));
        }
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
            hangs: false,
        };
        let metrics = Metrics::register().clock;
        for _ in 0..2 {
            let mut task = ClockTask::new(api.client(), 1, clock.clone(), metrics.clone());
            task.report_retired();
        }
        assert_eq!(metrics.retired_connections.get(), 1);
        assert_eq!(log.n_lines_with("the connections to that server are replaced"), 1);
    }
}
