//! Begins and ends the management of CronJobs when their namespace is selected or released ([`ManagedNamespaces`]).
//!
//! To begin is what [`ShardState::lead`] does for one CronJob, from the cursor. To end is a seal and then standby for one
//! CronJob: what is not sent is withdrawn, what is in flight is answered, and the status that follows from it is written.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::ShardState;
#[cfg(doc)]
use crate::shard::ManagedNamespaces;
use crate::shard::{
    ShardPhase,
    cron_job::{DelayedAction, Management},
    index::OwnerIndex,
    outcome_counts::InstantOutcome,
    seconds::Seconds,
};

impl ShardState {
    /// Handles a change of the managed namespaces: these are selected or released, or their options have changed.
    pub(crate) fn follow_namespaces(&mut self, changed: &BTreeSet<Box<str>>, now: Timestamp) {
        self.follow_clock(now);
        let freeze_ends = self.follow_freezes(changed, now);
        for owner in self.index.owner_indexes() {
            let Some(cron_job) = self.index.get_cron_job(owner) else {
                continue;
            };
            let namespace = &cron_job.record.identity.namespace;
            if !changed.contains(namespace) {
                continue;
            }
            let freeze_ended = freeze_ends.get(namespace).copied();
            let was_managed = cron_job.management == Management::Managed;
            match (was_managed, self.namespaces.contains(namespace)) {
                (false, true) => self.manage(owner, now),
                (true, false) => self.contained_at(owner, |shard| shard.release(owner, now)),
                (true, true) => {
                    self.contained_at(owner, |shard| shard.follow_namespace_options(owner, freeze_ended, now));
                }
                (false, false) => {}
            }
        }
    }

    /// How a CronJob begins that was not known.
    pub(super) fn management_in(&self, namespace: &str) -> Management {
        if self.namespaces.contains(namespace) {
            Management::Managed
        } else {
            Management::Unmanaged
        }
    }

    /// The phase of a CronJob: that of its shard, but at most that of a sealed shard after its namespace was released.
    pub(super) fn phase_of(&self, owner: OwnerIndex) -> ShardPhase {
        match self.index.get_cron_job(owner).map(|cron_job| cron_job.management) {
            Some(Management::Unmanaged) => ShardPhase::Standby,
            Some(Management::Leaving) if self.phase.acts() => ShardPhase::Sealed,
            Some(Management::Leaving | Management::Managed) | None => self.phase,
        }
    }

    fn manage(&mut self, owner: OwnerIndex, now: Timestamp) {
        let is_taken_over = self.namespaces.are_known();
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.management = Management::Managed;
        if is_taken_over {
            // Until now, another controller answered for its slots. In the first list it may have been managed for long.
            let since = Seconds::new(Some(now));
            cron_job.rare_mut().startable_since = since;
            cron_job.counted_until = since;
        }
        self.n_managed += 1;
        self.count_panicked(owner);
        self.inherit_again(owner);
        self.evaluate(owner, now);
    }

    fn release(&mut self, owner: OwnerIndex, now: Timestamp) {
        // First, so that a panic in the rest does not leave it managed.
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.management = Management::Leaving;
        cron_job.forget_panic();
        self.n_managed -= 1;
        #[cfg(test)]
        self.panic_if_told(owner, super::PanicAt::Release);
        self.arm(owner, None);
        self.cancel_wake(owner);
        self.withdraw(owner);
        // A status that waits for a retry is written now: later is too late.
        self.index.cron_job_mut(owner).delays.end(DelayedAction::Status);
        self.leave(owner, now);
    }

    /// Writes the status of a CronJob whose namespace was released. Once no request about its slot and no status write is
    /// unanswered, forgets what was decided about it.
    pub(super) fn leave(&mut self, owner: OwnerIndex, now: Timestamp) {
        let is_unusable = self.index.cron_job(owner).unusable.is_some();
        if self.phase != ShardPhase::Standby && !self.is_paused && !is_unusable {
            self.flush_status(owner, now);
        }
        self.forget_if_idle(owner);
    }

    /// Forgets what was decided about a CronJob, unless a request about its slot or a status write is unanswered.
    pub(super) fn forget_if_idle(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job(owner);
        let has_request_in_flight = cron_job.has_request_in_flight();
        if !has_request_in_flight && cron_job.emitted.is_none() {
            self.cancel_wake(owner);
            self.forget_leadership(owner);
            self.index.forget_leadership_of_jobs(owner);
        }
    }

    /// Forgets what was decided about a CronJob, and keeps what was observed. An open slot belongs to whoever acts next.
    pub(super) fn forget_leadership(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job_mut(owner);
        if cron_job.management == Management::Leaving {
            cron_job.management = Management::Unmanaged;
        }
        self.calendar_notes.forget_counts(owner);
        if cron_job.forget_leadership() {
            self.outcome_counts.close(InstantOutcome::HandedOver);
        }
    }
}
