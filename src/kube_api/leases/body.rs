//! The bodies of writes to Leases.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::OwnerPod;
use crate::{
    coordination::{LEASE_LABEL, LeaseKey, LeaseNames, LeaseWrite},
    kube_api::objects::encode::to_bytes,
    shard::ResourceVersion,
};

/// The body of a create.
pub(super) fn create(write: &LeaseWrite, names: &LeaseNames, owner: Option<&OwnerPod>, now: Timestamp) -> Vec<u8> {
    let annotations: Map<String, Value> = write
        .annotations
        .iter()
        .filter_map(|(name, text)| Some(((*name).to_owned(), Value::from(text.as_deref()?))))
        .collect();
    let mut labels = labels(write, names);
    labels.retain(|_, text| !text.is_null());
    let mut metadata = json!({
        "name": names.name(&write.key),
        "labels": labels,
        "annotations": annotations,
    });
    if let (LeaseKey::Member(_), Some(owner)) = (&write.key, owner) {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner.name,
            "uid": owner.uid,
        }]);
    }
    to_bytes(&json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": spec(write, now),
    }))
}

/// A merge patch. It contains the label too, so that the watch delivers a Lease again whose label was removed.
pub(super) fn patch(write: &LeaseWrite, names: &LeaseNames, precondition: ResourceVersion, now: Timestamp) -> Vec<u8> {
    let mut metadata = json!({
        "resourceVersion": precondition.to_string(),
        "labels": labels(write, names),
    });
    if !write.annotations.is_empty() {
        let annotations: Map<String, Value> = write
            .annotations
            .iter()
            .map(|(name, text)| ((*name).to_owned(), Value::from(text.as_deref())))
            .collect();
        metadata["annotations"] = Value::Object(annotations);
    }
    let mut patch = json!({"metadata": metadata});
    let spec = spec(write, now);
    if !spec.is_empty() {
        patch["spec"] = Value::Object(spec);
    }
    to_bytes(&patch)
}

/// The options of a delete.
pub(super) fn delete(precondition: ResourceVersion) -> Vec<u8> {
    to_bytes(&json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"resourceVersion": precondition.to_string()},
    }))
}

fn spec(write: &LeaseWrite, now: Timestamp) -> Map<String, Value> {
    // Six digits, as the API server reads and writes them.
    let now = || Value::from(format!("{now:.6}"));
    let members = [
        ("holderIdentity", write.holder.as_deref().map(Value::from)),
        ("leaseDurationSeconds", write.duration_secs.map(Value::from)),
        ("leaseTransitions", write.term.map(|term| Value::from(term.0))),
        ("renewTime", write.is_renewal.then(now)),
        ("acquireTime", write.is_acquisition.then(now)),
    ];
    let members = members.into_iter();
    members
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// The labels to set, and to remove those with the value null.
fn labels(write: &LeaseWrite, names: &LeaseNames) -> Map<String, Value> {
    let own = (LEASE_LABEL.to_owned(), Value::from(names.installation.to_string()));
    let others = write.labels.iter();
    let others = others.map(|(name, text)| ((*name).to_owned(), Value::from(*text)));
    std::iter::once(own).chain(others).collect()
}
