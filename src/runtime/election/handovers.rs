//! How long shards take to change hands, on both sides.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use prometheus::Histogram;

use crate::{
    runtime::clock::Clock,
    state::sharding::{BootInstant, ShardId},
};

/// Shards on their way, and where their durations are counted.
pub(super) struct Handovers {
    /// When those that go were told to be sealed, and how long they had been then.
    giving: BTreeMap<ShardId, (BootInstant, Duration)>,
    /// Since when those that come have been ours.
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

    /// A shard was sealed when it had fired everything up to an instant, or now, if it was never led; says when.
    pub(super) fn sealed(&mut self, shard: ShardId, fired_through: Option<Timestamp>, clock: &Clock) -> Timestamp {
        let at = fired_through.unwrap_or_else(|| clock.now());
        let ago = Duration::try_from(clock.now().duration_since(at)).unwrap_or_default();
        self.giving.insert(shard, (clock.boot(), ago));
        at
    }

    /// A shard is ours no more; whether it was handed over.
    pub(super) fn left(&mut self, shard: ShardId, is_handed_over: bool, now: BootInstant) {
        self.taking.remove(&shard);
        if let Some((told, ago)) = self.giving.remove(&shard).filter(|_| is_handed_over) {
            self.given.observe((now.since(told) + ago).as_secs_f64());
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
