//! Jobs whose CronJob is not known: it is not listed yet, or was deleted before its Jobs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::{observe::facts::Run, shard::Uid};

/// After complete lists, a Job waits this long for its CronJob. The two watches are seconds apart at most, and the clock of
/// the API server may differ.
const WAIT_MAX: SignedDuration = SignedDuration::from_hours(1);

/// The lowest uid.
const UID_MIN: [u8; 16] = [0; 16];

/// The Jobs, found by CronJob and by Job: a deleted CronJob can leave tens of thousands.
#[derive(Debug, Default)]
pub(super) struct EarlyRuns {
    runs: BTreeMap<Uid, Box<Run>>,
    /// CronJobs with their Jobs.
    by_cron_job: BTreeSet<(Uid, Uid)>,
}

impl EarlyRuns {
    /// Adds a Job, or its new form.
    pub(super) fn put(&mut self, run: Run) {
        // Its former form may have had another CronJob.
        self.remove(&run.job_uid);
        self.by_cron_job.insert((run.cron_job.clone(), run.job_uid.clone()));
        self.runs.insert(run.job_uid.clone(), Box::new(run));
    }

    /// Takes the Jobs of a CronJob.
    pub(super) fn take(&mut self, cron_job: &Uid) -> Vec<Run> {
        let first = (cron_job.clone(), Uid::from_uuid_bytes(UID_MIN));
        let of_cron_job = self.by_cron_job.range(first..);
        let of_cron_job = of_cron_job.take_while(|(other, _)| other == cron_job);
        let job_uids: Vec<Uid> = of_cron_job.map(|(_, job_uid)| job_uid.clone()).collect();
        job_uids.iter().filter_map(|job_uid| self.remove(job_uid)).collect()
    }

    /// A Job was deleted. Returns what was known of it.
    pub(super) fn remove(&mut self, job_uid: &Uid) -> Option<Run> {
        let run = self.runs.remove(job_uid)?;
        self.by_cron_job.remove(&(run.cron_job.clone(), job_uid.clone()));
        Some(*run)
    }

    /// A list of all Jobs is complete.
    pub(super) fn retain(&mut self, listed: &BTreeSet<Uid>) {
        self.remove_all(|run| !listed.contains(&run.job_uid));
    }

    /// All CronJobs are known now: Jobs that still have none are those of deleted CronJobs.
    pub(super) fn drop_orphans(&mut self, now: Timestamp) {
        self.remove_all(|run| now.duration_since(run.created) > WAIT_MAX);
    }

    fn remove_all(&mut self, is_gone: impl Fn(&Run) -> bool) {
        let gone = self.runs.values().filter(|run| is_gone(run));
        let gone: Vec<Uid> = gone.map(|run| run.job_uid.clone()).collect();
        for job_uid in gone {
            self.remove(&job_uid);
        }
    }

    /// Number of Jobs.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }
}
