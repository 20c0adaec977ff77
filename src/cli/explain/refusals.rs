//! The versions, fields and values in a file that the API server would refuse.
//!
//! The decoder reads stored objects, so it does not check for these.

use serde_json::{Map, Value};

use super::objects::name_of;
use crate::cli::advice::similar;

/// The fields of the objects in a CronJob, by the pointer to them. Deeper fields are left to the API server.
const FIELDS: [(&str, &[&str]); 3] = [
    ("", &["apiVersion", "kind", "metadata", "spec", "status"]),
    (
        "/spec",
        &[
            "schedule",
            "timeZone",
            "startingDeadlineSeconds",
            "concurrencyPolicy",
            "suspend",
            "jobTemplate",
            "successfulJobsHistoryLimit",
            "failedJobsHistoryLimit",
        ],
    ),
    ("/spec/jobTemplate", &["metadata", "spec"]),
];

const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// Fields that must not be negative.
const COUNTS: [&str; 3] = [
    "startingDeadlineSeconds",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
];

/// The names of Jobs are eleven characters longer.
const NAME_MAX: usize = 52;

/// Returns the refusals, each with the field and the fix.
pub(super) fn of(value: &Value) -> Vec<String> {
    let mut refusals = Vec::new();
    if let Some(version) = value["apiVersion"].as_str()
        && version != "batch/v1"
    {
        refusals.push(format!(
            "apiVersion: Kubernetes has no CronJob of {version}; write batch/v1"
        ));
    }
    if let Some(kind) = value["kind"].as_str()
        && kind != "CronJob"
    {
        refusals.push(format!("kind: Kubernetes has no {kind}; write CronJob"));
    }
    let n_characters = name_of(value).len();
    if n_characters > NAME_MAX {
        refusals.push(format!(
            "metadata.name: {n_characters} characters; shorten it to {NAME_MAX}"
        ));
    }
    for (path, known) in FIELDS {
        let members = value.pointer(path).and_then(Value::as_object);
        let names = members.into_iter().flat_map(Map::keys);
        let unknown = names.filter(|name| !known.contains(&name.as_str()));
        refusals.extend(unknown.map(|name| unknown_field(path, name, known)));
    }
    if value["spec"].is_object() {
        refusals.extend(of_values(&value["spec"]));
    }
    refusals
}

fn of_values(spec: &Value) -> Vec<String> {
    let mut refusals = Vec::new();
    if spec["schedule"].is_null() {
        refusals.push("spec.schedule: missing; write five fields or a descriptor such as @daily".to_owned());
    }
    if let Some(policy) = spec["concurrencyPolicy"].as_str()
        && !POLICIES.contains(&policy)
    {
        let advice = match meant(policy, &POLICIES) {
            Some(meant) => format!("did you mean {meant}?"),
            None => "write Allow, Forbid or Replace".to_owned(),
        };
        refusals.push(format!("spec.concurrencyPolicy: {policy:?} is not a policy; {advice}"));
    }
    let is_negative = |name: &&&str| spec[**name].as_i64().is_some_and(|value| value < 0);
    let negative = COUNTS.iter().filter(is_negative);
    refusals.extend(negative.map(|name| format!("spec.{name}: negative; write 0 or more")));
    refusals
}

fn unknown_field(path: &str, name: &str, known: &[&str]) -> String {
    let dotted = |path: &str| path.trim_start_matches('/').replace('/', ".");
    let field = if path.is_empty() {
        name.to_owned()
    } else {
        format!("{}.{name}", dotted(path))
    };
    let elsewhere = || FIELDS.into_iter().find(|(_, known)| known.contains(&name));
    match (meant(name, known), elsewhere()) {
        (Some(meant), _) => format!("{field}: unknown field; did you mean {meant}?"),
        (None, Some((place, _))) if !place.is_empty() => {
            format!("{field}: unknown field; it belongs in {}", dotted(place))
        }
        (None, _) => format!("{field}: unknown field; leave it out"),
    }
}

fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    similar(word, known.iter().copied(), word.len() / 4)
}
