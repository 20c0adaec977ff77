//! Server-side apply: merges the fields that a manager applies, and removes the fields of its previous apply that this
//! one omits and no other manager owns.
//!
//! Only applies are recorded here in `metadata.managedFields`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Conflict, PatchError, format_as_go, managed_fields};
use crate::{
    Resource, decoding,
    schema::{Field, Kind, Merge, Schema, Struct},
    times,
};

/// The author of an apply.
#[derive(Clone, Copy, Debug)]
pub struct Applier<'a> {
    /// The name of the field manager.
    pub manager: &'a str,
    /// Whether to take over fields that other managers own.
    pub is_forced: bool,
    /// The time of the request.
    pub now: Timestamp,
}

/// Returns the object with the applied configuration, or a new object if `old` is `None`.
pub fn apply(
    resource: Resource,
    old: Option<&Value>,
    applied: &Value,
    Applier {
        manager,
        is_forced,
        now,
    }: Applier<'_>,
) -> Result<Value, PatchError> {
    let shape = Schema::get().of(resource);
    check(resource, shape, applied)?;
    let none = json!({});
    let old = old.unwrap_or(&none);
    let mut new = old.clone();
    merge_object(Some(shape), &mut new, applied);
    let entries = old["metadata"]["managedFields"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let is_own = |entry: &&Value| entry["manager"] == manager && entry["operation"] == "Apply";
    let own = entries.iter().find(is_own);
    let others = entries.iter().filter(|entry| !is_own(entry)).cloned();
    let fields = managed_fields::fields_of(shape, applied);
    let others = resolve_conflicts(&fields, old, &new, others.collect(), is_forced)?;
    if let Some(own) = own {
        let kept: Vec<_> = others.iter().map(|entry| &entry["fieldsV1"]).collect();
        managed_fields::take_out(&mut new, &own["fieldsV1"], &fields, &kept);
    }
    let entry = match own {
        // An apply without changes leaves the entry, and so the object, as it is.
        Some(own) if own["fieldsV1"] == fields && new == *old => own.clone(),
        _ => json!({
            "manager": manager,
            "operation": "Apply",
            "apiVersion": resource.api_version(),
            "time": times::seconds(now),
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }),
    };
    let entries: Vec<_> = std::iter::once(entry).chain(others).collect();
    new["metadata"]["managedFields"] = Value::Array(entries);
    Ok(new)
}

/// Removes the changed fields from the entries of other managers. Without force, such a field is a conflict.
fn resolve_conflicts(
    fields: &Value,
    old: &Value,
    new: &Value,
    mut others: Vec<Value>,
    is_forced: bool,
) -> Result<Vec<Value>, PatchError> {
    let mut conflicts = Vec::new();
    for entry in &mut others {
        let taken = managed_fields::take_changed(&mut entry["fieldsV1"], fields, old, new);
        let manager = entry["manager"].as_str().unwrap_or_default();
        conflicts.extend(taken.into_iter().map(|field| Conflict {
            manager: manager.to_owned(),
            field,
        }));
    }
    if !is_forced && !conflicts.is_empty() {
        return Err(PatchError::Conflicts(conflicts));
    }
    others.retain(|entry| entry["fieldsV1"] != json!({}));
    Ok(others)
}

/// Refuses objects of another kind, and unknown fields.
fn check(resource: Resource, shape: &'static Struct, applied: &Value) -> Result<(), PatchError> {
    let type_text = |member: &str| applied[member].as_str().unwrap_or_default();
    if (type_text("apiVersion"), type_text("kind")) != (resource.api_version(), resource.kind()) {
        let (group, version) = type_text("apiVersion")
            .split_once('/')
            .unwrap_or(("", type_text("apiVersion")));
        let message = format!("invalid object type: {group}/{version}, Kind={}", type_text("kind"));
        return Err(PatchError::Malformed(message));
    }
    if applied["metadata"]["managedFields"]
        .as_array()
        .is_some_and(|entries| !entries.is_empty())
    {
        return Err(PatchError::Malformed("metadata.managedFields must be nil".to_owned()));
    }
    let wrong_type = |reason| PatchError::Undecodable {
        value: format_as_go(applied),
        reason,
    };
    let unknown = decoding::normalise(shape, &mut applied.clone()).map_err(wrong_type)?;
    let Some(first) = unknown.first() else { return Ok(()) };
    let metadata = &applied["metadata"];
    let text = |member: &str| metadata[member].as_str().unwrap_or_default();
    Err(PatchError::Directive(format!(
        "failed to create typed patch object ({}/{}; {}, Kind={}): .{first}: field not declared in schema",
        text("namespace"),
        text("name"),
        resource.api_version(),
        resource.kind(),
    )))
}

fn merge_object(shape: Option<&'static Struct>, target: &mut Value, applied: &Value) {
    let Value::Object(changes) = applied else {
        *target = applied.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, change) in changes.iter().filter(|(_, change)| !change.is_null()) {
        let before = members.entry(name).or_insert(Value::Null);
        match shape.and_then(|shape| shape.field(name)) {
            Some(field) => merge_field(field, before, change),
            None => merge_object(None, before, change),
        }
    }
}

fn merge_field(field: &'static Field, target: &mut Value, applied: &Value) {
    match (&field.kind, field.merge) {
        (Kind::Struct(id), _) => merge_object(Some(Schema::get().at(*id)), target, applied),
        (Kind::Map(_), _) => merge_object(None, target, applied),
        (Kind::List(element), Merge::ByKey(key)) => merge_list(element, key, target, applied),
        (Kind::List(_), Merge::Set) => {
            let mut merged = target.as_array().cloned().unwrap_or_default();
            let new: Vec<_> = applied.as_array().into_iter().flatten().collect();
            merged.extend(new.into_iter().filter(|value| !target_contains(target, value)).cloned());
            *target = Value::Array(merged);
        }
        _ => *target = applied.clone(),
    }
}

fn target_contains(target: &Value, value: &Value) -> bool {
    target.as_array().is_some_and(|elements| elements.contains(value))
}

fn merge_list(element: &'static Kind, key: &str, target: &mut Value, applied: &Value) {
    let mut merged = target.as_array().cloned().unwrap_or_default();
    for change in applied.as_array().into_iter().flatten() {
        match merged.iter_mut().find(|before| before[key] == change[key]) {
            Some(before) => merge_object(element.as_struct(), before, change),
            None => merged.push(change.clone()),
        }
    }
    *target = Value::Array(merged);
}
