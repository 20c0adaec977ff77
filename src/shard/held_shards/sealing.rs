//! Seals the shards of a replica after the election's commands, one shard at a time while the API server is quick.
//!
//! A shard that is sealed passes through these states:
//!
//! - Closing: the shard still acts. It is sealed once it is idle, and at the time limit of the order in any case. A shard is
//!   idle when its requests are answered and its statuses are stored. A shard that is handed over also waits until no Job
//!   of it is due soon, and until another shard may be sealed.
//! - Sealed: no replica acts for the shard until the next leader does.
//! - Reported: the seal was reported to the election, once the shard was idle or two seconds after the seal.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{HeldShards, held::Held};
use crate::shard::{BootInstant, Clocks, SealOrder, ShardPhase, ShardReport, ShardSet};

/// How long a sealed shard waits for outstanding answers and status writes.
pub const SEAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A shard that is due within this time starts its Jobs before it is sealed, so that they are not late by the handover.
const SEAL_CLEARANCE: SignedDuration = SignedDuration::from_millis(200);

/// The shards that are sealed, and when the next one may be.
#[derive(Debug, Default)]
pub(super) struct SealQueue {
    /// The shards with an order to seal them.
    pub(super) shards: ShardSet,
    /// The next seal is timed from here: from the last seal of a shard that another member will lead, or from the last
    /// `next_seal_at` at which no shard was ready.
    timed_from: Option<BootInstant>,
}

/// The end of a leadership.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealing {
    order: SealOrder,
    step: SealStep,
}

/// The state of a shard after the order to seal it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealStep {
    /// The shard acts until it is idle and may be sealed, or until the time limit of the order.
    Closing,
    /// The shard waits for missing answers. It has started every slot that was due at `fired_through`, the wall time of
    /// the seal; `None` if the shard was never led, or was paused.
    Sealed {
        at: BootInstant,
        fired_through: Option<Timestamp>,
    },
    /// The shard was reported as sealed, and is held until its Lease names another holder.
    Reported,
}

impl Sealing {
    /// The time limit of the step.
    pub(super) fn until(&self) -> Option<BootInstant> {
        match self.step {
            SealStep::Closing => Some(self.order.close_by),
            SealStep::Sealed { at, .. } => Some(at + SEAL_TIMEOUT),
            SealStep::Reported => None,
        }
    }
}

impl HeldShards {
    /// Begins to seal a shard, or shortens the time limit of a shard that is not sealed yet. Its statuses are written
    /// at once from here on.
    pub(super) fn begin_to_seal(&mut self, order: SealOrder, clocks: Clocks) {
        self.takeovers.shards.remove(order.shard_term.shard);
        self.sealing.shards.insert(order.shard_term.shard);
        self.update(order.shard_term.shard, |held| {
            let begun = held.sealing.filter(|begun| begun.order.shard_term == order.shard_term);
            let close_by = begun.map_or(order.close_by, |begun| begun.order.close_by.min(order.close_by));
            held.sealing = Some(Sealing {
                order: SealOrder { close_by, ..order },
                step: begun.map_or(SealStep::Closing, |begun| begun.step),
            });
            // A shard that is being taken over is not led any more.
            held.takeover = None;
            if held.state.phase() == ShardPhase::Leading {
                held.state.close(clocks.wall);
            }
        });
    }

    /// Seals one shard at a time, because no replica acts for a sealed shard until its next leader does. If the API
    /// server is slow, further shards are sealed sooner, so that they do not reach their time limit together.
    pub(super) fn advance_sealing(&mut self, clocks: Clocks) {
        let is_due = self.next_seal_at().is_some_and(|at| at <= clocks.boot);
        let has_room = is_due || !self.sealed().any(Held::is_without_leader);
        let mut is_sealed = false;
        for shard in self.sealing.shards.iter() {
            let Some(held) = self.held.get_mut(&shard) else {
                continue;
            };
            let was_without_leader = held.is_without_leader();
            held.seal_when_idle(has_room && !is_sealed, clocks);
            is_sealed |= !was_without_leader && held.is_without_leader();
            self.changed.insert(shard);
            self.with_effects.insert(shard);
            self.takeovers.reports.extend(held.report_when_idle(clocks));
        }
        if is_due || is_sealed {
            self.sealing.timed_from = Some(clocks.boot);
        }
    }

    /// The shards with an order to seal them.
    fn sealed(&self) -> impl Iterator<Item = &Held> {
        self.sealing.shards.iter().filter_map(|shard| self.held.get(&shard))
    }

    /// The instant of the next step of a shard that is sealed.
    pub(super) fn next_sealing_step(&self) -> Option<BootInstant> {
        let until = self.sealed().filter_map(|held| held.sealing?.until());
        until.chain(self.next_seal_at()).min()
    }

    /// The instant from which another shard is sealed although one is still without a leader. The time left is divided
    /// equally among the waiting shards.
    fn next_seal_at(&self) -> Option<BootInstant> {
        let timed_from = self.sealing.timed_from?;
        let limit = |held: &Held| Some(held.closing()?.close_by);
        let limits = || self.sealed().filter_map(limit);
        let left = limits().min()?.since(timed_from);
        Some(timed_from + left / u32::try_from(limits().count()).unwrap_or(u32::MAX))
    }
}

impl Held {
    /// The order to seal the shard, while the shard is closing.
    fn closing(&self) -> Option<SealOrder> {
        let sealing = self.sealing.filter(|sealing| sealing.step == SealStep::Closing);
        sealing.map(|sealing| sealing.order)
    }

    /// Whether the shard has no leader until its next leader takes over.
    fn is_without_leader(&self) -> bool {
        self.sealing
            .is_some_and(|sealing| sealing.order.has_other_taker && sealing.step != SealStep::Closing)
    }

    /// Seals the shard if it is ready and another shard may be sealed, and at its time limit in any case.
    fn seal_when_idle(&mut self, has_room: bool, clocks: Clocks) {
        let Some(order) = self.closing() else { return };
        let is_late = order.close_by <= clocks.boot;
        if is_late || ((has_room || !order.has_other_taker) && self.may_be_sealed(clocks.wall)) {
            let fired_through = self.state.decides().then_some(clocks.wall);
            self.state.seal(clocks.wall);
            let at = clocks.boot;
            let step = SealStep::Sealed { at, fired_through };
            self.sealing = Some(Sealing { order, step });
        }
    }

    /// The report of the sealed shard, once it is idle or at its time limit.
    fn report_when_idle(&mut self, clocks: Clocks) -> Option<ShardReport> {
        let Sealing { order, step } = self.sealing?;
        let SealStep::Sealed { at, fired_through } = step else {
            return None;
        };
        let was_led = self.state.phase() == ShardPhase::Sealed;
        if was_led && !self.state.check_idle() && clocks.boot < at + SEAL_TIMEOUT {
            return None;
        }
        let step = SealStep::Reported;
        self.sealing = Some(Sealing { order, step });
        Some(ShardReport::Sealed {
            shard_term: order.shard_term,
            at,
            fired_through,
            // A shard whose takeover was not complete has an unproved view, so its next leader proves its own.
            written_through: was_led.then(|| self.written_through()),
        })
    }

    /// Whether the shard is idle and no Job is due shortly.
    fn may_be_sealed(&mut self, wall: Timestamp) -> bool {
        if !self.state.phase().acts() {
            return true;
        }
        let is_about_to_fire = self.state.next_wakeup().is_some_and(|wakeup| {
            let left = wakeup.duration_since(wall);
            left > SignedDuration::ZERO && left <= SEAL_CLEARANCE
        });
        self.state.check_idle() && !is_about_to_fire
    }
}
