//! An explanation as JSON, for programs. Its members are part of the command's contract.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    explanation::{EventLine, Explained, Explanation},
    recorded::RecordedEvent,
};
use crate::schedule::{CronJobSchedule, thaw::FrozenCronJob};

/// Number of next runs.
const NEXT_RUNS: usize = 3;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    name: &'a str,
    namespace: &'a str,
    /// `spec.schedule`, unless the CronJob cannot be decoded.
    schedule: Option<&'a str>,
    time_zone: Option<&'a str>,
    decision: &'static str,
    reason: &'static str,
    /// The reason and its cause as text.
    message: String,
    /// The rules of the built-in controller's behaviour that apply.
    rules: &'static str,
    /// The expected refusals of the API server.
    problems: &'a [String],
    /// Jobs of `status.active` that are not in the file.
    missing_jobs: &'a [String],
    next_runs: Vec<String>,
    slot: Option<String>,
    /// The body that would be sent, without the label and the stamp of a sharing replica. The spec of a JSON template
    /// is copied as written.
    job: Option<&'a RawValue>,
    deletes: Vec<&'a str>,
    status: Option<&'a Value>,
    events: Vec<Event<'a>>,
    /// The Events of the cluster, the latest first.
    recorded_events: Vec<Recorded<'a>>,
    next_wakeup: Option<String>,
    /// The end of the freeze that holds the CronJob back.
    frozen_until: Option<String>,
    /// The reason of that freeze.
    freeze_reason: Option<&'a str>,
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'static str,
    reason: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recorded<'a> {
    r#type: &'a str,
    reason: &'a str,
    message: &'a str,
    count: i64,
    last_time: String,
}

/// Formats one explanation as an object, several as a list.
pub(super) fn document(
    explained: &[Explained],
    recorded: &[RecordedEvent],
    now: Timestamp,
) -> serde_json::Result<String> {
    let answers: Vec<Answer<'_>> = explained
        .iter()
        .map(|explained| answer(explained, recorded, now))
        .collect();
    match answers.as_slice() {
        [one] => serde_json::to_string_pretty(one),
        several => serde_json::to_string_pretty(several),
    }
}

fn answer<'a>((subject, explanation): &'a Explained, recorded: &'a [RecordedEvent], now: Timestamp) -> Answer<'a> {
    let instant = |instant: Option<Timestamp>| instant.map(|instant| instant.to_string());
    let schedule = subject.record.as_ref().ok().map(|record| &record.schedule);
    let meaning = explanation.reason.meaning();
    let frozen = subject.frozen(now);
    Answer {
        name: &subject.name,
        namespace: &subject.namespace,
        schedule: schedule.map(|schedule| &*schedule.text),
        time_zone: schedule.and_then(|schedule| schedule.time_zone.as_deref()),
        message: explanation.message(),
        rules: meaning.rules,
        problems: &subject.refusals,
        missing_jobs: &explanation.missing_jobs,
        decision: meaning.decision.as_str(),
        reason: meaning.name,
        slot: instant(explanation.slot),
        job: explanation.job.as_ref().map(|job| &*job.body),
        deletes: explanation.deletes.iter().map(|delete| &*delete.name).collect(),
        status: explanation.status.as_ref().map(|status| &status.after),
        events: explanation.events.iter().map(event).collect(),
        recorded_events: recorded.iter().map(recorded_event).collect(),
        next_wakeup: instant(explanation.next_wakeup),
        next_runs: schedule
            .map(|schedule| next_runs(schedule, explanation, frozen.as_ref()))
            .unwrap_or_default(),
        freeze_reason: frozen.and(subject.freeze_reason.as_deref()),
        frozen_until: instant(frozen.map(|frozen| frozen.until)),
    }
}

/// Returns the next slots, none behind the gates of B-6, and in a freeze those that it does not hold back.
fn next_runs(schedule: &CronJobSchedule, explanation: &Explanation, frozen: Option<&FrozenCronJob<'_>>) -> Vec<String> {
    let after = |at: &Timestamp| schedule.next_wanted(*at);
    let first = explanation.next_wakeup.and_then(|next| match frozen {
        Some(frozen) => frozen.next_run(),
        None => Some(next),
    });
    let runs = std::iter::successors(first, after);
    runs.take(NEXT_RUNS).map(|at| at.to_string()).collect()
}

fn recorded_event(event: &RecordedEvent) -> Recorded<'_> {
    Recorded {
        r#type: &event.event_type,
        reason: &event.reason,
        message: &event.message,
        count: event.count,
        last_time: event.last.to_string(),
    }
}

fn event(event: &EventLine) -> Event<'_> {
    Event {
        r#type: event.reason.event_type(),
        reason: event.reason.as_str(),
        message: &event.message,
    }
}
