//! The shard label of Jobs. Where replicas share CronJobs, each replica selects the Jobs of its own shards by this
//! label.
//!
//! The server copies the labels of the Pod template to a Job without labels. With the shard label the Job has a label,
//! so the copy is made here: the Job differs only by the one label.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    kube_api::objects::encode::push_string,
    shard::{ShardCount, Uid},
};

/// Returns the labels of a CronJob's Jobs with the shard label. `labels` are those of the template, empty for none, and
/// `spec` is the Job's.
pub(super) fn with_shard_label(labels: &str, spec: &str, cron_job: &Uid, count: ShardCount) -> String {
    let shard = count.shard_of(cron_job);
    let others = members(labels).or_else(|| pod_labels(spec));
    let mut text = String::from("{");
    if let Some(others) = others {
        text.push_str(others);
        text.push(',');
    }
    // The shard label is last: of two members of one name, the last one counts.
    push_string(&mut text, &count.label_key());
    text.push(':');
    push_string(&mut text, &count.label_value(shard));
    text.push('}');
    text
}

/// Returns the text between the braces of an object; `None` for an object without members or another value.
fn members(object: &str) -> Option<&str> {
    let inside = object.strip_prefix('{')?.strip_suffix('}')?.trim();
    (!inside.is_empty()).then_some(inside)
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
fn pod_labels(spec: &str) -> Option<&str> {
    let spec: JobSpec<'_> = serde_json::from_str(spec).ok()?;
    members(spec.template?.metadata?.labels?.get())
}
