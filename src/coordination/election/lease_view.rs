//! The Leases as observed by this replica, and when it observed each change by its own clock.
//!
//! A change counts whichever way it arrives: by the watch, a list, or the response to a write. A version older than
//! the known one is ignored. Timestamps from other replicas' clocks are informational and are never compared with
//! this replica's clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    coordination::{Holder, LeaseKey, LeaseList, LeaseRecord, MemberLease, ShardLease},
    shard::{BootInstant, ResourceVersion, ShardCount, ShardId, ShardSet, Term},
};

/// The number of absent members that are remembered whether they held shards or not: a few rollouts of a large fleet.
const ABSENT_MAX: usize = 256;

/// A member's Lease as last observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenMember {
    pub(super) lease: MemberLease,
    /// When the Lease last changed.
    pub(super) changed_at: BootInstant,
    /// The instant since which the Lease has had its present holder.
    pub(super) holder_since: BootInstant,
    /// The earliest instant of the next attempt to evict the member.
    pub(super) retry_at: BootInstant,
}

/// A shard's Lease as last observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenShard {
    pub(super) lease: Option<ShardLease>,
    /// The version of the Lease, or of its deletion.
    pub(super) version: ResourceVersion,
    /// The instant at which the Lease last changed, or was found missing.
    pub(super) changed_at: BootInstant,
    /// The highest observed term of the shard; it outlives the Lease.
    pub(super) last_term: Term,
    /// The earliest instant of the next attempt.
    pub(super) retry_at: BootInstant,
}

/// The absence of a member's Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Absence {
    since: BootInstant,
    version: ResourceVersion,
}

