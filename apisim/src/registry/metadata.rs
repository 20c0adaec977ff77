//! Metadata that the server controls: what it overwrites in a request, and what it carries over from the stored object.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Target;
use crate::{objects::times::seconds, store::Uid};

/// Returns the members of `metadata`, creating it if necessary.
pub(super) fn members(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("made above")
        }
    }
}

/// Sets the metadata of a new, decoded object.
pub(super) fn begin(object: &mut Value, target: Target<'_>, uid: Uid, now: Timestamp) {
    let metadata = members(object);
    for member in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(member);
    }
    metadata.insert("uid".to_owned(), uid.text().into());
    metadata.insert("creationTimestamp".to_owned(), seconds(now).into());
    if let Some(namespace) = target.namespace {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

/// Carries over metadata from `old` that updates may omit.
pub(super) fn carry_over(new: &mut Value, old: &Value) {
    let metadata = members(new);
    metadata.remove("selfLink");
    for member in ["namespace", "resourceVersion"] {
        if let Some(value) = old["metadata"].get(member) {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
    // A list with one empty entry requests the removal of all entries.
    match (metadata.get("managedFields"), old["metadata"].get("managedFields")) {
        (None, Some(entries)) => drop(metadata.insert("managedFields".to_owned(), entries.clone())),
        (Some(entries), _) if *entries == serde_json::json!([{}]) => drop(metadata.remove("managedFields")),
        (Some(_), _) | (None, None) => {}
    }
}

/// Increments the generation, if the object has one.
pub(super) fn raise_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Marks an object for deletion.
pub(super) fn mark_deleting(object: &mut Value, now: Timestamp) {
    let metadata = members(object);
    metadata.insert("deletionTimestamp".to_owned(), seconds(now).into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
    raise_generation(object);
}

pub(super) fn is_deleting_value(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

pub(super) fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

pub(super) fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    finalizers(object).iter().any(|name| name == finalizer)
}

pub(super) fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut list = finalizers(object);
    if !list.iter().any(|name| name == finalizer) {
        list.push(finalizer.to_owned());
    }
    members(object).insert("finalizers".to_owned(), list.into());
}

pub(super) fn remove_finalizer(object: &mut Value, finalizer: &str) {
    let list: Vec<String> = finalizers(object)
        .into_iter()
        .filter(|name| name != finalizer)
        .collect();
    let metadata = members(object);
    if list.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), list.into());
    }
}
