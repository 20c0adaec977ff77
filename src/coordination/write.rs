//! A write to a Lease as data: the content of a JSON merge patch, or of a new object.
//!
//! Only the named fields change. Unknown fields and annotations are preserved, so versions of cronwheel can be mixed.

use std::collections::BTreeMap;

use super::LeaseKey;
use crate::shard::Term;

/// A write to one Lease. `kube_api/leases` converts it to a merge patch with `metadata.resourceVersion`, or to a new
/// object with [`super::LEASE_LABEL`]. A new member Lease has its Pod as owner, so that it is deleted with the Pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseWrite {
    /// The Lease to write.
    pub key: LeaseKey,
    /// `spec.holderIdentity`: empty for no holder; `None` leaves it unchanged.
    pub holder: Option<Box<str>>,
    /// `spec.leaseDurationSeconds`; `None` leaves it unchanged.
    pub duration_secs: Option<u32>,
    /// `spec.leaseTransitions`; `None` leaves it unchanged.
    pub term: Option<Term>,
    /// Whether the write renews this replica's member Lease: `spec.renewTime` is set to the instant of the send.
    pub is_renewal: bool,
    /// Whether `spec.acquireTime` is set to the instant of the send.
    pub is_acquisition: bool,
    /// Annotations by name; `None` removes one.
    pub annotations: BTreeMap<&'static str, Option<Box<str>>>,
    /// Labels by name besides [`super::LEASE_LABEL`]; `None` removes one.
    pub labels: BTreeMap<&'static str, Option<&'static str>>,
}

impl LeaseWrite {
    /// A write without changes.
    pub fn to(key: LeaseKey) -> LeaseWrite {
        LeaseWrite {
            key,
            holder: None,
            duration_secs: None,
            term: None,
            is_renewal: false,
            is_acquisition: false,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// A write that leaves a Lease without a holder.
    pub fn without_holder(key: LeaseKey) -> LeaseWrite {
        LeaseWrite {
            holder: Some("".into()),
            ..LeaseWrite::to(key)
        }
    }

    /// Sets an annotation, or removes it if there is no text.
    pub(super) fn annotate(mut self, name: &'static str, text: Option<impl Into<Box<str>>>) -> LeaseWrite {
        self.annotations.insert(name, text.map(Into::into));
        self
    }

    /// Sets a label, or removes it if there is no text.
    pub(super) fn label(mut self, name: &'static str, text: Option<&'static str>) -> LeaseWrite {
        self.labels.insert(name, text);
        self
    }
}
