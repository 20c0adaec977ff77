//! The Leases as observed by this replica, and when it observed each change by its own clock.
//!
//! A change counts whichever way it arrives: by the watch, a list, or the answer to a request. A version that is not
//! newer than the known one is ignored. There is one exception: after a deletion was observed, the answer to a request that
//! was sent later counts in any version. The watch reports a Lease that lost its label as deleted, in a version that may be
//! later than that of the Lease.
//! Timestamps from other replicas' clocks are informational and are never compared with this replica's clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    coordination::{Holder, LeaseKey, LeaseList, LeaseRecord, MemberIdentity, MemberLease, ShardLease},
    shard::{BootInstant, ResourceVersion, ShardCount, ShardId, Term},
};

/// The number of deleted member Leases beyond which those of members without shards are forgotten. It covers a few
/// rollouts of a large fleet.
const DELETED_MAX: usize = 256;

/// A Lease as last observed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen<L> {
    /// The Lease; `None` if it does not exist.
    pub(super) lease: Option<L>,
    /// The version of the Lease, or of its deletion.
    pub(super) version: ResourceVersion,
    /// The instant at which the Lease last changed, or was found missing.
    pub(super) changed_at: BootInstant,
    /// The instant since which the Lease has had its present holder.
    pub(super) holder_since: BootInstant,
    /// The earliest instant of the next attempt to take the shard, or to evict the member.
    pub(super) retry_at: BootInstant,
}

impl<L> Seen<L> {
    fn missing(now: BootInstant) -> Seen<L> {
        Seen {
            lease: None,
            version: ResourceVersion(0),
            changed_at: now,
            holder_since: now,
            retry_at: now,
        }
    }

    /// Applies the Lease in a version. `sent_at` is the send of the request whose answer it is.
    fn apply(
        &mut self,
        lease: L,
        holder: fn(&L) -> &Holder,
        version: ResourceVersion,
        sent_at: Option<BootInstant>,
        now: BootInstant,
    ) {
        let is_there_after_all = self.lease.is_none() && sent_at.is_some_and(|sent_at| sent_at > self.changed_at);
        if self.version >= version && !is_there_after_all {
            return;
        }
        let is_same_holder = self.lease.as_ref().map(holder) == Some(holder(&lease));
        *self = Seen {
            lease: Some(lease),
            version,
            changed_at: now,
            holder_since: if is_same_holder { self.holder_since } else { now },
            retry_at: now,
        };
    }

    /// Applies the deletion of the Lease.
    fn delete(&mut self, version: ResourceVersion, now: BootInstant) {
        if self.lease.is_some() && self.version <= version {
            *self = Seen {
                version,
                ..Seen::missing(now)
            };
        }
    }
}

/// The members that hold these shards.
fn shard_holders(shards: &[Seen<ShardLease>]) -> impl Iterator<Item = &MemberIdentity> {
    shards.iter().filter_map(|seen| seen.lease.as_ref()?.holder.member())
}

/// The view of all Leases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LeaseView {
    count: ShardCount,
    /// The members, by pod uid. A member that holds a shard is remembered after its Lease was deleted.
    members: BTreeMap<Box<str>, Seen<MemberLease>>,
    shards: Vec<Seen<ShardLease>>,
    /// The last renewal of each incarnation, by its own clock; it outlives the Lease.
    renewals: BTreeMap<MemberIdentity, Timestamp>,
    /// The highest observed term of each shard; it outlives the Lease.
    last_terms: Vec<Term>,
    /// The instant since which the view has been fresh without interruption.
    pub(super) trusted_since: Option<BootInstant>,
    /// Whether the first list contained no shard Lease, and no member Lease with a holder: a new installation.
    pub(super) is_genesis: bool,
    pub(super) is_listed: bool,
    /// The watch has delivered everything up to this version. Responses can be ahead of it, each for one Lease.
    observed_version: ResourceVersion,
}

