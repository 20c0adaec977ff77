//! What an election orders the shards of a replica to do, and what they report.

use jiff::Timestamp;

use super::{BootInstant, ResourceVersions, ShardId, ShardSet, ShardTerm};

/// An order of the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardCommand {
    /// Load shards that may be handed over, without acting; together, since one list finds them all.
    Load(ShardSet),
    /// Lead it.
    Lead {
        /// Which, and in which term.
        shard_term: ShardTerm,
        /// What it must know before.
        entry: Entry,
    },
    /// Seal it, and report [`ShardReport::Sealed`] within two seconds of that.
    Seal(SealOrder),
    /// Drop it.
    Release(ShardId),
    /// Drop all shards.
    ReleaseAll,
    /// Look again whether anything may be done: the instant until which the replica may act has moved.
    Look,
}

/// The order to seal a shard: it starts Jobs until what it began is answered and stored, and nothing after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SealOrder {
    /// Which shard, and in which term.
    pub shard_term: ShardTerm,
    /// When it starts its last Job at the latest.
    pub close_by: BootInstant,
    /// Whether another member will lead it. Few such shards are sealed at a time.
    pub has_successor: bool,
}

/// What a shard must know before it is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Everything that there is: a list that begins now.
    List,
    /// What its last leader wrote, beyond what was there when it was warmed.
    Watch(ResourceVersions),
}

/// What the shards report to the election.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardReport {
    /// The watches have shown everything once, so that shards can be taken up.
    Synced,
    /// A shard is loaded.
    Loaded(ShardId),
    /// A shard is led from now on.
    Leading(ShardTerm),
    /// A shard fires nothing more. What it had in flight is answered and its statuses are stored, or its time is over.
    Sealed {
        /// Which, and in which term.
        shard_term: ShardTerm,
        /// Since when.
        at: BootInstant,
        /// Up to when everything was fired; none where it was never led.
        fired_through: Option<Timestamp>,
        /// What was written last.
        written_through: ResourceVersions,
    },
}
