//! The status of Jobs as the Job controller writes it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A reason with its text.
#[derive(Clone, Copy)]
pub(super) struct Reason {
    reason: &'static str,
    message: &'static str,
}

const COMPLETIONS_REACHED: Reason = Reason {
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
};

pub(super) const BACKOFF_LIMIT_EXCEEDED: Reason = Reason {
    reason: "BackoffLimitExceeded",
    message: "Job has reached the specified backoff limit",
};

pub(super) const DEADLINE_EXCEEDED: Reason = Reason {
    reason: "DeadlineExceeded",
    message: "Job was active longer than specified deadline",
};

pub(super) fn start(job: &mut Value, now: Timestamp) {
    let active = n_pods(job);
    job["status"] = json!({
        "startTime": text(now), "active": active, "ready": active, "terminating": 0, "uncountedTerminatedPods": {},
    });
}

pub(super) fn succeed(job: &mut Value, now: Timestamp) {
    let succeeded = job["spec"]["completions"].as_i64().unwrap_or(1);
    let status = ended(job, now, ["SuccessCriteriaMet", "Complete"], COMPLETIONS_REACHED);
    status.insert("completionTime".to_owned(), text(now).into());
    status.insert("succeeded".to_owned(), succeeded.into());
}

pub(super) fn fail(job: &mut Value, now: Timestamp, reason: Reason) {
    let failed = n_pods(job);
    let status = ended(job, now, ["FailureTarget", "Failed"], reason);
    status.insert("failed".to_owned(), failed.into());
}

/// Pods at a time.
fn n_pods(job: &Value) -> i64 {
    let number = |member: &str| job["spec"][member].as_i64().unwrap_or(1);
    number("parallelism").min(number("completions"))
}

fn ended<'a>(job: &'a mut Value, now: Timestamp, kinds: [&str; 2], why: Reason) -> &'a mut Map<String, Value> {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": text(now), "lastTransitionTime": text(now),
            "reason": why.reason, "message": why.message})
    };
    let mut status = Map::new();
    status.insert("startTime".to_owned(), job["status"]["startTime"].clone());
    status.insert("conditions".to_owned(), kinds.map(condition).to_vec().into());
    status.insert("ready".to_owned(), 0.into());
    status.insert("terminating".to_owned(), 0.into());
    status.insert("uncountedTerminatedPods".to_owned(), json!({}));
    job["status"] = Value::Object(status);
    match &mut job["status"] {
        Value::Object(status) => status,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            unreachable!("made above")
        }
    }
}

fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
