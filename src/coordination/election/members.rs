//! The members on which shards are placed, when they last changed, and the placement.

use super::{Election, MemberIdentity, led_shard::LedShard};
use crate::{
    coordination::{Acceptance, MemberLease, MemberRing, Placement, PlacementInputs},
    shard::{BootInstant, ShardCount, ShardId},
};

/// The properties of a member that determine placement. When one of them changes, the settle window starts again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MemberProperties {
    identity: MemberIdentity,
    revision: Box<str>,
    takes_shards: bool,
    is_draining: bool,
}

/// The last observed members, since when they are unchanged, and the last ring.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Members {
    properties: Vec<MemberProperties>,
    unchanged_since: BootInstant,
    ring: Option<MemberRing>,
}

impl Members {
    pub(super) fn new(now: BootInstant) -> Members {
        Members {
            properties: Vec::new(),
            unchanged_since: now,
            ring: None,
        }
    }

    /// The ring of the members with these pod uids.
    fn ring(&mut self, pod_uids: Vec<Box<str>>, count: ShardCount) -> MemberRing {
        let known = self.ring.take().filter(|ring| ring.members() == pod_uids);
        let ring = known.unwrap_or_else(|| MemberRing::new(pod_uids, count));
        self.ring.insert(ring).clone()
    }
}

impl Election {
    /// The Leases of all other members, of any installation, with or without a holder.
    pub(super) fn other_members(&self) -> impl Iterator<Item = (&str, &MemberLease)> {
        self.view.members().filter(|(pod_uid, _)| !self.is_us(pod_uid))
    }

    /// The members of this installation that have neither left nor been evicted, ordered by pod uid, this replica
    /// included. A member that died is one of them until it is evicted.
    pub(super) fn joined_members(&self) -> impl Iterator<Item = (&str, &MemberLease)> {
        let has_joined = |(_, lease): &(&str, &MemberLease)| lease.holder.member().is_some();
        self.view.members().filter(has_joined)
    }

    /// The joined members that take shards.
    pub(super) fn takers(&self) -> impl Iterator<Item = (&str, &MemberLease)> {
        self.joined_members().filter(|(_, lease)| lease.takes_shards())
    }

    /// The Lease of the member in a Pod, if that member takes shards.
    pub(super) fn taker(&self, pod_uid: &str) -> Option<&MemberLease> {
        let mut takers = self.takers();
        takers.find(|(other, _)| *other == pod_uid).map(|(_, lease)| lease)
    }

    /// Whether a Pod is that of this replica.
    pub(super) fn is_us(&self, pod_uid: &str) -> bool {
        *pod_uid == *self.config.pod_uid
    }

    /// Records the members, and since when they are unchanged.
    pub(super) fn note_members(&mut self, now: BootInstant) {
        let properties_of = |(_, lease): (&str, &MemberLease)| {
            Some(MemberProperties {
                identity: lease.holder.member()?.clone(),
                revision: lease.revision.clone(),
                takes_shards: lease.takes_shards(),
                is_draining: lease.is_draining,
            })
        };
        let properties: Vec<MemberProperties> = self.joined_members().filter_map(properties_of).collect();
        if properties != self.members.properties {
            self.members.properties = properties;
            self.members.unchanged_since = now;
        }
        let settled_at = self.settled_at();
        if settled_at > now {
            self.wake_at(settled_at);
        }
    }

    /// The end of the settle window.
    fn settled_at(&self) -> BootInstant {
        self.members.unchanged_since + self.config.timing.settle_window
    }

    /// Whether members above their quota give shards to members below theirs. Three conditions prevent moves that would
    /// soon be undone: the members have not changed for the settle window, all members have the same revision (a
    /// rollout replaces those of the other revision), and no member is leaving.
    pub(super) fn may_rebalance(&self, now: BootInstant) -> bool {
        let mut revisions = self.joined_members().map(|(_, lease)| &lease.revision);
        let first = revisions.next();
        let is_one_revision = revisions.all(|other| Some(other) == first);
        let is_anyone_leaving = self.is_draining() || self.joined_members().any(|(_, lease)| lease.is_draining);
        now >= self.settled_at() && is_one_revision && !is_anyone_leaving
    }

    /// Places all shards by this replica's view. Its own requests for shards and its own handovers count as done.
    /// With `is_genesis`, only members that observed the installation empty are targets.
    pub(super) fn place(&mut self, is_genesis: bool, now: BootInstant) -> Placement {
        let count = self.config.installation.shard_count;
        let pod_uids = self.joined_members().map(|(pod_uid, _)| pod_uid.into()).collect();
        let ring = self.members.ring(pod_uids, count);
        let acceptances = self
            .joined_members()
            .map(|(pod_uid, lease)| self.acceptance(pod_uid, lease, is_genesis));
        let requested = self.requests.requested_shards();
        let holder = |shard| {
            if requested.contains(shard) {
                Some(&*self.config.pod_uid)
            } else {
                self.expected_holder(shard)
            }
        };
        let holders = count.shards().map(|shard| holder(shard).map(Into::into));
        Placement::desired(PlacementInputs {
            ring,
            acceptances: acceptances.collect(),
            holders: holders.collect(),
            may_rebalance: self.may_rebalance(now),
        })
    }

    /// Whether a member takes shards. This replica may know that it leaves before its Lease says so.
    fn acceptance(&self, pod_uid: &str, lease: &MemberLease, is_genesis: bool) -> Acceptance {
        let is_leaving = self.is_us(pod_uid) && self.is_leaving();
        let is_too_late = is_genesis && !lease.is_genesis && lease.takes_shards();
        if is_leaving || is_too_late {
            Acceptance::No
        } else {
            lease.acceptance
        }
    }

    /// The pod uid of a shard's holder, or of the next leader that this replica has chosen.
    fn expected_holder(&self, shard: ShardId) -> Option<&str> {
        let holder = self.view.lease(shard)?.holder.member()?;
        let lease = self.view.member(&holder.pod_uid)?;
        if !lease.holder.is(holder) {
            return None;
        }
        let led_shard = self.led_shards.get(&shard).filter(|_| *holder == self.identity);
        let next_leader = led_shard.and_then(LedShard::next_leader);
        let is_there = |pod_uid: &&str| self.taker(pod_uid).is_some();
        Some(next_leader.filter(is_there).unwrap_or(&holder.pod_uid))
    }
}
