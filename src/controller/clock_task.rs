//! Provides the clock guard with answers of the API server, and reports its verdict.
//!
//! This task probes every connection at a fixed interval, so that each connection is open when a slot is due, even after
//! hours. While the clocks are in doubt it probes often. It replaces connections to servers whose clock contradicts this
//! machine's, since the new connection may reach another server.

use std::time::Duration;

use futures::{
    StreamExt as _,
    future::{BoxFuture, OptionFuture},
    stream::FuturesUnordered,
};

use super::{
    clock::{Clock, ClockVerdict, ProbeAnswer},
    recorded_send::send_recorded,
};
use crate::{
    controller::connections::N_WRITE_CONNECTIONS,
    kube_api::{ApiClient, http::ApiConnection},
    shard::BootInstant,
    telemetry::metrics::{ApiCall, ApiMetrics, ClockMetrics},
};

/// Interval of probes: a drift of a second per minute is noticed in time. It is well below the minutes after which
/// proxies and load balancers close idle connections.
const INTERVAL: Duration = Duration::from_secs(10);

/// The same interval while the clocks are in doubt. It does not divide a second, so that the answers narrow the skew
/// down.
const INTERVAL_IN_DOUBT: Duration = Duration::from_millis(270);

/// Timeout of a probe. On a dead connection a probe would otherwise hang for as long as a request may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);

/// Minimum interval between two replacements of connections. Six TLS handshakes a minute are little for an API server.
const REPLACEMENT_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum interval between two warnings about replaced connections.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum interval between two reads of the clock, since a step of it makes a probe due at once.
const CLOCK_READ_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Time to wait for each other answer of a round after the first one. A connection that is about to break would otherwise
/// delay the verdict.
const OTHERS_PATIENCE: Duration = Duration::from_secs(1);

/// A round of probes that is in flight, with its answers and their connections.
type Probes = BoxFuture<'static, Vec<(ProbeAnswer, Option<ApiConnection>)>>;

/// The task that probes the API server for the clock guard.
pub struct ClockTask {
    api: ApiClient,
    clock: Clock,
    metrics: ClockMetrics,
    /// The instant of the last probes.
    probed_at: Option<BootInstant>,
    logged_verdict: ClockVerdict,
    was_holding: bool,
    /// The last replacement of a connection.
    replaced_at: Option<BootInstant>,
    /// The number of replaced connections that are not logged yet.
    n_unreported: u64,
    /// The last warning about replaced connections.
    reported_at: Option<BootInstant>,
}

impl ClockTask {
    /// Creates a task for this clock that probes over the connections for writes.
    pub fn new(api: ApiClient, clock: Clock, metrics: ClockMetrics) -> ClockTask {
        ClockTask {
            api,
            clock,
            metrics,
            probed_at: None,
            logged_verdict: ClockVerdict::Unknown,
            was_holding: false,
            replaced_at: None,
            n_unreported: 0,
            reported_at: None,
        }
    }

    /// Probes and reports; never returns.
    pub async fn run(mut self) {
        let mut verdict = self.clock.subscribe_verdict();
        let mut probes: Option<Probes> = None;
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
                Some(round) = OptionFuture::from(probes.as_mut()) => {
                    probes = None;
                    self.take_round(round);
                }
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
    fn probe_all(&mut self) -> Probes {
        self.probed_at = Some(self.clock.boot());
        let (api, clock, metrics) = (self.api.clone(), self.clock.clone(), self.metrics.api.clone());
        Box::pin(async move {
            // Concurrent probes take the least busy connection each, so they spread over all. A probe without an answer in
            // time is given up: the next ones follow.
            let mut probes: FuturesUnordered<_> = (0..N_WRITE_CONNECTIONS)
                .map(|_| probe(&api, &clock, &metrics))
                .collect();
            let (mut round, mut patience) = (Vec::new(), PROBE_PATIENCE);
            while let Ok(Some(answer)) = tokio::time::timeout(patience, probes.next()).await {
                round.extend(answer);
                if !round.is_empty() {
                    patience = OTHERS_PATIENCE;
                }
            }
            round
        })
    }

    /// Passes a round to the clock. Replaces one of the connections to servers whose clock contradicts this machine's,
    /// unless another was replaced recently.
    fn take_round(&mut self, round: Vec<(ProbeAnswer, Option<ApiConnection>)>) {
        let answers: Vec<ProbeAnswer> = round.iter().map(|(answer, _)| *answer).collect();
        self.clock.observe(&answers);
        let now = self.clock.boot();
        let is_due = self.replaced_at.is_none_or(|at| now.since(at) >= REPLACEMENT_INTERVAL);
        let mut contradicting = round.into_iter().filter(|(answer, _)| self.clock.contradicts(answer));
        if is_due && let Some(connection) = contradicting.find_map(|(_, connection)| connection) {
            connection.retire();
            self.replaced_at = Some(now);
            self.metrics.retired_connections.inc();
            self.n_unreported += 1;
        }
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
        self.report_replaced();
    }

    /// Logs replaced connections at most once a minute: while the clock of an API server is wrong, its connections are
    /// replaced again and again.
    fn report_replaced(&mut self) {
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

/// Sends a probe. Returns `None` if it has no answer, which is not an answer without a `Date`.
async fn probe(api: &ApiClient, clock: &Clock, metrics: &ApiMetrics) -> Option<(ProbeAnswer, Option<ApiConnection>)> {
    let sent = clock.boot();
    let (answered, _) = send_recorded(clock, metrics, ApiCall::Probe, api.probe()).await;
    answered.code?;
    let (date, connection) = answered.server_date.map(|date| (date.at, date.connection)).unzip();
    let answer = ProbeAnswer {
        sent,
        received: clock.boot(),
        date,
    };
    Some((answer, connection.flatten()))
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
        tokio::spawn(ClockTask::new(api.client(), clock.clone(), metrics).run());
        let n_probes = || api.n_probes.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((n_probes(), clock.verdict()), (N_WRITE_CONNECTIONS, ClockVerdict::Fine));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(n_probes(), 11 * N_WRITE_CONNECTIONS);
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
        tokio::spawn(ClockTask::new(api.client(), clock.clone(), metrics).run());
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
        tokio::spawn(ClockTask::new(api.client(), clock, metrics).run());
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(api.n_probes.load(Ordering::Relaxed), 3 * N_WRITE_CONNECTIONS);
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_one_connection_is_replaced_in_ten_seconds() {
        let log = CapturedLog::begin();
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = fake_server::client(&clock, 1, |_| async { Response::stored(1) });
        let metrics = Metrics::register().clock;
        let mut task = ClockTask::new(api, clock.clone(), metrics.clone());
        let wrong: Vec<ApiConnection> = (0..3).map(|_| ApiConnection::new()).collect();
        for n_replaced in [1, 1, 2] {
            let answer = ProbeAnswer {
                sent: clock.boot(),
                received: clock.boot(),
                date: Some(clock.now() + SignedDuration::from_hours(1)),
            };
            let remaining = wrong.iter().filter(|connection| !connection.is_retired());
            task.take_round(remaining.map(|connection| (answer, Some(connection.clone()))).collect());
            task.report_replaced();
            assert_eq!(
                wrong.iter().filter(|connection| connection.is_retired()).count(),
                n_replaced
            );
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(metrics.retired_connections.get(), 2);
        assert_eq!(log.n_lines_with("the connections to that server are replaced"), 1);
    }
}
