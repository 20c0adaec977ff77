//! The agreement that members need before they share shards: the protocol version, the installation's constants, and settings.

use std::{collections::BTreeSet, fmt};

use super::is_dns_label;
use crate::shard::{HASH_SCHEME, Scope, ShardCount, fnv1a_64};

/// The version of this protocol. Members with different versions never share shards.
pub const PROTOCOL_VERSION: u16 = 1;

/// The constants that are fixed at installation. A replica with other constants takes no shards, since its shards
/// would contain different CronJobs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Installation {
    /// The number of shards.
    pub shard_count: ShardCount,
    /// The name of the hash that maps a CronJob to its bucket.
    pub hash_scheme: Box<str>,
}

impl Installation {
    /// An installation with this program's hash scheme.
    pub fn of(shard_count: ShardCount) -> Installation {
        Installation {
            shard_count,
            hash_scheme: HASH_SCHEME.into(),
        }
    }
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard_count.get(), self.hash_scheme)
    }
}

/// Precedes the namespaces in the text of [`MemberSettings`].
const NAMESPACES: &str = "namespaces=";

/// Stands for all namespaces in that text.
const ALL_NAMESPACES: &str = "*";

/// The scope and the default time zone of a replica, as one text. Members with different texts never lead shards at the
/// same time: each would skip CronJobs of the other's scope, or start them by another zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberSettings(Box<str>);

impl MemberSettings {
    /// A longer text is truncated and ends with its length and hash, because every renewal repeats it. 16 KiB hold 256
    /// namespaces, whose names have at most 63 characters.
    const TEXT_MAX_BYTES: usize = 16 << 10;

    /// The maximum length of the prefix in the text of a replica that runs alone: [`ALONE`] and the uid of its Pod.
    const ALONE_MAX_BYTES: usize = 256;

    /// The prefix in the text of a replica that runs every CronJob by itself.
    const ALONE: &str = "alone=";

    /// The settings of a replica that runs every CronJob of these scopes by itself. They differ from all others.
    pub fn alone(pod_uid: &str, scopes: &[Scope], default_time_zone: &str) -> MemberSettings {
        let shared = MemberSettings::of(scopes, default_time_zone);
        MemberSettings(format!("{}{pod_uid} {shared}", Self::ALONE).into())
    }

    /// Whether these settings are of a replica that runs every CronJob by itself.
    pub fn is_alone(&self) -> bool {
        self.0.starts_with(Self::ALONE)
    }

