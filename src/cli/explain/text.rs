//! An explanation as text.

use std::{
    fmt::{self, Display},
    io::{self, Write},
};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    check::refusals,
    explanation::{EventLine, Explained, Explanation, StatusChange},
    reason::{Decision, Reason},
    world::Subject,
};
use crate::{
    cli::calendar::{Calendar, local_text, span_text, zone_of},
    schedule::{describe, policy::order_expiry},
    shard::{CronJobRecord, EventReason},
};

/// Number of printed activations.
const NEXT_COUNT: usize = 3;

/// A shorter `startingDeadlineSeconds` is a common worry, since the documentation of Kubernetes advises against it.
const DEADLINE_SECONDS_MIN: i64 = 10;

/// The shard estimates the number of passed slots from here on ([`count_between`]).
///
/// [`count_between`]: crate::schedule::policy::count_between
const N_COUNTED: u64 = 100;

/// Writes one block per CronJob.
pub(super) fn write(
    explained: &[Explained<'_>],
    (now, is_wide): (Timestamp, bool),
    output: &mut impl Write,
) -> io::Result<()> {
    for (position, (subject, explanation)) in explained.iter().enumerate() {
        if position > 0 {
            writeln!(output)?;
        }
        let block = Block {
            subject,
            explanation,
            now,
            is_wide,
        };
        write!(output, "{block}")?;
    }
    Ok(())
}

struct Block<'a> {
    subject: &'a Subject,
    explanation: &'a Explanation,
    now: Timestamp,
    /// Whether the rules are printed.
    is_wide: bool,
}

impl Display for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { namespace, name, .. } = self.subject;
        writeln!(f, "CronJob {namespace}/{name} at {}", whole_seconds(self.now))?;
        lines(f, "problem", &refusals(self.subject))?;
        if let Ok(record) = &self.subject.record {
            writeln!(f)?;
            self.schedule(f, record)?;
        }
        self.decision(f)?;
        self.consequences(f)?;
        lines(f, "note", &self.subject.notes)
    }
}

