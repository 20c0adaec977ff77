//! One case or more for each rule of B-4 to B-12.

mod creates;
mod jobs;
mod slots;

use super::*;

/// Nothing but the decision.
fn quiet_skip(reason: &str) -> Value {
    let decision = if reason == "NotDue" { "wait" } else { "skip" };
    json!({"decision": decision, "reason": reason, "job": null, "deletes": [], "status": null, "events": []})
}

const CREATED: &str = "Created job hello-29632920";

/// A Job that is there and that no one can understand.
fn broken_job(minutes: i64) -> Value {
    job(minutes, json!({"status": {"startTime": "yesterday"}}))
}
