//! Finished Jobs over the history limits (B-4), none before its slot is stored in the cursor.

use jiff::Timestamp;

use super::ShardState;
use crate::state::{
    effect::{Effect, JobDelete},
    index::{JobIndex, OwnerIndex},
    naming,
    record::Finish,
};

impl ShardState {
    /// Hands out the deletes of B-4.3; those whose slot is not stored yet wait, and make the status write urgent.
    pub(super) fn clean_history(&mut self, owner: OwnerIndex, now: Timestamp) {
        let Some(cron_job) = self.index.cron_job(owner) else {
            return;
        };
        let limits = [
            (Finish::Complete, cron_job.record.successful_jobs_history_limit),
            (Finish::Failed, cron_job.record.failed_jobs_history_limit),
        ];
        // Nothing can be over a limit while there are no more Jobs than the smallest of them.
        let smallest = limits.iter().filter_map(|(_, limit)| *limit).min();
        if smallest.is_none_or(|smallest| self.index.n_jobs_of(owner) <= smallest) {
            return;
        }
        if let Some(not_before) = cron_job.history_not_before
            && now < not_before
        {
            self.wake_at(owner, not_before);
            return;
        }
        for (kind, limit) in limits {
            let Some(limit) = limit else { continue };
            for job in self.over_limit(owner, kind, limit as usize) {
                self.delete_from_history(owner, job);
            }
        }
    }

    /// The Jobs to delete, oldest start first, those without a start last, then by name (B-4.3).
    fn over_limit(&self, owner: OwnerIndex, kind: Finish, limit: usize) -> Vec<JobIndex> {
        let of_kind = || self.index.jobs_of(owner).filter(|(_, job)| job.finish == Some(kind));
        let n_over = of_kind().count().saturating_sub(limit);
        if n_over == 0 {
            return Vec::new();
        }
        let mut jobs: Vec<(JobIndex, &crate::state::index::Job)> = of_kind().collect();
        jobs.sort_unstable_by(|(_, a), (_, b)| {
            let key = |job: &crate::state::index::Job| (job.started().is_none(), job.started());
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        jobs.truncate(n_over);
        jobs.retain(|(_, job)| !job.is_delete_requested);
        jobs.into_iter().map(|(index, _)| index).collect()
    }

    fn delete_from_history(&mut self, owner: OwnerIndex, job_index: JobIndex) {
        let Some(job) = self.index.job(job_index) else { return };
        let (name, uid, namespace) = (job.name.clone(), job.uid.clone(), job.namespace.clone());
        let scheduled = job.scheduled();
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let identity = cron_job.record.identity.clone();
        let is_awaited = cron_job
            .open
            .as_ref()
            .is_some_and(|open| open.is_in_flight() && Some(open.slot) == scheduled);
        if is_awaited {
            // While its create is not answered it is the lock against a second one.
            return;
        }
        // Cleanup comes before the active list: no SawCompletedJob for what it takes (B-4.6).
        cron_job.remove_active(&uid);
        if let Some(slot) = scheduled
            && naming::is_job_name(&name, &identity.name, slot)
            && cron_job
                .record
                .status
                .last_schedule_time
                .is_none_or(|stored| stored < slot)
        {
            // The Job is the only lock on its slot until the cursor has passed it.
            cron_job.advance_cursor(slot);
            cron_job.is_status_urgent = true;
            return;
        }
        if let Some(job) = self.index.job_mut(job_index) {
            job.is_delete_requested = true;
        }
        self.outbox.push_back(Effect::DeleteJob(JobDelete {
            cron_job: identity,
            namespace: (*namespace).into(),
            name,
            uid,
            is_for_replace: false,
        }));
    }
}
