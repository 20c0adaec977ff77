//! Deletes finished Jobs over the history limits (B-4), none before its slot is stored in the cursor.

use jiff::Timestamp;

use super::ShardState;
use crate::shard::{
    cron_job::DelayedAction,
    effect::{Effect, JobDelete},
    index::{Job, JobIndex, OwnerIndex},
    naming,
    record::Finish,
};

impl ShardState {
    /// Orders the deletes of B-4.3. Jobs whose slot is not stored yet wait, and make the status write urgent.
    pub(super) fn clean_history(&mut self, owner: OwnerIndex, now: Timestamp) {
        let cron_job = self.index.cron_job(owner);
        let limits = [
            (Finish::Complete, cron_job.record.successful_jobs_history_limit),
            (Finish::Failed, cron_job.record.failed_jobs_history_limit),
        ];
        // No limit is exceeded while there are at most as many Jobs as the smallest limit.
        let smallest = limits.iter().filter_map(|(_, limit)| *limit).min();
        if smallest.is_none_or(|smallest| self.index.n_jobs_of(owner) <= smallest) {
            return;
        }
        let delays = &mut self.index.cron_job_mut(owner).delays;
        if let Some(until) = delays.until(DelayedAction::History, now) {
            return self.wake_at(owner, until);
        }
        // A waiting Job delays all later ones, which preserves the order of B-4.3.
        let mut is_waiting = false;
        for (kind, limit) in limits {
            let Some(limit) = limit else { continue };
            for job in self.over_limit(owner, (kind, limit as usize), now) {
                is_waiting |= self.prepare_delete(owner, job);
                if !is_waiting {
                    self.order_delete(owner, job);
                }
            }
        }
    }

    /// The Jobs to delete, oldest start first, those without a start last, then by name (B-4.3).
    fn over_limit(&self, owner: OwnerIndex, (kind, limit): (Finish, usize), now: Timestamp) -> Vec<JobIndex> {
        let latest_slot = self.latest_slot_of_jobs(now);
        // A Job that is being deleted, also for a replacement, does not count towards the limit.
        let is_kept =
            |job: &Job| job.finish == Some(kind) && !job.is_delete_requested && !job.is_scheduled_after(latest_slot);
        let of_kind = || self.index.children_of(owner).filter(|(_, job)| is_kept(job));
        let n_over = of_kind().count().saturating_sub(limit);
        if n_over == 0 {
            return Vec::new();
        }
        let mut jobs: Vec<(JobIndex, &Job)> = of_kind().collect();
        jobs.sort_unstable_by(|(_, a), (_, b)| {
            let key = |job: &Job| (job.started().is_none(), job.started());
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        jobs.truncate(n_over);
        jobs.into_iter().map(|(index, _)| index).collect()
    }

    /// Prepares the delete of a Job: takes it off the active list, and moves the cursor to its slot. Returns whether the
    /// delete must wait: the Job is the only lock on its slot until the cursor is stored.
    fn prepare_delete(&mut self, owner: OwnerIndex, job: JobIndex) -> bool {
        let job = self.index.job(job);
        let is_lock_of_run = self.index.cron_job(owner).is_lock_of_run(job);
        let (uid, scheduled) = (job.uid.clone(), job.scheduled());
        let name = &self.index.cron_job(owner).record.identity.name;
        let slot = scheduled.filter(|slot| naming::is_job_name(&job.name, name, *slot));
        let cron_job = self.index.cron_job_mut(owner);
        // Cleanup precedes the active list: no SawCompletedJob for a Job that it deletes, even if later (B-4.6).
        cron_job.remove_active(&uid);
        if is_lock_of_run {
            cron_job.is_status_urgent = true;
            return true;
        }
        // While its create is not answered, the Job is the lock against a second one.
        let open = cron_job.open.as_ref();
        if open.is_some_and(|open| open.must_be_settled() && Some(open.slot) == scheduled) {
            return true;
        }
        let Some(slot) = slot.filter(|slot| cron_job.record.status.last_schedule_time < Some(*slot)) else {
            return false;
        };
        cron_job.advance_cursor(slot);
        cron_job.is_status_urgent = true;
        true
    }

    /// Orders the delete of an ended Job over a history limit.
    pub(super) fn order_delete(&mut self, owner: OwnerIndex, job: JobIndex) {
        let delete = self.delete_of(owner, job);
        self.index.job_mut(job).is_delete_requested = true;
        self.outbox.push_back(Effect::DeleteJob(delete));
    }

    /// The order to delete a Job.
    pub(super) fn delete_of(&self, owner: OwnerIndex, job: JobIndex) -> JobDelete {
        let job = self.index.job(job);
        JobDelete {
            cron_job: self.index.cron_job(owner).record.identity.clone(),
            namespace: (*job.namespace).into(),
            name: job.name.clone(),
            uid: job.uid.clone(),
            is_for_replace: job.finish.is_none(),
        }
    }
}
