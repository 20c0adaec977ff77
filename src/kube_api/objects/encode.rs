//! Orders to request bodies. Pure: combines the parts that decoding prepared. The large and frequent bodies are written as
//! text, without a value of each member.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::Timestamp;
use serde_json::{Value, json, value::RawValue};

use crate::{
    coordination::Stamp,
    schedule::options::{OptionName, RUN_DONE_ANNOTATION},
    shard::{ActiveJob, CronJobEvent, CronJobStatus, JobCreate, JobDelete, StatusWrite},
};

/// The annotation with a Job's slot in the CronJob's zone (B-11.3).
pub const SCHEDULED_TIMESTAMP_ANNOTATION: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The component that Events come from: that of the built-in controller, by which users filter Events (B-14).
pub const EVENT_COMPONENT: &str = "cronjob-controller";

/// The prefix of every annotation of cronwheel on Jobs. Annotations of templates under it are dropped, so that none
/// replaces [`CREATE_BEFORE_ANNOTATION`].
pub const RESERVED_PREFIX: &str = "cronwheel.dev/";

/// The annotation with the shard, the term and the incarnation of the replica that created a Job, or [`BACKFILL`].
pub const CREATED_UNDER_ANNOTATION: &str = "cronwheel.dev/created-under";

/// The value of [`CREATED_UNDER_ANNOTATION`] of Jobs that `cronwheel backfill` created, so that they are no evidence of
/// another controller.
pub const BACKFILL: &str = "backfill";

/// The annotation with the installation that created a Job: the namespace of its Leases, and its name.
pub const CREATED_BY_ANNOTATION: &str = "cronwheel.dev/created-by";

/// The annotation with the instant until which a Job may be created, by the API server's clock.
pub const CREATE_BEFORE_ANNOTATION: &str = "cronwheel.dev/create-before";

/// Encodes the Job of an order (B-11), with the stamp and the installation of its creator. `explain` has neither.
/// Returns `None` if the template is not in memory.
pub fn job_body(order: &JobCreate, stamp: Option<(Stamp, &str)>) -> Option<Vec<u8>> {
    let n_bytes = stamp.map_or(0, |(_, installation)| STAMP_MAX_BYTES + installation.len());
    spliced(order, n_bytes, |text| {
        if let Some((stamp, installation)) = stamp {
            push_stamp(text, stamp);
            push_member(text, CREATED_BY_ANNOTATION, installation);
        }
    })
}

/// Encodes the Job of a slot that `cronwheel backfill` starts, like [`job_body`].
pub fn backfilled_job_body(order: &JobCreate) -> Option<Vec<u8>> {
    let n_bytes = CREATED_UNDER_ANNOTATION.len() + BACKFILL.len();
    spliced(order, n_bytes, |text| {
        push_member(text, CREATED_UNDER_ANNOTATION, BACKFILL);
    })
}

/// Combines the template with the values of one Job, and with annotations of about `n_bytes` that `push_annotations`
/// appends.
fn spliced(order: &JobCreate, n_bytes: usize, push_annotations: impl FnOnce(&mut String)) -> Option<Vec<u8>> {
    let template = &order.template;
    let [name_at, created_at, scheduled_at] = template.splice_offsets.map(|offset| offset as usize);
    let (body, name, scheduled) = (template.body.as_str()?, &order.name, &order.scheduled_timestamp);
    let mut text = String::with_capacity(body.len() + name.len() + scheduled.len() + TIME_AND_QUOTES_BYTES + n_bytes);
    text.push_str(&body[..name_at]);
    push_string(&mut text, name);
    text.push_str(&body[name_at..created_at]);
    push_time(&mut text, order.slot);
    let before = &body[created_at..scheduled_at];
    match &order.run_token {
        None => {
            text.push_str(before);
            push_string(&mut text, scheduled);
        }
        // The Job of a run that is asked for has its token in place of a slot.
        Some(token) => {
            let name = before.len().saturating_sub(SCHEDULED_TIMESTAMP_ANNOTATION.len() + 3);
            text.push_str(&before[..name]);
            push_string(&mut text, OptionName::RunNow.annotation());
            text.push(':');
            push_string(&mut text, token);
        }
    }
    push_annotations(&mut text);
    let mut rest = scheduled_at;
    if let Some(pod_at) = template.pod_splice_offset {
        rest = pod_at as usize;
        text.push_str(&body[scheduled_at..rest]);
        let of_pod = if order.run_token.is_none() { scheduled } else { "" };
        push_string(&mut text, of_pod);
    }
    text.push_str(&body[rest..]);
    Some(text.into_bytes())
}

/// Appends the stamp annotations.
fn push_stamp(text: &mut String, stamp: Stamp) {
    push_member(text, CREATED_UNDER_ANNOTATION, &stamp.to_string());
    push_time_member(text, CREATE_BEFORE_ANNOTATION, stamp.create_before);
}

/// Maximum size of the three annotations without the name of the installation.
const STAMP_MAX_BYTES: usize = 192;

/// Size of an encoded time, and of the quotation marks of the three values in the body of a Job.
const TIME_AND_QUOTES_BYTES: usize = 26;

