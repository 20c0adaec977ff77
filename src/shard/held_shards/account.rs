//! Totals over the shards of a replica: due instants and sizes.

use super::HeldShards;
use crate::shard::{outcome_counts::OutcomeCounts, state::Sizes};

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
        let sizes = self.held.values().map(|held| held.state.sizes());
        sizes.fold(Sizes::default(), |sum, sizes| Sizes {
            cron_jobs: sum.cron_jobs + sizes.cron_jobs,
            jobs: sum.jobs + sizes.jobs,
            wheel_entries: sum.wheel_entries + sizes.wheel_entries,
            outbox: sum.outbox + sizes.outbox,
        })
    }
}
