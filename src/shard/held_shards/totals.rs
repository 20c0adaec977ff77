//! Totals over the shards of a replica: due instants, sizes, and the part of the installation that it leads.
//!
//! Each shard that changes replaces its part of the totals, so an iteration costs no time for the other shards.

use super::{HeldShards, held::Held};
use crate::shard::{ShardId, ShardSet, outcome_counts::OutcomeCounts, state::Sizes};

/// The totals, as of the last change that was taken.
#[derive(Debug, Default)]
pub(super) struct Totals {
    outcome_counts: OutcomeCounts,
    sizes: Sizes,
    /// The CronJobs of the acting shards.
    acting_cron_jobs: usize,
    /// The shards in a phase in which they act.
    pub(super) acting: ShardSet,
}

/// The part of one shard in the totals.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    outcome_counts: OutcomeCounts,
    sizes: Sizes,
    /// The CronJobs, if the shard acts.
    acting_cron_jobs: usize,
}

impl Totals {
    /// Replaces the part of a shard that may have changed.
    pub(super) fn update(&mut self, shard: ShardId, held: &mut Held) {
        let (state, former) = (&held.state, &mut held.counted);
        let (sizes, acts) = (state.sizes(), state.phase().acts());
        let acting_cron_jobs = if acts { sizes.cron_jobs } else { 0 };
        self.outcome_counts
            .replace(&former.outcome_counts, state.outcome_counts());
        self.sizes.replace(former.sizes, sizes);
        self.acting_cron_jobs = self.acting_cron_jobs + acting_cron_jobs - former.acting_cron_jobs;
        if acts {
            self.acting.insert(shard);
        } else {
            self.acting.remove(shard);
        }
        former.outcome_counts.clone_from(state.outcome_counts());
        (former.sizes, former.acting_cron_jobs) = (sizes, acting_cron_jobs);
    }
}

/// The shards and CronJobs that a replica leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedFigures {
    /// The CronJobs of the shards that it leads.
    pub cron_jobs: usize,
    /// The shards that it leads.
    pub shards: usize,
    /// The shards of the installation; zero before the first iteration of the shard task.
    pub all_shards: usize,
}

impl LedFigures {
    /// The part of the installation that the replica leads. It is exact, since the number of shards is a power of two:
    /// the parts of all replicas add up to exactly 1.
    #[expect(clippy::cast_precision_loss, reason = "there are at most 1024 shards")]
    pub fn ratio(&self) -> f64 {
        self.shards as f64 / self.all_shards.max(1) as f64
    }
}

impl HeldShards {
    /// The counts of all due instants since the process started.
    pub fn outcome_counts(&mut self) -> &OutcomeCounts {
        self.take_changes();
        &self.totals.outcome_counts
    }

    /// The total sizes.
    pub fn sizes(&mut self) -> Sizes {
        self.take_changes();
        self.totals.sizes
    }

    /// The number of CronJobs whose last create was refused.
    pub fn n_refused(&self) -> u64 {
        self.refused_creates.n_cron_jobs()
    }

    /// The number of namespaces with such a CronJob.
    pub fn n_namespaces_refused(&self) -> usize {
        self.refused_creates.n_namespaces()
    }

    /// The number of panics on CronJobs that were contained since the process started.
    pub fn n_panics(&self) -> u64 {
        self.panics.n_total()
    }

    /// The number of CronJobs on which cronwheel panicked, of managed namespaces and in their present version.
    pub fn n_cron_jobs_panicked(&self) -> u64 {
        self.panics.n_cron_jobs()
    }

    /// The figures of the shards that this replica leads; zero while it may not act, and before everything is listed.
    pub fn led(&mut self) -> LedFigures {
        self.take_changes();
        let is_complete = !self.is_paused() && self.are_permitted_watches_synced();
        let (cron_jobs, shards) = if is_complete {
            (self.totals.acting_cron_jobs, self.totals.acting.len())
        } else {
            (0, 0)
        };
        LedFigures {
            cron_jobs,
            shards,
            all_shards: self.count.get().into(),
        }
    }
}
