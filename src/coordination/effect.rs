//! Every action that an election can request.

use super::{LeaseKey, LeaseWrite};
use crate::shard::{BootInstant, Entry, FiredThrough, ResourceVersion, SealOrder, ShardTerm};

/// Identifies a request, to match its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An action. Requests are sent at once or dropped: a renewal counts from the instant at which it was requested.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ElectionEffect {
    /// Patch a Lease that must still have the version of `precondition`, or create one if there is no precondition.
    Write {
        /// Matches the response.
        request: RequestId,
        /// The version that the Lease must have; `None` for a new Lease.
        precondition: Option<ResourceVersion>,
        /// The changes, or the content of the new Lease.
        write: LeaseWrite,
    },
    /// Delete a Lease if it still has this version.
    Delete {
        /// Matches the response.
        request: RequestId,
        /// The version that the Lease must have.
        precondition: ResourceVersion,
        /// The Lease.
        key: LeaseKey,
    },
    /// Read a Lease from the quorum (no resource version in the request).
    Read {
        /// Matches the response.
        request: RequestId,
        /// The Lease.
        key: LeaseKey,
    },
    /// List the installation's Leases again and continue the watch from that list.
    Relist,
    /// The instant until which all led shards may act; it only moves forward within an incarnation.
    ActUntil(BootInstant),
    /// The instant of [`ElectionEffect::ActUntil`] has passed: nothing acts, connections for writes are reset, and the
    /// watches of CronJobs and Jobs are interrupted. Another [`ElectionEffect::ActUntil`] lets the shards act again.
    Fence,
    /// Lead a shard in a term.
    Lead {
        /// The shard and the term to lead it in.
        shard_term: ShardTerm,
        /// The way in which this replica became its leader.
        adoption: Adoption,
        /// What the watches must have delivered before the shard is led.
        entry: Entry,
        /// How far the last leader fired the slots, if that is known.
        fired_through: Option<FiredThrough>,
    },
    /// Stop leading a shard: its effects are dropped, and so are its queued requests.
    Stop {
        /// The shard and the term that ends.
        shard_term: ShardTerm,
        /// The reason.
        reason: StopReason,
    },
    /// Seal a shard.
    Seal(SealOrder),
    /// Return all shards to standby, drop all connections, and rejoin as another incarnation, for this reason.
    Rejoin(&'static str),
    /// All shards and this replica's Lease are given up: the process may end.
    Left,
    /// End the process at once, for this reason.
    Exit(&'static str),
}

/// The ways in which a replica becomes the leader of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adoption {
    /// The shard never had a Lease, in an installation whose beginning this replica observed.
    First,
    /// The former leader handed the shard over.
    HandedOver,
    /// The former leader left the shard without a holder, or left the installation.
    Released,
    /// The former leader was evicted, was replaced by another incarnation, or is gone, or the shard's Lease is gone.
    Crashed,
    /// This replica led the shard, and its Lease was deleted.
    Recreated,
}

impl Adoption {
    /// The name, for the log.
    pub fn name(self) -> &'static str {
        match self {
            Adoption::First => "first",
            Adoption::HandedOver => "handed over",
            Adoption::Released => "released",
            Adoption::Crashed => "crashed",
            Adoption::Recreated => "recreated",
        }
    }
}

/// The reasons why this replica stopped leading a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The shard was handed to another member.
    HandedOver,
    /// The shard was left without a holder.
    Released,
    /// The shard's Lease names another holder or another term.
    Lost,
    /// The shard's Lease was deleted. The shard is led again after the Lease is created again.
    LeaseDeleted,
}
