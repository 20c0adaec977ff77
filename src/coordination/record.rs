//! Leases as decoded records. A value that cannot be parsed is treated as absent. An edit by others can therefore hide
//! what a Lease tells the next leader, but never stops a replica.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{JobsLabelled, LeaseKey, MemberIdentity, MemberSettings};
use crate::shard::{ResourceVersion, ResourceVersions, ShardCount, ShardId, ShardSet, Term};

/// The annotations that cronwheel reads and writes; all others are preserved.
pub mod annotation {
    /// Member: its version of the protocol.
    pub const PROTOCOL: &str = "cronwheel.dev/protocol";
    /// Member: the revision of its Pod template.
    pub const REVISION: &str = "cronwheel.dev/revision";
    /// Member: the installation's constants, as configured in the member.
    pub const INSTALLATION: &str = "cronwheel.dev/installation";
    /// Member: its scope and its default time zone.
    pub const SETTINGS: &str = "cronwheel.dev/settings";
    /// Member: whether it takes shards, now or soon.
    pub const ACCEPTS: &str = "cronwheel.dev/accepts";
    /// Member: set while it gives its shards away in order to leave.
    pub const DRAINING: &str = "cronwheel.dev/draining";
    /// Member: set while it leads shards.
    pub const LEADS: &str = "cronwheel.dev/leads";
    /// Member: set if it found no Lease at all when it started.
    pub const GENESIS: &str = "cronwheel.dev/genesis";
    /// Member: the shards that it is about to hand over, and their next leaders.
    pub const PLAN: &str = "cronwheel.dev/plan";
    /// Member: the shards that it has loaded and is ready to lead.
    pub const LOADED: &str = "cronwheel.dev/loaded";
    /// Member: the latest proof that every Job of a CronJob has its label, its own or one that it has read.
    pub const JOBS_LABELLED: &str = "cronwheel.dev/jobs-labelled";
    /// Member: the number of its last renewal.
    pub const RENEWAL: &str = "cronwheel.dev/renewal";
    /// Member: the member that evicted it.
    pub const EVICTED_BY: &str = "cronwheel.dev/evicted-by";
    /// Shard: the instant through which its last leader fired every slot. The next leader counts later slots only.
    pub const FIRED_THROUGH: &str = "cronwheel.dev/fired-through";
    /// Shard: the latest versions that its last leader wrote or knew, which the next leader must observe.
    pub const WRITTEN_THROUGH: &str = "cronwheel.dev/written-through";
    /// Shard: how many leaders in a row crashed soon after they took it.
    pub const CRASHES: &str = "cronwheel.dev/crashes";
}

/// Whether a member takes shards, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Acceptance {
    /// The member takes no shards: it drains, or may not own any.
    No,
    /// The member will take shards when its lists are complete.
    Soon,
    /// The member takes shards.
    Now,
}

impl Acceptance {
    /// The value of [`annotation::ACCEPTS`].
    pub fn text(self) -> Option<&'static str> {
        match self {
            Acceptance::No => None,
            Acceptance::Soon => Some("soon"),
            Acceptance::Now => Some("now"),
        }
    }

    fn parse(text: Option<&str>) -> Acceptance {
        let values = [Acceptance::Now, Acceptance::Soon];
        values
            .into_iter()
            .find(|value| value.text() == text)
            .unwrap_or(Acceptance::No)
    }
}

/// A decoded Lease of either kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseRecord {
    /// Identifies the Lease.
    pub key: LeaseKey,
    /// `metadata.resourceVersion`.
    pub resource_version: ResourceVersion,
    /// `spec.holderIdentity`, empty if absent.
    pub holder: Box<str>,
    /// `spec.leaseDurationSeconds`.
    pub duration_secs: u32,
    /// `spec.leaseTransitions`.
    pub transitions: u64,
    /// `spec.renewTime`, by the holder's clock.
    pub renewed_at: Option<Timestamp>,
    /// `spec.acquireTime`, by the clock of the replica that wrote the holder.
    pub acquired_at: Option<Timestamp>,
    /// The annotations of [`annotation`].
    pub annotations: BTreeMap<Box<str>, Box<str>>,
}

impl LeaseRecord {
    /// A Lease that has only a name and a version.
    pub fn empty(key: LeaseKey, resource_version: ResourceVersion) -> LeaseRecord {
        LeaseRecord {
            key,
            resource_version,
            holder: "".into(),
            duration_secs: 0,
            transitions: 0,
            renewed_at: None,
            acquired_at: None,
            annotations: BTreeMap::new(),
        }
    }
}

/// A complete and consistent list of the installation's Leases.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseList {
    /// The version of the list; a watch continues from it.
    pub resource_version: ResourceVersion,
    /// The shard Leases of this shard count, and all member Leases.
    pub leases: Vec<LeaseRecord>,
}

/// The holder of a Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The Lease has no holder.
    Nobody,
    /// An incarnation of a member.
    Member(MemberIdentity),
    /// A holder that is not a member of the installation.
    NotAMember(Box<str>),
}

