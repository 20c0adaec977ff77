//! What is asked about the content of objects: defaults, validation, patches, tables.

use serde_json::{Map, Value, json};

use crate::{
    failure::{Cause, Failure},
    objects::validation::Checks,
    resource::Resource,
};

/// Reads the body of a request; an error is the answer to one that is no object.
pub(crate) fn object(_resource: Resource, body: &[u8]) -> Result<Value, Failure> {
    json(body)
}

/// Reads the body of a patch.
pub(crate) fn patch(_kind: PatchKind, body: &[u8]) -> Result<Value, Failure> {
    json(body)
}

fn json(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::bad_request(format!("couldn't read the body: {error}")))
}

/// Puts in what the API server puts in where it was left out.
pub(crate) fn defaults(_resource: Resource, _object: &mut Value) {}

/// What is wrong with a new object.
pub(crate) fn create_causes(_resource: Resource, _object: &Value, _checks: &Checks) -> Vec<Cause> {
    Vec::new()
}

/// What is wrong with a change.
pub(crate) fn update_causes(_resource: Resource, _new: &Value, _old: &Value, _checks: &Checks) -> Vec<Cause> {
    Vec::new()
}

/// The forms of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Merge,
    StrategicMerge,
    Apply,
}

/// The object as a patch makes it; an error is the answer to a patch that makes none.
#[expect(clippy::unnecessary_wraps, reason = "not every patch makes an object")]
pub(crate) fn patched(_resource: Resource, _kind: PatchKind, old: &Value, patch: &Value) -> Result<Value, Failure> {
    let mut new = old.clone();
    merge(&mut new, patch);
    Ok(new)
}

/// A JSON merge patch.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(Map::new());
    }
    let Value::Object(members) = into else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// A `Table` of objects.
pub(crate) fn table(_resource: Resource, items: &[Value], _now: jiff::Timestamp) -> Value {
    let row = |item: &Value| json!({"cells": [item["metadata"]["name"]], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}});
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {},
        "columnDefinitions": [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}],
        "rows": items.iter().map(row).collect::<Vec<_>>(),
    })
}

/// What is served at a path that is no object's: discovery, the version, schemas.
pub(crate) fn document(path: &str) -> Option<Value> {
    (path == "/version").then(|| json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "apisim"}))
}
