//! Commands of an election to the shards of a replica, and their reports.

use jiff::Timestamp;

use super::{BootInstant, ResourceVersions, ShardId, ShardSet, ShardTerm};

/// A command of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardCommand {
    /// Load shards for a possible handover, without acting. One command for several shards, since one list finds them
    /// all.
    Load(ShardSet),
    /// Lead the shard.
    Lead {
        /// The shard and its term.
        shard_term: ShardTerm,
        /// The data that the shard must have loaded or observed before it is led.
        entry: Entry,
        /// The instant through which the last leader fired every slot, if it handed the shard over.
        fired_through: Option<Timestamp>,
    },
    /// Seal the shard, and report [`ShardReport::Sealed`] within two seconds of the seal.
    Seal(SealOrder),
    /// Drop the shard.
    Release(ShardId),
    /// Drop all shards.
    ReleaseAll,
}

/// The order to seal a shard. The shard starts Jobs until its requests are answered and its statuses stored, then
/// stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SealOrder {
    /// The shard and its term.
    pub shard_term: ShardTerm,
    /// The latest instant at which the shard may still start a Job.
    pub close_by: BootInstant,
    /// Whether another member can take the shard, and will lead it. The number of such shards sealed at a time is
    /// limited.
    pub has_other_taker: bool,
}

/// The data that a shard must have loaded or observed before it is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Every object, by a list that begins after the command.
    List,
    /// These versions, in addition to the objects that the shard has loaded: the last leader wrote or knew them.
    Watch(ResourceVersions),
}

/// A report of the shards to the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardReport {
    /// Every watch that the API server permits has delivered a complete list, so shards can be loaded.
    Synced,
    /// A shard is loaded.
    Loaded(ShardId),
    /// The shard is led from this point.
    Leading(ShardTerm),
    /// The shard starts no more Jobs. Its requests are answered and its statuses stored, or the time limit has
    /// passed.
    Sealed {
        /// The shard and its term.
        shard_term: ShardTerm,
        /// The instant of the seal.
        at: BootInstant,
        /// The instant through which every due slot was started; `None` if the shard was never led, or was paused when
        /// it was sealed.
        fired_through: Option<Timestamp>,
        /// The last versions that this replica wrote or knew.
        written_through: ResourceVersions,
    },
}
