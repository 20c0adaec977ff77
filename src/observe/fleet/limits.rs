//! How much a fleet keeps at most. Every overflow is told: what is left out is not shown as if it did not exist.

use super::Fleet;
use crate::{observe::words::thousands, shard::Uid};

/// What a fleet keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetConfig {
    /// Maximum number of slots of each CronJob.
    pub n_slots_max: usize,
    /// Maximum number of CronJobs.
    pub n_cron_jobs_max: usize,
    /// Maximum number of Jobs that exist in the cluster.
    pub n_jobs_max: usize,
}

/// Five times the CronJobs for which the memory was measured: some 600 MB.
const CRON_JOBS_MAX: usize = 100_000;

/// Ten for each of them: the default limits of history keep four, and orphaned Jobs count too.
const JOBS_MAX: usize = 1_000_000;

impl FleetConfig {
    /// So many slots of each CronJob, and the usual numbers of CronJobs and Jobs.
    pub fn of_slots(n_slots_max: usize) -> FleetConfig {
        FleetConfig {
            n_slots_max,
            n_cron_jobs_max: CRON_JOBS_MAX,
            n_jobs_max: JOBS_MAX,
        }
    }
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overflows {
    /// A CronJob.
    of_cron_jobs: bool,
    /// A Job.
    of_jobs: bool,
    /// Runs of the history.
    pub(super) of_history: bool,
}

impl Fleet {
    /// Which limits were reached since the start, in sentences.
    pub fn limits_reached(&self) -> Vec<String> {
        let text = |number: usize| thousands(number.try_into().unwrap_or(u64::MAX));
        let n_cron_jobs = text(self.config.n_cron_jobs_max);
        let n_jobs = text(self.config.n_jobs_max);
        let sentences = [
            (
                self.overflows.of_cron_jobs,
                format!(
                    "The limit of {n_cron_jobs} CronJobs is reached: others are left out. Select namespaces by -n."
                ),
            ),
            (
                self.overflows.of_jobs,
                format!(
                    "The limit of {n_jobs} Jobs is reached: others are left out, and their slots may seem to have none. \
                     Select namespaces by -n."
                ),
            ),
            (
                self.overflows.of_history,
                "The history of the last 24 hours has more runs than are loaded: the figures of the day are too low."
                    .to_owned(),
            ),
        ];
        let reached = sentences.into_iter().filter(|(is_reached, _)| *is_reached);
        reached.map(|(_, sentence)| sentence).collect()
    }

    /// Whether a CronJob is known, or there is room for it.
    pub(super) fn has_room_for_cron_job(&mut self, uid: &Uid) -> bool {
        let has_room = self.cron_jobs.n_named() < self.config.n_cron_jobs_max || self.cron_jobs.key(uid).is_some();
        self.overflows.of_cron_jobs |= !has_room;
        has_room
    }

    /// Whether a Job is known, or there is room for it.
    pub(super) fn has_room_for_job(&mut self, job_uid: &Uid) -> bool {
        let has_room = self.jobs.len() < self.config.n_jobs_max || self.jobs.contains_key(job_uid);
        self.overflows.of_jobs |= !has_room;
        has_room
    }

    /// Whether there is room for a Job whose CronJob is not known.
    pub(super) fn has_room_for_early_run(&mut self) -> bool {
        let has_room = self.jobs.len() + self.early_runs.len() < self.config.n_jobs_max;
        self.overflows.of_jobs |= !has_room;
        has_room
    }
}