impl LeaseView {
    pub(super) fn new(count: ShardCount, now: BootInstant) -> LeaseView {
        let n_shards = count.get().into();
        LeaseView {
            count,
            members: BTreeMap::new(),
            shards: vec![Seen::missing(now); n_shards],
            renewals: BTreeMap::new(),
            last_terms: vec![Term(0); n_shards],
            trusted_since: None,
            is_genesis: false,
            is_listed: false,
            observed_version: ResourceVersion(0),
        }
    }

    /// Every shard with its last observed Lease.
    pub(super) fn shards(&self) -> impl Iterator<Item = (ShardId, &Seen<ShardLease>)> {
        (0..).map(ShardId).zip(&self.shards)
    }

    /// Every shard with a Lease.
    pub(super) fn shard_leases(&self) -> impl Iterator<Item = (ShardId, &ShardLease)> {
        self.shards()
            .filter_map(|(shard, seen)| Some((shard, seen.lease.as_ref()?)))
    }

    pub(super) fn shard(&self, shard: ShardId) -> &Seen<ShardLease> {
        &self.shards[usize::from(shard.0)]
    }

    pub(super) fn lease(&self, shard: ShardId) -> Option<&ShardLease> {
        self.shard(shard).lease.as_ref()
    }

    /// The highest observed term of a shard.
    pub(super) fn last_term(&self, shard: ShardId) -> Term {
        self.last_terms[usize::from(shard.0)]
    }

    /// The highest observed term of any shard.
    pub(super) fn last_term_of_any(&self) -> Term {
        self.last_terms.iter().max().copied().unwrap_or(Term(0))
    }

    /// Every observed member, by pod uid, with or without a Lease.
    pub(super) fn seen_members(&self) -> impl Iterator<Item = (&str, &Seen<MemberLease>)> {
        self.members.iter().map(|(pod_uid, seen)| (pod_uid.as_ref(), seen))
    }

    pub(super) fn seen_member(&self, pod_uid: &str) -> Option<&Seen<MemberLease>> {
        self.members.get(pod_uid)
    }

