//! The phase of a shard. On standby it only records facts, leading it acts, closing it acts and has statuses written at
//! once, and sealed it finishes what it began.
//!
//! These phases hand a shard over without a gap and without an overlap. The next leader loads it on standby. The old
//! leader decides nothing after the seal, and every earlier decision is answered and stored, or its slot is found still
//! due by the ordinary rule (B-9). Closing precedes the seal so that most answers and status writes complete while the
//! shard still has a leader.

use jiff::Timestamp;

use super::{ShardConfig, ShardState};
use crate::shard::{
    cron_job::{CronJobState, OpenSlot, SlotStage},
    index::OwnerIndex,
    outcome_counts::{InstantOutcome, OutcomeCounts},
};

/// The phase of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Records facts, has no effects.
    Standby,
    /// Decides, has effects.
    Leading,
    /// Acts, and has statuses written at once. Lists the CronJobs that may not be settled.
    Closing(Vec<OwnerIndex>),
    /// Handles answers and has statuses written at once; decides nothing. Lists the CronJobs that may not be settled.
    Sealed(Vec<OwnerIndex>),
}

impl ShardState {
    /// Creates an empty shard on standby.
    pub fn on_standby(config: ShardConfig, now: Timestamp) -> ShardState {
        ShardState {
            phase: Phase::Standby,
            ..ShardState::new(config, now)
        }
    }

    /// Starts or resumes leading. Everything due by `now` is decided by the ordinary rule, if all scopes are listed.
    pub fn lead(&mut self, now: Timestamp) {
        if self.is_leading() {
            return;
        }
        self.phase = Phase::Leading;
        self.look_at_all(now);
    }

    /// Records facts without deciding until [`ShardState::resume`]. The replica may not act, and its time does not
    /// advance: compared with that time, Jobs of another replica would appear to be in the future.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Decides again, and evaluates every CronJob.
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

    /// Writes every status at once from this point while the shard continues to act, so that a later seal waits less.
    pub fn close(&mut self, now: Timestamp) {
        if !self.is_leading() {
            return;
        }
        self.handle_timeout(now);
        self.begin_to_settle(Phase::Closing, now);
    }

    /// Decides what is due by `now` and nothing later. Every unstored status is written at once.
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

    /// Whether everything that was open at the close or the seal is answered and stored. Slots that a closing shard has
    /// begun since may still be open.
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

    /// Whether the shard acts.
    pub fn is_leading(&self) -> bool {
        matches!(self.phase, Phase::Leading | Phase::Closing(_))
    }

    /// Ends the shard in this replica; open slots belong to the next leader. Returns the final counts.
    pub fn retire(mut self) -> OutcomeCounts {
        for owner in self.index.owner_indexes() {
            let open = self.index.cron_job_mut(owner).and_then(|cron_job| cron_job.open.take());
            if open.is_some() {
                self.outcome_counts.close(InstantOutcome::HandedOver);
            }
        }
        self.outcome_counts
    }

    /// Emits the status as urgent, for a closing or sealed shard.
    pub(super) fn flush_status(&mut self, owner: OwnerIndex, now: Timestamp) {
        if let Some(cron_job) = self.index.cron_job_mut(owner) {
            cron_job.is_status_urgent = true;
        }
        self.emit_status(owner, now);
    }
}

/// Whether no request about the slot is in flight and the status is stored. A refused status waits for its next attempt
/// and does not delay the handover.
fn is_settled(cron_job: &CronJobState) -> bool {
    let is_asked_about = cron_job.open.as_ref().is_some_and(is_under_way);
    let is_refused = cron_job.n_status_failures > 0 && cron_job.emitted.is_none();
    !is_asked_about && (cron_job.is_status_stored() || cron_job.is_undecodable || is_refused)
}

/// Whether a request about the slot is in flight.
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
