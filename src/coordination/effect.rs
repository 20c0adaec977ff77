//! Everything that an election can want done.

use jiff::Timestamp;

use super::{LeaseKey, LeaseWrite, MemberIdentity};
use crate::shard::{BootInstant, ResourceVersion, ResourceVersions, ShardCommand, ShardId, Term};

/// Names a request, so that its answer can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A thing to do. Requests are sent at once, or dropped: a renewal counts from the instant at which it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElectionEffect {
    /// Create a Lease.
    Create {
        /// For the answer.
        request: RequestId,
        /// Its content.
        write: LeaseWrite,
    },
    /// Patch a Lease, if it still has this version.
    Patch {
        /// For the answer.
        request: RequestId,
        /// The version that it must have.
        precondition: ResourceVersion,
        /// What changes.
        write: LeaseWrite,
    },
    /// Delete a Lease, if it still has this version.
    Delete {
        /// For the answer.
        request: RequestId,
        /// The version that it must have.
        precondition: ResourceVersion,
        /// Which.
        key: LeaseKey,
    },
    /// Read a Lease from the quorum (no resource version in the request).
    Read {
        /// For the answer.
        request: RequestId,
        /// Which.
        key: LeaseKey,
    },
    /// List our Leases anew and go on watching from there.
    Relist,
    /// Until when all led shards may act; it only grows within a life.
    ActUntil(BootInstant),
    /// That instant has passed: nothing acts, and connections for writes are reset. Shards stay loaded; another
    /// [`ElectionEffect::ActUntil`] lets them go on.
    Fence,
    /// Lead a shard in a term.
    Lead {
        /// Which.
        shard: ShardId,
        /// In which term.
        term: Term,
        /// How it came to us.
        adoption: Adoption,
        /// Whether so many leaders died of it that it runs alone and slowly.
        is_quarantined: bool,
    },
    /// Stop leading a shard: its effects, and what it has in the queues, are dropped.
    Stop {
        /// Which.
        shard: ShardId,
        /// Of which term.
        term: Term,
        /// Why.
        reason: StopReason,
    },
    /// Load shards for a handover, release one that is not handed over after all, or seal one.
    Shards(ShardCommand),
    /// Drop all shards and connections, and come back as another life.
    Rejoin(RejoinReason),
    /// All shards are given away, and our Lease with them: the process may end.
    Left,
    /// End the process at once.
    Exit(ExitReason),
}

/// How a shard came to us.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Adoption {
    /// Nobody led it before, as far as anybody knows.
    First,
    /// Its leader handed it over, everything fired up to an instant.
    HandedOver {
        /// As the Lease says.
        fired_through: Option<Timestamp>,
        /// What must be seen before anything is decided, as the Lease says; where it does not, the shard is listed.
        written_through: Option<ResourceVersions>,
    },
    /// Its leader left it without a holder.
    Released {
        /// As the Lease says.
        fired_through: Option<Timestamp>,
    },
    /// Its leader was evicted or has gone: its Jobs must be listed once from the quorum before Forbid and Replace decide.
    Crashed {
        /// Who, where it is known.
        former: Option<MemberIdentity>,
    },
    /// We led it, and its Lease was deleted.
    Recreated,
}

/// Why a shard is not led any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It was handed to another.
    HandedOver,
    /// It was left without a holder.
    Released,
    /// Its Lease says another holder or another term.
    Lost,
    /// Its Lease is gone; it is led again when it has been made anew.
    LeaseDeleted,
}

/// Why this life is over and another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejoinReason {
    /// The process did not run for longer than its fence.
    Thawed,
    /// Our Lease says another holder, or none.
    Evicted,
    /// Our Lease was deleted.
    LeaseDeleted,
}

/// Why the process must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// Somebody else renews as this very life: a machine was restored from a snapshot, or a pod's identity was copied.
    Twin,
    /// Another life of the same pod has our Lease: we are the one that should be gone.
    Superseded,
}