fn whole_seconds(instant: Timestamp) -> Timestamp {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

fn line(f: &mut fmt::Formatter<'_>, label: &str, text: impl Display) -> fmt::Result {
    writeln!(f, "{label:<13}{text}")
}

/// Formats lines of which only the first has the label.
fn lines(f: &mut fmt::Formatter<'_>, label: &str, texts: &[String]) -> fmt::Result {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    texts
        .iter()
        .zip(labels)
        .try_for_each(|(text, label)| line(f, label, text))
}

impl Block<'_> {
    fn schedule(&self, f: &mut fmt::Formatter<'_>, record: &CronJobRecord) -> fmt::Result {
        let schedule = &record.schedule;
        let text = schedule.text.escape_debug();
        // An invalid schedule has no activations, nor has one in an unknown zone.
        let (Ok(parsed), None | Some(Ok(_))) = (&schedule.parsed, &schedule.zone) else {
            return line(f, "schedule", text);
        };
        let since = record.status.last_schedule_time.unwrap_or(record.created);
        let calendar = Calendar::new(schedule, parsed, (since, self.now), NEXT_COUNT);
        line(f, "schedule", calendar.schedule_text())?;
        lines(f, "last due", &last_due_lines(record, &calendar))?;
        let reason = self.explanation.reason;
        if reason == Reason::Suspended {
            line(f, "next", "none while spec.suspend is true")?;
            line(f, "", self.resumed_text(&calendar))?;
        } else if reason == Reason::Deleting {
            line(f, "next", "none, since the CronJob is being deleted")?;
        } else {
            lines(f, "next", &calendar.next_lines())?;
        }
        let mut notes = describe::surprises(&schedule.text, parsed);
        notes.extend(deadline_text(record));
        lines(f, "note", &notes)
    }

    /// Describes the next run if `spec.suspend` became false now (B-6.6).
    fn resumed_text(&self, calendar: &Calendar<'_>) -> String {
        let Some(resumed) = &self.explanation.resumed else {
            return String::new();
        };
        let in_text = |at: &Timestamp| format!("in {}, {}", span_text(self.now, *at), calendar.local(*at));
        let next = calendar.next.first().map_or_else(|| "never".to_owned(), in_text);
        let slot = resumed.slot.map(|slot| self.slot_text(slot)).unwrap_or_default();
        match resumed.reason.meaning().decision {
            Decision::Fire => format!("if it were resumed now: at once{slot}; then {next}"),
            Decision::Skip => format!(
                "if it were resumed now: not at once, since {}; then {next}",
                resumed.message()
            ),
            Decision::Wait => format!("if it were resumed now: {next}"),
        }
    }

    fn decision(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let explanation = self.explanation;
        let meaning = explanation.reason.meaning();
        writeln!(f)?;
        let mut condition = "";
        if !explanation.missing_jobs.is_empty() {
            let missing_jobs = explanation.missing_jobs.join(", ");
            let advice = "named by status.active, in no file; add it by kubectl get cronjobs,jobs -o yaml";
            line(f, "missing", format_args!("Job {missing_jobs}, {advice}"))?;
            if explanation.is_conditional {
                condition = "unknown: skip if that Job still runs, otherwise ";
            }
        }
        let decision = meaning.decision.as_str();
        let slot = explanation.slot.map(|slot| self.slot_text(slot)).unwrap_or_default();
        let next = self.next_run_text().unwrap_or_default();
        line(f, "decision", format_args!("{condition}{decision}{slot}{next}"))?;
        line(f, "reason", format_args!("{}: {}", meaning.name, explanation.message()))?;
        if explanation.n_passed > 0 {
            let slots = match explanation.n_passed {
                1 => "1 slot".to_owned(),
                n_passed @ N_COUNTED.. => format!("about {n_passed} slots"),
                n_passed => format!("{n_passed} slots"),
            };
            line(
                f,
                "",
                format_args!("{slots} before it: passed over, only the latest can start"),
            )?;
        }
        if explanation.deletes.iter().any(|delete| delete.is_for_replace) {
            line(
                f,
                "",
                "concurrencyPolicy is Replace: the runs before it are deleted first",
            )?;
        }
        if let Some(difference) = meaning.difference {
            line(f, "difference", difference)?;
        }
        if self.is_wide {
            line(
                f,
                "rules",
                format_args!("{}; print one by explain --rule", meaning.rules),
            )?;
        }
        Ok(())
    }

    /// Returns `: next run …, in 9m 55s` if nothing is due.
    fn next_run_text(&self) -> Option<String> {
        let next = self.explanation.next_wakeup?;
        let zone = zone_of(&self.subject.record.as_ref().ok()?.schedule);
        let wait = span_text(self.now, next);
        (self.explanation.reason == Reason::NotDue).then(|| format!(": next run {}, in {wait}", local_text(next, zone)))
    }

    /// `, for the slot … (…), 5s late`.
    fn slot_text(&self, slot: Timestamp) -> String {
        let zone = self.subject.record.as_ref().map(|record| zone_of(&record.schedule));
        let local = zone.map_or_else(|_| slot.to_string(), |zone| local_text(slot, zone));
        if self.now.as_second() == slot.as_second() {
            format!(", slot {local}")
        } else {
            format!(", slot {local}, {} ago", span_text(slot, self.now))
        }
    }

    fn consequences(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let explanation = self.explanation;
        writeln!(f)?;
        if let Some(job) = &explanation.job {
            line(f, "creates", format_args!("Job {}", job.name))?;
        }
        let deletes = explanation.deletes.iter().map(|delete| {
            let why = if delete.is_for_replace {
                "replaced"
            } else {
                "over the history limit"
            };
            format!("Job {} ({why})", delete.name)
        });
        lines(f, "deletes", &deletes.collect::<Vec<_>>())?;
        let events: Vec<String> = explanation.events.iter().map(|event| self.event_text(event)).collect();
        lines(f, "events", &events)?;
        lines(f, "status", &self.status_lines())?;
        let nothing = explanation.job.is_none()
            && explanation.deletes.is_empty()
            && events.is_empty()
            && explanation.status.is_none();
        if nothing {
            line(f, "does", "nothing")?;
        }
        line(f, "next check", self.next_evaluation())
    }

    fn next_evaluation(&self) -> String {
        let reason = self.explanation.reason;
        match self.explanation.next_wakeup {
            _ if reason == Reason::CreateFailed => format!("in 100 ms, then by back-off{}", self.end_of_tries()),
            _ if reason == Reason::LookUpFailed => {
                "in 1 s, then by back-off, until the Job can be looked up".to_owned()
            }
            Some(next) if matches!(reason, Reason::Forbidden | Reason::AlreadyActive) => {
                format!("when that Job ends, at the latest at {next}")
            }
            Some(next) => next.to_string(),
            None => "when the CronJob or one of its Jobs changes".to_owned(),
        }
    }

    /// Returns the instant until which a create is retried: the next slot, or an earlier deadline (B-12.4 and its
    /// difference).
    fn end_of_tries(&self) -> String {
        let record = self.subject.record.as_ref().ok();
        let deadline_secs = record.and_then(|record| record.starting_deadline_seconds);
        let deadline = self.explanation.slot.and_then(|slot| order_expiry(slot, deadline_secs));
        match (deadline, self.explanation.next_wakeup) {
            (Some(deadline), Some(next)) if next <= deadline => format!(", until the next slot at {next}"),
            (None, Some(next)) => format!(", until the next slot at {next}"),
            (Some(deadline), _) => format!(", until the end of its deadline at {deadline}"),
            (None, None) => String::new(),
        }
    }

    fn event_text(&self, event: &EventLine) -> String {
        let (event_type, reason) = (event.reason.event_type(), event.reason.as_str());
        let rule = if self.is_wide {
            format!(" ({})", rule_of(event.reason))
        } else {
            String::new()
        };
        format!("{event_type:<8} {reason}: {}{rule}", event.message)
    }

    /// Returns the changes of the status write, one per member.
    fn status_lines(&self) -> Vec<String> {
        let Some(StatusChange { before, after }) = &self.explanation.status else {
            return Vec::new();
        };
        let members = ["active", "lastScheduleTime", "lastSuccessfulTime"].into_iter();
        let lines = members.filter_map(|member| {
            let (before, after) = (member_text(before, member), member_text(after, member));
            (before != after).then(|| format!("{member}: {before} -> {after}"))
        });
        lines.collect()
    }
}