impl Holder {
    fn parse(text: &str) -> Holder {
        if text.is_empty() {
            return Holder::Nobody;
        }
        MemberIdentity::parse(text).map_or_else(|| Holder::NotAMember(text.into()), Holder::Member)
    }

    /// The member, if the holder is one.
    pub fn member(&self) -> Option<&MemberIdentity> {
        match self {
            Holder::Member(identity) => Some(identity),
            Holder::Nobody | Holder::NotAMember(_) => None,
        }
    }

    /// Whether the holder is this incarnation of this member.
    pub fn is(&self, identity: &MemberIdentity) -> bool {
        self.member() == Some(identity)
    }
}

/// A member's Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberLease {
    /// The current incarnation in the Pod; none after the member left or was evicted.
    pub holder: Holder,
    /// Seconds without a change after which the member may be evicted.
    pub duration_secs: u32,
    /// The time of the last renewal, by the member's clock.
    pub renewed_at: Option<Timestamp>,
    /// The number of its last renewal.
    pub renewal: u64,
    /// Its version of the protocol.
    pub protocol: u16,
    /// The revision of its Pod template.
    pub revision: Box<str>,
    /// The installation's constants as text: members with equal texts share shards.
    pub installation: Box<str>,
    /// Its scope and default time zone; `None` if its version of cronwheel does not publish them.
    pub settings: Option<MemberSettings>,
    /// Whether it takes shards.
    pub acceptance: Acceptance,
    /// Whether it gives its shards away in order to leave.
    pub is_draining: bool,
    /// Whether it leads shards.
    pub leads_shards: bool,
    /// Whether it found no Lease at all when it started.
    pub is_genesis: bool,
    /// The shards that it is about to hand over.
    pub plan: HandoverPlan,
    /// The shards that it has loaded.
    pub loaded: ShardSet,
    /// The latest proof in its view that every Job of a CronJob has its label.
    pub jobs_labelled: Option<JobsLabelled>,
}

impl MemberLease {
    /// Decodes a record; sets of shards are read under this count.
    pub fn read(record: &LeaseRecord, count: ShardCount) -> MemberLease {
        let text = |name: &str| record.annotations.get(name).map(AsRef::as_ref);
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        let sets = |name: &str| ShardSet::from_hex(text(name)?, count);
        MemberLease {
            holder: Holder::parse(&record.holder),
            duration_secs: record.duration_secs,
            renewed_at: record.renewed_at,
            renewal: number(annotation::RENEWAL).unwrap_or(0),
            // A Lease without the annotation has version 1. A version that cannot be read differs from all.
            protocol: text(annotation::PROTOCOL).map_or(1, |text| text.parse().unwrap_or(0)),
            revision: text(annotation::REVISION).unwrap_or_default().into(),
            installation: text(annotation::INSTALLATION).unwrap_or_default().into(),
            settings: text(annotation::SETTINGS).map(MemberSettings::read),
            acceptance: Acceptance::parse(text(annotation::ACCEPTS)),
            is_draining: text(annotation::DRAINING).is_some(),
            leads_shards: text(annotation::LEADS).is_some(),
            is_genesis: text(annotation::GENESIS).is_some(),
            plan: text(annotation::PLAN)
                .map(|text| HandoverPlan::parse(text, count))
                .unwrap_or_default(),
            loaded: sets(annotation::LOADED).unwrap_or_default(),
            jobs_labelled: text(annotation::JOBS_LABELLED).and_then(JobsLabelled::parse),
        }
    }

    /// Whether it takes shards now ([`Acceptance::Now`]).
    pub fn takes_shards(&self) -> bool {
        self.acceptance == Acceptance::Now
    }
}

/// A shard's Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardLease {
    /// The leader.
    pub holder: Holder,
    /// Seconds after which the holder may be presumed dead if its member Lease is gone.
    pub duration_secs: u32,
    /// The term. It is one more than the last, or above all former terms if the Lease was deleted.
    pub term: Term,
    /// The time at which the leader took the shard, by the clock of the replica that wrote it: the leader, or the former
    /// leader that handed the shard over.
    pub acquired_at: Option<Timestamp>,
    /// The instant through which the last leader fired every slot.
    pub fired_through: Option<Timestamp>,
    /// The last versions that the former leader wrote or knew, if it handed the shard over.
    pub written_through: Option<ResourceVersions>,
    /// How many leaders in a row crashed soon after they took it.
    pub crashes: u32,
}

impl ShardLease {
    /// The number of consecutive crashes of leaders at which a shard is quarantined.
    pub const CRASHES_MAX: u32 = 3;