/// The view of all Leases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaseView {
    count: ShardCount,
    /// The members, by pod uid.
    pub(super) members: BTreeMap<Box<str>, SeenMember>,
    shards: Vec<SeenShard>,
    absent: BTreeMap<Box<str>, Absence>,
    /// Whether the watch is connected.
    pub(super) is_connected: bool,
    /// The instant since which the view has been fresh without interruption.
    pub(super) trusted_since: Option<BootInstant>,
    /// Whether the first list contained no shard Lease and no live member: a new installation.
    pub(super) is_genesis: bool,
    is_listed: bool,
    /// The watch has delivered everything up to this version. Responses can be ahead of it, each for one Lease.
    observed_version: ResourceVersion,
    /// Increases with every change that placement depends on; renewals do not count.
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
            is_listed: false,
            observed_version: ResourceVersion(0),
            generation: 0,
        }
    }

    /// Every shard with its last observed Lease.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardId, &SeenShard)> {
        (0..).map(ShardId).zip(&self.shards)
    }

    /// Every shard with a Lease.
    pub(super) fn shard_leases(&self) -> impl Iterator<Item = (ShardId, &ShardLease)> {
        self.shards()
            .filter_map(|(shard, seen)| Some((shard, seen.lease.as_ref()?)))
    }

    pub(super) fn shard(&self, shard: ShardId) -> &SeenShard {
        &self.shards[usize::from(shard.0)]
    }

    fn shard_mut(&mut self, shard: ShardId) -> &mut SeenShard {
        &mut self.shards[usize::from(shard.0)]
    }

    pub(super) fn lease(&self, shard: ShardId) -> Option<&ShardLease> {
        self.shard(shard).lease.as_ref()
    }

    /// The version of a Lease; `None` if it does not exist.
    pub(super) fn version_of(&self, key: &LeaseKey) -> Option<ResourceVersion> {
        let is_deleted = matches!(key, LeaseKey::Shard(shard) if self.lease(*shard).is_none());
        self.last_seen(key).filter(|_| !is_deleted).map(|(version, _)| version)
    }

    /// The shards on which too many leaders crashed.
    pub(super) fn quarantined(&self) -> ShardSet {
        let quarantined = self.shard_leases().filter(|(_, lease)| lease.is_quarantined());
        quarantined.map(|(shard, _)| shard).collect()
    }

    /// Delays the next attempt to take or transfer a shard, or to evict a member.
    pub(super) fn set_retry_at(&mut self, key: &LeaseKey, at: BootInstant) {
        match key {
            LeaseKey::Member(pod_uid) => {
                if let Some(seen) = self.members.get_mut(pod_uid) {
                    seen.retry_at = at;
                }
            }
            LeaseKey::Shard(shard) => self.shard_mut(*shard).retry_at = at,
        }
    }

    /// The instant since which a member has had no Lease.
    pub(super) fn absent_since(&self, pod_uid: &str) -> Option<BootInstant> {
        self.absent.get(pod_uid).map(|absence| absence.since)
    }

    /// The longest duration that any Lease advertises. No absent member is assumed to have advertised a longer one.
    pub(super) fn duration_max(&self) -> Duration {
        let members = self.members.values().map(|seen| seen.lease.duration_secs);
        let shards = self.shard_leases().map(|(_, lease)| lease.duration_secs);
        Duration::from_secs(members.chain(shards).max().unwrap_or(0).into())
    }

    /// Whether the watch, or a list, has delivered everything up to this version.
    pub(super) fn has_observed(&self, version: ResourceVersion) -> bool {
        self.observed_version >= version
    }

    /// Records that the watch, which delivers events in order, has reached this version.
    pub(super) fn observe_version(&mut self, version: ResourceVersion) {
        self.observed_version = self.observed_version.max(version);
    }

    /// Applies an observed Lease.
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
        let seen = self.shard_mut(shard);
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

    /// Records the absence of a shard holder's member Lease, if it is absent.
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

    /// Applies the deletion of a Lease.
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
                let seen = self.shard_mut(*shard);
                if seen.version <= version && seen.lease.take().is_some() {
                    seen.version = version;
                    seen.changed_at = now;
                }
            }
        }
    }

    /// Records that a read or write found a Lease missing.
    pub(super) fn missing(&mut self, key: &LeaseKey, now: BootInstant) {
        if let Some((version, _)) = self.last_seen(key) {
            self.delete(key, version, now);
        }
    }

    /// The last observed version of a Lease or of a shard Lease's deletion, and when it was observed.
    fn last_seen(&self, key: &LeaseKey) -> Option<(ResourceVersion, BootInstant)> {
        match key {
            LeaseKey::Member(pod_uid) => {
                let seen = self.members.get(pod_uid)?;
                Some((seen.lease.resource_version, seen.changed_at))
            }
            LeaseKey::Shard(shard) => {
                let seen = self.shard(*shard);
                Some((seen.version, seen.changed_at))
            }
        }
    }

    /// Whether a consistent list proves that the API server's history went back, as after a restore of etcd. The list
    /// is older than what the watch has delivered, or contains a Lease in an older version than was known when the list
    /// was requested. With `--bump-revision` the list's version grows, but the versions of its Leases go back.
    pub(super) fn is_contradicted_by(&self, requested_at: BootInstant, list: &LeaseList) -> bool {
        let is_older = |record: &LeaseRecord| {
            let known = self.last_seen(&record.key);
            known.is_some_and(|(known, since)| record.resource_version < known && since <= requested_at)
        };
        list.resource_version < self.observed_version || list.leases.iter().any(is_older)
    }

    /// Applies a list. Newer known versions stay.
    pub(super) fn replace(&mut self, list: &LeaseList, now: BootInstant) {
        let listed: BTreeSet<&LeaseKey> = list.leases.iter().map(|record| &record.key).collect();
        let members = self.members.keys().cloned().map(LeaseKey::Member);
        let shards = self.shard_leases().map(|(shard, _)| LeaseKey::Shard(shard));
        let gone: Vec<LeaseKey> = members.chain(shards).filter(|key| !listed.contains(key)).collect();
        for key in gone {
            self.delete(&key, list.resource_version, now);
        }
        let is_member = |record: &&LeaseRecord| matches!(record.key, LeaseKey::Member(_));
        let (members, shards): (Vec<_>, Vec<_>) = list.leases.iter().partition(is_member);
        for record in members.into_iter().chain(shards) {
            self.apply(record, now);
        }
        if !std::mem::replace(&mut self.is_listed, true) {
            self.begin(now);
        }
        self.is_connected = true;
        self.observe_version(list.resource_version);
    }

    /// If many absences are recorded, drops those of members that hold no shard.
    fn forget_absent(&mut self) {
        if self.absent.len() > ABSENT_MAX {
            let leases = self.shards.iter().filter_map(|seen| seen.lease.as_ref());
            let holders = leases.filter_map(|lease| lease.holder.member());
            let holders: BTreeSet<&str> = holders.map(|holder| &*holder.pod_uid).collect();
            self.absent.retain(|pod_uid, _| holders.contains(&**pod_uid));
        }
    }

    /// Evaluates the first list. A shard without a Lease was never led, or its Lease has just been deleted.
    fn begin(&mut self, now: BootInstant) {
        let is_live = |seen: &SeenMember| seen.lease.holder != Holder::Nobody;
        self.is_genesis = self.shard_leases().next().is_none() && !self.members.values().any(is_live);
        for seen in &mut self.shards {
            if seen.lease.is_none() {
                seen.changed_at = now;
            }
        }
    }
}
