//! What shards are listed by.

use crate::shard::ShardSet;

/// A list that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOrder {
    /// Of the CronJobs and Jobs of these shards.
    pub shards: ShardSet,
    /// Whether everything that was written before must be in it; else what our own watches have come to will do.
    pub is_consistent: bool,
}
