//! The versions, fields and values in a file that the API server would refuse.
//!
//! The decoder reads stored objects, so it does not check for these.

use serde_json::{Map, Value};

use super::objects::{Kind, Object};
use crate::cli::advice::similar;

/// The fields of the objects in a CronJob, by the path to them. Deeper fields are left to the API server.
const FIELDS: [(&[&str], &[&str]); 3] = [
    (&[], &["apiVersion", "kind", "metadata", "spec", "status"]),
    (
        &["spec"],
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
    (&["spec", "jobTemplate"], &["metadata", "spec"]),
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
pub(super) fn of(object: &Object) -> Vec<String> {
    if object.kind == Kind::Job {
        return Vec::new();
    }
    let members = &object.members;
    let mut refusals = Vec::new();
    if let Some(version) = members.get("apiVersion").and_then(Value::as_str)
        && version != "batch/v1"
    {
        refusals.push(format!(
            "apiVersion: Kubernetes has no CronJob of {version}; write batch/v1"
        ));
    }
    if let Some(kind) = members.get("kind").and_then(Value::as_str)
        && kind != "CronJob"
    {
        refusals.push(format!("kind: Kubernetes has no {kind}; write CronJob"));
    }
    let name = at(members, &["metadata"]).and_then(|metadata| metadata.get("name")?.as_str());
    if let Some(name) = name.filter(|name| name.len() > NAME_MAX) {
        let n_characters = name.len();
        refusals.push(format!(
            "metadata.name: {n_characters} characters; shorten it to {NAME_MAX}"
        ));
    }
    for (path, known) in FIELDS {
        let names = at(members, path).into_iter().flat_map(Map::keys);
        let unknown = names.filter(|name| !known.contains(&name.as_str()));
        refusals.extend(unknown.map(|name| unknown_field(path, name, known)));
    }
    refusals.extend(at(members, &["spec"]).map(of_values).unwrap_or_default());
    refusals
}

fn of_values(spec: &Map<String, Value>) -> Vec<String> {
    let mut refusals = Vec::new();
    if spec.get("schedule").is_none_or(Value::is_null) {
        refusals.push("spec.schedule: missing; write five fields or a descriptor such as @daily".to_owned());
    }
    if let Some(policy) = spec.get("concurrencyPolicy").and_then(Value::as_str)
        && !POLICIES.contains(&policy)
    {
        let advice = match meant(policy, &POLICIES) {
            Some(meant) => format!("did you mean {meant}?"),
            None => "write Allow, Forbid or Replace".to_owned(),
        };
        refusals.push(format!("spec.concurrencyPolicy: {policy:?} is not a policy; {advice}"));
    }
    let negative = COUNTS.iter().filter(|name| is_negative(spec.get(**name)));
    refusals.extend(negative.map(|name| format!("spec.{name}: negative; write 0 or more")));
    refusals
}

fn is_negative(value: Option<&Value>) -> bool {
    value.and_then(Value::as_i64).is_some_and(|value| value < 0)
}

fn unknown_field(path: &[&str], name: &str, known: &[&str]) -> String {
    let field = [path, &[name]].concat().join(".");
    let elsewhere = || FIELDS.into_iter().find(|(_, known)| known.contains(&name));
    match (meant(name, known), elsewhere()) {
        (Some(meant), _) => format!("{field}: unknown field; did you mean {meant}?"),
        (None, Some((place, _))) if !place.is_empty() => {
            format!("{field}: unknown field; it belongs into {}", place.join("."))
        }
        (None, _) => format!("{field}: unknown field; leave it out"),
    }
}

fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    similar(word, known.iter().copied(), word.len() / 4)
}

fn at<'a>(members: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Map<String, Value>> {
    path.iter()
        .try_fold(members, |members, name| members.get(*name)?.as_object())
}
