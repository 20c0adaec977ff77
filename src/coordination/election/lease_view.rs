//! What this replica has seen of all Leases, and when it saw each change by its own clock.
//!
//! A change is news whoever brings it: the watch, a list, the answer to a write. An older version than the one known is
//! none. What was written by others' clocks is kept for people and never compared with ours.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    coordination::{Holder, LeaseKey, LeaseRecord, MemberLease, ShardLease},
    shard::{BootInstant, ResourceVersion, ShardCount, ShardId, ShardSet, Term},
};

/// So many members that have gone are remembered whatever they held: a few rollouts of a large fleet.
const ABSENT_MAX: usize = 256;

/// A member's Lease as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenMember {
    pub(super) lease: MemberLease,
    /// When it last changed.
    pub(super) changed_at: BootInstant,
    /// Since when it has the holder that it has.
    pub(super) holder_since: BootInstant,
    /// Before when we do not try again to evict it.
    pub(super) retry_at: BootInstant,
}

/// A shard's Lease as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenShard {
    pub(super) lease: Option<ShardLease>,
    /// The version of the Lease, or of its deletion.
    version: ResourceVersion,
    /// When it last changed, or was found missing.
    pub(super) changed_at: BootInstant,
    /// The highest term that was seen of it, also when the Lease is gone.
    pub(super) last_term: Term,
    /// Before when nothing is tried again.
    pub(super) retry_at: BootInstant,
}

/// A member's Lease that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Absence {
    since: BootInstant,
    version: ResourceVersion,
}

/// All Leases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaseView {
    count: ShardCount,
    /// By pod uid.
    pub(super) members: BTreeMap<Box<str>, SeenMember>,
    shards: Vec<SeenShard>,
    absent: BTreeMap<Box<str>, Absence>,
    /// Whether our watch goes on.
    pub(super) is_connected: bool,
    /// Since when the view has been fresh without a break.
    pub(super) trusted_since: Option<BootInstant>,
    /// Whether our first list showed no Lease of a shard and no live member: a new installation.
    pub(super) is_genesis: bool,
    n_lists: u64,
    /// The watch has shown everything up to this version. Answers and reads run ahead of it, of one Lease each.
    watched: ResourceVersion,
    /// Goes up with everything that a placement depends on, which a mere renewal is not.
    pub(super) generation: u64,
}

impl LeaseView {
    pub(super) fn new(count: ShardCount, now: BootInstant) -> LeaseView {
        let unseen = SeenShard {
            lease: None,
            version: ResourceVersion(0),
            changed_at: now,
            last_term: Term(0),
            retry_at: now,
        };
        LeaseView {
            count,
            members: BTreeMap::new(),
            shards: vec![unseen; count.get().into()],
            absent: BTreeMap::new(),
            is_connected: false,
            trusted_since: None,
            is_genesis: false,
            n_lists: 0,
            watched: ResourceVersion(0),
            generation: 0,
        }
    }