/// Encodes the body of `PUT …/cronjobs/<name>/status` (B-13, B-16.4): the status, and the metadata that the server
/// takes from the request. It has no spec, which the server takes from its storage, and no managed fields, which the
/// server then keeps. Returns `None` if the metadata is not in memory.
pub fn status_body(write: &StatusWrite) -> Option<Vec<u8>> {
    let members = write.retained_metadata.as_str()?;
    let mut text = String::with_capacity(512 + members.len() + 192 * write.status.active.len());
    text.push_str(r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"#);
    push_string(&mut text, &write.cron_job.name);
    push_member(&mut text, "namespace", &write.cron_job.namespace);
    push_member(&mut text, "uid", &write.cron_job.uid.to_string());
    push_member(&mut text, "resourceVersion", &write.resource_version.to_string());
    match write.status.runs_done() {
        None => text.push_str(members),
        Some(done) => push_members_with_runs(&mut text, members, done),
    }
    text.push_str(r#"},"status":"#);
    push_status(&mut text, &write.status);
    text.push('}');
    Some(text.into_bytes())
}

/// Appends members of the metadata with the annotation that the runs of these tokens are answered.
fn push_members_with_runs(text: &mut String, members: &str, done: &str) {
    let object = format!("{{{}}}", members.trim_start_matches(','));
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(&object).unwrap_or_default();
    let annotations = members.get("annotations").map_or("{}", |annotations| annotations.get());
    let mut annotations: BTreeMap<String, Value> = serde_json::from_str(annotations).unwrap_or_default();
    annotations.insert(RUN_DONE_ANNOTATION.to_owned(), Value::from(done));
    for (name, value) in &members {
        if name != "annotations" {
            push_raw_member(text, name, value.get());
        }
    }
    push_raw_member(text, "annotations", &json!(annotations).to_string());
}

/// Encodes a status like [`status_body`].
pub fn status_json(status: &CronJobStatus) -> Vec<u8> {
    let mut text = String::new();
    push_status(&mut text, status);
    text.into_bytes()
}

fn push_status(text: &mut String, status: &CronJobStatus) {
    text.push('{');
    let start = text.len();
    if !status.active.is_empty() {
        text.push_str(r#","active":["#);
        for (index, job) in status.active.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            push_active_job(text, job);
        }
        text.push(']');
    }
    push_time_member(text, "lastScheduleTime", status.last_schedule_time);
    push_time_member(text, "lastSuccessfulTime", status.last_successful_time);
    text.push_str(status.unknown_members.as_deref().unwrap_or_default());
    // Each member has a leading comma; the first one must have none.
    if text.len() > start {
        text.remove(start);
    }
    text.push('}');
}

/// An entry of `status.active` (B-12.5).
fn push_active_job(text: &mut String, job: &ActiveJob) {
    text.push_str(r#"{"kind":"Job""#);
    if !job.namespace.is_empty() {
        push_member(text, "namespace", &job.namespace);
    }
    push_member(text, "name", &job.name);
    push_member(text, "uid", &job.uid.to_string());
    text.push_str(r#","apiVersion":"batch/v1""#);
    if !job.resource_version.is_empty() {
        push_member(text, "resourceVersion", &job.resource_version);
    }
    text.push('}');
}

/// Encodes the options of a delete: in the background (B-4.4), with the uid of the Job as precondition.
pub fn delete_body(delete: &JobDelete) -> Vec<u8> {
    to_bytes(&json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": delete.uid.to_string()},
    }))
}

/// The occurrences of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTimes {
    /// The first time.
    pub first: Timestamp,
    /// The latest time.
    pub last: Timestamp,
    /// Number of occurrences.
    pub count: u32,
}

/// Encodes a new core/v1 Event (B-14). `message` may differ from the event's own if similar ones are merged.
pub fn event_body(event: &CronJobEvent, name: &str, message: &str, times: EventTimes) -> Vec<u8> {
    let cron_job = &event.cron_job;
    to_bytes(&json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": cron_job.namespace},
        "involvedObject": {
            "kind": "CronJob",
            "namespace": cron_job.namespace,
            "name": cron_job.name,
            "uid": cron_job.uid.to_string(),
            "apiVersion": "batch/v1",
            "resourceVersion": event.resource_version.to_string(),
        },
        "reason": event.reason.as_str(),
        "message": message,
        "source": {"component": EVENT_COMPONENT},
        "firstTimestamp": whole_seconds(times.first).to_string(),
        "lastTimestamp": whole_seconds(times.last).to_string(),
        "count": times.count,
        "type": event.reason.event_type(),
        "reportingComponent": EVENT_COMPONENT,
        "reportingInstance": "",
    }))
}

/// Encodes a merge patch of an Event that occurred again (B-14.1).
pub fn event_patch(message: &str, times: EventTimes) -> Vec<u8> {
    to_bytes(&json!({
        "message": message,
        "lastTimestamp": whole_seconds(times.last).to_string(),
        "count": times.count,
    }))
}

/// Encodes a whole value.
pub(in crate::kube_api) fn to_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Appends `,"<name>":<value>` with the value unchanged.
pub(super) fn push_raw_member(text: &mut String, name: &str, value: &str) {
    push_name(text, name);
    text.push_str(value);
}

/// Appends `,"<name>":"<value>"`.
fn push_member(text: &mut String, name: &str, value: &str) {
    push_name(text, name);
    push_string(text, value);
}

/// Appends `,"<name>":"<time>"` if there is a time.
fn push_time_member(text: &mut String, name: &str, time: Option<Timestamp>) {
    if let Some(time) = time {
        push_name(text, name);
        push_time(text, time);
    }
}

fn push_name(text: &mut String, name: &str) {
    text.push(',');
    push_string(text, name);
    text.push(':');
}

/// Appends a JSON string.
pub(super) fn push_string(text: &mut String, value: &str) {
    push_formatted(text, format_args!("{}", Value::from(value)));
}

/// Appends a time in the form of Kubernetes: RFC 3339, UTC, whole seconds (B-13.3).
fn push_time(text: &mut String, time: Timestamp) {
    push_formatted(text, format_args!("\"{}\"", whole_seconds(time)));
}

/// Drops the fraction of a second.
fn whole_seconds(time: Timestamp) -> Timestamp {
    // The whole seconds of an instant in range are in range.
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn push_formatted(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string does not fail");
}
