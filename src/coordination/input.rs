//! Every fact that can reach an election.

use super::{Incarnation, Installation, LeaseKey, LeaseRecord, RequestId};
use crate::shard::{BootInstant, ResourceVersion, ShardReport};

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElectionInput {
    /// A complete and consistent list of our Leases (no resource version in the request), and when it was asked for. The
    /// watch goes on from it.
    Listed {
        /// When the request was sent.
        asked_at: BootInstant,
        /// Of the list.
        resource_version: ResourceVersion,
        /// All Leases of ours, with those of other shard counts left out.
        leases: Vec<LeaseRecord>,
    },
    /// The watch shows a Lease that is new or has changed.
    Applied(LeaseRecord),
    /// The watch shows that a Lease is gone.
    Deleted(LeaseKey, ResourceVersion),
    /// The watch has broken off.
    WatchLost,
    /// The watch goes on where it broke off: what happened between will be shown, in order.
    WatchResumed,
    /// The answer to a create, patch or delete.
    Written {
        /// To which.
        request: RequestId,
        /// What it says.
        answer: WriteAnswer,
    },
    /// The answer to a read.
    Read {
        /// To which.
        request: RequestId,
        /// What it says.
        answer: ReadAnswer,
    },
    /// What the installation was made with.
    InstallationKnown(Installation),
    /// What the shards of this replica report.
    Shards(ShardReport),
    /// Whether this replica may lead: not while its clock is in doubt, for one.
    Willing(bool),
    /// The process is to end.
    DrainRequested,
    /// All shards are dropped and all connections reset; this is the next life. It wants a list of Leases and, when they
    /// have been listed anew, [`ShardReport::Synced`].
    Rejoined(Incarnation),
}

/// What the API server says to a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WriteAnswer {
    /// Done; the Lease as it is now. After a delete only its key and the version that it had: the server does not say more.
    Done(Box<LeaseRecord>),
    /// It has changed since the version that the write was based on (409 to a patch or delete).
    Conflict,
    /// It is there already (409 to a create).
    Exists,
    /// It is not there (404).
    Missing,
    /// No answer, or one that says nothing about what happened: time-out, broken connection, 429, 5xx.
    Unknown,
    /// Refused for good: 403, 422.
    Refused,
}

/// What the API server says to a read from the quorum.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReadAnswer {
    /// The Lease.
    Found(Box<LeaseRecord>),
    /// It is not there.
    Missing,
    /// No answer.
    Unknown,
}
