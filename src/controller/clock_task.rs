//! Provides the clock guard with answers of the API server, and reports its verdict.
//!
//! While requests flow, their answers are enough for the clock; otherwise this task sends probes. While the clocks are
//! in doubt it probes often, over every connection. At other times it probes every connection at a fixed interval, so
//! that each connection is open when a slot is due, even after hours.

use std::time::Duration;

use futures::future::join_all;

use super::{
    Session,
    clock::{Clock, ClockVerdict},
    recorded_send::send_recorded,
    shutdown::{Phase, PhaseReceiver},
    tasks::Task,
};
use crate::{
    controller::connections::N_WRITE_CONNECTIONS,
    kube_api::ApiClient,
    shard::BootInstant,
    telemetry::metrics::{ApiCall, ClockMetrics},
};

/// Minimum interval between two probes, answered or not.
const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(250);

/// Interval of probes over every connection: well below the minutes after which proxies and load balancers close idle
/// ones.
const CONNECTION_INTERVAL: Duration = Duration::from_secs(10);

/// Timeout of a probe. On a dead connection a probe would otherwise hang for as long as a request may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

/// Minimum interval between two warnings about replaced connections. While one server's clock is wrong, connections may
/// be replaced every ten seconds.
const RETIRED_WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum interval between two reads of the clock, since a step of it makes a probe due at once.
const CLOCK_READ_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The task that probes the API server for the clock guard.
pub struct ClockTask {
    api: ApiClient,
    n_connections: usize,
    clock: Clock,
    phase: PhaseReceiver,
    metrics: ClockMetrics,
    /// Earliest time of the next probe.
    not_before: BootInstant,
    /// The instant of the next probe over every connection.
    connections_due: BootInstant,
    logged_verdict: ClockVerdict,
    was_holding: bool,
    n_retired_logged: u64,
    /// Earliest time of the next warning about retired connections.
    retired_due: BootInstant,
}

impl Session {
    pub(super) fn spawn_clock(&self) -> Task {
        let metrics = self.metrics.clock.clone();
        let task = ClockTask::new(
            self.api.clone(),
            N_WRITE_CONNECTIONS,
            self.clock.clone(),
            self.phases.subscribe(),
            metrics,
        );
        self.start("clock", Phase::End, task.run())
    }
}

impl ClockTask {
    /// Creates a task for this clock that probes over `n_connections` connections.
    pub fn new(
        api: ApiClient,
        n_connections: usize,
        clock: Clock,
        phase: PhaseReceiver,
        metrics: ClockMetrics,
    ) -> ClockTask {
        let started = clock.boot();
        ClockTask {
            api,
            n_connections,
            clock,
            phase,
            metrics,
            not_before: started,
            connections_due: started,
            logged_verdict: ClockVerdict::Unknown,
            was_holding: false,
            n_retired_logged: 0,
            retired_due: started,
        }
    }

    /// Runs until [`Phase::End`].
    pub async fn run(mut self) {
        let mut phase = self.phase.clone();
        let mut verdict = self.clock.watch_verdict();
        loop {
            // Reading the clock detects a step.
            self.clock.now();
            self.report_verdict();
            let pause = self.until_probe().min(CLOCK_READ_INTERVAL_MAX);
            tokio::select! {
                biased;
                () = phase.reached(Phase::End) => return,
                _ = verdict.changed() => {}
                () = self.probe_after(pause) => {}
            }
        }
    }

    fn until_probe(&self) -> Duration {
        let now = self.clock.boot();
        let wanted = self.clock.until_answer_wanted().max(self.not_before.since(now));
        wanted.min(self.connections_due.since(now))
    }

    /// Cancel safe.
    async fn probe_after(&mut self, pause: Duration) {
        tokio::time::sleep(pause).await;
        if !self.until_probe().is_zero() {
            return;
        }
        let now = self.clock.boot();
        self.not_before = now + PROBE_INTERVAL_MIN;
        let is_due = self.connections_due <= now;
        if is_due {
            self.connections_due = now + CONNECTION_INTERVAL;
        }
        // Concurrent probes take the least busy connection each, so they spread over all. In doubt every connection is
        // probed, since the majority decides.
        let is_in_doubt = self.clock.verdict() != ClockVerdict::Fine || self.clock.is_holding_step();
        let n_probes = if is_due || is_in_doubt { self.n_connections } else { 1 };
        let probes = join_all((0..n_probes).map(|_| self.probe()));
        // Probes without an answer in time are repeated soon, since the guard still requires an answer.
        let _ = tokio::time::timeout(PROBE_PATIENCE, probes).await;
    }

    async fn probe(&self) {
        send_recorded(&self.clock, &self.metrics.api, ApiCall::Probe, self.api.probe()).await;
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
        self.log_retired();
    }

    fn log_retired(&mut self) {
        let n_retired = self.clock.n_retired_connections();
        let n_before = self.metrics.retired_connections.get();
        self.metrics
            .retired_connections
            .inc_by(n_retired.saturating_sub(n_before));
        let now = self.clock.boot();
        if n_retired > self.n_retired_logged && self.retired_due <= now {
            tracing::warn!(
                connections = n_retired - self.n_retired_logged,
                "the clock of an API server differs from this replica's: its connections are replaced, and new ones may \
                 reach another server"
            );
            self.n_retired_logged = n_retired;
            self.retired_due = now + RETIRED_WARNING_INTERVAL;
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
        controller::{
            shutdown::phases,
            tests::fake_server::{self, Response},
        },
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
        let phases = phases();
        let metrics = Metrics::register().unwrap().clock;
        let task = tokio::spawn(ClockTask::new(api.client(), 1, clock.clone(), phases.subscribe(), metrics).run());
        let n_probes = || api.n_probes.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((n_probes(), clock.verdict()), (2, ClockVerdict::Fine));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!((10..=13).contains(&n_probes()), "{} probes", n_probes());

        phases.advance(Phase::End);
        task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn every_connection_is_probed_despite_answers_over_others() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
            hangs: false,
        };
        let phases = phases();
        let metrics = Metrics::register().unwrap().clock;
        tokio::spawn(ClockTask::new(api.client(), 4, clock.clone(), phases.subscribe(), metrics).run());
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
        let phases = phases();
        let metrics = Metrics::register().unwrap().clock;
        tokio::spawn(ClockTask::new(api.client(), 1, clock.clone(), phases.subscribe(), metrics).run());
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
        let phases = phases();
        let metrics = Metrics::register().unwrap().clock;
        tokio::spawn(ClockTask::new(api.client(), 1, clock, phases.subscribe(), metrics).run());
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(api.n_probes.load(Ordering::Relaxed), 3);
    }
}
