//! `spec.jobTemplate` to a request body with three gaps, built once for all runs.
//!
//! Nothing of the template is interpreted but where our annotation has to go, so whatever a newer
//! server knows about Jobs reaches the Job byte for byte (B-11.2 to B-11.5).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::{FieldError, Member, Members, is_null, read, read_optional};
use crate::{
    cluster::encode::{SCHEDULED_TIMESTAMP_ANNOTATION, push_escaped},
    state::{JobTemplate, Uid},
};

const FIELD: &str = "spec.jobTemplate";
const METADATA_FIELD: &str = "spec.jobTemplate.metadata";
const ANNOTATIONS_FIELD: &str = "spec.jobTemplate.metadata.annotations";

#[derive(Deserialize)]
struct RawTemplate<'a> {
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct RawMetadata<'a> {
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawSpec<'a> {
    #[serde(borrow, rename = "ttlSecondsAfterFinished")]
    ttl_seconds_after_finished: Option<&'a RawValue>,
}

/// Builds the body of the Jobs of one CronJob.
pub(super) fn job_template(raw: Option<&RawValue>, name: &str, uid: &Uid) -> Result<JobTemplate, FieldError> {
    let raw = raw.ok_or_else(|| FieldError::new(FIELD, "missing"))?;
    let template: RawTemplate<'_> = read(FIELD, raw)?;
    let metadata: RawMetadata<'_> = read_optional(METADATA_FIELD, template.metadata)?.unwrap_or_default();
    let mut body = BodyWithGaps::with_capacity(raw.get().len() + name.len() + 512);
    body.push(r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":""#);
    body.gap(0)?;
    body.push(r#"","creationTimestamp":""#);
    body.gap(1)?;
    body.push("\"");
    if let Some(labels) = metadata.labels {
        body.push(r#","labels":"#);
        body.push(labels.get());
    }
    body.push(r#","annotations":{""#);
    body.push(SCHEDULED_TIMESTAMP_ANNOTATION);
    body.push(r#"":""#);
    body.gap(2)?;
    body.push("\"");
    push_other_annotations(&mut body.text, metadata.annotations)?;
    body.push("}");
    push_owner_references(&mut body.text, name, uid);
    body.push("}");
    if let Some(spec) = template.spec {
        body.push(r#","spec":"#);
        body.push(spec.get());
    }
    body.push("}");
    Ok(JobTemplate {
        body: body.text.into(),
        splice_offsets: body.gaps,
        ttl_seconds_after_finished: ttl_seconds_after_finished(template.spec),
    })
}

struct BodyWithGaps {
    text: String,
    gaps: [u32; 3],
}

impl BodyWithGaps {
    fn with_capacity(capacity: usize) -> BodyWithGaps {
        BodyWithGaps {
            text: String::with_capacity(capacity),
            gaps: [0; 3],
        }
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn gap(&mut self, index: usize) -> Result<(), FieldError> {
        self.gaps[index] = u32::try_from(self.text.len()).map_err(|_| FieldError::new(FIELD, "too large"))?;
        Ok(())
    }
}

/// Appends the template's own annotations, with a leading comma each, but for ours (B-11.3).
fn push_other_annotations(body: &mut String, annotations: Option<&RawValue>) -> Result<(), FieldError> {
    let Some(annotations) = annotations.filter(|annotations| !is_null(annotations)) else {
        return Ok(());
    };
    let Members(members) = read(ANNOTATIONS_FIELD, annotations)?;
    for Member { raw_name, value } in members
        .iter()
        .filter(|member| member.name() != SCHEDULED_TIMESTAMP_ANNOTATION)
    {
        body.push(',');
        body.push_str(raw_name);
        body.push(':');
        body.push_str(value.get());
    }
    Ok(())
}

/// Appends the one owner reference (B-11.4).
fn push_owner_references(body: &mut String, name: &str, uid: &Uid) {
    body.push_str(r#","ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":""#);
    push_escaped(body, name);
    body.push_str(r#"","uid":""#);
    push_escaped(body, &uid.to_string());
    body.push_str(r#"","controller":true,"blockOwnerDeletion":true}]"#);
}

/// A value that cannot be read is left to the server to refuse.
fn ttl_seconds_after_finished(spec: Option<&RawValue>) -> Option<i64> {
    let spec: RawSpec<'_> = read("spec.jobTemplate.spec", spec?).ok()?;
    serde_json::from_str(spec.ttl_seconds_after_finished?.get()).ok()
}
