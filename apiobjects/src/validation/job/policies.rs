//! Validation of the policies of a Job for failed and for successful Pods.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::validation::{
    field_error::Errors,
    metadata::{elements, member_text},
    names,
    path::Path,
};

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// Checks `podFailurePolicy`.
pub(super) fn failure(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let pod = &spec["template"]["spec"];
    let containers = elements(&pod["containers"])
        .iter()
        .chain(elements(&pod["initContainers"]));
    let names: BTreeSet<&str> = containers.map(|container| member_text(container, "name")).collect();
    let rules = path.child("rules");
    for (at, rule) in elements(&spec["podFailurePolicy"]["rules"]).iter().enumerate() {
        failure_rule(spec, rule, &names, &rules.index(at), errors);
    }
}

fn failure_rule(spec: &Value, rule: &Value, containers: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let action = path.child("action");
    match member_text(rule, "action") {
        "" => errors.required(&action, &format!("valid values: {}", listed(&ACTIONS))),
        "FailIndex" if spec["backoffLimitPerIndex"].is_null() => {
            errors.invalid(&action, "FailIndex", "requires the backoffLimitPerIndex to be set");
        }
        known if ACTIONS.contains(&known) => {}
        unknown => errors.unsupported(&action, unknown, &ACTIONS),
    }
    let (codes, conditions) = (&rule["onExitCodes"], elements(&rule["onPodConditions"]));
    if !codes.is_null() {
        exit_codes(codes, containers, &path.child("onExitCodes"), errors);
    }
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.child("onPodConditions");
        let path = path.index(at);
        let kind = member_text(condition, "type");
        errors.invalid_for_each(&path.child("type"), kind, names::label_key(kind));
        match member_text(condition, "status") {
            "" => errors.required(&path.child("status"), &format!("valid values: {}", listed(&STATUSES))),
            status if STATUSES.contains(&status) => {}
            status => errors.unsupported(&path.child("status"), status, &STATUSES),
        }
    }
    match (codes.is_null(), conditions.is_empty()) {
        (false, false) => {
            errors.invalid_without_value(path, "specifying both OnExitCodes and OnPodConditions is not supported");
        }
        (true, true) => {
            errors.invalid_without_value(path, "specifying one of OnExitCodes and OnPodConditions is required");
        }
        (true, false) | (false, true) => {}
    }
}

fn exit_codes(codes: &Value, containers: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let operator = member_text(codes, "operator");
    match operator {
        "" => errors.required(
            &path.child("operator"),
            &format!("valid values: {}", listed(&OPERATORS)),
        ),
        known if OPERATORS.contains(&known) => {}
        unknown => errors.unsupported(&path.child("operator"), unknown, &OPERATORS),
    }
    if let Some(name) = codes["containerName"]
        .as_str()
        .filter(|name| !containers.contains(name))
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&path.child("containerName"), name, detail);
    }
    let values: Vec<i64> = elements(&codes["values"]).iter().filter_map(Value::as_i64).collect();
    let path = path.child("values");
    if values.is_empty() {
        errors.invalid(&path, Value::Array(Vec::new()), "at least one value is required");
    }
    let mut seen = BTreeSet::new();
    for (at, value) in values.iter().enumerate() {
        let path = path.index(at);
        if operator == "In" && *value == 0 {
            errors.invalid(&path, 0, "must not be 0 for the In operator");
        }
        if !seen.insert(value) {
            errors.duplicate_number(&path, *value);
        }
    }
    if !values.is_sorted() {
        errors.invalid(&path, codes["values"].clone(), "must be ordered");
    }
}

/// Checks `successPolicy` of an indexed Job.
pub(super) fn success(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if elements(&spec["successPolicy"]["rules"]).is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&path.child("rules"), detail);
    }
}

/// A list as Go's `%q` writes it.
fn listed(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[{}]", quoted.join(" "))
}
