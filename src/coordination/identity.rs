//! The identity of a member, and the names of Leases.

use std::fmt;

use crate::shard::{ShardCount, ShardId};

/// The label of every Lease of an installation, with the installation's name as value: one watch delivers them all.
pub const LEASE_LABEL: &str = "cronwheel.dev/lease";

/// The label of a member Lease while the member starts Jobs. Admission refuses the writes of the built-in controller while
/// such a Lease is fresh.
pub const ACTS_LABEL: &str = "cronwheel.dev/acts";

/// Whether the text is a DNS label (RFC 1123), like the name of a namespace.
pub fn is_dns_label(text: &str) -> bool {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let has_good_ends = bytes.first().is_some_and(is_alphanumeric) && bytes.last().is_some_and(is_alphanumeric);
    has_good_ends && bytes.len() <= 63 && bytes.iter().all(|byte| is_alphanumeric(byte) || *byte == b'-')
}

/// The name of an installation. Replicas with the same name share CronJobs; installations with other names have their
/// own Leases, even in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InstallationName(Box<str>);

impl InstallationName {
    /// Creates a name; `None` if the text is not a DNS label, which a label value and a part of an object name must be.
    pub fn new(text: &str) -> Option<InstallationName> {
        is_dns_label(text).then(|| InstallationName(text.into()))
    }
}

impl Default for InstallationName {
    fn default() -> InstallationName {
        InstallationName("cronwheel".into())
    }
}

impl fmt::Display for InstallationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names of the Leases of an installation with a shard count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseNames {
    /// The name of the installation.
    pub installation: InstallationName,
    /// The number of shards.
    pub count: ShardCount,
}

/// One incarnation of a member: drawn at random when a process joins, and again when it rejoins. An incarnation holds a
/// shard, so neither a restarted nor a thawed process continues where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The holder of a Lease: `pod name/pod uid/incarnation`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIdentity {
    /// The name of the Pod, for information.
    pub pod_name: Box<str>,
    /// The uid of the Pod, by which members are sorted and placed.
    pub pod_uid: Box<str>,
    /// The incarnation.
    pub incarnation: Incarnation,
}

impl fmt::Display for MemberIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pod_name, self.pod_uid, self.incarnation)
    }
}

impl MemberIdentity {
    /// Parses the text of a holder; `None` if it has another form.
    pub fn parse(text: &str) -> Option<MemberIdentity> {
        let mut parts = text.split('/');
        let (pod_name, pod_uid, incarnation) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || pod_name.is_empty() || pod_uid.is_empty() || incarnation.len() != 16 {
            return None;
        }
        Some(MemberIdentity {
            pod_name: pod_name.into(),
            pod_uid: pod_uid.into(),
            incarnation: Incarnation(u64::from_str_radix(incarnation, 16).ok()?),
        })
    }
}

/// Identifies a Lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseKey {
    /// The Lease of the member in the Pod with this uid.
    Member(Box<str>),
    /// The Lease of a shard.
    Shard(ShardId),
}

impl LeaseNames {
    /// The name of a Lease. A shard Lease's name contains the level, so other shard counts have other Leases.
    pub fn name(&self, key: &LeaseKey) -> String {
        let installation = &self.installation;
        match key {
            LeaseKey::Member(pod_uid) => format!("{installation}-member-{pod_uid}"),
            LeaseKey::Shard(shard) => format!("{installation}-shard-{}-{}", self.count.level(), shard.0),
        }
    }

    /// The Lease with this name; `None` if it is not a Lease of this installation and shard count.
    pub fn parse(&self, name: &str) -> Option<LeaseKey> {
        let name_of_kind = name.strip_prefix(&*self.installation.0)?;
        if let Some(pod_uid) = name_of_kind.strip_prefix("-member-") {
            return (!pod_uid.is_empty()).then(|| LeaseKey::Member(pod_uid.into()));
        }
        let (level, shard) = name_of_kind.strip_prefix("-shard-")?.split_once('-')?;
        let shard = ShardId(shard.parse().ok()?);
        let key = LeaseKey::Shard(shard);
        (level.parse() == Ok(self.count.level()) && self.name(&key) == name && self.count.has(shard)).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_identity_round_trips() {
        let identity = MemberIdentity {
            pod_name: "cronwheel-6d5f7-abcde".into(),
            pod_uid: "9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48".into(),
            incarnation: Incarnation(0x0a1b),
        };
        let text = identity.to_string();
        assert_eq!(
            text,
            "cronwheel-6d5f7-abcde/9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48/0000000000000a1b"
        );
        assert_eq!(MemberIdentity::parse(&text), Some(identity));
        for text in [
            "",
            "a/b",
            "a/b/c",
            "a/b/00000000000000001",
            "/b/0000000000000001",
            "a//0000000000000001",
            "a/b/0000000000000001/d",
        ] {
            assert_eq!(MemberIdentity::parse(text), None, "{text}");
        }
    }

    fn names(installation: &str) -> LeaseNames {
        LeaseNames {
            installation: InstallationName::new(installation).unwrap(),
            count: ShardCount::default(),
        }
    }

    #[test]
    fn lease_names_round_trip_and_other_names_are_rejected() {
        let names = names("cronwheel");
        for (key, name) in [
            (LeaseKey::Member("uid".into()), "cronwheel-member-uid"),
            (LeaseKey::Shard(ShardId(0)), "cronwheel-shard-8-0"),
            (LeaseKey::Shard(ShardId(255)), "cronwheel-shard-8-255"),
        ] {
            assert_eq!(names.name(&key), name);
            assert_eq!(names.parse(name), Some(key));
        }
        for name in [
            "",
            "cronwheel-member-",
            "cronwheel-shard-8-256",
            "cronwheel-shard-9-1",
            "cronwheel-shard-8-01",
            "cronwheel-shard-08-1",
            "other",
        ] {
            assert_eq!(names.parse(name), None, "{name}");
        }
    }

    #[test]
    fn installations_have_their_own_leases() {
        let (ours, theirs) = (names("team-a"), names("team-a-b"));
        let name = theirs.name(&LeaseKey::Member("uid".into()));
        assert_eq!(name, "team-a-b-member-uid");
        assert_eq!(ours.parse(&name), None);
        for text in ["", "-a", "a-", "A", "a.b", "a/b", &"a".repeat(64)] {
            assert_eq!(InstallationName::new(text), None, "{text}");
        }
    }
}