    /// The settings of a replica with these scopes, in any order, and this default time zone.
    pub fn of(scopes: &[Scope], default_time_zone: &str) -> MemberSettings {
        let mut names: Vec<&str> = scopes
            .iter()
            .map(|scope| match scope {
                Scope::Cluster => ALL_NAMESPACES,
                Scope::Namespace(name) => name,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        let text = format!("time-zone={default_time_zone} {NAMESPACES}{}", names.join(","));
        if text.len() <= Self::TEXT_MAX_BYTES {
            return MemberSettings(text.into());
        }
        let start: String = text.chars().take(Self::TEXT_MAX_BYTES / 2).collect();
        let (n_bytes, hash) = (text.len(), fnv1a_64(text.as_bytes()));
        MemberSettings(
            format!(
                "{start}... ({} namespaces, {n_bytes} bytes, hash {hash:016x})",
                names.len()
            )
            .into(),
        )
    }

    /// Whether a CronJob can be in the scope of both. Only the complete names of a truncated text are compared.
    pub fn may_overlap(&self, other: &MemberSettings) -> bool {
        let (ours, theirs) = (self.namespaces(), other.namespaces());
        let is_all = |names: &BTreeSet<&str>| names.contains(ALL_NAMESPACES);
        is_all(&ours) || is_all(&theirs) || !ours.is_disjoint(&theirs)
    }

    /// The scopes; `None` if the text is truncated or has another form.
    pub fn scopes(&self) -> Option<Vec<Scope>> {
        let (_, names) = self.0.rsplit_once(NAMESPACES)?;
        let scope = |name| match name {
            ALL_NAMESPACES => Some(Scope::Cluster),
            _ => is_dns_label(name).then(|| Scope::Namespace(name.into())),
        };
        names.split(',').map(scope).collect()
    }

    fn namespaces(&self) -> BTreeSet<&str> {
        let names = self.0.rsplit_once(NAMESPACES).map_or("", |(_, names)| names);
        match names.split_once("...") {
            // The last name may be truncated.
            Some((whole, _)) => whole
                .rsplit_once(',')
                .map_or("", |(names, _)| names)
                .split(',')
                .collect(),
            None => names.split(',').collect(),
        }
    }

    /// Reads the settings from an annotation.
    pub fn read(text: &str) -> MemberSettings {
        MemberSettings(text.into())
    }

    /// Reads the settings; `None` if the text is longer than any that a replica writes.
    pub fn read_bounded(text: &str) -> Option<MemberSettings> {
        (text.len() <= Self::TEXT_MAX_BYTES + Self::ALONE_MAX_BYTES).then(|| MemberSettings::read(text))
    }
}

impl fmt::Display for MemberSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_equal_if_scope_and_time_zone_are() {
        let scopes =
            |names: &[&str]| -> Vec<Scope> { names.iter().map(|name| Scope::Namespace((*name).into())).collect() };
        let of = |names: &[&str], zone: &str| MemberSettings::of(&scopes(names), zone);
        assert_eq!(of(&["a", "b"], "UTC"), of(&["b", "a", "b"], "UTC"));
        assert_ne!(of(&["a"], "UTC"), of(&["a", "b"], "UTC"));
        assert_ne!(of(&["a"], "UTC"), of(&["a"], "Europe/Berlin"));
        assert_ne!(of(&["a"], "UTC"), MemberSettings::of(&[Scope::Cluster], "UTC"));
        assert_eq!(
            MemberSettings::of(&[Scope::Cluster], "UTC").to_string(),
            "time-zone=UTC namespaces=*"
        );
    }

    #[test]
    fn settings_overlap_if_they_share_a_namespace() {
        let of = |names: &[&str]| {
            let scopes: Vec<Scope> = names.iter().map(|name| Scope::Namespace((*name).into())).collect();
            MemberSettings::of(&scopes, "UTC")
        };
        let all = MemberSettings::of(&[Scope::Cluster], "Europe/Berlin");
        let alone = MemberSettings::alone("uid", &[Scope::Namespace("b".into())], "UTC");
        for (one, other, may_overlap) in [
            (of(&["a", "b"]), of(&["b", "c"]), true),
            (of(&["a", "b"]), of(&["c"]), false),
            (of(&["a"]), all.clone(), true),
            (all.clone(), all, true),
            (alone.clone(), of(&["a", "b"]), true),
            (alone, of(&["a"]), false),
        ] {
            assert_eq!(one.may_overlap(&other), may_overlap, "{one} and {other}");
            assert_eq!(other.may_overlap(&one), may_overlap, "{other} and {one}");
        }
        let many: Vec<String> = (0..1000).map(|number| format!("tenant-{number:04}")).collect();
        let many = of(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(many.may_overlap(&of(&["tenant-0003"])));
        assert!(!many.may_overlap(&of(&["tenant"])), "a truncated name is not compared");
    }

    #[test]
    fn settings_have_the_scopes_of_the_member() {
        let of = |names: &[&str]| -> Vec<Scope> { names.iter().map(|name| Scope::Namespace((*name).into())).collect() };
        for scopes in [vec![Scope::Cluster], of(&["a"]), of(&["a", "b"])] {
            assert_eq!(MemberSettings::of(&scopes, "UTC").scopes().as_ref(), Some(&scopes));
            assert_eq!(MemberSettings::alone("uid", &scopes, "UTC").scopes(), Some(scopes));
        }
        let many: Vec<String> = (0..2000).map(|number| format!("tenant-{number:04}")).collect();
        let many = of(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(MemberSettings::of(&many, "UTC").scopes(), None);
        for text in ["", "namespaces=", "namespaces=a/b", "time-zone=UTC"] {
            assert_eq!(MemberSettings::read(text).scopes(), None, "{text}");
        }
    }

    #[test]
    fn settings_of_many_namespaces_are_short_and_still_differ() {
        let scopes = |last: &str| -> Vec<Scope> {
            let names = (0..1000).map(|number| format!("tenant-{number:04}"));
            names
                .chain([last.to_owned()])
                .map(|name| Scope::Namespace(name.into()))
                .collect()
        };
        let one = MemberSettings::of(&scopes("zone-a"), "UTC");
        assert!(one.to_string().len() <= MemberSettings::TEXT_MAX_BYTES, "{one}");
        assert_ne!(one, MemberSettings::of(&scopes("zone-b"), "UTC"));
        assert_eq!(one, MemberSettings::read(&one.to_string()));
    }

    #[test]
    fn an_installation_has_a_text() {
        assert_eq!(
            Installation::of(ShardCount::default()).to_string(),
            "256/fnv1a64-uid-10"
        );
    }
}
