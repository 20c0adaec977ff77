//! The status of Jobs as the Job controller writes it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::outline::Outline;
use crate::objects::times::seconds;

/// A reason with its message.
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

pub(super) fn start(job: &Outline<'_>, now: Timestamp) -> Value {
    let active = n_pods(job);
    json!({
        "startTime": seconds(now), "active": active, "ready": active, "terminating": 0, "uncountedTerminatedPods": {},
    })
}

pub(super) fn succeed(job: &Outline<'_>, now: Timestamp) -> Value {
    let mut status = ended(job, now, ["SuccessCriteriaMet", "Complete"], COMPLETIONS_REACHED);
    status["completionTime"] = seconds(now).into();
    status["succeeded"] = job.spec.completions.unwrap_or(1).into();
    status
}

pub(super) fn fail(job: &Outline<'_>, now: Timestamp, reason: Reason) -> Value {
    let mut status = ended(job, now, ["FailureTarget", "Failed"], reason);
    status["failed"] = n_pods(job).into();
    status
}

/// The number of Pods that run at a time.
fn n_pods(job: &Outline<'_>) -> i64 {
    job.spec.parallelism.unwrap_or(1).min(job.spec.completions.unwrap_or(1))
}

fn ended(job: &Outline<'_>, now: Timestamp, kinds: [&str; 2], why: Reason) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": seconds(now), "lastTransitionTime": seconds(now),
            "reason": why.reason, "message": why.message})
    };
    json!({
        "startTime": job.started_at().map(seconds), "conditions": kinds.map(condition), "ready": 0, "terminating": 0,
        "uncountedTerminatedPods": {},
    })
}
