//! Keeps the clock guard supplied with answers, and tells what it finds.
//!
//! While requests flow their answers are enough; otherwise this task asks for one now and then, and often while the
//! clocks are in doubt. It asks over every connection at once: so they are open when something is due, also after hours.

use std::{future::Future, time::Duration};

use futures::future::join_all;

use super::{
    clock::{Clock, ClockVerdict},
    metrics::{ApiCall, ClockMetrics},
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    cluster::{Answered, ClusterApi},
    state::sharding::BootInstant,
};

/// The least time between two questions, answered or not.
const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(250);

/// The call that brings a `Date`; a fake of it stands for the API server in tests.
pub trait ProbeApi: Clone + Send + Sync + 'static {
    /// Asks something cheap, over the least busy connection.
    fn probe(&self) -> impl Future<Output = Answered<()>> + Send;
}

impl ProbeApi for ClusterApi {
    async fn probe(&self) -> Answered<()> {
        ClusterApi::probe(self).await
    }
}

/// See the module.
#[derive(Debug)]
pub struct ClockTask<A> {
    api: A,
    n_connections: usize,
    clock: Clock,
    phase: PhaseReceiver,
    metrics: ClockMetrics,
    /// No question before this.
    not_before: BootInstant,
    told_verdict: ClockVerdict,
    told_holding: bool,
}

impl<A: ProbeApi> ClockTask<A> {
    /// A task for this clock, which asks over so many connections.
    pub fn new(
        api: A,
        n_connections: usize,
        clock: Clock,
        phase: PhaseReceiver,
        metrics: ClockMetrics,
    ) -> ClockTask<A> {
        let not_before = clock.boot();
        ClockTask {
            api,
            n_connections,
            clock,
            phase,
            metrics,
            not_before,
            told_verdict: ClockVerdict::Unknown,
            told_holding: false,
        }
    }

    /// Works until the end.
    pub async fn run(mut self) {
        let mut phase = self.phase.clone();
        let mut verdict = self.clock.watch_verdict();
        loop {
            self.tell();
            let not_yet = self.not_before.since(self.clock.boot());
            let pause = self.clock.until_answer_wanted().max(not_yet);
            tokio::select! {
                biased;
                () = phase.reached(Phase::End) => return,
                _ = verdict.changed() => {}
                () = self.probe_after(pause) => {}
            }
        }
    }

    /// May be dropped and called again.
    async fn probe_after(&mut self, pause: Duration) {
        tokio::time::sleep(pause).await;
        if !self.clock.until_answer_wanted().is_zero() {
            return;
        }
        self.not_before = self.clock.boot() + PROBE_INTERVAL_MIN;
        join_all((0..self.n_connections).map(|_| self.probe())).await;
    }

    async fn probe(&self) {
        let sent = self.clock.boot();
        let answered = self.api.probe().await;
        self.metrics
            .api
            .record(ApiCall::Probe, answered.code, self.clock.boot().since(sent));
        if answered.code.is_some() {
            self.clock.observe_answer(sent, answered.server_date);
        }
    }

    fn tell(&mut self) {
        let (verdict, skew) = (self.clock.verdict(), self.clock.skew());
        let skew_seconds = skew.map_or(0.0, |skew| skew.as_secs_f64());
        self.metrics.skew.set(skew_seconds);
        self.metrics.alarm.set(i64::from(verdict == ClockVerdict::Alarm));
        if verdict != self.told_verdict {
            match verdict {
                ClockVerdict::Alarm => {
                    tracing::error!(
                        skew_seconds,
                        "clock differs from the API server's too much: nothing is fired"
                    );
                }
                ClockVerdict::Fine => tracing::info!(skew_seconds, "clock agrees with the API server's"),
                ClockVerdict::Unknown => {}
            }
            self.told_verdict = verdict;
        }
        let is_holding = self.clock.is_holding_step();
        if is_holding && !self.told_holding {
            tracing::warn!("wall clock was stepped: not followed until the API server's answers bear it out");
        }
        self.told_holding = is_holding;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use jiff::Timestamp;

    use super::*;
    use crate::{
        cluster::Answer,
        runtime::{metrics::Metrics, shutdown::phases},
    };

    #[derive(Clone)]
    struct FakeApi {
        clock: Clock,
        n_probes: Arc<AtomicUsize>,
    }

    impl ProbeApi for FakeApi {
        async fn probe(&self) -> Answered<()> {
            self.n_probes.fetch_add(1, Ordering::Relaxed);
            Answered {
                answer: Answer::Outcome(()),
                code: Some(200),
                server_date: Some(self.clock.now()),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_asks_soon_until_the_clock_is_known_and_then_when_idle() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse::<Timestamp>().unwrap());
        let api = FakeApi {
            clock: clock.clone(),
            n_probes: Arc::default(),
        };
        let phases = phases();
        let metrics = Metrics::register().unwrap().clock;
        let task = tokio::spawn(ClockTask::new(api.clone(), 1, clock.clone(), phases.subscribe(), metrics).run());
        let n_probes = || api.n_probes.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!((n_probes(), clock.verdict()), (2, ClockVerdict::Fine));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!((10..=13).contains(&n_probes()), "{} probes", n_probes());

        let before = n_probes();
        for _ in 0..100 {
            clock.observe_answer(clock.boot(), Some(clock.now()));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(n_probes(), before, "other answers are enough");
        phases.advance(Phase::End);
        task.await.unwrap();
    }
}
