//! The interval between evaluations of a CronJob with very many Jobs.
//!
//! An evaluation takes a step for each Job of the CronJob. With one evaluation per change, a CronJob of which 100,000
//! Jobs end would delay all others of the replica. The changes of an interval are therefore evaluated
//! together. The number of Jobs at its beginning determines the interval.

use jiff::{SignedDuration, Timestamp};

use super::ShardState;
use crate::{
    schedule::after,
    shard::{ShardPhase, cron_job::DelayedAction, index::OwnerIndex},
};

/// Up to this number of Jobs, each change is evaluated at once. History limits keep most CronJobs far below.
const N_JOBS_ORDINARY: u32 = 1_000;

/// The time for which changes of Jobs wait for an evaluation: a second for each 10,000 Jobs of the CronJob.
fn evaluation_interval(n_jobs: u32) -> SignedDuration {
    if n_jobs <= N_JOBS_ORDINARY {
        return SignedDuration::ZERO;
    }
    SignedDuration::from_millis(i64::from(n_jobs / 10))
}

impl ShardState {
    /// Evaluates a CronJob after one of its Jobs changed, or schedules the evaluation.
    pub(super) fn evaluate_jobs(&mut self, owner: OwnerIndex, now: Timestamp) {
        if self.phase_of(owner) == ShardPhase::Standby {
            return;
        }
        let interval = evaluation_interval(self.index.n_jobs_of(owner));
        if !interval.is_zero()
            && let Some(cron_job) = self.index.get_cron_job_mut(owner)
        {
            if let Some(until) = cron_job.delays.until(DelayedAction::JobEvaluation, now) {
                return self.wake_at(owner, until);
            }
            cron_job.delays.set(DelayedAction::JobEvaluation, after(now, interval));
        }
        self.evaluate(owner, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluation_interval_grows_with_the_number_of_jobs() {
        for (n_jobs, millis) in [(0, 0), (1_000, 0), (1_001, 100), (20_000, 2_000), (100_000, 10_000)] {
            assert_eq!(
                evaluation_interval(n_jobs),
                SignedDuration::from_millis(millis),
                "{n_jobs} Jobs"
            );
        }
    }
}
