//! Who does what: CronJobs hash to fixed buckets, buckets are grouped into shards, shards are led by members.
//!
//! `bucket` says which shard a CronJob is in, for ever. `ring` orders the members that a shard prefers, and `placement`
//! says from that, from quotas and from who holds what, where each shard should be. Nothing here knows Leases; `lease`
//! asks `placement`, and `held_shards` asks `bucket` for every object that it is shown.

mod bucket;
mod hash;
mod horizon;
mod labels;
mod leadership;
mod placement;
mod ring;
mod shard_command;
mod shard_set;

use std::{ops::Add, time::Duration};

pub use bucket::{Bucket, HashRange, ShardCount, ShardCountError};
pub use hash::{HASH_SCHEME, fnv1a_64};
pub use horizon::Horizon;
pub use labels::{SHARD_LABEL_PREFIX, ShardLabels};
pub use leadership::{Leadership, Mandate, Stamp, WriteLife, WriteTerms};
pub use placement::{Candidate, Placement, Pull, Situation};
pub use ring::{MemberRing, TOKENS_PER_MEMBER};
pub use shard_command::{Entry, SealOrder, ShardCommand, ShardReport};
pub use shard_set::ShardSet;

/// The number of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// One unbroken period of leadership of a shard; a later one has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// An instant of the boot clock: it never steps, counts while the machine sleeps, and means nothing on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootInstant(Duration);

impl BootInstant {
    /// The instant so long after the boot.
    pub const fn after_boot(elapsed: Duration) -> BootInstant {
        BootInstant(elapsed)
    }

    /// Time since the boot.
    pub const fn since_boot(self) -> Duration {
        self.0
    }

    /// Time since an earlier instant; nothing when that is later.
    pub fn since(self, earlier: BootInstant) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootInstant {
    type Output = BootInstant;

    fn add(self, duration: Duration) -> BootInstant {
        BootInstant(self.0.saturating_add(duration))
    }
}
