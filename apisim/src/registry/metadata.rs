//! The metadata that the server keeps: what of a request it overwrites, and what of an object it carries over.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::Target;
use crate::store::Uid;

/// Set once by the server, carried over by every update.
const KEPT: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generateName",
    "generation",
    "name",
    "namespace",
    "resourceVersion",
    "uid",
];

/// A time as the server writes it: whole seconds.
pub(super) fn time(timestamp: Timestamp) -> String {
    timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The members of `metadata`, made where there are none.
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

/// Of a new object.
pub(super) fn begin(object: &mut Value, target: Target<'_>, uid: Uid, now: Timestamp) {
    let metadata = members(object);
    for member in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "selfLink",
        "managedFields",
    ] {
        metadata.remove(member);
    }
    drop_empty(metadata);
    metadata.insert("uid".to_owned(), uid.text().into());
    metadata.insert("creationTimestamp".to_owned(), time(now).into());
    if let Some(namespace) = target.namespace {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    if target.resource.has_generation() {
        metadata.insert("generation".to_owned(), 1.into());
    } else {
        metadata.remove("generation");
    }
}

/// Of an object that takes the place of `old`: what the server owns is as it was.
pub(super) fn carry_over(new: &mut Value, old: &Value) {
    let metadata = members(new);
    for member in ["selfLink", "managedFields"] {
        metadata.remove(member);
    }
    for member in KEPT {
        match old["metadata"].get(*member) {
            Some(value) => metadata.insert((*member).to_owned(), value.clone()),
            None => metadata.remove(*member),
        };
    }
    drop_empty(metadata);
}

/// What is empty is left out, as Go does.
fn drop_empty(metadata: &mut Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    });
}

/// Raises the generation where there is one.
pub(super) fn raise_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        object["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Marks for deletion.
pub(super) fn mark_deleting(object: &mut Value, now: Timestamp) {
    let metadata = members(object);
    metadata.insert("deletionTimestamp".to_owned(), time(now).into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
    raise_generation(object);
}

pub(super) fn is_deleting_value(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Whether JSON is of an object that is marked for deletion.
pub(super) fn is_deleting(json: &[u8]) -> bool {
    // Read in full only where the words are there at all.
    json.windows(DELETION_MEMBER.len())
        .any(|window| window == DELETION_MEMBER)
        && serde_json::from_slice(json).is_ok_and(|object| is_deleting_value(&object))
}

const DELETION_MEMBER: &[u8] = b"\"deletionTimestamp\"";

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
