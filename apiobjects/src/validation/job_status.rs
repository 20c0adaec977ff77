//! Validation of a Job's status: counters and conditions only move forward, and the status of an ended Job is complete.

use serde_json::Value;

use super::{
    field_error::Errors,
    metadata::{elements, immutable},
    path::Path,
};

const STATUS: Path<'static> = Path::root("status");
const COUNTERS: [&str; 5] = ["active", "succeeded", "failed", "ready", "terminating"];
/// Conditions that stay true once they are true.
const TERMINAL: [&str; 3] = ["Failed", "Complete", "FailureTarget"];

/// Checks an update of a Job's status.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    let (status, old_status) = (&new["status"], &old["status"]);
    for member in COUNTERS {
        errors.non_negative(&STATUS.child(member), status.get(member));
    }
    let has_changed = |condition: &str| holds(status, condition) != holds(old_status, condition);
    if has_changed("Complete") {
        complete(status, errors);
    }
    if has_changed("Failed") && holds(status, "Failed") && !holds(status, "FailureTarget") {
        conditions(
            errors,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        );
    }
    let has_end = !status["completionTime"].is_null();
    let end_has_changed = status["completionTime"] != old_status["completionTime"];
    if has_end && !holds(status, "Complete") && (has_changed("Complete") || end_has_changed) {
        let detail = "cannot set completionTime when there is no Complete=True condition";
        errors.invalid(
            &STATUS.child("completionTime"),
            status["completionTime"].clone(),
            detail,
        );
    }
    if is_finished(status) {
        finished(new, old_status, errors);
    }
    forward(new, old_status, errors);
}

fn complete(status: &Value, errors: &mut Errors) {
    if !holds(status, "Complete") {
        return;
    }
    if holds(status, "Failed") {
        conditions(errors, "cannot set Complete=True and Failed=true conditions");
    }
    if holds(status, "FailureTarget") {
        conditions(errors, "cannot set Complete=True and FailureTarget=true conditions");
    }
    if status["completionTime"].is_null() {
        errors.required(
            &STATUS.child("completionTime"),
            "completionTime is required for Complete jobs",
        );
    }
    let (start, end) = (status["startTime"].as_str(), status["completionTime"].as_str());
    if let (Some(start), Some(end)) = (start, end)
        && end < start
    {
        errors.invalid(
            &STATUS.child("completionTime"),
            end,
            "must be equal to or after `startTime`",
        );
    }
    if !holds(status, "SuccessCriteriaMet") {
        conditions(
            errors,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        );
    }
}

fn finished(job: &Value, old: &Value, errors: &mut Errors) {
    let status = &job["status"];
    let is_new = !is_finished(old);
    for (member, detail) in [
        ("active", "active>0 is invalid for finished job"),
        ("terminating", "terminating>0 is invalid for finished job"),
    ] {
        if (is_new || status[member] != old[member]) && status[member].as_i64().is_some_and(|count| count > 0) {
            errors.invalid(&STATUS.child(member), status[member].clone(), detail);
        }
    }
    let spec = &job["spec"];
    let has_nothing_to_run = spec["suspend"] == Value::Bool(true) && spec["completions"].as_i64() == Some(0);
    if is_new && status["startTime"].is_null() && !has_nothing_to_run {
        errors.required(&STATUS.child("startTime"), "startTime is required for finished job");
    }
}

fn forward(job: &Value, old: &Value, errors: &mut Errors) {
    let status = &job["status"];
    for condition in TERMINAL {
        if holds(old, condition) && !holds(status, condition) {
            conditions(
                errors,
                &format!("cannot disable the terminal {condition}=True condition"),
            );
        }
    }
    if holds(old, "SuccessCriteriaMet") && !holds(status, "SuccessCriteriaMet") {
        conditions(errors, "cannot disable the SuccessCriteriaMet=True condition");
    }
    let count = |status: &Value, member: &str| status[member].as_i64().unwrap_or_default();
    for (member, detail) in [
        ("failed", "cannot decrease the failed counter"),
        ("succeeded", "cannot decrease the succeeded counter"),
    ] {
        if count(status, member) < count(old, member) {
            errors.invalid(&STATUS.child(member), count(status, member), detail);
        }
    }
    if !status["completionTime"].is_null() && !old["completionTime"].is_null() {
        immutable(
            &STATUS.child("completionTime"),
            &status["completionTime"],
            &old["completionTime"],
            errors,
        );
    }
    let is_resuming = holds(old, "Suspended") && !holds(status, "Suspended");
    let is_suspended = job["spec"]["suspend"] == Value::Bool(true);
    let start_has_changed = !old["startTime"].is_null() && old["startTime"] != status["startTime"];
    if start_has_changed && !is_resuming && !is_suspended {
        let detail = "field is immutable for unsuspended job once set";
        errors.invalid(&STATUS.child("startTime"), status["startTime"].clone(), detail);
    }
}

fn conditions(errors: &mut Errors, detail: &str) {
    errors.invalid_without_value(&STATUS.child("conditions"), detail);
}

fn is_finished(status: &Value) -> bool {
    holds(status, "Complete") || holds(status, "Failed")
}

fn holds(status: &Value, condition: &str) -> bool {
    elements(&status["conditions"])
        .iter()
        .any(|found| found["type"] == condition && found["status"] == "True")
}