    /// Every shard with what was seen of it.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardId, &SeenShard)> {
        (0..).map(ShardId).zip(&self.shards)
    }

    pub(super) fn shard(&self, shard: ShardId) -> Option<&SeenShard> {
        self.shards.get(usize::from(shard.0))
    }

    pub(super) fn shard_mut(&mut self, shard: ShardId) -> Option<&mut SeenShard> {
        self.shards.get_mut(usize::from(shard.0))
    }

    pub(super) fn lease(&self, shard: ShardId) -> Option<&ShardLease> {
        self.shard(shard)?.lease.as_ref()
    }

    /// The shards that killed too many leaders.
    pub(super) fn quarantined(&self) -> ShardSet {
        let is_quarantined = |seen: &SeenShard| seen.lease.as_ref().is_some_and(ShardLease::is_quarantined);
        self.shards()
            .filter(|(_, seen)| is_quarantined(seen))
            .map(|(shard, _)| shard)
            .collect()
    }

    /// Since when a member has had no Lease.
    pub(super) fn absent_since(&self, pod_uid: &str) -> Option<BootInstant> {
        self.absent.get(pod_uid).map(|absence| absence.since)
    }

    /// The longest duration that anybody advertises: who is not there any more had no longer one.
    pub(super) fn duration_max(&self) -> Duration {
        let members = self.members.values().map(|seen| seen.lease.duration_secs);
        let shards = self
            .shards
            .iter()
            .filter_map(|seen| seen.lease.as_ref())
            .map(|lease| lease.duration_secs);
        Duration::from_secs(members.chain(shards).max().unwrap_or(0).into())
    }

    /// Whether the watch, or a list, has shown everything up to this version.
    pub(super) fn has_shown(&self, version: ResourceVersion) -> bool {
        self.watched >= version
    }

    /// The watch, which tells everything in order, has come to this version.
    pub(super) fn watched(&mut self, version: ResourceVersion) {
        self.watched = self.watched.max(version);
    }

    /// Whether everything is known that happened before a shard's Lease became what it is known to be. Until then its
    /// holder may be a life that has begun and that we have not seen begin.
    pub(super) fn is_caught_up_with(&self, seen: &SeenShard) -> bool {
        seen.version <= self.watched
    }

    /// Takes in a Lease.
    pub(super) fn apply(&mut self, record: &LeaseRecord, now: BootInstant) {
        match &record.key {
            LeaseKey::Member(pod_uid) => self.apply_member(pod_uid, record, now),
            LeaseKey::Shard(shard) => self.apply_shard(*shard, record, now),
        }
    }

    fn apply_member(&mut self, pod_uid: &str, record: &LeaseRecord, now: BootInstant) {
        let version = record.resource_version;
        let is_gone_since = self
            .absent
            .get(pod_uid)
            .is_some_and(|absence| absence.version >= version);
        let former = self.members.get(pod_uid);
        if is_gone_since || former.is_some_and(|former| former.lease.resource_version >= version) {
            return;
        }
        let lease = MemberLease::read(record, self.count);
        if former.is_none_or(|former| !former.lease.is_renewed_by(&lease)) {
            self.generation += 1;
        }
        let former = self.members.get(pod_uid);
        let former_holder = former.filter(|former| former.lease.holder == lease.holder);
        let holder_since = former_holder.map_or(now, |former| former.holder_since);
        self.absent.remove(pod_uid);
        let seen = SeenMember {
            lease,
            changed_at: now,
            holder_since,
            retry_at: now,
        };
        self.members.insert(pod_uid.into(), seen);
    }

    fn apply_shard(&mut self, shard: ShardId, record: &LeaseRecord, now: BootInstant) {
        self.generation += 1;
        let Some(seen) = self.shard_mut(shard) else {
            return;
        };
        if seen.version >= record.resource_version {
            return;
        }
        let lease = ShardLease::read(record);
        seen.version = record.resource_version;
        seen.changed_at = now;
        seen.last_term = seen.last_term.max(lease.term);
        seen.lease = Some(lease);
        self.note_absence(shard, now);
    }

    /// Notes that the holder of a shard has no Lease, if it has none.
    fn note_absence(&mut self, shard: ShardId, now: BootInstant) {
        let Some(holder) = self.lease(shard).and_then(|lease| lease.holder.member()) else {
            return;
        };
        let pod_uid = holder.pod_uid.clone();
        if !self.members.contains_key(&pod_uid) {
            self.absent.entry(pod_uid).or_insert(Absence {
                since: now,
                version: ResourceVersion(0),
            });
        }
    }

    /// Takes in that a Lease is gone.
    pub(super) fn delete(&mut self, key: &LeaseKey, version: ResourceVersion, now: BootInstant) {
        self.generation += 1;
        match key {
            LeaseKey::Member(pod_uid) => {
                let known = self.members.get(pod_uid).map(|seen| seen.lease.resource_version);
                if known.is_some_and(|known| known <= version) {
                    self.members.remove(pod_uid);
                    self.absent.insert(pod_uid.clone(), Absence { since: now, version });
                    self.forget_absent();
                }
            }
            LeaseKey::Shard(shard) => {
                if let Some(seen) = self.shard_mut(*shard)
                    && seen.version <= version
                    && seen.lease.take().is_some()
                {
                    seen.version = version;
                    seen.changed_at = now;
                }
            }
        }
    }

    /// Takes in that a Lease was asked for and is not there.
    pub(super) fn missing(&mut self, key: &LeaseKey, now: BootInstant) {
        let known = match key {
            LeaseKey::Member(pod_uid) => self.members.get(pod_uid).map(|seen| seen.lease.resource_version),
            LeaseKey::Shard(shard) => self.shard(*shard).map(|seen| seen.version),
        };
        if let Some(known) = known {
            self.delete(key, known, now);
        }
    }

    /// Whether a consistent list proves that the history went back, as after a restore of etcd: it is older than what the
    /// watch has shown, or has a Lease in an older version than was known when the list was requested. With
    /// `--bump-revision` the version of the list grows, and those of the Leases in it go back.
    pub(super) fn is_contradicted_by(
        &self,
        requested_at: BootInstant,
        version: ResourceVersion,
        leases: &[LeaseRecord],
    ) -> bool {
        let is_older = |record: &LeaseRecord| {
            let known = match &record.key {
                LeaseKey::Member(pod_uid) => {
                    let seen = self.members.get(pod_uid);
                    seen.map(|seen| (seen.lease.resource_version, seen.changed_at))
                }
                LeaseKey::Shard(shard) => self.shard(*shard).map(|seen| (seen.version, seen.changed_at)),
            };
            known.is_some_and(|(known, since)| record.resource_version < known && since <= requested_at)
        };
        version < self.watched || leases.iter().any(is_older)
    }

    /// Takes in all Leases as they were at a version. What is known of later stays.
    pub(super) fn replace(&mut self, version: ResourceVersion, leases: &[LeaseRecord], now: BootInstant) {
        let listed: BTreeSet<&LeaseKey> = leases.iter().map(|record| &record.key).collect();
        let members = self.members.keys().cloned().map(LeaseKey::Member);
        let shards = self
            .shards()
            .filter(|(_, seen)| seen.lease.is_some())
            .map(|(shard, _)| LeaseKey::Shard(shard));
        let gone: Vec<LeaseKey> = members.chain(shards).filter(|key| !listed.contains(key)).collect();
        for key in gone {
            self.delete(&key, version, now);
        }
        for record in leases {
            if let LeaseKey::Member(_) = record.key {
                self.apply(record, now);
            }
        }
        for record in leases {
            self.apply(record, now);
        }
        if self.n_lists == 0 {
            self.begin(now);
        }
        self.n_lists += 1;
        self.is_connected = true;
        self.watched(version);
    }

    /// Keeps the absence of those alone that hold a shard, when there are many.
    fn forget_absent(&mut self) {
        if self.absent.len() > ABSENT_MAX {
            let holders = self.shard_holders();
            self.absent.retain(|pod_uid, _| holders.contains(pod_uid));
        }
    }

    /// What the first list says of shards without a Lease: they were never led, or their Leases were deleted just now.
    fn begin(&mut self, now: BootInstant) {
        let is_live = |seen: &SeenMember| seen.lease.holder != Holder::Nobody;
        self.is_genesis = self.shards.iter().all(|seen| seen.lease.is_none()) && !self.members.values().any(is_live);
        for seen in &mut self.shards {
            if seen.lease.is_none() {
                seen.changed_at = now;
            }
        }
    }

    fn shard_holders(&self) -> BTreeSet<Box<str>> {
        let leases = self.shards.iter().filter_map(|seen| seen.lease.as_ref());
        leases
            .filter_map(|lease| lease.holder.member())
            .map(|holder| holder.pod_uid.clone())
            .collect()
    }
}