    /// Every member with a Lease, by pod uid.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &MemberLease)> {
        self.seen_members()
            .filter_map(|(pod_uid, seen)| Some((pod_uid, seen.lease.as_ref()?)))
    }

    pub(super) fn member(&self, pod_uid: &str) -> Option<&MemberLease> {
        self.seen_member(pod_uid)?.lease.as_ref()
    }

    /// The last renewal of an incarnation that is a member, or that holds a shard and was one; by its own clock.
    pub(super) fn last_renewal(&self, member: &MemberIdentity) -> Option<Timestamp> {
        self.renewals.get(member).copied()
    }

    /// The version of a Lease; `None` if it does not exist.
    pub(super) fn version_of(&self, key: &LeaseKey) -> Option<ResourceVersion> {
        let exists = match key {
            LeaseKey::Member(pod_uid) => self.member(pod_uid).is_some(),
            LeaseKey::Shard(shard) => self.lease(*shard).is_some(),
        };
        self.last_seen(key).filter(|_| exists).map(|(version, _)| version)
    }

    /// The last observed version of a Lease or of its deletion, and when it was observed.
    fn last_seen(&self, key: &LeaseKey) -> Option<(ResourceVersion, BootInstant)> {
        match key {
            LeaseKey::Member(pod_uid) => self.members.get(pod_uid).map(|seen| (seen.version, seen.changed_at)),
            LeaseKey::Shard(shard) => Some(self.shard(*shard)).map(|seen| (seen.version, seen.changed_at)),
        }
    }

    /// Delays the next attempt to take or transfer a shard, or to evict a member.
    pub(super) fn set_retry_at(&mut self, key: &LeaseKey, at: BootInstant) {
        match key {
            LeaseKey::Member(pod_uid) => {
                if let Some(seen) = self.members.get_mut(pod_uid) {
                    seen.retry_at = at;
                }
            }
            LeaseKey::Shard(shard) => self.shards[usize::from(shard.0)].retry_at = at,
        }
    }

    /// The longest duration that any Lease advertises. No absent member is assumed to have advertised a longer one.
    pub(super) fn duration_max(&self) -> Duration {
        let members = self.members().map(|(_, lease)| lease.duration_secs);
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

    /// Applies an observed Lease. `sent_at` is the send of the request whose answer it is; `None` for a Lease of a list or
    /// of the watch.
    pub(super) fn apply(&mut self, record: &LeaseRecord, sent_at: Option<BootInstant>, now: BootInstant) {
        let version = record.resource_version;
        match &record.key {
            LeaseKey::Member(pod_uid) => {
                let seen = self.members.entry(pod_uid.clone());
                let seen = seen.or_insert_with(|| Seen::missing(now));
                seen.apply(MemberLease::read(record), |lease| &lease.holder, version, sent_at, now);
                let lease = seen.lease.as_ref();
                if let Some((member, at)) = lease.and_then(|lease| lease.holder.member().zip(lease.renewed_at)) {
                    self.renewals.insert(member.clone(), at);
                    self.forget_renewals();
                }
            }
            LeaseKey::Shard(shard) => {
                let (lease, index) = (ShardLease::read(record), usize::from(shard.0));
                self.last_terms[index] = self.last_terms[index].max(lease.term);
                self.shards[index].apply(lease, |lease| &lease.holder, version, sent_at, now);
            }
        }
    }

    /// Applies the deletion of a Lease.
    pub(super) fn delete(&mut self, key: &LeaseKey, version: ResourceVersion, now: BootInstant) {
        match key {
            LeaseKey::Member(pod_uid) => {
                if let Some(seen) = self.members.get_mut(pod_uid) {
                    seen.delete(version, now);
                }
            }
            LeaseKey::Shard(shard) => self.shards[usize::from(shard.0)].delete(version, now),
        }
        self.forget_deleted();
    }

    /// Records that a read or write found a Lease missing.
    pub(super) fn missing(&mut self, key: &LeaseKey, now: BootInstant) {
        if let Some(version) = self.version_of(key) {
            self.delete(key, version, now);
        }
    }

    /// If many member Leases were deleted, forgets those of members that hold no shard.
    fn forget_deleted(&mut self) {
        let n_deleted = self.members.values().filter(|seen| seen.lease.is_none()).count();
        if n_deleted > DELETED_MAX {
            let holders = shard_holders(&self.shards);
            let holders: BTreeSet<&str> = holders.map(|holder| &*holder.pod_uid).collect();
            self.members
                .retain(|pod_uid, seen| seen.lease.is_some() || holders.contains(&**pod_uid));
        }
    }

    /// If many incarnations have ended, forgets the renewals of those that hold no shard.
    fn forget_renewals(&mut self) {
        if self.renewals.len() > self.members.len() + DELETED_MAX {
            let members = self
                .members
                .values()
                .filter_map(|seen| seen.lease.as_ref()?.holder.member());
            let kept: BTreeSet<&MemberIdentity> = shard_holders(&self.shards).chain(members).collect();
            self.renewals.retain(|member, _| kept.contains(member));
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
        let members = self.members().map(|(pod_uid, _)| LeaseKey::Member(pod_uid.into()));
        let shards = self.shard_leases().map(|(shard, _)| LeaseKey::Shard(shard));
        let gone: Vec<LeaseKey> = members.chain(shards).filter(|key| !listed.contains(key)).collect();
        for key in gone {
            self.delete(&key, list.resource_version, now);
        }
        for record in &list.leases {
            self.apply(record, None, now);
        }
        if !std::mem::replace(&mut self.is_listed, true) {
            self.begin(now);
        }
        self.observe_version(list.resource_version);
    }

    /// Evaluates the first list. A shard without a Lease was never led, or its Lease has just been deleted.
    fn begin(&mut self, now: BootInstant) {
        let is_live = |(_, lease): (&str, &MemberLease)| lease.holder != Holder::Nobody;
        self.is_genesis = self.shard_leases().next().is_none() && !self.members().any(is_live);
        for seen in &mut self.shards {
            if seen.lease.is_none() {
                seen.changed_at = now;
            }
        }
    }
}
