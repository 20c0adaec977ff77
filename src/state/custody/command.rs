//! What passes between the election and the shards of a replica, and what shards are listed by.

use jiff::Timestamp;

use crate::state::{
    lease::SealOrder,
    sharding::{BootInstant, Horizon, Mandate, ShardId, ShardSet},
};

/// What the election wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardCommand {
    /// Load shards, without acting.
    Warm(ShardSet),
    /// Lead it.
    Lead {
        /// Which, and in which term.
        mandate: Mandate,
        /// What it must know before.
        entry: Entry,
    },
    /// Seal it, and report that.
    Seal(SealOrder),
    /// Hold it no more.
    LetGo(ShardId),
    /// Hold no shard more.
    LetAllGo,
    /// Look again whether anything may be done.
    Look,
}

/// A list that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOrder {
    /// Of the CronJobs and Jobs of these shards.
    pub shards: ShardSet,
    /// Whether everything that was written before must be in it; else what our own watches have come to will do.
    pub is_consistent: bool,
}

/// What a shard must know before it is led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Everything that there is: a list that begins now.
    List,
    /// What its last leader wrote, beyond what was there when it was warmed.
    Watch(Horizon),
}

/// What the election is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardReport {
    /// The watches have shown everything once, so that shards can be taken up.
    Synced,
    /// A shard is loaded.
    Warmed(ShardId),
    /// A shard is led from now on.
    Leading(Mandate),
    /// A shard fires nothing more.
    Sealed {
        /// Which, and in which term.
        mandate: Mandate,
        /// Since when.
        at: BootInstant,
        /// Up to when everything was fired; none where it was never led.
        fired_through: Option<Timestamp>,
        /// What was written last.
        written_through: Horizon,
    },
}
