//! Fills in the values that the API server would have added to an object.
//!
//! A handwritten file may lack values that only a server assigns. Missing values come from other objects. Otherwise
//! they are generated, with the same result in every run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::explain::objects::{Kind, Object, name_of, namespace_of};

/// Kind, namespace and name.
type Key = (Kind, String, String);

/// Fills in namespaces, resource versions and uids. A missing uid may come from another object. Values of an unexpected
/// type stay as they are, for the decoder to report.
pub(super) fn fill(objects: &mut [Object]) {
    for object in objects.iter_mut() {
        let namespace = namespace_of(&object.value).to_owned();
        set_default(&mut object.value, "/metadata", "namespace", || namespace.into());
        set_default(&mut object.value, "/metadata", "resourceVersion", || "0".into());
    }
    fill_uids(objects);
}

fn key_of(object: &Object) -> Key {
    let (namespace, name) = (namespace_of(&object.value), name_of(&object.value));
    (object.kind, namespace.to_owned(), name.to_owned())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a member of the object at the pointer that is missing, null or empty.
fn set_default(object: &mut Value, pointer: &str, name: &str, value: impl FnOnce() -> Value) {
    let Some(members) = object.pointer_mut(pointer).and_then(Value::as_object_mut) else {
        return;
    };
    let is_missing = members
        .get(name)
        .is_none_or(|value| value.is_null() || value.as_str() == Some(""));
    if is_missing {
        members.insert(name.to_owned(), value());
    }
}

/// Returns the references of a Job to its CronJobs, or of a CronJob to its active Jobs, each with the object that it
/// names.
fn references(object: &mut Object) -> Vec<(Key, &mut Value)> {
    let namespace = namespace_of(&object.value).to_owned();
    let (kind, entries) = match object.kind {
        Kind::Job => (Kind::CronJob, "/metadata/ownerReferences"),
        Kind::CronJob => (Kind::Job, "/status/active"),
    };
    let entries = object.value.pointer_mut(entries).and_then(Value::as_array_mut);
    let entries = entries.into_iter().flatten();
    entries
        // A Job may have owners of other kinds. The active list has Jobs only.
        .filter(|entry| kind == Kind::Job || text(entry, "/kind") == kind.as_str())
        .map(|entry| {
            let namespace = match text(entry, "/namespace") {
                "" => namespace.as_str(),
                of_entry => of_entry,
            };
            let key = (kind, namespace.to_owned(), text(entry, "/name").to_owned());
            (key, entry)
        })
        .collect()
}

/// Fills in the uids of objects and of references: the uid of the object itself, otherwise the one in a reference to
/// it, otherwise a generated one.
fn fill_uids(objects: &mut [Object]) {
    let mut uids: BTreeMap<Key, String> = BTreeMap::new();
    let mut note = |key: Key, uid: &str| {
        if !uid.is_empty() {
            uids.entry(key).or_insert_with(|| uid.to_owned());
        }
    };
    for object in objects.iter() {
        note(key_of(object), text(&object.value, "/metadata/uid"));
    }
    for (key, reference) in objects.iter_mut().flat_map(references) {
        note(key, text(reference, "/uid"));
    }
    let uid = |key: &Key| uids.get(key).cloned().unwrap_or_else(|| made_up_uid(key));
    for object in objects {
        let key = key_of(object);
        set_default(&mut object.value, "/metadata", "uid", || uid(&key).into());
        for (key, reference) in references(object) {
            set_default(reference, "", "uid", || uid(&key).into());
        }
    }
}

/// Sets the defaults of B-16.1 that the controller reads, and a creation time. Returns notes on values that affect the
/// answer.
pub(super) fn fill_defaults(cron_job: &mut Value, now: Timestamp) -> Vec<String> {
    let defaults = [
        ("concurrencyPolicy", json!("Allow")),
        ("suspend", json!(false)),
        ("successfulJobsHistoryLimit", json!(3)),
        ("failedJobsHistoryLimit", json!(1)),
    ];
    for (name, value) in defaults {
        set_default(cron_job, "/spec", name, || value);
    }
    let has_run = cron_job["status"]["lastScheduleTime"].is_string();
    let mut is_created_now = false;
    set_default(cron_job, "/metadata", "creationTimestamp", || {
        is_created_now = true;
        Timestamp::from_second(now.as_second())
            .unwrap_or(now)
            .to_string()
            .into()
    });
    let note = "neither creationTimestamp nor lastScheduleTime is given: taken as created now, so nothing is due yet";
    if is_created_now && !has_run {
        vec![note.to_owned()]
    } else {
        Vec::new()
    }
}

/// Returns a uid in the form of a UUID (version 8, custom), the same for the same object in every run.
fn made_up_uid((kind, namespace, name): &Key) -> String {
    let text = format!("{}/{namespace}/{name}", kind.as_str());
    // FNV-1a over 128 bits: short, and the same on every machine and in every version.
    let hash = text
        .bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
    let marked = hash & !(0xf << 76) & !(0b11 << 62) | (8 << 76) | (0b10 << 62);
    let hex = format!("{marked:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}
