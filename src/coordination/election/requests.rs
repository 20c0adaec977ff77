//! Lease requests in flight, with their purposes and time-outs.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    coordination::RequestId,
    shard::{BootInstant, ResourceVersion, ShardId},
};

/// The purpose of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// Acquire this replica's member Lease.
    Join,
    /// Renew it; renewals are numbered.
    Renew { number: u64 },
    /// Give it up.
    Leave { is_delete: bool },
    /// Read it.
    ReadOwn,
    /// Read the Lease of a silent member, expected at the version that was last observed.
    ReadVictim { victim: Box<str>, version: ResourceVersion },
    /// Remove the holder from a member's Lease.
    Evict(Box<str>),
    /// Acquire a shard.
    Take(ShardId),
    /// Transfer a shard to another member, or to no holder.
    HandOver(ShardId),
    /// Reset the crash count of a shard.
    ResetCrashCount(ShardId),
    /// Read a shard's Lease.
    ReadShard(ShardId),
}

impl Purpose {
    /// The shard that the request concerns.
    pub(super) fn shard(&self) -> Option<ShardId> {
        match self {
            Purpose::Take(shard)
            | Purpose::HandOver(shard)
            | Purpose::ResetCrashCount(shard)
            | Purpose::ReadShard(shard) => Some(*shard),
            Purpose::Join
            | Purpose::Renew { .. }
            | Purpose::Leave { .. }
            | Purpose::ReadOwn
            | Purpose::ReadVictim { .. }
            | Purpose::Evict(_) => None,
        }
    }

    /// Whether the request concerns this replica's own Lease.
    fn is_own(&self) -> bool {
        matches!(
            self,
            Purpose::Join | Purpose::Renew { .. } | Purpose::Leave { .. } | Purpose::ReadOwn
        )
    }

    /// The member that the request concerns, if it is another one.
    pub(super) fn victim(&self) -> Option<&str> {
        match self {
            Purpose::ReadVictim { victim, .. } | Purpose::Evict(victim) => Some(victim),
            Purpose::Join
            | Purpose::Renew { .. }
            | Purpose::Leave { .. }
            | Purpose::ReadOwn
            | Purpose::Take(_)
            | Purpose::HandOver(_)
            | Purpose::ResetCrashCount(_)
            | Purpose::ReadShard(_) => None,
        }
    }
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    pub(super) sent_at: BootInstant,
}

/// All requests in flight; at most one for each Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Requests {
    last: u64,
    pending: BTreeMap<RequestId, Pending>,
}

impl Requests {
    /// Records a request that is sent.
    pub(super) fn sent(&mut self, purpose: Purpose, now: BootInstant) -> RequestId {
        self.last += 1;
        let request = RequestId(self.last);
        self.pending.insert(request, Pending { purpose, sent_at: now });
        request
    }

    /// Removes and returns an answered request; `None` if it has timed out.
    pub(super) fn answered(&mut self, request: RequestId) -> Option<Pending> {
        self.pending.remove(&request)
    }

    /// Removes and returns the purposes of requests that have timed out.
    pub(super) fn expire(&mut self, now: BootInstant, timeout: Duration) -> Vec<Purpose> {
        let is_late = |pending: &Pending| now >= pending.sent_at + timeout;
        let late: Vec<RequestId> = self
            .pending
            .iter()
            .filter(|(_, pending)| is_late(pending))
            .map(|(request, _)| *request)
            .collect();
        late.into_iter()
            .filter_map(|request| Some(self.pending.remove(&request)?.purpose))
            .collect()
    }

    /// The instant at which the next request times out.
    pub(super) fn next_expiry(&self, timeout: Duration) -> Option<BootInstant> {
        self.pending.values().map(|pending| pending.sent_at + timeout).min()
    }

    /// Whether a request on this replica's own Lease is in flight.
    pub(super) fn is_own_busy(&self) -> bool {
        self.pending.values().any(|pending| pending.purpose.is_own())
    }

    /// Whether a request on this member's Lease is in flight.
    pub(super) fn is_victim_busy(&self, victim: &str) -> bool {
        self.pending
            .values()
            .any(|pending| pending.purpose.victim() == Some(victim))
    }

    /// Whether a request to acquire this shard is in flight.
    pub(super) fn is_taking(&self, shard: ShardId) -> bool {
        self.pending
            .values()
            .any(|pending| pending.purpose == Purpose::Take(shard))
    }

    /// The shards with requests in flight.
    pub(super) fn busy_shards(&self) -> crate::shard::ShardSet {
        self.pending
            .values()
            .filter_map(|pending| pending.purpose.shard())
            .collect()
    }

    /// Forgets all requests; later responses belong to a former incarnation.
    pub(super) fn forget_all(&mut self) {
        self.pending.clear();
    }
}
