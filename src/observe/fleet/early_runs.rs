//! Jobs whose CronJob is not known: it is not listed yet, or was deleted before its Jobs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{observe::facts::Run, shard::Uid};

/// After complete lists, a Job waits this long for its CronJob. The two watches are seconds apart at most, and the clock of
/// the API server may differ.
const WAIT_MAX: SignedDuration = SignedDuration::from_hours(1);

/// The Jobs, found by CronJob and by Job: a deleted CronJob can leave tens of thousands.
#[derive(Debug, Default)]
pub(super) struct EarlyRuns {
    /// By CronJob, then by Job.
    runs: BTreeMap<Uid, BTreeMap<Uid, Run>>,
    /// The CronJob of each Job.
    cron_jobs: BTreeMap<Uid, Uid>,
}

impl EarlyRuns {
    /// Adds a Job, or its new form.
    pub(super) fn put(&mut self, run: Run) {
        if self
            .cron_jobs
            .get(&run.job_uid)
            .is_some_and(|known| *known != run.cron_job)
        {
            self.remove(&run.job_uid);
        }
        self.cron_jobs.insert(run.job_uid.clone(), run.cron_job.clone());
        let runs = self.runs.entry(run.cron_job.clone()).or_default();
        runs.insert(run.job_uid.clone(), run);
    }

    /// Takes the Jobs of a CronJob.
    pub(super) fn take(&mut self, cron_job: &Uid) -> Vec<Run> {
        let runs = self.runs.remove(cron_job).unwrap_or_default();
        for job_uid in runs.keys() {
            self.cron_jobs.remove(job_uid);
        }
        runs.into_values().collect()
    }

    /// A Job was deleted.
    pub(super) fn remove(&mut self, job_uid: &Uid) {
        let Some(cron_job) = self.cron_jobs.remove(job_uid) else {
            return;
        };
        let Some(runs) = self.runs.get_mut(&cron_job) else {
            return;
        };
        runs.remove(job_uid);
        if runs.is_empty() {
            self.runs.remove(&cron_job);
        }
    }

    /// A list of all Jobs is complete.
    pub(super) fn retain(&mut self, listed: &BTreeSet<Uid>) {
        let gone = self.cron_jobs.keys().filter(|job_uid| !listed.contains(*job_uid));
        let gone: Vec<Uid> = gone.cloned().collect();
        for job_uid in gone {
            self.remove(&job_uid);
        }
    }

    /// All CronJobs are known now: Jobs that still have none are those of deleted CronJobs.
    pub(super) fn drop_orphans(&mut self, now: Timestamp) {
        let is_orphan = |run: &&Run| now.duration_since(run.created) > WAIT_MAX;
        let orphans = self.runs.values().flat_map(BTreeMap::values).filter(is_orphan);
        let orphans: Vec<Uid> = orphans.map(|run| run.job_uid.clone()).collect();
        for job_uid in orphans {
            self.remove(&job_uid);
        }
    }

    /// Number of Jobs.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.cron_jobs.len()
    }
}
