//! What is written to a Lease: the content of a JSON merge patch, or of a new object, as data.
//!
//! Only what is named here changes; fields and annotations that we do not know survive, so versions can be mixed.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{LeaseKey, LeaseRecord, annotation};
use crate::shard::{ResourceVersion, Term};

/// A write to one Lease. `cluster` makes a merge patch with `metadata.resourceVersion` of it, or a new object with
/// [`super::LEASE_LABEL`] and, for a member, with its pod as owner, so that the Lease goes when the pod does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseWrite {
    /// Which Lease.
    pub key: LeaseKey,
    /// `spec.holderIdentity`: empty for nobody; none leaves it.
    pub holder: Option<Box<str>>,
    /// `spec.leaseDurationSeconds`; none leaves it.
    pub duration_secs: Option<u32>,
    /// `spec.leaseTransitions`; none leaves it.
    pub term: Option<Term>,
    /// Whether `spec.renewTime` becomes the instant of the send.
    pub is_renewal: bool,
    /// Whether `spec.acquireTime` becomes the instant of the send.
    pub is_acquisition: bool,
    /// Annotations by name; none takes one away.
    pub annotations: BTreeMap<&'static str, Option<Box<str>>>,
}

impl LeaseWrite {
    /// A write that changes nothing yet.
    pub(super) fn to(key: LeaseKey) -> LeaseWrite {
        LeaseWrite {
            key,
            holder: None,
            duration_secs: None,
            term: None,
            is_renewal: false,
            is_acquisition: false,
            annotations: BTreeMap::new(),
        }
    }

    /// A write that leaves a Lease to whoever takes it.
    pub fn without_holder(key: LeaseKey) -> LeaseWrite {
        LeaseWrite {
            holder: Some("".into()),
            ..LeaseWrite::to(key)
        }
    }

    /// Sets an annotation, or takes it away where there is no text.
    pub(super) fn annotate(mut self, name: &'static str, text: Option<impl Into<Box<str>>>) -> LeaseWrite {
        self.annotations.insert(name, text.map(Into::into));
        self
    }

    /// The Lease after this write: what a server makes of `former`, or of nothing.
    pub fn applied_to(&self, former: Option<&LeaseRecord>, version: ResourceVersion, wall: Timestamp) -> LeaseRecord {
        let mut record = former.cloned().unwrap_or_else(|| LeaseRecord {
            key: self.key.clone(),
            resource_version: version,
            holder: "".into(),
            duration_secs: 0,
            transitions: 0,
            renewed_at: None,
            acquired_at: None,
            annotations: BTreeMap::new(),
        });
        record.resource_version = version;
        if let Some(holder) = &self.holder {
            record.holder.clone_from(holder);
        }
        record.duration_secs = self.duration_secs.unwrap_or(record.duration_secs);
        record.transitions = self.term.map_or(record.transitions, |term| term.0);
        if self.is_renewal {
            record.renewed_at = Some(wall);
        }
        if self.is_acquisition {
            record.acquired_at = Some(wall);
        }
        for (name, text) in &self.annotations {
            match text {
                Some(text) => record.annotations.insert((*name).into(), text.clone()),
                None => record.annotations.remove(*name),
            };
        }
        record
    }

    /// The number of the renewal that this is, if it is one.
    pub fn renewal(&self) -> Option<u64> {
        self.annotations.get(annotation::RENEWAL)?.as_ref()?.parse().ok()
    }
}
