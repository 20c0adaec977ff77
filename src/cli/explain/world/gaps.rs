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

/// The values of one object that were filled in and affect the answer.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) notes: Vec<String>,
}

type Members = Map<String, Value>;
/// Namespace and name.
type Key = (String, String);

/// Fills the gaps. Values of an unexpected type stay as they are, for the decoder to report.
pub(super) fn fill(objects: &mut [Object], now: Timestamp) -> Vec<Filled> {
    for object in objects.iter_mut() {
        let namespace = namespace_of(&object.members).to_owned();
        set_default(metadata(&mut object.members), "namespace", || namespace.into());
        set_default(metadata(&mut object.members), "resourceVersion", || "0".into());
    }
    fill_cron_job_uids(objects);
    fill_owner_uids(objects);
    fill_job_uids(objects);
    fill_active_uids(objects);
    objects.iter_mut().map(|object| fill_defaults(object, now)).collect()
}

/// Returns `metadata.namespace` or the default.
pub(super) fn namespace_of(members: &Members) -> &str {
    let namespace = text(members.get("metadata"), "namespace");
    if namespace.is_empty() {
        DEFAULT_NAMESPACE
    } else {
        namespace
    }
}

/// Returns `metadata.name` or an empty text.
pub(super) fn name_of(members: &Members) -> &str {
    text(members.get("metadata"), "name")
}

fn key_of(members: &Members) -> Key {
    (namespace_of(members).to_owned(), name_of(members).to_owned())
}

fn text<'a>(of: Option<&'a Value>, member: &str) -> &'a str {
    of.and_then(|of| of.get(member))
        .and_then(Value::as_str)
        .unwrap_or_default()
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

/// Returns a controller reference of kind CronJob.
fn controller(members: &Members) -> Option<&Value> {
    let references = members.get("metadata")?.get("ownerReferences")?.as_array()?;
    let controller = references
        .iter()
        .find(|reference| reference.get("controller") == Some(&Value::Bool(true)))?;
    (text(Some(controller), "kind") == "CronJob").then_some(controller)
}

/// A CronJob without a uid gets the one in its Jobs' owner references.
fn fill_cron_job_uids(objects: &mut [Object]) {
    let mut called: BTreeMap<Key, String> = BTreeMap::new();
    for job in of_kind(objects, Kind::Job) {
        let controller = controller(job);
        let uid = text(controller, "uid");
        if !uid.is_empty() {
            let key = (namespace_of(job).to_owned(), text(controller, "name").to_owned());
            called.entry(key).or_insert_with(|| uid.to_owned());
        }
    }
    for cron_job in of_kind_mut(objects, Kind::CronJob) {
        let key = key_of(cron_job);
        let uid = || {
            called
                .get(&key)
                .cloned()
                .unwrap_or_else(|| made_up_uid(Kind::CronJob, &key))
        };
        set_default(metadata(cron_job), "uid", || uid().into());
    }
}

/// An owner reference without a uid refers to the CronJob of its name.
fn fill_owner_uids(objects: &mut [Object]) {
    let uids: BTreeMap<Key, String> = of_kind(objects, Kind::CronJob)
        .map(|cron_job| (key_of(cron_job), text(cron_job.get("metadata"), "uid").to_owned()))
        .collect();
    for job in of_kind_mut(objects, Kind::Job) {
        let namespace = namespace_of(job).to_owned();
        let references = metadata(job).and_then(|metadata| metadata.get_mut("ownerReferences")?.as_array_mut());
        for reference in references.into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
            let uid = uids.get(&(namespace.clone(), name.to_owned()));
            if let (Some("CronJob"), Some(uid)) = (reference.get("kind").and_then(Value::as_str), uid) {
                set_default(Some(reference), "uid", || uid.as_str().into());
            }
        }
    }
}

/// A Job without a uid gets the one in an active list.
fn fill_job_uids(objects: &mut [Object]) {
    let mut called: BTreeMap<Key, String> = BTreeMap::new();
    for cron_job in of_kind(objects, Kind::CronJob) {
        let entries = cron_job
            .get("status")
            .and_then(|status| status.get("active")?.as_array());
        for entry in entries.into_iter().flatten() {
            let uid = text(Some(entry), "uid");
            if !uid.is_empty() {
                called
                    .entry(entry_key(cron_job, entry))
                    .or_insert_with(|| uid.to_owned());
            }
        }
    }
    for job in of_kind_mut(objects, Kind::Job) {
        let key = key_of(job);
        let uid = || {
            called
                .get(&key)
                .cloned()
                .unwrap_or_else(|| made_up_uid(Kind::Job, &key))
        };
        set_default(metadata(job), "uid", || uid().into());
    }
}

/// An entry of an active list without a uid refers to the Job of its name.
fn fill_active_uids(objects: &mut [Object]) {
    let uids: BTreeMap<Key, String> = of_kind(objects, Kind::Job)
        .map(|job| (key_of(job), text(job.get("metadata"), "uid").to_owned()))
        .collect();
    for cron_job in of_kind_mut(objects, Kind::CronJob) {
        let namespace = namespace_of(cron_job).to_owned();
        let status = cron_job.get_mut("status");
        let entries = status.and_then(|status| status.get_mut("active")?.as_array_mut());
        for entry in entries.into_iter().flatten() {
            let key = entry_key_in(&namespace, entry);
            let uid = || uids.get(&key).cloned().unwrap_or_else(|| made_up_uid(Kind::Job, &key));
            set_default(entry.as_object_mut(), "uid", || uid().into());
        }
    }
}

fn entry_key(cron_job: &Members, entry: &Value) -> Key {
    entry_key_in(namespace_of(cron_job), entry)
}

fn entry_key_in(cron_job_namespace: &str, entry: &Value) -> Key {
    let namespace = text(Some(entry), "namespace");
    let namespace = if namespace.is_empty() {
        cron_job_namespace
    } else {
        namespace
    };
    (namespace.to_owned(), text(Some(entry), "name").to_owned())
}

/// Sets the defaults of B-16.1 that the controller reads, and a creation time.
fn fill_defaults(object: &mut Object, now: Timestamp) -> Filled {
    let mut filled = Filled::default();
    if object.kind == Kind::Job {
        return filled;
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
    if is_created_now && !has_run {
        let note =
            "neither creationTimestamp nor lastScheduleTime is given: taken as created now, so nothing is due yet";
        filled.notes.push(note.to_owned());
    }
    filled
}

fn of_kind(objects: &[Object], kind: Kind) -> impl Iterator<Item = &Members> {
    let is_of_kind = move |object: &&Object| object.kind == kind;
    objects.iter().filter(is_of_kind).map(|object| &object.members)
}

fn of_kind_mut(objects: &mut [Object], kind: Kind) -> impl Iterator<Item = &mut Members> {
    let is_of_kind = move |object: &&mut Object| object.kind == kind;
    objects.iter_mut().filter(is_of_kind).map(|object| &mut object.members)
}

/// Returns a uid in the form of a UUID (version 8, custom), the same for the same object in every run.
fn made_up_uid(kind: Kind, (namespace, name): &Key) -> String {
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
