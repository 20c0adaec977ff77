//! The ends of slots: each is counted, and passed to the log if it is selected.

use jiff::{SignedDuration, Timestamp};

use super::{ShardState, order};
use crate::shard::{
    index::OwnerIndex,
    outcome_counts::InstantOutcome,
    run_log::{EndedRun, LoggedRuns, LostSlots, RunEnd, shortened},
    seconds::Seconds,
};

impl ShardState {
    /// Ends the open slot without a Job. The slot is not opened again, unless its deadline grows.
    pub(super) fn close_slot(&mut self, owner: OwnerIndex, outcome: InstantOutcome) {
        let next = self.index.cron_job(owner).armed.get();
        self.close_slot_before(owner, outcome, next);
    }

    /// [`ShardState::close_slot`], with the next slot if it is not armed yet.
    pub(super) fn close_slot_before(&mut self, owner: OwnerIndex, outcome: InstantOutcome, next: Option<Timestamp>) {
        let cron_job = self.index.cron_job_mut(owner);
        if let Some(open) = cron_job.open.take() {
            cron_job.ended_slot = Some((Seconds::new(Some(open.slot)), outcome));
            // The next of several due slots starts now.
            let has_others = cron_job.record.schedule.options().start_several();
            cron_job.must_decide |= has_others && outcome.is_over();
            self.outcome_counts.close(outcome);
            self.log_lost(owner, open.slot, outcome, next);
        }
    }

    /// Ends the open slot, unless an answer about it is outstanding.
    pub(super) fn close_unless_in_flight(&mut self, owner: OwnerIndex, outcome: InstantOutcome) {
        let cron_job = self.index.cron_job_mut(owner);
        if let Some(open) = cron_job.open.take_if(|open| !open.must_be_settled()) {
            self.outcome_counts.close(outcome);
            if outcome.is_started() {
                self.log_started(owner, open.slot, outcome, None);
            } else {
                self.log_lost(owner, open.slot, outcome, None);
            }
        }
    }

    /// Ends the open slot if the cursor has reached it, because its Job was found (B-5.1 and its difference).
    pub(super) fn close_behind_cursor(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job(owner);
        let cursor = cron_job.current_status().last_schedule_time;
        if cron_job.open.as_ref().is_some_and(|open| cursor >= Some(open.slot)) {
            self.close_unless_in_flight(owner, InstantOutcome::Adopted);
        }
    }

    /// Logs a slot that ended without its Job, if its outcome is a loss.
    pub(super) fn log_lost(
        &mut self,
        owner: OwnerIndex,
        slot: Timestamp,
        outcome: InstantOutcome,
        next: Option<Timestamp>,
    ) {
        if outcome.is_lost() && self.ended_runs.logs(outcome) {
            let cron_job = self.index.cron_job_mut(owner);
            let (slots, error) = (LostSlots::One(slot), cron_job.take_error());
            let next = next.and_then(|next| cron_job.record.schedule.wanted_from(next));
            self.log_run(owner, outcome, RunEnd::Lost { slots, error, next });
        }
    }

    /// Logs the slots that passed before a slot and were never open.
    pub(super) fn log_passed(&self, owner: OwnerIndex, n_slots: u64, before: Timestamp, outcome: InstantOutcome) {
        if n_slots > 0 && self.ended_runs.logs(outcome) {
            let after = order::counted_through(self.index.cron_job(owner), self.fired_through);
            let slots = LostSlots::Between { after, before, n_slots };
            let (error, next) = (None, Some(before));
            self.log_run(owner, outcome, RunEnd::Lost { slots, error, next });
        }
    }

    /// Logs a slot that has its Job.
    pub(super) fn log_started(
        &self,
        owner: OwnerIndex,
        slot: Timestamp,
        outcome: InstantOutcome,
        lateness: Option<SignedDuration>,
    ) {
        if self.ended_runs.logs(outcome) {
            let job = self.index.cron_job(owner).record.job_name(slot);
            self.log_run(owner, outcome, RunEnd::Started { slot, job, lateness });
        }
    }

    /// Logs a run that was asked for and has its Job.
    pub(super) fn log_asked(&self, owner: OwnerIndex, token: &str, outcome: InstantOutcome) {
        if self.ended_runs.logs(outcome) {
            let (token, job) = (token.into(), self.index.cron_job(owner).record.run_job_name(token));
            self.log_run(owner, outcome, RunEnd::Asked { token, job });
        }
    }

    /// Notes the error of the create of the open slot, in case the slot is lost.
    pub(super) fn note_error(&mut self, owner: OwnerIndex, message: &str) {
        if self.ended_runs.logged() > LoggedRuns::None {
            self.index.cron_job_mut(owner).rare_mut().error = Some(shortened(message));
        }
    }

    fn log_run(&self, owner: OwnerIndex, outcome: InstantOutcome, end: RunEnd) {
        self.ended_runs.add(EndedRun {
            shard_term: self.shard_term,
            cron_job: self.index.cron_job(owner).record.identity.clone(),
            outcome,
            end,
        });
    }
}
