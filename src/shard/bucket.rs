//! Maps a CronJob to its shard. The bucket of a CronJob never changes; buckets per shard are fixed at installation.

use std::fmt;

use super::{SHARD_LABEL_PREFIX, ShardId, ShardSet, fnv1a_64};
use crate::shard::{Uid, ids::UUID_LENGTH};

/// One of 1024 partitions of all CronJobs: the top ten bits of the FNV-1a-64 hash of the uid's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u16);

impl Bucket {
    /// Bits of a bucket number.
    const BITS: u32 = 10;
    /// The number of buckets.
    pub const COUNT: u16 = 1 << Self::BITS;

    /// The bucket of a CronJob, from its uid.
    pub fn of(uid: &Uid) -> Bucket {
        Bucket::of_text(uid.ascii(&mut [0; UUID_LENGTH]))
    }

    /// The bucket of a CronJob, from the unparsed text of its uid.
    pub fn of_text(uid: &[u8]) -> Bucket {
        let top = fnv1a_64(uid) >> (u64::BITS - Self::BITS);
        Bucket(u16::try_from(top).unwrap_or(Self::COUNT - 1))
    }

    /// The shard of the bucket. Buckets are grouped by their leading bits.
    pub fn shard(self, count: ShardCount) -> ShardId {
        ShardId(self.0 >> (Self::BITS - count.level()))
    }
}

/// An invalid number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "shard count {count}: not a power of two from {} to {}; give {nearest}",
    ShardCount::MIN.get(),
    ShardCount::MAX.get()
)]
pub struct ShardCountError {
    /// The rejected number.
    count: u64,
    /// The nearest valid number.
    nearest: u16,
}

/// The number of shards: a power of two from 16 to 1024, fixed at installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardCount {
    level: u8,
}

impl Default for ShardCount {
    /// 256: with 16 replicas, no replica has more than 1.06 times the mean.
    fn default() -> ShardCount {
        ShardCount { level: 8 }
    }
}

impl ShardCount {
    /// The minimum; fewer shards cannot be balanced.
    pub const MIN: ShardCount = ShardCount { level: 4 };
    /// The maximum: one shard per bucket.
    pub const MAX: ShardCount = ShardCount { level: 10 };

    /// Validates a configured number of shards.
    ///
    /// # Errors
    ///
    /// Returns [`ShardCountError`] if the number is not a power of two in the permitted range.
    pub fn new(count: u64) -> Result<ShardCount, ShardCountError> {
        let valid = (Self::MIN.level..=Self::MAX.level)
            .rev()
            .map(|level| ShardCount { level });
        let nearest = valid.min_by_key(|valid| u64::from(valid.get()).abs_diff(count));
        let nearest = nearest.unwrap_or_default();
        if u64::from(nearest.get()) == count {
            Ok(nearest)
        } else {
            Err(ShardCountError {
                count,
                nearest: nearest.get(),
            })
        }
    }

    /// The number of shards.
    pub const fn get(self) -> u16 {
        1 << self.level
    }

    /// The base-two logarithm of the count: the number of leading bits of a hash that select the shard.
    pub const fn level(self) -> u32 {
        self.level as u32
    }

    /// Every shard, in order.
    pub fn shards(self) -> impl Iterator<Item = ShardId> {
        (0..self.get()).map(ShardId)
    }

    /// The shard of a CronJob.
    pub fn shard_of(self, cron_job: &Uid) -> ShardId {
        Bucket::of(cron_job).shard(self)
    }

    /// Whether the shard's number is below the count.
    pub fn has(self, shard: ShardId) -> bool {
        shard.0 < self.get()
    }

    /// The hashes of the keys in a shard.
    pub fn hash_range(self, shard: ShardId) -> HashRange {
        let start = u64::from(shard.0) << (u64::BITS - self.level());
        HashRange {
            start,
            last: start | (u64::MAX >> self.level()),
        }
    }

    /// The hashes of a set of shards, in order, with adjacent ranges merged.
    pub fn hash_ranges(self, shards: &ShardSet) -> Vec<HashRange> {
        let mut ranges: Vec<HashRange> = Vec::new();
        for shard in shards.iter() {
            let range = self.hash_range(shard);
            match ranges.last_mut() {
                Some(before) if before.last.wrapping_add(1) == range.start => before.last = range.last,
                _ => ranges.push(range),
            }
        }
        ranges
    }

    /// The `shardSelector` that selects the CronJobs of these shards; `None` for an empty set.
    pub fn shard_selector(self, shards: &ShardSet) -> Option<String> {
        let ranges = self.hash_ranges(shards);
        let terms: Vec<String> = ranges
            .iter()
            .map(|range| format!("shardRange(object.metadata.uid, {range})"))
            .collect();
        (!terms.is_empty()).then(|| terms.join(" || "))
    }

    /// The key of the label that holds the number of a Job's shard. The key includes the count, so that a label from
    /// before a change of the count is not mistaken for another shard's.
    pub fn label_key(self) -> String {
        format!("{SHARD_LABEL_PREFIX}{}", self.get())
    }

    /// The value of that label for a shard.
    pub fn label_value(self, shard: ShardId) -> String {
        shard.0.to_string()
    }

    /// The label selector that selects the Jobs of these shards; `None` for an empty set.
    pub fn label_selector(self, shards: &ShardSet) -> Option<String> {
        let values: Vec<String> = shards.iter().map(|shard| self.label_value(shard)).collect();
        (!values.is_empty()).then(|| format!("{} in ({})", self.label_key(), values.join(",")))
    }
}

/// A range of hashes. `Display` is half open and hexadecimal, the form of a `shardSelector`: 16 digits, or 17 for an
/// end of 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HashRange {
    start: u64,
    last: u64,
}

impl HashRange {
    /// The first hash of the range.
    pub fn start(&self) -> u64 {
        self.start
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{:#018x}', '{:#018x}'", self.start, u128::from(self.last) + 1)
    }
}

#[cfg(test)]
mod tests;
