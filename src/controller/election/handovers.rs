//! Measures the durations of shard handovers, on both sides.

use std::collections::BTreeMap;

use prometheus::Histogram;

use crate::shard::{BootInstant, ShardId};

/// Handovers in progress, and the histograms of their durations.
pub(super) struct Handovers {
    /// The instant at which each shard that is handed over was sealed.
    giving: BTreeMap<ShardId, BootInstant>,
    /// The instant at which this replica became the holder of each shard that it does not lead yet.
    taking: BTreeMap<ShardId, BootInstant>,
    given: Histogram,
    taken: Histogram,
}

impl Handovers {
    pub(super) fn new(given: Histogram, taken: Histogram) -> Handovers {
        Handovers {
            giving: BTreeMap::new(),
            taking: BTreeMap::new(),
            given,
            taken,
        }
    }

    pub(super) fn sealed(&mut self, shard: ShardId, at: BootInstant) {
        self.giving.entry(shard).or_insert(at);
    }

    /// Records that this replica does not hold a shard any more. Only a handover counts in the histogram.
    pub(super) fn left(&mut self, shard: ShardId, is_handed_over: bool, now: BootInstant) {
        self.taking.remove(&shard);
        if let Some(since) = self.giving.remove(&shard).filter(|_| is_handed_over) {
            self.given.observe(now.since(since).as_secs_f64());
        }
    }

    pub(super) fn taking(&mut self, shard: ShardId, now: BootInstant) {
        self.taking.insert(shard, now);
    }

    pub(super) fn leads(&mut self, shard: ShardId, now: BootInstant) {
        if let Some(since) = self.taking.remove(&shard) {
            self.taken.observe(now.since(since).as_secs_f64());
        }
    }

    pub(super) fn forget_all(&mut self) {
        self.giving.clear();
        self.taking.clear();
    }
}
