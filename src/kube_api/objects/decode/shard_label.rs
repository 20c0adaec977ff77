//! The shard label of Jobs. Where replicas share CronJobs, each replica selects the Jobs of its own shards by this
//! label.
//!
//! The server copies the labels of the Pod template to a Job without labels. With the shard label the Job has a label,
//! so the copy is made here: the Job differs only by the one label.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    kube_api::objects::encode::{SCHEDULED_TIMESTAMP_ANNOTATION, push_escaped},
    shard::{JobTemplate, ShardCount, Uid},
};

/// Returns the template of a CronJob's Jobs with the shard label.
pub(super) fn labelled(template: &JobTemplate, cron_job: &Uid, count: ShardCount) -> JobTemplate {
    let shard = count.shard_of(cron_job);
    let mut own = String::from("\"");
    push_escaped(&mut own, &count.label_key());
    own.push_str("\":\"");
    push_escaped(&mut own, &count.label_value(shard));
    own.push('"');
    let [name_at, created_at, scheduled_at] = template.splice_offsets;
    let body = template.body.as_str().unwrap_or_default();
    let Some((labels_at, annotations_at)) = labels_span(body, created_at, scheduled_at) else {
        return template.clone();
    };
    let labels = &body[labels_at..annotations_at];
    let others = members(labels.strip_prefix(LABELS).unwrap_or_default())
        .map(str::to_owned)
        .or_else(|| pod_labels(body));
    let labels = match others {
        // The shard label is last: of two members of one name, the last one counts.
        Some(others) => format!("{LABELS}{{{others},{own}}}"),
        None => format!("{LABELS}{{{own}}}"),
    };
    let (before, after) = (&body[..labels_at], &body[annotations_at..]);
    let annotation_bytes = scheduled_at as usize - annotations_at;
    let Ok(scheduled_at) = u32::try_from(before.len() + labels.len() + annotation_bytes) else {
        return template.clone();
    };
    JobTemplate {
        body: format!("{before}{labels}{after}").into(),
        splice_offsets: [name_at, created_at, scheduled_at],
        ttl_seconds_after_finished: template.ttl_seconds_after_finished,
        had_reserved_annotations: template.had_reserved_annotations,
    }
}

const LABELS: &str = r#","labels":"#;

/// Returns the span of the labels in a body, or the place for them: after the closing quote of the creation time and
/// before the annotations.
fn labels_span(body: &str, created_at: u32, scheduled_at: u32) -> Option<(usize, usize)> {
    let labels_at = usize::try_from(created_at).ok()? + 1;
    let head = body.get(..usize::try_from(scheduled_at).ok()?)?;
    let head = head
        .strip_suffix(r#"":""#)?
        .strip_suffix(SCHEDULED_TIMESTAMP_ANNOTATION)?;
    let annotations_at = head.strip_suffix(r#","annotations":{""#)?.len();
    (labels_at <= annotations_at).then_some((labels_at, annotations_at))
}

/// Returns the text between the braces of an object; `None` for an object without members or another value.
fn members(object: &str) -> Option<&str> {
    let inside = object.strip_prefix('{')?.strip_suffix('}')?.trim();
    (!inside.is_empty()).then_some(inside)
}

#[derive(Deserialize)]
struct Job<'a> {
    #[serde(borrow)]
    spec: Option<JobSpec<'a>>,
}

#[derive(Deserialize)]
struct JobSpec<'a> {
    #[serde(borrow)]
    template: Option<PodTemplate<'a>>,
}

#[derive(Deserialize)]
struct PodTemplate<'a> {
    #[serde(borrow)]
    metadata: Option<PodMetadata<'a>>,
}

#[derive(Deserialize)]
struct PodMetadata<'a> {
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
}

/// Returns the labels of the Pod template, which the server copies to a Job without labels. The server refuses invalid
/// ones.
fn pod_labels(body: &str) -> Option<String> {
    let job: Job<'_> = serde_json::from_str(body).ok()?;
    let labels = job.spec?.template?.metadata?.labels?.get();
    members(labels).map(str::to_owned)
}
