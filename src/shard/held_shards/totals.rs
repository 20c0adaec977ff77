//! Totals over the shards of a replica: due instants, sizes, and the part of the installation that it leads.

use super::HeldShards;
use crate::shard::{outcome_counts::OutcomeCounts, state::Sizes};

/// The shards and CronJobs that a replica leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedFigures {
    /// The CronJobs of the shards that it leads.
    pub cron_jobs: usize,
    /// The shards that it leads, each with all its CronJobs known.
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
    pub fn outcome_counts(&self) -> OutcomeCounts {
        let mut sum = self.retired.clone();
        for held in self.held.values() {
            sum.add(held.state.outcome_counts());
        }
        sum
    }

    /// The total sizes.
    pub fn sizes(&self) -> Sizes {
        let mut sum = Sizes::default();
        for sizes in self.held.values().map(|held| held.state.sizes()) {
            sum.cron_jobs += sizes.cron_jobs;
            sum.jobs += sizes.jobs;
            sum.wheel_entries += sizes.wheel_entries;
        }
        sum
    }

    /// The figures of the shards that this replica leads; zero while it may not act. A shard whose list is incomplete
    /// does not count yet.
    pub fn led(&self) -> LedFigures {
        let held = self.held.values().filter(|_| !self.is_paused());
        let led = held.filter(|held| held.state.phase().acts() && held.is_synced());
        let sizes: Vec<usize> = led.map(|held| held.state.sizes().cron_jobs).collect();
        LedFigures {
            cron_jobs: sizes.iter().sum(),
            shards: sizes.len(),
            all_shards: self.count.map_or(1, |count| usize::from(count.get())),
        }
    }
}