/// Returns a time of a status, or the names of its Jobs.
fn member_text(status: &Value, member: &str) -> String {
    match &status[member] {
        Value::Array(entries) => {
            let names = entries.iter().filter_map(|entry| entry["name"].as_str());
            names.collect::<Vec<_>>().join(", ")
        }
        Value::String(time) => time.clone(),
        // The encoder leaves out an empty list and a time that is not set.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "none".to_owned(),
    }
}

/// Returns the last due slot, and the last started slot if it is different.
fn last_due_lines(record: &CronJobRecord, calendar: &Calendar<'_>) -> Vec<String> {
    let local = |instant| local_text(instant, zone_of(&record.schedule));
    match (calendar.last, record.status.last_schedule_time) {
        (Some(last), Some(started)) => vec![
            local(last),
            format!("the last one that was started: {}", local(started)),
        ],
        (Some(last), None) => vec![local(last), "none was started yet".to_owned()],
        (None, Some(started)) => vec![format!("{}, which was started", local(started))],
        (None, None) => vec![format!("none since the creation at {}", local(record.created))],
    }
}

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

/// Returns the rule of an Event, and the difference from the built-in controller.
fn rule_of(reason: EventReason) -> &'static str {
    match reason {
        EventReason::UnexpectedJob => "B-5.1; the built-in repeats it at every sync",
        EventReason::SawCompletedJob => "B-5.1",
        EventReason::MissingJob => "B-5.4",
        EventReason::UnknownTimeZone => "B-6.2; the built-in repeats it at every sync",
        EventReason::UnsupportedSchedule => "B-7.1; the built-in repeats it at every sync",
        EventReason::UnparseableSchedule => "B-6.4; the built-in repeats it at every sync",
        EventReason::UnParseableCronJobSchedule => "B-2.2",
        EventReason::InvalidSchedule => "B-6.5; the built-in repeats it at every sync",
        EventReason::TooManyMissedTimes => "B-9.4; it keeps no slot from starting",
        EventReason::MissSchedule => "B-10.1; the built-in never reports it",
        EventReason::JobAlreadyActive => "B-10.3; the built-in repeats it at every sync",
        EventReason::SuccessfulDelete | EventReason::FailedDelete => "B-4.4",
        EventReason::SuccessfulCreate => "B-12.1",
        EventReason::FailedCreate => "B-12.3, B-12.4",
        EventReason::FailedLookUp
        | EventReason::UndecodableCronJob
        | EventReason::TemplateNotKept
        | EventReason::InvalidAnnotation => "of cronwheel alone",
        EventReason::FailedStatusUpdate => "B-13.1; the built-in logs it alone",
        EventReason::ShardLabelMissing => "B-11.2; the built-in adds no label",
        EventReason::ReservedAnnotations => "B-11.3; the built-in has no annotations of its own to protect",
        EventReason::LastScheduleTimeInFuture => "B-9.1; the built-in waits in silence",
    }
}
