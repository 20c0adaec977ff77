//! Leases as decoded records. A value that cannot be parsed is treated as absent. An edit by others can therefore hide
//! what a Lease tells the next leader, but never stops a replica.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{LeaseKey, MemberIdentity, MemberSettings};
use crate::shard::{ResourceVersion, ResourceVersions, Term};

/// The annotations that cronwheel reads and writes; all others are preserved.
pub mod annotation {
    /// Member: its version of the protocol.
    pub const PROTOCOL: &str = "cronwheel.dev/protocol";
    /// Member: the revision of its Pod template.
    pub const REVISION: &str = "cronwheel.dev/revision";
    /// Member: the installation's constants, for `cronwheel shards`.
    pub const INSTALLATION: &str = "cronwheel.dev/installation";
    /// Member: its scope and its default time zone.
    pub const SETTINGS: &str = "cronwheel.dev/settings";
    /// Member: whether it takes shards, now or soon.
    pub const ACCEPTS: &str = "cronwheel.dev/accepts";
    /// Member: set while it gives its shards away in order to leave.
    pub const DRAINING: &str = "cronwheel.dev/draining";
    /// Member: set if it found no Lease at all when it started.
    pub const GENESIS: &str = "cronwheel.dev/genesis";
    /// Member: the number of its last renewal.
    pub const RENEWAL: &str = "cronwheel.dev/renewal";
    /// Member: the member that evicted it.
    pub const EVICTED_BY: &str = "cronwheel.dev/evicted-by";
    /// Shard: the instant through which its last leader fired every slot. The next leader counts later slots only.
    pub const FIRED_THROUGH: &str = "cronwheel.dev/fired-through";
    /// Shard: the latest versions that its last leader wrote or knew, which the next leader must observe.
    pub const WRITTEN_THROUGH: &str = "cronwheel.dev/written-through";
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
    /// The installation's constants as text, which belong to the version of the protocol.
    pub installation: Box<str>,
    /// Its scope and default time zone; `None` if its version of cronwheel does not publish them.
    pub settings: Option<MemberSettings>,
    /// Whether it takes shards.
    pub acceptance: Acceptance,
    /// Whether it gives its shards away in order to leave.
    pub is_draining: bool,
    /// Whether it found no Lease at all when it started.
    pub is_genesis: bool,
}

impl MemberLease {
    /// Decodes a record.
    pub fn read(record: &LeaseRecord) -> MemberLease {
        let text = |name: &str| record.annotations.get(name).map(AsRef::as_ref);
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
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
            is_genesis: text(annotation::GENESIS).is_some(),
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
}

impl ShardLease {
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lease_annotations_are_treated_as_absent() {
        let annotations = [
            (annotation::PROTOCOL, "two"),
            (annotation::INSTALLATION, "17/x"),
            (annotation::RENEWAL, "-1"),
            (annotation::FIRED_THROUGH, "noon"),
            ("example.com/other", "1"),
        ];
        let record = LeaseRecord {
            holder: "somebody_else".into(),
            transitions: 3,
            annotations: annotations.map(|(name, text)| (name.into(), text.into())).into(),
            ..LeaseRecord::empty(LeaseKey::Member("uid".into()), ResourceVersion(7))
        };
        let member = MemberLease::read(&record);
        assert_eq!(member.holder, Holder::NotAMember("somebody_else".into()));
        assert_eq!(member.protocol, 0, "a version that differs from all");
        assert_eq!((&*member.installation, member.renewal), ("17/x", 0));
        assert!(!member.takes_shards() && !member.is_draining);
        let shard = ShardLease::read(&record);
        assert_eq!((shard.term, shard.fired_through), (Term(3), None));
    }
}
