//! `spec.jobTemplate` to a request body with three gaps, prepared once for all runs.
//!
//! Only the place of the annotation is parsed, so fields of newer servers reach the Job byte for byte (B-11.2 to
//! B-11.5).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{parse::FieldError, pod_annotation::push_spec_with_gap};
use crate::{
    kube_api::objects::encode::{RESERVED_PREFIX, SCHEDULED_TIMESTAMP_ANNOTATION, push_raw_member, push_string},
    shard::{CronJobIdentity, JobTemplate},
};

/// `spec.jobTemplate` as received.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct RawTemplate<'a> {
    #[serde(borrow)]
    metadata: Option<RawMetadata<'a>>,
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "an object")]
struct RawMetadata<'a> {
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    annotations: Option<BTreeMap<String, &'a RawValue>>,
}

/// Prepares the body of the Jobs of one CronJob. `passes_scheduled_time` adds the slot's time to their Pods.
pub(super) fn job_template(
    raw: RawTemplate<'_>,
    cron_job: &CronJobIdentity,
    passes_scheduled_time: bool,
) -> Result<JobTemplate, FieldError> {
    let metadata = raw.metadata.unwrap_or_default();
    let annotations = metadata.annotations.unwrap_or_default();
    let mut other_annotations = String::new();
    for (name, value) in &annotations {
        if !name.starts_with(RESERVED_PREFIX) && name != SCHEDULED_TIMESTAMP_ANNOTATION {
            push_raw_member(&mut other_annotations, name, value.get());
        }
    }
    let spec = raw.spec.map_or("", RawValue::get);
    let labels = metadata.labels.map_or("", RawValue::get);
    let n_bytes = labels.len() + other_annotations.len() + spec.len() + cron_job.name.len();
    let mut body = String::with_capacity(n_bytes + REST_BYTES);
    body.push_str(r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"#);
    let name_at = body.len();
    body.push_str(r#","creationTimestamp":"#);
    let created_at = body.len();
    if !labels.is_empty() {
        push_raw_member(&mut body, "labels", labels);
    }
    body.push_str(r#","annotations":{""#);
    body.push_str(SCHEDULED_TIMESTAMP_ANNOTATION);
    body.push_str(r#"":"#);
    let scheduled_at = body.len();
    body.push_str(&other_annotations);
    body.push('}');
    push_owner_references(&mut body, cron_job);
    body.push('}');
    let pod_scheduled_at = push_spec(&mut body, spec, passes_scheduled_time);
    body.push('}');
    let offset = |at: usize| u32::try_from(at).map_err(|_| FieldError::new("spec.jobTemplate", "too large"));
    Ok(JobTemplate {
        body: body.into(),
        splice_offsets: [offset(name_at)?, offset(created_at)?, offset(scheduled_at)?],
        pod_splice_offset: pod_scheduled_at.map(offset).transpose()?,
        ttl_seconds_after_finished: ttl_seconds_after_finished(spec),
        had_reserved_annotations: annotations.keys().any(|name| name.starts_with(RESERVED_PREFIX)),
    })
}

/// Appends the spec, if there is one. Returns the offset of the gap for the slot's time in the Pod template.
fn push_spec(body: &mut String, spec: &str, passes_scheduled_time: bool) -> Option<usize> {
    if spec.is_empty() {
        return None;
    }
    if passes_scheduled_time {
        let n_bytes = body.len();
        body.push_str(r#","spec":"#);
        let gap = push_spec_with_gap(body, spec);
        if gap.is_some() {
            return gap;
        }
        body.truncate(n_bytes);
    }
    push_raw_member(body, "spec", spec);
    None
}

/// The approximate size of the body without the template, in bytes.
const REST_BYTES: usize = 352;

/// Appends the owner reference (B-11.4).
fn push_owner_references(body: &mut String, cron_job: &CronJobIdentity) {
    body.push_str(r#","ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"#);
    push_string(body, &cron_job.name);
    body.push_str(r#","uid":"#);
    push_string(body, &cron_job.uid.to_string());
    body.push_str(r#","controller":true,"blockOwnerDeletion":true}]"#);
}

#[derive(Deserialize)]
struct TtlOfSpec {
    #[serde(rename = "ttlSecondsAfterFinished")]
    ttl_seconds_after_finished: Option<i64>,
}

/// Returns the value; the server refuses an invalid one.
fn ttl_seconds_after_finished(spec: &str) -> Option<i64> {
    // Few templates have the field, and searching for its name is much faster than parsing the rest.
    if !spec.contains("ttlSecondsAfterFinished") {
        return None;
    }
    let spec: TtlOfSpec = serde_json::from_str(spec).ok()?;
    spec.ttl_seconds_after_finished
}
