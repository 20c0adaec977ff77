//! At least one case for each rule of B-4 to B-12.

mod creates;
mod jobs;
mod slots;

use super::*;

/// A skip with this reason and without Events, writes or Jobs.
fn quiet_skip(reason: &str) -> Value {
    let decision = if reason == "NotDue" { "wait" } else { "skip" };
    json!({"decision": decision, "reason": reason, "job": null, "deletes": [], "status": null, "events": []})
}

const CREATED: &str = "Created job hello-29632920";

/// A Job that cannot be decoded.
fn broken_job(minutes: i64) -> Value {
    job(minutes, json!({"status": {"startTime": "yesterday"}}))
}
