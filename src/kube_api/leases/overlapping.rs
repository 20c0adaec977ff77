//! Other installations that work in the same namespaces, according to the Leases of their members.
//!
//! An account that may create Leases in some namespace, for example with the role `edit`, can write a Lease that looks
//! like a member's. Therefore every step is bounded, and of such a Lease only the names of its namespace and
//! installation are stored, which the API server has validated.

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{LeaseApi, LeaseError, object::LeaseObject};
use crate::{
    coordination::{Acceptance, LEASE_LABEL, MemberSettings, annotation},
    kube_api::{
        page_sizes::{FOREIGN_LEASE_PAGE_SIZE, LEASE_PAGES_MAX},
        paths::{COORDINATION, push_segment},
    },
};

/// An installation that works in the same namespaces, according to a Lease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OverlappingInstallation {
    /// The namespace of its Leases.
    pub namespace: String,
    /// Its name.
    pub installation: String,
}

/// Maximum number of installations that are distinguished. One is already too many.
pub(super) const OVERLAPPING_MAX: usize = 16;

/// A member that renewed its Lease longer ago is gone: twice the longest duration of a Lease, and a margin for its
/// clock.
const SILENCE_MAX: SignedDuration = SignedDuration::from_mins(1);

/// The namespaces to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseScope {
    /// All namespaces.
    AllNamespaces,
    /// The namespace of this installation's Leases.
    OwnNamespace,
}

impl LeaseObject {
    /// Returns the installation of a live member that takes shards in the same namespaces.
    fn overlapping(self, settings: &MemberSettings, now: Timestamp) -> Option<OverlappingInstallation> {
        let annotations = self.metadata.annotations?;
        let spec = self.spec?;
        let accepts = annotations.get(annotation::ACCEPTS).map(String::as_str) == Acceptance::Now.text();
        if !accepts || spec.holder_identity.is_none_or(|holder| holder.is_empty()) {
            return None;
        }
        let renewed_at: Timestamp = spec.renew_time?.parse().ok()?;
        let is_live = now.duration_since(renewed_at).abs() < SILENCE_MAX;
        let theirs = MemberSettings::read_bounded(annotations.get(annotation::SETTINGS)?)?;
        (is_live && theirs.may_overlap(settings)).then_some(OverlappingInstallation {
            namespace: self.metadata.namespace,
            installation: self.metadata.labels?.remove(LEASE_LABEL)?,
        })
    }
}

impl LeaseApi {
    /// Returns up to sixteen other installations that work in namespaces of a member with these settings. It reads the
    /// first 4,000 Leases.
    ///
    /// # Errors
    ///
    /// As for [`LeaseApi::list`].
    pub async fn overlapping(
        &self,
        scope: LeaseScope,
        settings: &MemberSettings,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<BTreeSet<OverlappingInstallation>, LeaseError> {
        let (what, path) = match scope {
            LeaseScope::AllNamespaces => (
                "listing the Leases of all installations".to_owned(),
                format!("{COORDINATION}/leases"),
            ),
            LeaseScope::OwnNamespace => (format!("listing the Leases of {}", self.namespace), self.leases_path()),
        };
        let ours = OverlappingInstallation {
            namespace: self.namespace().to_owned(),
            installation: self.installation_name().to_string(),
        };
        let mut found = BTreeSet::new();
        let mut next: Option<String> = None;
        let mut path = format!("{path}?limit={FOREIGN_LEASE_PAGE_SIZE}&labelSelector=");
        push_segment(&mut path, LEASE_LABEL);
        for _ in 0..LEASE_PAGES_MAX {
            let page = self.page(&what, &path, next.as_deref(), timeout).await?;
            let leases = page.leases.into_iter();
            for overlapping in leases.filter_map(|lease| lease.overlapping(settings, now)) {
                if overlapping != ours && found.len() < OVERLAPPING_MAX {
                    found.insert(overlapping);
                }
            }
            next = page.next;
            if next.is_none() || found.len() == OVERLAPPING_MAX {
                break;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::shard::Scope;

    const NOW: &str = "2026-11-01T12:00:00Z";

    /// Whether a Lease with these settings, renewed at this time, overlaps with a replica of the namespace `shop`.
    fn overlaps(settings: &str, renewed_at: &str, accepts: &str) -> bool {
        let lease = json!({
            "metadata": {
                "namespace": "team-a",
                "resourceVersion": "1",
                "labels": {"cronwheel.dev/lease": "cronwheel"},
                "annotations": {"cronwheel.dev/accepts": accepts, "cronwheel.dev/settings": settings},
            },
            "spec": {"holderIdentity": "a/b/c", "renewTime": renewed_at},
        });
        let lease: LeaseObject = serde_json::from_value(lease).unwrap();
        let ours = MemberSettings::of(&[Scope::Namespace("shop".into())], "UTC");
        lease.overlapping(&ours, NOW.parse().unwrap()).is_some()
    }

    #[test]
    fn a_live_member_with_a_common_namespace_overlaps() {
        let settings = "time-zone=UTC namespaces=shop";
        assert!(overlaps(settings, NOW, "now"));
        assert!(overlaps("time-zone=UTC namespaces=*", NOW, "now"));
        assert!(!overlaps("time-zone=UTC namespaces=office", NOW, "now"));
        assert!(!overlaps(settings, "2026-11-01T11:58:59Z", "now"), "it is silent");
        assert!(!overlaps(settings, NOW, "no"));
    }

    #[test]
    fn oversized_settings_are_ignored() {
        let forged = format!("time-zone=UTC namespaces=shop,{}", "x".repeat(1 << 18));
        assert!(!overlaps(&forged, NOW, "now"));
    }
}
