//! Who a member is, and what its Leases are called.

use std::fmt;

use crate::state::sharding::{ShardCount, ShardId};

/// The label that every Lease of ours has: one watch on it shows them all.
pub const LEASE_LABEL: (&str, &str) = ("cronwheel.dev/lease", "sharding");

const MEMBER_PREFIX: &str = "cronwheel-member-";
const SHARD_PREFIX: &str = "cronwheel-shard-";

/// One life of a member: drawn at random when a process joins, and anew when it joins again. A shard is held by one life of
/// one process, so that neither a restart nor a thaw goes on where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Who holds a Lease: `pod name/pod uid/incarnation`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberIdentity {
    /// The name of its pod, for people.
    pub pod_name: Box<str>,
    /// The uid of its pod: what it is sorted and placed by.
    pub pod_uid: Box<str>,
    /// Which life.
    pub incarnation: Incarnation,
}

impl fmt::Display for MemberIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pod_name, self.pod_uid, self.incarnation)
    }
}

impl MemberIdentity {
    /// From the text of a holder; none where it is not of this form.
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

/// Which Lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseKey {
    /// That of the member in the pod with this uid.
    Member(Box<str>),
    /// That of a shard.
    Shard(ShardId),
}

impl LeaseKey {
    /// The name of the Lease. A shard's has the level in it: those of another count are other Leases.
    pub fn name(&self, count: ShardCount) -> String {
        match self {
            LeaseKey::Member(pod_uid) => format!("{MEMBER_PREFIX}{pod_uid}"),
            LeaseKey::Shard(shard) => format!("{SHARD_PREFIX}{}-{}", count.level(), shard.0),
        }
    }

    /// The Lease of this name; none where it is no Lease of ours under this count.
    pub fn parse(name: &str, count: ShardCount) -> Option<LeaseKey> {
        if let Some(pod_uid) = name.strip_prefix(MEMBER_PREFIX) {
            return (!pod_uid.is_empty()).then(|| LeaseKey::Member(pod_uid.into()));
        }
        let (level, shard) = name.strip_prefix(SHARD_PREFIX)?.split_once('-')?;
        let key = LeaseKey::Shard(ShardId(shard.parse().ok()?));
        (level.parse() == Ok(count.level()) && key.name(count) == name && key.is_within(count)).then_some(key)
    }

    fn is_within(&self, count: ShardCount) -> bool {
        match self {
            LeaseKey::Member(_) => true,
            LeaseKey::Shard(shard) => count.has(*shard),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written() {
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

    #[test]
    fn a_lease_has_one_name_and_that_of_another_count_is_not_ours() {
        let count = ShardCount::default();
        for (key, name) in [
            (LeaseKey::Member("uid".into()), "cronwheel-member-uid"),
            (LeaseKey::Shard(ShardId(0)), "cronwheel-shard-8-0"),
            (LeaseKey::Shard(ShardId(255)), "cronwheel-shard-8-255"),
        ] {
            assert_eq!(key.name(count), name);
            assert_eq!(LeaseKey::parse(name, count), Some(key));
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
            assert_eq!(LeaseKey::parse(name, count), None, "{name}");
        }
    }
}
