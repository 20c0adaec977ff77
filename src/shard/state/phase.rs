//! Moves a shard from phase to phase ([`ShardPhase`]), and determines when it is idle: when all its requests are
//! answered and its statuses stored.

use jiff::Timestamp;

use super::{ShardState, timers::Timers};
use crate::shard::{ShardPhase, cron_job::CronJobState, index::OwnerIndex};

impl ShardState {
    /// Starts to lead. Everything due by `now` is decided by the ordinary rule, but nothing in a scope is
    /// decided before the scope has been listed.
    pub fn lead(&mut self, now: Timestamp) {
        if self.phase.acts() {
            return;
        }
        self.phase = ShardPhase::Leading;
        // The wheels stood still on standby.
        self.timers = Timers::new(now);
        self.evaluate_all(now);
    }

    /// Records facts without deciding until [`ShardState::resume`]. The replica may not act, and its time does not
    /// advance: compared with that time, Jobs of another replica would appear to be in the future.
    pub fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Decides again, and evaluates every CronJob.
    pub fn resume(&mut self, now: Timestamp) {
        if std::mem::take(&mut self.is_paused) && self.phase != ShardPhase::Standby {
            self.evaluate_all(now);
        }
    }

    fn evaluate_all(&mut self, now: Timestamp) {
        self.follow_clock(now);
        for owner in self.index.owner_indexes() {
            if let Some(cron_job) = self.index.get_cron_job_mut(owner) {
                cron_job.must_decide = true;
            }
            self.evaluate(owner, now);
        }
    }

    /// From this point, writes every status at once while the shard continues to act, so that a later seal waits
    /// less.
    pub fn close(&mut self, now: Timestamp) {
        self.advance_to(ShardPhase::Closing, now);
    }

    /// Decides the slots that are due by `now`, and no later ones. Every unstored status is written at once. A paused
    /// shard leaves the slots to its next leader.
    pub fn seal(&mut self, now: Timestamp) {
        self.advance_to(ShardPhase::Sealed, now);
    }

    /// Decides the slots that are due, begins the phase, in which every status is written at once, and notes the busy
    /// CronJobs.
    fn advance_to(&mut self, phase: ShardPhase, now: Timestamp) {
        if !self.phase.acts() {
            return;
        }
        self.handle_timeout(now);
        let mut owners: Vec<OwnerIndex> = self.index.owner_indexes().collect();
        self.phase = phase;
        for owner in &owners {
            self.evaluate(*owner, now);
        }
        owners.retain(|owner| self.is_busy(*owner));
        self.busy = owners;
    }

    /// Whether everything that was open at the close or the seal, or that was ordered since, is answered and stored.
    /// Always false before the shard is closing. Forgets the CronJobs that it finds idle.
    pub fn check_idle(&mut self) -> bool {
        if self.phase < ShardPhase::Closing {
            return false;
        }
        while let Some(owner) = self.busy.last() {
            if self.is_busy(*owner) {
                return false;
            }
            self.busy.pop();
        }
        true
    }

    fn is_busy(&self, owner: OwnerIndex) -> bool {
        self.index
            .get_cron_job(owner)
            .is_some_and(|cron_job| !is_idle(cron_job))
    }

    /// Whether the shard acts and is not paused.
    pub fn decides(&self) -> bool {
        self.phase.acts() && !self.is_paused
    }

    /// Whether anything may be decided: the shard decides, and a scope has been listed.
    pub(super) fn may_decide_at_all(&self) -> bool {
        self.relists.is_any_synced() && self.decides()
    }

    /// The phase of the shard.
    pub fn phase(&self) -> ShardPhase {
        self.phase
    }

    /// Ends the leadership: the shard keeps what it knows of CronJobs and Jobs, and forgets what it has decided. Effects
    /// that were not polled are lost, and open slots belong to the next leader.
    pub fn stand_by(&mut self, now: Timestamp) {
        self.phase = ShardPhase::Standby;
        self.fired_through = None;
        self.outbox.clear();
        self.busy.clear();
        self.timers = Timers::new(now);
        for owner in self.index.owner_indexes() {
            if self.index.get_cron_job(owner).is_some() {
                self.forget_leadership(owner);
            }
        }
        for job in self.index.job_indexes() {
            self.index.forget_leadership_of(job);
        }
    }

    /// Emits the status as urgent, for a closing or sealed shard.
    pub(super) fn flush_status(&mut self, owner: OwnerIndex, now: Timestamp) {
        self.index.cron_job_mut(owner).is_status_urgent = true;
        self.emit_status(owner, now);
    }
}

/// Whether no request about the slot is in flight and the status is stored. A refused status waits for its next attempt
/// and does not delay the handover.
fn is_idle(cron_job: &CronJobState) -> bool {
    let has_request_in_flight = cron_job.has_request_in_flight();
    let has_failed_write = cron_job.n_status_failures > 0 && cron_job.emitted.is_none();
    !has_request_in_flight && (cron_job.is_status_stored() || cron_job.unusable.is_some() || has_failed_write)
}
