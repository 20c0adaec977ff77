//! Fills in the values that the API server would have added to an object.
//!
//! A handwritten file may lack values that only a server assigns. Missing values come from other objects. Otherwise
//! they are generated, with the same result in every run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::explain::objects::{Kind, Object};

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

type Members = Map<String, Value>;
/// Kind, namespace and name.
type Key = (Kind, String, String);

/// Fills the gaps and returns notes on the values that affect the answer, for each object. Values of an unexpected
/// type stay as they are, for the decoder to report.
pub(super) fn fill(objects: &mut [Object], now: Timestamp) -> Vec<Vec<String>> {
    for object in objects.iter_mut() {
        let namespace = namespace_of(&object.members).to_owned();
        set_default(metadata(&mut object.members), "namespace", || namespace.into());
        set_default(metadata(&mut object.members), "resourceVersion", || "0".into());
    }
    fill_uids(objects);
    objects.iter_mut().map(|object| fill_defaults(object, now)).collect()
}

/// Returns `metadata.namespace` or the default.
pub(super) fn namespace_of(members: &Members) -> &str {
    match text_of_metadata(members, "namespace") {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    }
}

/// Returns `metadata.name` or an empty text.
pub(super) fn name_of(members: &Members) -> &str {
    text_of_metadata(members, "name")
}

fn key_of(object: &Object) -> Key {
    let (namespace, name) = (namespace_of(&object.members), name_of(&object.members));
    (object.kind, namespace.to_owned(), name.to_owned())
}

fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn text_of_metadata<'a>(members: &'a Members, name: &str) -> &'a str {
    let metadata = members.get("metadata").and_then(Value::as_object);
    metadata.map_or("", |metadata| text(metadata, name))
}

fn metadata(members: &mut Members) -> Option<&mut Members> {
    members.get_mut("metadata").and_then(Value::as_object_mut)
}

/// Sets a member that is missing, null or empty.
fn set_default(members: Option<&mut Members>, name: &str, value: impl FnOnce() -> Value) {
    let Some(members) = members else { return };
    let is_missing = members
        .get(name)
        .is_none_or(|value| value.is_null() || value.as_str() == Some(""));
    if is_missing {
        members.insert(name.to_owned(), value());
    }
}

/// Returns the references of a Job to its CronJobs, or of a CronJob to its active Jobs, each with the object that it
/// names.
fn references(object: &mut Object) -> Vec<(Key, &mut Members)> {
    let namespace = namespace_of(&object.members).to_owned();
    let members = &mut object.members;
    let (kind, entries) = match object.kind {
        Kind::Job => (
            Kind::CronJob,
            metadata(members).and_then(|metadata| metadata.get_mut("ownerReferences")),
        ),
        Kind::CronJob => (
            Kind::Job,
            members.get_mut("status").and_then(|status| status.get_mut("active")),
        ),
    };
    let entries = entries.and_then(Value::as_array_mut).into_iter().flatten();
    entries
        .filter_map(Value::as_object_mut)
        // A Job may have owners of other kinds. The active list has Jobs only.
        .filter(|entry| kind == Kind::Job || text(entry, "kind") == kind.as_str())
        .map(|entry| {
            let namespace = match text(entry, "namespace") {
                "" => namespace.as_str(),
                of_entry => of_entry,
            };
            ((kind, namespace.to_owned(), text(entry, "name").to_owned()), entry)
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
        note(key_of(object), text_of_metadata(&object.members, "uid"));
    }
    for (key, reference) in objects.iter_mut().flat_map(references) {
        note(key, text(reference, "uid"));
    }
    let uid = |key: &Key| uids.get(key).cloned().unwrap_or_else(|| made_up_uid(key));
    for object in objects {
        let key = key_of(object);
        set_default(metadata(&mut object.members), "uid", || uid(&key).into());
        for (key, reference) in references(object) {
            set_default(Some(reference), "uid", || uid(&key).into());
        }
    }
}

/// Sets the defaults of B-16.1 that the controller reads, and a creation time.
fn fill_defaults(object: &mut Object, now: Timestamp) -> Vec<String> {
    if object.kind == Kind::Job {
        return Vec::new();
    }
    let spec = object.members.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec {
        let defaults = [
            ("concurrencyPolicy", json!("Allow")),
            ("suspend", json!(false)),
            ("successfulJobsHistoryLimit", json!(3)),
            ("failedJobsHistoryLimit", json!(1)),
        ];
        for (name, value) in defaults {
            set_default(Some(&mut *spec), name, || value);
        }
    }
    let has_run = object
        .members
        .get("status")
        .and_then(|status| status.get("lastScheduleTime"))
        .is_some_and(Value::is_string);
    let mut is_created_now = false;
    set_default(metadata(&mut object.members), "creationTimestamp", || {
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