    /// Decodes a record.
    pub fn read(record: &LeaseRecord) -> ShardLease {
        let text = |name: &str| record.annotations.get(name).map(AsRef::as_ref);
        ShardLease {
            holder: Holder::parse(&record.holder),
            duration_secs: record.duration_secs,
            term: Term(record.transitions),
            acquired_at: record.acquired_at,
            fired_through: text(annotation::FIRED_THROUGH).and_then(|text| text.parse().ok()),
            written_through: text(annotation::WRITTEN_THROUGH).and_then(ResourceVersions::parse),
            crashes: text(annotation::CRASHES)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
        }
    }

    /// Whether so many leaders crashed on the shard that only one replica may lead it.
    pub fn is_quarantined(&self) -> bool {
        self.crashes >= Self::CRASHES_MAX
    }
}

/// The shards that a member is about to hand over, with the pod uids of their next leaders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HandoverPlan(pub BTreeMap<ShardId, Box<str>>);

impl HandoverPlan {
    /// The shards for one member.
    pub fn shards_for<'a>(&'a self, pod_uid: &'a str) -> impl Iterator<Item = ShardId> + 'a {
        self.0
            .iter()
            .filter(move |(_, next_leader)| next_leader.as_ref() == pod_uid)
            .map(|(shard, _)| *shard)
    }

    /// Formats as `uid=1,2;uid=3`. With 1024 shards the text is below 64 KiB for any members.
    pub fn to_text(&self) -> String {
        let mut by_member: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (shard, next_leader) in &self.0 {
            by_member.entry(next_leader).or_default().push(shard.0.to_string());
        }
        let entries = by_member.into_iter();
        let entries = entries.map(|(pod_uid, shards)| format!("{pod_uid}={}", shards.join(",")));
        entries.collect::<Vec<_>>().join(";")
    }

    /// Parses a text; invalid parts are ignored.
    fn parse(text: &str, count: ShardCount) -> HandoverPlan {
        let mut plan = HandoverPlan::default();
        for (pod_uid, shards) in text.split(';').filter_map(|entry| entry.split_once('=')) {
            let shards = shards.split(',').filter_map(|number| number.parse().ok().map(ShardId));
            let known = shards.filter(|shard| count.has(*shard));
            plan.0.extend(known.map(|shard| (shard, pod_uid.into())));
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: ShardCount = ShardCount::MAX;
    /// The API server's limit for all annotations of an object together.
    const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

    #[test]
    fn a_plan_round_trips_and_its_text_is_short() {
        for n_members in [1, 2, 5, 50, 300, 1024] {
            let member = |shard: ShardId| format!("9f0c1a52-8d7e-4b1f-9a53-{:012}", usize::from(shard.0) % n_members);
            let plan = HandoverPlan(COUNT.shards().map(|shard| (shard, member(shard).into())).collect());
            let text = plan.to_text();
            assert_eq!(HandoverPlan::parse(&text, COUNT), plan, "{n_members} members");
            let loaded = ShardSet::all(COUNT).to_hex(COUNT);
            assert!(
                text.len() + loaded.len() < ANNOTATIONS_MAX_BYTES / 4,
                "{n_members}: {} bytes",
                text.len()
            );
        }
        assert_eq!(HandoverPlan::default().to_text(), "");
    }

    #[test]
    fn invalid_parts_of_a_plan_are_ignored() {
        for text in ["", "a", "a=", "a=x", "a=#12", "=;;=", "a=1024,70000"] {
            assert_eq!(HandoverPlan::parse(text, COUNT), HandoverPlan::default(), "{text}");
        }
        let some = HandoverPlan::parse("a=1,x,2;b", COUNT);
        assert_eq!(some.to_text(), "a=1,2");
        assert_eq!(some.shards_for("a").collect::<Vec<_>>(), [ShardId(1), ShardId(2)]);
        assert_eq!(some.shards_for("b").count(), 0);
    }

    #[test]
    fn invalid_lease_annotations_are_treated_as_absent() {
        let annotations = [
            (annotation::PROTOCOL, "two"),
            (annotation::INSTALLATION, "17/x"),
            (annotation::LOADED, "ff"),
            (annotation::JOBS_LABELLED, "yes"),
            (annotation::RENEWAL, "-1"),
            (annotation::CRASHES, "many"),
            (annotation::FIRED_THROUGH, "noon"),
            ("example.com/other", "1"),
        ];
        let record = LeaseRecord {
            holder: "somebody_else".into(),
            transitions: 3,
            annotations: annotations.map(|(name, text)| (name.into(), text.into())).into(),
            ..LeaseRecord::empty(LeaseKey::Member("uid".into()), ResourceVersion(7))
        };
        let member = MemberLease::read(&record, COUNT);
        assert_eq!(member.holder, Holder::NotAMember("somebody_else".into()));
        assert_eq!(member.protocol, 0, "a version that differs from all");
        assert_eq!((&*member.installation, member.renewal), ("17/x", 0));
        assert!(!member.takes_shards() && !member.is_draining && member.loaded.is_empty());
        assert_eq!(member.jobs_labelled, None);
        let shard = ShardLease::read(&record);
        assert_eq!((shard.term, shard.crashes, shard.fired_through), (Term(3), 0, None));
    }
}
