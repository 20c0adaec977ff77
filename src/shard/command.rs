//! Commands of an election to the shards of a replica, and their reports.

use jiff::Timestamp;

use super::{BootInstant, ResourceVersions, ShardId, ShardTerm};

/// A command of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardCommand {
    /// Lead the shard.
    Lead {
        /// The shard and its term.
        shard_term: ShardTerm,
        /// What the watches must have delivered before the shard is led.
        entry: Entry,
        /// How far the last leader fired the slots, if that is known.
        fired_through: Option<FiredThrough>,
    },
    /// Seal the shard, and report [`ShardReport::Sealed`] within two seconds of the seal.
    Seal(SealOrder),
    /// Return the shard to standby.
    Release(ShardId),
    /// Return all shards to standby.
    ReleaseAll,
}

/// How far the last leader of a shard fired its slots. The next leader does not count these slots again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FiredThrough {
    /// The last leader sealed the shard at this instant, and fired every slot until then.
    Seal(Timestamp),
    /// The last leader led at this instant, which was its last renewal, and ended later without a seal. It fired every slot
    /// until then. The outcome of the last of them may have been open when it ended.
    Renewal(Timestamp),
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

/// What the watches must have delivered before a shard is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Everything that was written before the command.
    Current,
    /// These versions, which the last leader wrote or knew.
    Watch(ResourceVersions),
}

/// A report of the shards to the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardReport {
    /// Every watch that the API server permits has delivered a complete list, so shards can be led.
    Synced,
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
        /// The last versions that this replica wrote or knew; `None` if the shard was never led, so that its view
        /// was not proved to be current.
        written_through: Option<ResourceVersions>,
    },
}
