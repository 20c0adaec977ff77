//! Jobs as lists and watches tell of them.

use jiff::Timestamp;

use super::ShardState;
use crate::shard::{ids::Uid, record::JobRecord};

impl ShardState {
    pub(super) fn apply_job(&mut self, record: JobRecord, now: Timestamp) {
        let of_other = self.is_of_other(&record, now).then(|| record.name.clone());
        let cron_job = of_other.as_ref().and_then(|_| record.controller.clone());
        let changed = self.index.apply_job(record, self.relists.mark);
        for owner in changed.into_iter().flatten() {
            self.evaluate_jobs(owner, now);
        }
        let owner = cron_job.and_then(|cron_job| self.index.find_cron_job(&cron_job));
        if let (Some(owner), Some(name)) = (owner, of_other) {
            self.report_ignored_options(owner, &format!("created job {name}"), now);
        }
    }

    /// Removes a Job that no CronJob of this shard controls any more, if it was known (B-2.1).
    pub(super) fn release_job(&mut self, uid: &Uid, now: Timestamp) {
        if let Some(job) = self.index.find_job(uid) {
            self.remove_doubtful_job(job, now);
        }
    }

    pub(super) fn delete_job(&mut self, uid: &Uid, now: Timestamp) {
        let Some(job) = self.index.find_job(uid) else { return };
        self.forget_job(job, now);
    }
}
