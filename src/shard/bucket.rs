//! Maps a CronJob to its shard. The bucket of a CronJob never changes; the number of buckets per shard is constant.

use super::{ShardId, fnv1a_64};
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

/// The number of shards, a power of two. An installation has 256; tests also use others.
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

    /// This number of shards; `None` if it is not a power of two in the permitted range.
    pub fn new(count: u64) -> Option<ShardCount> {
        let mut valid = (Self::MIN.level..=Self::MAX.level).map(|level| ShardCount { level });
        valid.find(|valid| u64::from(valid.get()) == count)
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
}

#[cfg(test)]
mod tests;
