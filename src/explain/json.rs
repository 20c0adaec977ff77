//! An explanation as JSON, for programs. Its members are part of the command's contract.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::{
    explanation::{EventLine, Explained, Explanation},
    recorded::RecordedEvent,
    runs::{ExcludedRuns, calendar, schedule_notes, valid_schedule},
    world::Subject,
};
use crate::schedule::{CronJobSchedule, describe::describe, thaw::FrozenCronJob};

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
    #[serde(flatten)]
    changes: Changes,
}

/// The schedule that runs, and what the options of the CronJob change.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Changes {
    /// The lines of the option that replaces `spec.schedule`.
    schedules: Option<Vec<String>>,
    /// The schedule that runs in words.
    description: Option<String>,
    /// What each option changes, as a sentence.
    options: Vec<String>,
    /// By how many seconds a run starts after its slot; `None` if the uid is not known, which determines it.
    offset_seconds: Option<u32>,
    /// The starts of the next runs, if the offset is known.
    next_starts: Vec<String>,
    /// The days before the last of the next runs on which runs fall out.
    excluded: Vec<ExcludedRuns>,
    /// Sentences about the schedule, and about annotations without an effect.
    notes: Vec<String>,
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
    let next_runs = schedule
        .map(|schedule| next_runs(schedule, explanation, frozen.as_ref()))
        .unwrap_or_default();
    Answer {
        changes: changes(subject, &next_runs, now),
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
        next_runs: next_runs.iter().map(Timestamp::to_string).collect(),
        freeze_reason: frozen.and(subject.freeze_reason.as_deref()),
        frozen_until: instant(frozen.map(|frozen| frozen.until)),
    }
}

fn changes(subject: &Subject, next_runs: &[Timestamp], now: Timestamp) -> Changes {
    let Some((record, parsed)) = valid_schedule(subject) else {
        return Changes {
            notes: subject.notes.clone(),
            ..Changes::default()
        };
    };
    let schedule = &record.schedule;
    let options = schedule.options();
    let offset_seconds = match options.spread_seconds {
        Some(_) => options.offset_seconds,
        None => Some(0),
    };
    let start = |slot: &Timestamp| schedule.start_of(*slot).to_string();
    let is_running = !next_runs.is_empty();
    let calendar = is_running.then(|| calendar(subject, (record, parsed), now, NEXT_RUNS));
    let lines = parsed.lines_of_option();
    let mut notes = schedule_notes(record, parsed);
    notes.extend_from_slice(&subject.notes);
    Changes {
        schedules: lines.map(|lines| lines.into_iter().map(str::to_owned).collect()),
        description: Some(describe(parsed)),
        options: options.sentences(record.concurrency_policy),
        offset_seconds,
        next_starts: offset_seconds.map_or_else(Vec::new, |_| next_runs.iter().map(start).collect()),
        excluded: calendar.map_or_else(Vec::new, |calendar| ExcludedRuns::of(&calendar)),
        notes,
    }
}

/// Returns the next slots, none behind the gates of B-6, and in a freeze those that it does not hold back.
fn next_runs(
    schedule: &CronJobSchedule,
    explanation: &Explanation,
    frozen: Option<&FrozenCronJob<'_>>,
) -> Vec<Timestamp> {
    let after = |at: &Timestamp| schedule.next_wanted(*at);
    let first = explanation.next_wakeup.and_then(|next| match frozen {
        Some(frozen) => frozen.next_run(),
        None => Some(next),
    });
    let runs = std::iter::successors(first, after);
    runs.take(NEXT_RUNS).collect()
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
