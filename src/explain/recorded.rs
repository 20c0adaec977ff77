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

/// Returns the last time at which a client changed fields of the spec, the schedule among them.
pub(super) fn last_change(cron_job: &Value) -> Option<Timestamp> {
    let entries = cron_job.pointer("/metadata/managedFields")?.as_array()?;
    let has_schedule = |entry: &&Value| entry.pointer("/fieldsV1/f:spec/f:schedule").is_some();
    let times = entries
        .iter()
        .filter(has_schedule)
        .filter_map(|entry| entry["time"].as_str()?.parse().ok());
    times.max()
}

/// Corrects the prediction of a start by what the cluster shows: a refused create, or a slot that is late.
pub(super) fn compare(
    explanation: Explanation,
    subject: &Subject,
    world: &World,
    now: Timestamp,
) -> Result<Explanation, ExplainError> {
    let (Reason::Created, Some(slot)) = (explanation.reason, explanation.slot) else {
        return Ok(explanation);
    };
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
    Ok(Explanation {
        reason: Reason::NotStarted,
        cause: Some(cause(subject, world, slot)),
        job: None,
        deletes: Vec::new(),
        status: None,
        events: Vec::new(),
        ..explanation
    })
}

fn cause(subject: &Subject, world: &World, slot: Timestamp) -> String {
    let zone = subject
        .record
        .as_ref()
        .ok()
        .map(|record| record.schedule.effective_zone());
    match (subject.changed, zone) {
        (Some(changed), Some(zone)) if changed >= slot => format!(
            "the CronJob was changed at {}, and no slot starts that is earlier than a change of the schedule",
            local_text(changed, zone)
        ),
        _ if world.events.as_ref().is_some_and(Vec::is_empty) => {
            "no Event is there: check that a controller runs".to_owned()
        }
        _ => "the controller may wait, or may have seen a change of the schedule after the slot".to_owned(),
    }
}
