//! The order to list shards.

use crate::shard::ShardSet;

/// A list to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOrder {
    /// The shards whose CronJobs and Jobs are to be listed.
    pub shards: ShardSet,
    /// Whether the list must contain every earlier write. Otherwise the versions that this replica's watches have
    /// reached suffice.
    pub is_consistent: bool,
}
