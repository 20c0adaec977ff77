//! Requests on their way: what each is for, and when it is given up.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    coordination::RequestId,
    shard::{BootInstant, ResourceVersion, ShardId},
};

/// What a request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// Makes our own Lease ours.
    Join,
    /// Renews it, for the so-many-th time.
    Renew { number: u64 },
    /// Gives it up.
    Leave { is_delete: bool },
    /// Reads it.
    ReadOwn,
    /// Reads the Lease of a member that has been silent, at the version that was seen last.
    ReadVictim { victim: Box<str>, version: ResourceVersion },
    /// Takes a member's Lease away from it.
    Evict(Box<str>),
    /// Makes a shard ours.
    Take(ShardId),
    /// Gives a shard to another, or to nobody.
    HandOver(ShardId),
    /// Forgets the crashes of a shard.
    Pardon(ShardId),
    /// Reads a shard's Lease.
    ReadShard(ShardId),
}

impl Purpose {
    /// The shard that it is about.
    pub(super) fn shard(&self) -> Option<ShardId> {
        match self {
            Purpose::Take(shard) | Purpose::HandOver(shard) | Purpose::Pardon(shard) | Purpose::ReadShard(shard) => {
                Some(*shard)
            }
            Purpose::Join
            | Purpose::Renew { .. }
            | Purpose::Leave { .. }
            | Purpose::ReadOwn
            | Purpose::ReadVictim { .. }
            | Purpose::Evict(_) => None,
        }
    }

    /// Whether it is about our own Lease.
    fn is_own(&self) -> bool {
        matches!(
            self,
            Purpose::Join | Purpose::Renew { .. } | Purpose::Leave { .. } | Purpose::ReadOwn
        )
    }

    /// The member that it is about, if that is another.
    pub(super) fn victim(&self) -> Option<&str> {
        match self {
            Purpose::ReadVictim { victim, .. } | Purpose::Evict(victim) => Some(victim),
            Purpose::Join
            | Purpose::Renew { .. }
            | Purpose::Leave { .. }
            | Purpose::ReadOwn
            | Purpose::Take(_)
            | Purpose::HandOver(_)
            | Purpose::Pardon(_)
            | Purpose::ReadShard(_) => None,
        }
    }
}

/// A request whose answer is awaited.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    pub(super) sent_at: BootInstant,
}

/// All of them. At most one at a time about one Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Requests {
    last: u64,
    pending: BTreeMap<RequestId, Pending>,
}

impl Requests {
    /// Notes one that is sent.
    pub(super) fn sent(&mut self, purpose: Purpose, now: BootInstant) -> RequestId {
        self.last += 1;
        let request = RequestId(self.last);
        self.pending.insert(request, Pending { purpose, sent_at: now });
        request
    }

    /// Takes one out whose answer has come; none where it was given up.
    pub(super) fn answered(&mut self, request: RequestId) -> Option<Pending> {
        self.pending.remove(&request)
    }

    /// Takes out those whose answers come too late.
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

    /// When the next answer comes too late.
    pub(super) fn next_expiry(&self, timeout: Duration) -> Option<BootInstant> {
        self.pending.values().map(|pending| pending.sent_at + timeout).min()
    }

    /// Whether an answer about our own Lease is awaited.
    pub(super) fn is_own_busy(&self) -> bool {
        self.pending.values().any(|pending| pending.purpose.is_own())
    }

    /// Whether an answer about another member's Lease is awaited.
    pub(super) fn is_victim_busy(&self, victim: &str) -> bool {
        self.pending
            .values()
            .any(|pending| pending.purpose.victim() == Some(victim))
    }

    /// Whether we have asked for a shard.
    pub(super) fn is_taking(&self, shard: ShardId) -> bool {
        self.pending
            .values()
            .any(|pending| pending.purpose == Purpose::Take(shard))
    }

    /// The shards about which answers are awaited.
    pub(super) fn busy_shards(&self) -> crate::shard::ShardSet {
        self.pending
            .values()
            .filter_map(|pending| pending.purpose.shard())
            .collect()
    }

    /// Answers that come from now on are of a former life.
    pub(super) fn forget_all(&mut self) {
        self.pending.clear();
    }
}
