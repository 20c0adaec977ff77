//! The agreement that members need before they share shards: the protocol version, the installation's constants, and settings.

use std::fmt;

use super::is_dns_label;
use crate::shard::{HASH_SCHEME, Scope, ShardCount, fnv1a_64};

/// The version of this protocol. Members with different versions never share shards.
pub const PROTOCOL_VERSION: u16 = 2;

/// The constants by which CronJobs belong to shards. A version with other constants has another protocol version, since
/// its shards contain different CronJobs.
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

/// Precedes the default time zone in the text of [`MemberSettings`].
const TIME_ZONE: &str = "time-zone=";

/// Precedes the label selector of the namespaces in that text.
const SELECTOR: &str = "namespace-selector=";

/// Precedes the namespaces in that text.
const NAMESPACES: &str = "namespaces=";

/// Stands for all namespaces in that text.
const ALL_NAMESPACES: &str = "*";

/// The scope, the namespace selector and the default time zone of a replica, as one text. Members with different texts
/// never lead shards at the same time: each would skip CronJobs of the other's namespaces, or start them by another zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberSettings(Box<str>);

impl MemberSettings {
    /// A longer text is truncated and ends with its length and hash, because every renewal repeats it. 16 KiB hold 256
    /// namespaces, whose names have at most 63 characters.
    const TEXT_MAX_BYTES: usize = 16 << 10;

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
        let text = format!("{TIME_ZONE}{default_time_zone} {NAMESPACES}{}", names.join(","));
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

    /// The settings of a replica that manages the namespaces that this label selector selects, in one spelling. The scope
    /// is the cluster.
    pub fn selecting(namespace_selector: &str, default_time_zone: &str) -> MemberSettings {
        MemberSettings(
            format!("{TIME_ZONE}{default_time_zone} {SELECTOR}{namespace_selector} {NAMESPACES}{ALL_NAMESPACES}")
                .into(),
        )
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

    /// The label selector of the namespaces; `None` if there is none.
    pub fn namespace_selector(&self) -> Option<&str> {
        let (_, rest) = self.0.split_once(SELECTOR)?;
        let (selector, _) = rest.rsplit_once(NAMESPACES)?;
        Some(selector.trim_end())
    }

    /// The flags of `cronwheel run` whose values differ between two members, or all of them if that cannot be told.
    pub fn differing_flags(&self, others: &MemberSettings) -> &'static str {
        let differ = self.parts().zip(others.parts()).map(|(ours, theirs)| {
            let [namespaces, selector, zone] = [0, 1, 2].map(|part| ours[part] != theirs[part]);
            (namespaces, selector, zone)
        });
        match differ {
            Some((true, false, false)) => "--namespace",
            Some((false, true, false)) => "--namespace-selector",
            Some((false, false, true)) => "--default-time-zone",
            Some((true, true, false)) => "--namespace and --namespace-selector",
            Some((true, false, true)) => "--namespace and --default-time-zone",
            Some((false, true, true)) => "--namespace-selector and --default-time-zone",
            Some((true, true, true) | (false, false, false)) | None => {
                "--namespace, --namespace-selector and --default-time-zone"
            }
        }
    }

    /// The namespaces, the selector and the time zone, as text; `None` if the text has another form.
    fn parts(&self) -> Option<[&str; 3]> {
        let (zone, _) = self.0.strip_prefix(TIME_ZONE)?.split_once(' ')?;
        let (_, namespaces) = self.0.rsplit_once(NAMESPACES)?;
        Some([namespaces, self.namespace_selector().unwrap_or_default(), zone])
    }

    /// Reads the settings from an annotation.
    pub fn read(text: &str) -> MemberSettings {
        MemberSettings(text.into())
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
    fn settings_with_different_selectors_differ() {
        let managed = MemberSettings::selecting("cronwheel.dev/managed=true", "UTC");
        let text = "time-zone=UTC namespace-selector=cronwheel.dev/managed=true namespaces=*";
        assert_eq!(managed.to_string(), text);
        assert_eq!(managed.scopes(), Some(vec![Scope::Cluster]));
        assert_eq!(managed.namespace_selector(), Some("cronwheel.dev/managed=true"));
        let set = MemberSettings::selecting("team in (a,b),!c", "UTC");
        assert_eq!(set.namespace_selector(), Some("team in (a,b),!c"));
        assert_eq!(MemberSettings::of(&[Scope::Cluster], "UTC").namespace_selector(), None);
        assert_ne!(managed, MemberSettings::of(&[Scope::Cluster], "UTC"));
        assert_ne!(managed, MemberSettings::selecting("team=a", "UTC"));
        assert_ne!(
            managed,
            MemberSettings::selecting("cronwheel.dev/managed=true", "Europe/Berlin")
        );
    }

    #[test]
    fn settings_have_the_scopes_of_the_member() {
        let of = |names: &[&str]| -> Vec<Scope> { names.iter().map(|name| Scope::Namespace((*name).into())).collect() };
        for scopes in [vec![Scope::Cluster], of(&["a"]), of(&["a", "b"])] {
            assert_eq!(MemberSettings::of(&scopes, "UTC").scopes(), Some(scopes));
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
