//! How the process ends: in phases, each of which leaves nothing behind for the next.
//!
//! Shards are handed over first, where there is anybody else. Then intake stops, so that no new slot is ordered; creates on the way are answered; their statuses are written;
//! then what is left is told and the process ends. The phases are set by `controller::Controller::run` alone, which joins the tasks
//! of each before it goes on; every task bounds its own part in time.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    coordination::CLOSE_MAX,
    kube_api::ordered_watch::{OrderedReceiver, OrderedSender},
    shard::lifecycle::SEAL_TIMEOUT,
};

/// The longest wait for shards to be handed over.
pub const HANDOVER_GRACE: Duration = Duration::from_secs(12);

const _: () = assert!(
    CLOSE_MAX.as_millis() + SEAL_TIMEOUT.as_millis() + 3_000 <= HANDOVER_GRACE.as_millis(),
    "three seconds are left for the Lease writes"
);

/// The longest wait for creates that were sent and are not answered.
pub const INFLIGHT_GRACE: Duration = Duration::from_secs(8);

/// The longest wait for pending statuses; what is not written then is derived anew by whoever comes next.
pub const STATUS_GRACE: Duration = Duration::from_secs(4);

/// The longest wait for pending Events.
pub const EVENT_GRACE: Duration = Duration::from_secs(1);

/// All graces together. Kubernetes kills a Pod 30 seconds after SIGTERM (`terminationGracePeriodSeconds`); five of them
/// are left for a node that is slow.
const GRACES_MAX: Duration = Duration::from_secs(25);

const _: () = assert!(
    HANDOVER_GRACE.as_millis() + INFLIGHT_GRACE.as_millis() + STATUS_GRACE.as_millis() + EVENT_GRACE.as_millis()
        <= GRACES_MAX.as_millis(),
    "the process must end by itself before Kubernetes kills it"
);

/// How far the process is from its end. Ordered: a later phase includes the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not at all.
    Running,
    /// What others can take over is handed to them.
    HandOver,
    /// Nothing new is taken in; what is on the way is answered.
    StopIntake,
    /// Every answer has been given; the shards take them in and end.
    EndShards,
    /// Pending statuses are written.
    FlushStatuses,
    /// Pending Events are sent.
    FlushEvents,
    /// Everything else ends.
    End,
}

/// A view of the phase. Clones see the same.
#[derive(Clone, Debug)]
pub struct PhaseReceiver(OrderedReceiver<Phase>);

impl PhaseReceiver {
    /// Returns when the phase is reached; may be dropped and called again.
    pub async fn reached(&mut self, phase: Phase) {
        // Without a sender nobody is left who could want anything more.
        let _ = self.0.wait_for(|current| *current >= phase).await;
    }

    /// Whether the phase is reached.
    pub fn has_reached(&self, phase: Phase) -> bool {
        self.0.get() >= phase
    }
}

/// Sets the phase. Clones are one.
#[derive(Clone, Debug)]
pub struct PhaseSender(OrderedSender<Phase>);

impl PhaseSender {
    /// Goes on to a phase; never back.
    pub fn advance(&self, phase: Phase) {
        self.0.update(|current| current.max(phase));
    }

    /// One more view.
    pub fn subscribe(&self) -> PhaseReceiver {
        PhaseReceiver(self.0.subscribe())
    }
}

/// The phase of a process that runs.
pub fn phases() -> PhaseSender {
    PhaseSender(OrderedSender::new(Phase::Running))
}

/// SIGTERM and SIGINT, which mean the same.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on the process does not end by itself on these signals.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Returns at the next signal, with its name.
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
    async fn a_phase_is_reached_by_it_and_by_every_later_one() {
        let phases = phases();
        let mut receiver = phases.subscribe();
        assert!(receiver.reached(Phase::StopIntake).now_or_never().is_none());
        phases.advance(Phase::FlushStatuses);
        assert!(receiver.reached(Phase::StopIntake).now_or_never().is_some());
        assert!(receiver.has_reached(Phase::FlushStatuses));
        assert!(!receiver.has_reached(Phase::FlushEvents));
    }

    #[tokio::test]
    async fn each_signal_is_received_and_named_the_second_too() {
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
