//! The Events that a cluster has of a CronJob, and what they say about a slot that has not started.
//!
//! A running controller knows more than the objects: it saw the schedule change, or its create was refused. `explain` has
//! only the Events, and reports that where they do not explain a slot.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    calendar::{local_text, span_text},
    error::ExplainError,
    explanation::Explanation,
    reason::Reason,
    trial::{self, AssumedCreate},
    world::{Subject, World},
};
use crate::{
    kube_api::objects::resumption::{Resumption, SpecEntry},
    schedule::options::CatchUp,
};

/// The controller creates a Job within seconds, and a create that waits for a webhook lives for 34 seconds.
const LATE: SignedDuration = SignedDuration::from_secs(60);

/// The number of Events that are printed.
pub(super) const PRINTED_MAX: usize = 5;

/// An Event of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedEvent {
    pub(super) event_type: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) count: i64,
    /// The last time that it happened.
    pub(super) last: Timestamp,
}

impl RecordedEvent {
    /// Reads an Event of either API. `None` if it has no time.
    fn read(event: &Value) -> Option<RecordedEvent> {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let times = [
            "/series/lastObservedTime",
            "/lastTimestamp",
            "/eventTime",
            "/firstTimestamp",
            "/metadata/creationTimestamp",
        ];
        let counts = ["/series/count", "/count"];
        Some(RecordedEvent {
            event_type: text("/type").to_owned(),
            reason: text("/reason").to_owned(),
            message: text("/message").to_owned(),
            count: counts
                .iter()
                .find_map(|pointer| event.pointer(pointer)?.as_i64())
                .unwrap_or(1),
            last: times.iter().find_map(|pointer| text(pointer).parse().ok())?,
        })
    }

    /// Returns the Events of the object with this uid, the latest first.
    pub(super) fn of_object(events: &[Value], uid: &str) -> Vec<RecordedEvent> {
        let own = events
            .iter()
            .filter(|event| event["involvedObject"]["uid"].as_str() == Some(uid));
        let mut own: Vec<RecordedEvent> = own.filter_map(RecordedEvent::read).collect();
        own.sort_by_key(|event| std::cmp::Reverse(event.last));
        own
    }

    /// `Warning  FailedCreate, 5 times, last 2m ago: …`.
    pub(super) fn text(&self, now: Timestamp) -> String {
        let RecordedEvent {
            event_type,
            reason,
            message,
            count,
            last,
        } = self;
        let times = if *count > 1 {
            format!(", {count} times, last")
        } else {
            ",".to_owned()
        };
        format!(
            "{event_type:<8} {reason}{times} {} ago: {message}",
            span_text(*last, now)
        )
    }
}

/// What the `managedFields` of a CronJob say about changes of its spec.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpecChanges {
    /// The last time at which a client changed fields of the spec, the schedule among them.
    last: Option<Timestamp>,
    /// The last resumption. `None` while it is suspended.
    pub(super) resumption: Option<Resumption>,
}

impl SpecChanges {
    pub(super) fn of(cron_job: &Value) -> SpecChanges {
        SpecChanges {
            last: last_change(cron_job),
            resumption: resumption(cron_job),
        }
    }
}

fn resumption(cron_job: &Value) -> Option<Resumption> {
    let created = cron_job
        .pointer("/metadata/creationTimestamp")?
        .as_str()?
        .parse()
        .ok()?;
    let entries = cron_job.pointer("/metadata/managedFields")?.as_array()?;
    let entries: Vec<SpecEntry> = entries.iter().filter_map(spec_entry).collect();
    let is_suspended = cron_job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    Resumption::of(&entries, created).filter(|_| !is_suspended)
}

fn spec_entry(entry: &Value) -> Option<SpecEntry> {
    let fields = entry["fieldsV1"].as_object()?;
    let spec = fields.get("f:spec")?.as_object()?;
    let is_of_subresource = entry["subresource"].as_str().is_some_and(|name| !name.is_empty());
    let spec_entry = SpecEntry {
        time: entry["time"].as_str()?.parse().ok()?,
        is_update: entry["operation"] == "Update",
        has_suspend: spec.contains_key("f:suspend"),
        is_alone: fields.len() == 1 && spec.len() == 1,
    };
    (!is_of_subresource).then_some(spec_entry)
}

fn last_change(cron_job: &Value) -> Option<Timestamp> {
    let entries = cron_job.pointer("/metadata/managedFields")?.as_array()?;
    let has_schedule = |entry: &&Value| entry.pointer("/fieldsV1/f:spec/f:schedule").is_some();
    let times = entries
        .iter()
        .filter(has_schedule)
        .filter_map(|entry| entry["time"].as_str()?.parse().ok());
    times.max()
}

/// Corrects the prediction of a start by what the cluster shows: a suspension that may have held the slot back, a refused
/// create, or a slot that is late.
pub(super) fn compare(
    explanation: Explanation,
    subject: &Subject,
    world: &World,
    now: Timestamp,
) -> Result<Explanation, ExplainError> {
    let (Reason::Created, Some(slot)) = (explanation.reason, explanation.slot) else {
        return Ok(explanation);
    };
    if let Some(changed) = perhaps_resumed(subject, slot) {
        let changed = format!("the CronJob was changed at {changed}, which may have ended a suspension");
        return Ok(explanation.without_start(Reason::PerhapsResumed, changed));
    }
    let refused = world
        .events
        .iter()
        .flatten()
        .find(|event| event.reason == "FailedCreate" && event.last >= slot);
    if let Some(event) = refused {
        let failed = trial::explain(subject, world, AssumedCreate::Error, now)?;
        return Ok(Explanation {
            cause: Some(format!("{} ago: {}", span_text(event.last, now), event.message)),
            // The Event is there already.
            events: Vec::new(),
            ..failed
        });
    }
    if now.duration_since(slot) <= LATE {
        return Ok(explanation);
    }
    Ok(explanation.without_start(Reason::NotStarted, cause(subject, world, slot)))
}

/// The time of a change after which `on-resume` may not start a slot: it may have ended a suspension.
fn perhaps_resumed(subject: &Subject, slot: Timestamp) -> Option<String> {
    let Some(Resumption::Perhaps(changed)) = subject.changes.resumption else {
        return None;
    };
    let schedule = &subject.record.as_ref().ok()?.schedule;
    let is_possible = is_skip(subject) && schedule.start_of(slot) <= changed;
    is_possible.then(|| local_text(changed, schedule.effective_zone()))
}

/// Whether no slot starts that a suspension or a freeze held back.
fn is_skip(subject: &Subject) -> bool {
    let record = subject.record.as_ref();
    record.is_ok_and(|record| record.schedule.options().on_resume() == CatchUp::Skip)
}

fn cause(subject: &Subject, world: &World, slot: Timestamp) -> String {
    let zone = subject
        .record
        .as_ref()
        .ok()
        .map(|record| record.schedule.effective_zone());
    match (subject.changes.last, zone) {
        (Some(changed), Some(zone)) if changed >= slot => format!(
            "the CronJob was changed at {}, and no slot starts that is earlier than a change of the schedule",
            local_text(changed, zone)
        ),
        _ if is_skip(subject) => {
            "the controller may wait, or may have seen the end of a freeze after the slot, for which nothing starts"
                .to_owned()
        }
        _ if world.events.as_ref().is_some_and(Vec::is_empty) => {
            "no Event is there: check that a controller runs".to_owned()
        }
        _ => "the controller may wait, or may have seen a change of the schedule after the slot".to_owned(),
    }
}
