//! The entries of `metadata.managedFields`, which name the last writer of each field. They cover the specs of CronJobs, and the
//! annotations of CronJobs and namespaces. Applies have entries of their own.
//!
//! Unlike in the API server, an object has no entry before its first update, so that fleets stay small. Its fields then
//! belong to `before-first-apply` since its creation.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Target, metadata};
use crate::{Resource, objects::times::seconds};

/// The sets of fields that are recorded: where they are in an object, and in an entry.
const SETS: [(&str, &[&str]); 2] = [
    ("/spec", &["f:spec"]),
    ("/metadata/annotations", &["f:metadata", "f:annotations"]),
];

/// Records the fields in which a main object differs from the former one as set by the writer.
pub(super) fn record(target: Target<'_>, new: &mut Value, old: &Value, now: Timestamp) {
    let is_recorded = matches!(target.resource, Resource::CronJob | Resource::Namespace);
    if !is_recorded || target.writer.is_empty() {
        return;
    }
    let changed: Vec<(&str, &[&str], String)> = SETS
        .iter()
        .flat_map(|(pointer, path)| {
            let names = changed_members(old.pointer(pointer), new.pointer(pointer));
            names.into_iter().map(move |name| (*pointer, *path, name))
        })
        .collect();
    if changed.is_empty() {
        return;
    }
    let mut entries = match new["metadata"]["managedFields"].take() {
        Value::Array(entries) => entries,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            vec![creation(target, old)]
        }
    };
    for (_, path, name) in &changed {
        for entry in entries.iter_mut().filter(|entry| entry["subresource"].is_null()) {
            remove(&mut entry["fieldsV1"], path, name);
        }
    }
    let is_own = |entry: &Value| {
        entry["manager"] == target.writer && entry["operation"] == "Update" && entry["subresource"].is_null()
    };
    let place = entries.iter().position(is_own);
    let mut own = place.map_or_else(|| entry(target, target.writer), |place| entries.remove(place));
    own["time"] = seconds(now).into();
    for (pointer, path, name) in changed {
        if new.pointer(pointer).is_some_and(|set| set.get(&name).is_some()) {
            insert(&mut own["fieldsV1"], path, &name);
        }
    }
    entries.push(own);
    entries.retain(|entry| entry["fieldsV1"] != json!({}));
    metadata::members(new).insert("managedFields".to_owned(), entries.into());
}

/// The names of the members in which two objects differ.
fn changed_members(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (old, new) = (members(old), members(new));
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let changed = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    changed.cloned().collect()
}

/// An entry without fields.
fn entry(target: Target<'_>, manager: &str) -> Value {
    json!({
        "manager": manager,
        "operation": "Update",
        "apiVersion": target.resource.api_version(),
        "fieldsType": "FieldsV1",
        "fieldsV1": {},
    })
}

/// The entry of the fields that an object has had since its creation.
fn creation(target: Target<'_>, old: &Value) -> Value {
    let mut entry = entry(target, "before-first-apply");
    entry["time"] = old["metadata"]["creationTimestamp"].clone();
    for (pointer, path) in SETS {
        for name in old
            .pointer(pointer)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            insert(&mut entry["fieldsV1"], path, name);
        }
    }
    entry
}

fn insert(fields: &mut Value, path: &[&str], name: &str) {
    let set = path.iter().fold(fields, |set, step| &mut set[*step]);
    set[format!("f:{name}")] = json!({});
}

/// Removes a field, and the sets that it leaves empty.
fn remove(fields: &mut Value, path: &[&str], name: &str) {
    let Some(members) = fields.as_object_mut() else { return };
    let Some((step, rest)) = path.split_first() else {
        members.remove(&format!("f:{name}"));
        return;
    };
    if let Some(set) = members.get_mut(*step) {
        remove(set, rest, name);
        if *set == json!({}) {
            members.remove(*step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writer_owns_what_it_changed() {
        let target = |writer| Target {
            resource: Resource::CronJob,
            namespace: Some("shop"),
            name: "five",
            writer,
        };
        let created = json!({
            "metadata": {"name": "five", "creationTimestamp": "2026-05-05T10:00:00Z"},
            "spec": {"schedule": "* * * * *", "suspend": false},
        });
        let mut old = created;
        let mut change = |writer, pointer: &str, value: Value, now: &str| {
            let mut new = old.clone();
            *new.pointer_mut(pointer).unwrap() = value;
            record(target(writer), &mut new, &old, now.parse().unwrap());
            old = new;
            let entries = old["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
            let told = entries.iter().map(|entry| {
                let (manager, time) = (entry["manager"].as_str().unwrap(), entry["time"].as_str().unwrap());
                format!("{manager} {time} {}", entry["fieldsV1"])
            });
            told.collect::<Vec<_>>()
        };
        assert_eq!(
            change("", "/spec/suspend", true.into(), "2026-05-05T10:30:00Z"),
            [""; 0]
        );
        let kept = r#"before-first-apply 2026-05-05T10:00:00Z {"f:spec":{"f:schedule":{}}}"#;
        assert_eq!(
            change("kubectl-patch", "/spec/suspend", false.into(), "2026-05-05T11:00:00Z"),
            [
                kept,
                r#"kubectl-patch 2026-05-05T11:00:00Z {"f:spec":{"f:suspend":{}}}"#
            ]
        );
        assert_eq!(
            change("kubectl-edit", "/spec/suspend", true.into(), "2026-05-05T12:00:00Z"),
            [kept, r#"kubectl-edit 2026-05-05T12:00:00Z {"f:spec":{"f:suspend":{}}}"#]
        );
    }
}
