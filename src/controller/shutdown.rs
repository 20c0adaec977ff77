//! Shutdown of the process in phases. Each phase completes before the next one begins.
//!
//! Shards are handed over first, if another replica can lead them. Then intake stops, so that no new slot is ordered.
//! Creates in flight are answered, their statuses are written, pending Events are sent, and the process ends. Only
//! `controller::Controller::run` sets the phase; it joins the tasks of each phase before it sets the next. Every task
//! bounds the time of its own part.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    coordination::CLOSE_MAX,
    kube_api::latest_value::{LatestReceiver, LatestSender},
    shard::held_shards::sealing::SEAL_TIMEOUT,
};

/// Maximum wait for shards to be handed over.
pub const HANDOVER_GRACE: Duration = Duration::from_secs(14);

const _: () = assert!(
    CLOSE_MAX.as_millis() + SEAL_TIMEOUT.as_millis() + 3_000 <= HANDOVER_GRACE.as_millis(),
    "three seconds are left for the Lease writes"
);

/// Maximum wait for creates that were sent and are not answered. A later leader finds the Job of an unanswered create by
/// its name.
pub const IN_FLIGHT_GRACE: Duration = Duration::from_secs(6);

/// Maximum wait for pending statuses. The next leader derives those that are not written by then.
pub const STATUS_GRACE: Duration = Duration::from_secs(4);

/// Maximum wait for pending Events.
pub const EVENT_GRACE: Duration = Duration::from_secs(1);

/// Upper bound of all graces together. Kubernetes kills a Pod 30 seconds after SIGTERM
/// (`terminationGracePeriodSeconds`); five seconds are left for a slow node.
const GRACES_MAX: Duration = Duration::from_secs(25);

const _: () = assert!(
    HANDOVER_GRACE.as_millis() + IN_FLIGHT_GRACE.as_millis() + STATUS_GRACE.as_millis() + EVENT_GRACE.as_millis()
        <= GRACES_MAX.as_millis(),
    "the process must end by itself before Kubernetes kills it"
);

/// Progress of the shutdown. Ordered: a later phase includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No shutdown is in progress.
    Running,
    /// Shards are handed over to other replicas.
    HandOver,
    /// No new work is taken in; requests in flight are answered.
    StopIntake,
    /// Every request has been answered; the shards process the answers and end.
    EndShards,
    /// Pending statuses are written.
    FlushStatuses,
    /// Pending Events are sent.
    FlushEvents,
    /// Everything else ends.
    End,
}

/// A receiver of the phase. Clones observe the same phase.
#[derive(Clone, Debug)]
pub struct PhaseReceiver(LatestReceiver<Phase>);

impl PhaseReceiver {
    /// Returns when the phase is reached. Cancel safe.
    pub async fn reached(&mut self, phase: Phase) {
        self.0.wait_for(|current| *current >= phase).await;
    }

    /// Whether the phase has been reached.
    pub fn has_reached(&self, phase: Phase) -> bool {
        self.0.get() >= phase
    }
}

/// Sets the phase. Clones set the same phase.
#[derive(Clone, Debug)]
pub struct PhaseSender(LatestSender<Phase>);

impl PhaseSender {
    /// Advances to a phase; an earlier phase has no effect.
    pub fn advance(&self, phase: Phase) {
        self.0.update(|current| current.max(phase));
    }

    /// Returns another receiver.
    pub fn subscribe(&self) -> PhaseReceiver {
        PhaseReceiver(self.0.subscribe())
    }
}

/// Returns a sender whose phase is [`Phase::Running`].
pub fn phases() -> PhaseSender {
    PhaseSender(LatestSender::new(Phase::Running))
}

/// SIGTERM and SIGINT; both start the shutdown.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the signal handlers. From this call on, the signals do not end the process by themselves.
    ///
    /// # Errors
    ///
    /// If a handler cannot be installed.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use rustix::process::{Signal, getpid, kill_process};

    use super::{Phase, Signals, phases};

    #[tokio::test]
    async fn a_phase_is_reached_once_a_later_phase_begins() {
        let phases = phases();
        let mut receiver = phases.subscribe();
        assert!(receiver.reached(Phase::StopIntake).now_or_never().is_none());
        phases.advance(Phase::FlushStatuses);
        assert!(receiver.reached(Phase::StopIntake).now_or_never().is_some());
        assert!(receiver.has_reached(Phase::FlushStatuses));
        assert!(!receiver.has_reached(Phase::FlushEvents));
    }

    #[tokio::test]
    async fn repeated_signals_are_received_and_named() {
        let mut signals = Signals::listen().unwrap();
        for (signal, name) in [
            (Signal::TERM, "SIGTERM"),
            (Signal::INT, "SIGINT"),
            (Signal::INT, "SIGINT"),
        ] {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(signals.next().await, name);
        }
    }

    #[tokio::test]
    async fn phases_never_go_back() {
        let phases = phases();
        phases.advance(Phase::End);
        phases.advance(Phase::StopIntake);
        assert!(phases.subscribe().has_reached(Phase::End));
    }
}
