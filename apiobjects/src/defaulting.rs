//! Default values for omitted fields (B-16.1), and fields that the server sets at creation (B-16.3).

mod pod;

use serde_json::{Map, Value, json};

use crate::Resource;

/// The label on a Job's Pods that its selector matches, and its old name.
const CONTROLLER_UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
/// The label with the name of the Job, and its old name.
const JOB_NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];
/// The label by which selectors find a namespace by name.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Metadata that an update cannot change.
const KEPT: [&str; 3] = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];

/// Sets defaults in a decoded object. The function is idempotent.
pub fn apply(resource: Resource, object: &mut Value) {
    match resource {
        Resource::CronJob => cron_job(object),
        Resource::Job => job(object),
        Resource::Namespace => namespace(object),
        Resource::Lease => lease(object),
        Resource::Event | Resource::ConfigMap => {}
    }
}

/// Sets the fields of a new object that clients cannot set. Call it before [`apply`], which copies labels that this
/// function creates. Name and uid must be set.
pub fn prepare_for_create(resource: Resource, object: &mut Value) {
    if resource == Resource::Job {
        generate_selector(object);
    }
    let Some(members) = object.as_object_mut() else { return };
    if resource.has_generation() {
        member(members, "metadata").insert("generation".to_owned(), 1.into());
        members.insert("status".to_owned(), json!({}));
    }
    if resource == Resource::Namespace {
        member(members, "spec").insert("finalizers".to_owned(), json!(["kubernetes"]));
        members.insert("status".to_owned(), json!({"phase": "Active"}));
    }
}

/// Sets the fields of an updated object that clients cannot set. Call it after [`apply`]. The status is kept, and a
/// changed spec increments the generation.
pub fn prepare_for_update(resource: Resource, new: &mut Value, old: &Value) {
    if resource.has_status() {
        keep(new, old, "status");
    }
    if resource == Resource::Namespace {
        keep(new, old, "spec");
    }
    keep_metadata(new, old);
    if resource.has_generation() && new["spec"] != old["spec"] {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        new["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Restores what a status update cannot change: everything except status and metadata (B-16.4).
pub fn prepare_for_status_update(new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    keep_metadata(new, old);
}

fn keep_metadata(new: &mut Value, old: &Value) {
    let old = &old["metadata"];
    let Some(members) = new.as_object_mut() else { return };
    let metadata = member(members, "metadata");
    let mut put = |name: &str, value: &Value| {
        if value.is_null() {
            metadata.remove(name);
        } else {
            metadata.insert(name.to_owned(), value.clone());
        }
    };
    put("generation", &old["generation"]);
    for name in KEPT {
        if !old[name].is_null() {
            put(name, &old[name]);
        }
    }
    set_default(metadata, "uid", old["uid"].clone());
}

fn keep(new: &mut Value, old: &Value, name: &str) {
    let Some(members) = new.as_object_mut() else { return };
    match old.get(name) {
        Some(value) => drop(members.insert(name.to_owned(), value.clone())),
        None => drop(members.remove(name)),
    }
}

/// Drops fields of a disabled feature.
fn lease(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

fn cron_job(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set_default(spec, "concurrencyPolicy", "Allow");
    set_default(spec, "suspend", false);
    set_default(spec, "successfulJobsHistoryLimit", 3);
    set_default(spec, "failedJobsHistoryLimit", 1);
    let template = spec
        .get_mut("jobTemplate")
        .and_then(|template| template.get_mut("spec"));
    if let Some(template) = template.and_then(Value::as_object_mut) {
        job_template(template);
    }
}

fn job(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let is_parallel = is_set(spec, "completions") || is_set(spec, "parallelism");
    if !is_parallel {
        set_default(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    let limit = if is_set(spec, "backoffLimitPerIndex") {
        i32::MAX
    } else {
        6
    };
    set_default(spec, "backoffLimit", limit);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    let replacement = if is_set(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set_default(spec, "podReplacementPolicy", replacement);
    set_default(spec, "manualSelector", false);
    job_template(spec);
    copy_template_labels(object);
}

/// Defaults that apply to both a Job and a Job template.
fn job_template(spec: &mut Map<String, Value>) {
    let rules = spec
        .get_mut("podFailurePolicy")
        .and_then(|policy| policy.get_mut("rules"));
    for rule in elements(rules) {
        for pattern in elements(rule.get_mut("onPodConditions")) {
            set_text_default(pattern, "status", "True");
        }
    }
    let pod = spec.get_mut("template").and_then(|template| template.get_mut("spec"));
    if let Some(pod) = pod.and_then(Value::as_object_mut) {
        pod::apply(pod);
    }
}

fn namespace(object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    let metadata = member(members, "metadata");
    if let Some(name) = metadata.get("name").filter(|name| !name.is_null()).cloned() {
        member(metadata, "labels").insert(NAMESPACE_NAME_LABEL.to_owned(), name);
    }
    let status = member(members, "status");
    set_default(status, "phase", "Active");
}

/// Copies the labels of the Pod template to a Job without labels.
fn copy_template_labels(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels");
    let Some(labels) = labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty())) else {
        return;
    };
    let labels = labels.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let has_labels = metadata
        .get("labels")
        .and_then(Value::as_object)
        .is_some_and(|labels| !labels.is_empty());
    if !has_labels {
        metadata.insert("labels".to_owned(), labels);
    }
}

/// Labels a Job's Pods with its name and uid and selects them by the uid, unless the client sets a manual selector.
fn generate_selector(object: &mut Value) {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
    let (name, uid) = (text("name"), text("uid"));
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let labels = member(member(member(spec, "template"), "metadata"), "labels");
    for label in JOB_NAME_LABELS {
        labels.entry(label).or_insert_with(|| name.clone().into());
    }
    for label in CONTROLLER_UID_LABELS {
        labels.entry(label).or_insert_with(|| uid.clone().into());
    }
    let selected = member(member(spec, "selector"), "matchLabels");
    selected.entry(CONTROLLER_UID_LABELS[0]).or_insert_with(|| uid.into());
}

fn is_set(members: &Map<String, Value>, name: &str) -> bool {
    members.get(name).is_some_and(|value| !value.is_null())
}

/// Sets a member if it is absent or null.
fn set_default(members: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if !is_set(members, name) {
        members.insert(name.to_owned(), value.into());
    }
}

/// Sets a member of an object if it is absent, null or empty.
fn set_text_default(object: &mut Value, name: &str, text: &str) {
    if let Some(members) = object.as_object_mut()
        && members.get(name).and_then(Value::as_str).is_none_or(str::is_empty)
    {
        members.insert(name.to_owned(), text.into());
    }
}

/// Returns the object in a member, creating it if necessary.
fn member<'a>(members: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = members.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("the member is an object")
}

/// The elements of a list. Yields nothing if the value is not a list.
fn elements(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests;
