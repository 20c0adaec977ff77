//! Lease objects. cronwheel reads and writes the annotations under its prefix; everything else in a Lease stays as it
//! is. The name identifies the member or the shard, with its shard count.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    coordination::{InstallationName, LEASE_LABEL, LeaseKey, LeaseNames, LeaseRecord},
    kube_api::paths::push_segment,
    shard::ResourceVersion,
};

/// The prefix of all annotations of cronwheel.
const ANNOTATION_PREFIX: &str = "cronwheel.dev/";

/// The reasons why bytes are not a Lease, a list or an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    #[error("it is not the requested object")]
    Json(#[from] serde_json::Error),
    #[error("metadata.resourceVersion is {0:?}")]
    ResourceVersion(String),
}

/// The decoded part of a Lease.
#[derive(Clone, Deserialize)]
pub(super) struct LeaseObject {
    pub(super) metadata: Metadata,
    pub(super) spec: Option<Spec>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default)]
    name: String,
    resource_version: String,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    lease_transitions: Option<i64>,
    pub(super) renew_time: Option<String>,
    acquire_time: Option<String>,
}

#[derive(Deserialize)]
struct ListObject {
    metadata: ListMetadata,
    items: Option<Vec<LeaseObject>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    #[serde(rename = "continue")]
    next: Option<String>,
}

/// A page of a list.
pub(super) struct LeasePage {
    pub(super) resource_version: ResourceVersion,
    pub(super) leases: Vec<LeaseObject>,
    /// The continue token.
    pub(super) next: Option<String>,
}

/// Returns the label selector of the installation's Leases, escaped for a query.
pub(super) fn selector(installation: &InstallationName) -> String {
    let mut text = String::new();
    push_segment(&mut text, LEASE_LABEL);
    text.push_str("%3D");
    push_segment(&mut text, &installation.to_string());
    text
}

/// Decodes the Lease of this key.
pub(super) fn record(body: &[u8], key: &LeaseKey) -> Result<LeaseRecord, ObjectError> {
    let object: LeaseObject = serde_json::from_slice(body)?;
    object.into_record(key.clone())
}

/// Decodes a page of a list.
pub(super) fn page(body: &[u8]) -> Result<LeasePage, ObjectError> {
    let list: ListObject = serde_json::from_slice(body)?;
    Ok(LeasePage {
        resource_version: version(&list.metadata.resource_version)?,
        leases: list.items.unwrap_or_default(),
        next: list.metadata.next.filter(|token| !token.is_empty()),
    })
}

/// Returns the records of the Leases that are not foreign.
pub(super) fn records(leases: Vec<LeaseObject>, names: &LeaseNames) -> Result<Vec<LeaseRecord>, ObjectError> {
    let records = leases.into_iter().filter_map(|lease| {
        let key = lease.key(names)?;
        Some(lease.into_record(key))
    });
    records.collect()
}

impl LeaseObject {
    /// Returns the key; `None` for a foreign Lease.
    pub(super) fn key(&self, names: &LeaseNames) -> Option<LeaseKey> {
        names.parse(&self.metadata.name)
    }

    pub(super) fn resource_version(&self) -> Result<ResourceVersion, ObjectError> {
        version(&self.metadata.resource_version)
    }

    pub(super) fn into_record(self, key: LeaseKey) -> Result<LeaseRecord, ObjectError> {
        let resource_version = self.resource_version()?;
        let spec = self.spec.unwrap_or_default();
        let time = |text: Option<String>| text.and_then(|text| text.parse::<Timestamp>().ok());
        let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
        let annotations = self.metadata.annotations.into_iter().flatten();
        Ok(LeaseRecord {
            key,
            resource_version,
            holder: spec.holder_identity.unwrap_or_default().into(),
            duration_secs: u32::try_from(number(spec.lease_duration_seconds)).unwrap_or(u32::MAX),
            transitions: number(spec.lease_transitions),
            renewed_at: time(spec.renew_time),
            acquired_at: time(spec.acquire_time),
            annotations: annotations
                .filter(|(name, _)| name.starts_with(ANNOTATION_PREFIX))
                .map(|(name, text)| (name.into(), text.into()))
                .collect(),
        })
    }
}

pub(super) fn version(text: &str) -> Result<ResourceVersion, ObjectError> {
    let number = text.parse().map_err(|_| ObjectError::ResourceVersion(text.to_owned()));
    number.map(ResourceVersion)
}
