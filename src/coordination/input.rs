//! Every fact that an election can receive.

use super::{Incarnation, LeaseKey, LeaseList, LeaseRecord, RequestId};
use crate::shard::{BootInstant, ResourceVersion, ShardReport};

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElectionInput {
    /// The response to a list of Leases without resourceVersion. The watch continues from it.
    Listed {
        /// The instant at which the request was sent.
        requested_at: BootInstant,
        /// The list.
        list: LeaseList,
    },
    /// The watch delivered a new or changed Lease.
    Applied(LeaseRecord),
    /// The watch delivered the deletion of a Lease.
    Deleted(LeaseKey, ResourceVersion),
    /// The response to a create, patch, delete or read.
    Answered {
        /// The request that was answered.
        request: RequestId,
        /// The outcome.
        answer: LeaseAnswer,
    },
    /// A report of this replica's shards.
    Shards(ShardReport),
    /// Whether this replica trusts its clock. It leads no shards while it does not.
    ClockTrusted(bool),
    /// Whether the account of this replica may start Jobs. Without the right, the built-in controller is let in.
    MayStart(bool),
    /// The process has received the signal to end.
    DrainRequested,
    /// All shards are on standby and all connections reset; the next incarnation begins. It needs a list of Leases. The
    /// watches of CronJobs and Jobs continue.
    Rejoined(Incarnation),
}

/// The outcome of a request about one Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseAnswer {
    /// The request succeeded; this is the resulting Lease, or the one that was read. After a delete, only its key and its
    /// last version are set.
    Done(Box<LeaseRecord>),
    /// The Lease has changed since the version that the write was based on (409 to a patch or delete).
    Conflict,
    /// The Lease exists already (409 to a create).
    Exists,
    /// The Lease does not exist (404).
    Missing,
    /// No response, or one that leaves the outcome open: time-out, broken connection, 429, 5xx.
    Unknown,
    /// Permanently refused: 403, 422.
    Refused,
}
