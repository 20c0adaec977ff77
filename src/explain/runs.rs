//! The next runs of a CronJob and what is to be said about its schedule, for the text and for JSON.

use jiff::Timestamp;
use serde::Serialize;

use super::{advice::zone_note, calendar::Calendar, world::Subject};
use crate::{
    schedule::{Schedule, describe, options::ExcludedDays},
    shard::CronJobRecord,
};

/// Days on which runs fall out, by the option `not-on`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExcludedRuns {
    first_date: String,
    last_date: String,
    note: String,
    n_activations: u64,
}

impl ExcludedRuns {
    /// Those before the last of the next runs.
    pub fn of(calendar: &Calendar<'_>) -> Vec<ExcludedRuns> {
        let excluded = |(days, n_activations): (&ExcludedDays, u64)| ExcludedRuns {
            first_date: days.first_date().to_string(),
            last_date: days.last_date().to_string(),
            note: days.note.to_string(),
            n_activations,
        };
        calendar.excluded().into_iter().map(excluded).collect()
    }
}

/// The schedule that a CronJob runs by. `None` if it cannot be decoded, or its schedule or its zone is invalid.
pub(super) fn valid_schedule(subject: &Subject) -> Option<(&CronJobRecord, &Schedule)> {
    let record = subject.record.as_ref().ok()?;
    let has_zone = !matches!(record.schedule.zone, Some(Err(_)));
    Some((record, record.schedule.parsed.as_ref().ok().filter(|_| has_zone)?))
}

/// The first activations after `now`, in the freeze of the namespace.
pub(super) fn calendar<'a>(
    subject: &'a Subject,
    (record, parsed): (&'a CronJobRecord, &'a Schedule),
    now: Timestamp,
    count: usize,
) -> Calendar<'a> {
    let since = record.status.last_schedule_time.unwrap_or(record.created);
    let calendar = Calendar::new(&record.schedule, parsed, (since, now), count);
    calendar.in_freeze(subject.frozen(now))
}

/// Sentences about a schedule that may surprise.
pub(super) fn schedule_notes(record: &CronJobRecord, parsed: &Schedule) -> Vec<String> {
    let mut notes = describe::surprises(&record.schedule.text, parsed);
    notes.extend(zone_note(record.schedule.effective_zone().name()));
    notes.extend(deadline_text(record));
    notes
}

/// A shorter `startingDeadlineSeconds` is a common worry, since the documentation of Kubernetes advises against it.
const DEADLINE_SECONDS_MIN: i64 = 10;

/// Describes the effect of a short deadline in cronwheel and in the built-in controller (B-9.7).
fn deadline_text(record: &CronJobRecord) -> Option<String> {
    let deadline = record
        .starting_deadline_seconds
        .filter(|seconds| *seconds < DEADLINE_SECONDS_MIN)?;
    let built_in = if deadline == 0 {
        "starts nothing"
    } else {
        "also loses runs when it is that late"
    };
    Some(format!(
        "startingDeadlineSeconds is {deadline}: enough for cronwheel, which misses only a run that it finds more than \
         {deadline} s late, as after an outage; the built-in controller {built_in}"
    ))
}
