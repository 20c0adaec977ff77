//! Jobs and statuses as they would be sent.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::UNKNOWN_JOB;
use crate::{
    explain::{
        error::ExplainError,
        explanation::{SentJob, StatusChange},
    },
    kube_api::objects::encode,
    shard::{CronJobStatus, JobCreate},
};

pub(super) fn sent_job(order: &JobCreate) -> Result<SentJob, ExplainError> {
    Ok(SentJob {
        name: order.name.to_string(),
        body: json(&encode::job_body(order, None).unwrap_or_default())?,
    })
}

fn json<T: DeserializeOwned>(text: &[u8]) -> Result<T, ExplainError> {
    serde_json::from_slice(text).map_err(ExplainError::Conversion)
}

pub(super) fn status_change(before: &CronJobStatus, after: &CronJobStatus) -> Result<StatusChange, ExplainError> {
    Ok(StatusChange {
        before: status(before)?,
        after: status(after)?,
    })
}

/// Encodes a status as it is written. Unknown values of a Job are null or left out.
fn status(status: &CronJobStatus) -> Result<Value, ExplainError> {
    let mut status: Value = json(&encode::status_json(status))?;
    let entries = status.get_mut("active").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        if entry.get("uid").and_then(Value::as_str) == Some(UNKNOWN_JOB) {
            entry.insert("uid".to_owned(), Value::Null);
        }
        // A version that no API server assigned.
        if entry.get("resourceVersion").and_then(Value::as_str) == Some("0") {
            entry.remove("resourceVersion");
        }
    }
    Ok(status)
}
