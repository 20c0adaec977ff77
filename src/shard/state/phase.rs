//! Whether the shard may act: on standby it only learns, leading it acts, closing it acts and leaves nothing lying, sealed
//! it sees to the end what it began.
//!
//! A shard changes hands without a gap and without an overlap because these are all: the one who takes over learns on
//! standby, the one who gives up decides nothing more from the seal on, and everything that it decided before is answered
//! and stored, or is found still due by the ordinary rule (B-9). What is answered and stored before the seal is not waited
//! for while nobody leads, which is what closing is for.

use jiff::Timestamp;

use super::{ShardConfig, ShardState};
use crate::shard::{
    cron_job::{CronJobState, OpenSlot, SlotStage},
    index::OwnerIndex,
    outcome_counts::{InstantOutcome, OutcomeCounts},
};

/// What a shard may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Takes facts in, has no effects.
    Standby,
    /// Decides and has effects.
    Leading,
    /// Acts, and has statuses written at once. Those that may not be settled are listed.
    Closing(Vec<OwnerIndex>),
    /// Takes answers in and has statuses written at once; decides nothing. Those that may not be settled are listed.
    Sealed(Vec<OwnerIndex>),
}

impl ShardState {
    /// An empty shard that learns until it is told to lead.
    pub fn on_standby(config: ShardConfig, now: Timestamp) -> ShardState {
        ShardState {
            phase: Phase::Standby,
            ..ShardState::new(config, now)
        }
    }

    /// Begins, or begins again, to act: what is due by now is decided by the ordinary rule, if all was listed.
    pub fn lead(&mut self, now: Timestamp) {
        if self.is_leading() {
            return;
        }
        self.phase = Phase::Leading;
        self.look_at_all(now);
    }

    /// Takes facts in and decides nothing until [`ShardState::resume`]: the replica may not act, and its time stands still.
    /// Compared with that time, the Jobs of another replica would look like Jobs of the future.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Decides again, and looks at every CronJob.
    pub fn resume(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.is_paused) && self.phase != Phase::Standby {
            self.look_at_all(now);
        }
    }

    fn look_at_all(&mut self, now: Timestamp) {
        self.follow_clock(now);
        for owner in self.index.owner_indexes() {
            if let Some(cron_job) = self.index.cron_job_mut(owner) {
                cron_job.must_look = true;
            }
            self.evaluate(owner, now);
        }
    }

    /// Has every status written at once from now on and goes on to act: a seal that follows has little to wait for.
    pub fn close(&mut self, now: Timestamp) {
        if !self.is_leading() {
            return;
        }
        self.handle_timeout(now);
        self.begin_to_settle(Phase::Closing, now);
    }

    /// Decides what is due by now and nothing after; every status that is not stored is to be written at once.
    pub fn seal(&mut self, now: Timestamp) {
        if !self.is_leading() {
            return;
        }
        self.handle_timeout(now);
        self.begin_to_settle(Phase::Sealed, now);
    }

    fn begin_to_settle(&mut self, phase: impl Fn(Vec<OwnerIndex>) -> Phase, now: Timestamp) {
        let mut owners: Vec<OwnerIndex> = self.index.owner_indexes().collect();
        self.phase = phase(Vec::new());
        for owner in &owners {
            self.evaluate(*owner, now);
        }
        owners.retain(|owner| {
            self.index
                .cron_job(*owner)
                .is_some_and(|cron_job| !is_settled(cron_job))
        });
        self.phase = phase(owners);
    }

    /// Whether everything that was open when it was closed or sealed is answered and stored. What a shard that is closing
    /// has begun since may not be.
    pub fn is_settled(&mut self) -> bool {
        let (Phase::Closing(unsettled) | Phase::Sealed(unsettled)) = &mut self.phase else {
            return false;
        };
        while let Some(owner) = unsettled.last() {
            if self
                .index
                .cron_job(*owner)
                .is_some_and(|cron_job| !is_settled(cron_job))
            {
                return false;
            }
            unsettled.pop();
        }
        true
    }

    /// Whether it acts.
    pub fn is_leading(&self) -> bool {
        matches!(self.phase, Phase::Leading | Phase::Closing(_))
    }

    /// Ends the shard here: what is open is another's from now on. Gives the final account.
    pub fn retire(mut self) -> OutcomeCounts {
        for owner in self.index.owner_indexes() {
            let open = self.index.cron_job_mut(owner).and_then(|cron_job| cron_job.open.take());
            if open.is_some() {
                self.outcome_counts.close(InstantOutcome::HandedOver);
            }
        }
        self.outcome_counts
    }

    /// A shard that is closing or sealed has its statuses written, at once.
    pub(super) fn flush_status(&mut self, owner: OwnerIndex, now: Timestamp) {
        if let Some(cron_job) = self.index.cron_job_mut(owner) {
            cron_job.is_status_urgent = true;
        }
        self.emit_status(owner, now);
    }
}

/// A status that was refused waits for its next try, and nobody waits for that.
fn is_settled(cron_job: &CronJobState) -> bool {
    let is_asked_about = cron_job.open.as_ref().is_some_and(is_under_way);
    let is_refused = cron_job.n_status_failures > 0 && cron_job.emitted.is_none();
    !is_asked_about && (cron_job.is_status_stored() || cron_job.is_undecodable || is_refused)
}

/// Whether a request about the slot is on its way.
fn is_under_way(open: &OpenSlot) -> bool {
    match open.stage {
        SlotStage::Ordered | SlotStage::Replacing { .. } | SlotStage::LookingUp { .. } => true,
        SlotStage::Suspended
        | SlotStage::Forbidden
        | SlotStage::AlreadyActive
        | SlotStage::AskingLater { .. }
        | SlotStage::BackingOff { .. } => false,
    }
}
