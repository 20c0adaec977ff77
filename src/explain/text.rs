//! An explanation as text.

mod catch_up;
mod event_rules;
mod frozen;
mod resumed;
mod run_now;
mod tries;

use std::fmt::{self, Display};

use jiff::Timestamp;
use serde_json::Value;

use self::{
    catch_up::{Several, passed_text},
    event_rules::rule_of,
    run_now::run_lines,
    tries::end_of_tries,
};
use super::{
    calendar::{Calendar, local_text, span_text},
    check::refusals,
    explanation::{EventLine, Explained, Explanation, StatusChange},
    reason::Reason,
    recorded::{PRINTED_MAX, RecordedEvent},
    runs::{calendar, schedule_notes, valid_schedule},
    world::Subject,
};
use crate::shard::{CronJobRecord, EventReason};

/// Number of printed activations.
const NEXT_COUNT: usize = 3;

/// One block per CronJob.
pub(super) struct Blocks<'a> {
    pub(super) explained: &'a [Explained],
    /// The Events of the cluster, the latest first; `None` if they were not read.
    pub(super) recorded: Option<&'a [RecordedEvent]>,
    pub(super) now: Timestamp,
    /// Whether the rules are printed.
    pub(super) is_wide: bool,
}

impl Display for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (subject, explanation)) in self.explained.iter().enumerate() {
            if position > 0 {
                writeln!(f)?;
            }
            let block = Block {
                subject,
                explanation,
                recorded: self.recorded,
                now: self.now,
                is_wide: self.is_wide,
            };
            write!(f, "{block}")?;
        }
        Ok(())
    }
}

struct Block<'a> {
    subject: &'a Subject,
    explanation: &'a Explanation,
    recorded: Option<&'a [RecordedEvent]>,
    now: Timestamp,
    is_wide: bool,
}

impl Display for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} at {}", self.subject.title, whole_seconds(self.now))?;
        lines(f, "problem", &self.problems())?;
        if let Ok(record) = &self.subject.record {
            writeln!(f)?;
            self.schedule(f, record)?;
        }
        self.decision(f)?;
        self.consequences(f)?;
        self.recorded(f)?;
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
    /// The refusals that the reason does not repeat.
    fn problems(&self) -> Vec<String> {
        let fields = [
            (Reason::UnparseableSchedule, "spec.schedule: Invalid"),
            (Reason::UnknownTimeZone, "spec.timeZone: Invalid"),
            (
                Reason::Undecodable,
                self.explanation.cause.as_deref().unwrap_or_default(),
            ),
        ];
        let field = fields
            .into_iter()
            .find(|(reason, _)| *reason == self.explanation.reason);
        let is_other = |refusal: &&String| field.is_none_or(|(_, field)| !refusal.starts_with(field));
        refusals(self.subject.refusals.iter().filter(is_other))
    }

    fn schedule(&self, f: &mut fmt::Formatter<'_>, record: &CronJobRecord) -> fmt::Result {
        let schedule = &record.schedule;
        // An invalid schedule has no activations, nor has one in an unknown zone.
        let Some((record, parsed)) = valid_schedule(self.subject) else {
            return line(f, "schedule", schedule.text.escape_debug());
        };
        let calendar = calendar(self.subject, (record, parsed), self.now, NEXT_COUNT);
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
        lines(f, "note", &schedule_notes(record, parsed))?;
        lines(f, "option", &schedule.options().sentences(record.concurrency_policy))?;
        let refuses_run = |event: &EventLine| event.reason == EventReason::RunNowRefused;
        lines(
            f,
            "",
            &run_lines(record, self.explanation.events.iter().any(refuses_run)),
        )
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
        let late = self.late_text().unwrap_or_default();
        line(f, "decision", format_args!("{condition}{decision}{late}{slot}{next}"))?;
        line(f, "reason", format_args!("{}: {}", meaning.name, explanation.message()))?;
        if explanation.n_passed > 0 {
            line(f, "", passed_text(explanation.n_passed, self.several().as_ref()))?;
        }
        if explanation.deletes.iter().any(|delete| delete.is_for_replace) {
            line(
                f,
                "",
                "concurrencyPolicy is Replace: the runs before it are deleted first",
            )?;
        }
        if let Some(difference) = self.difference() {
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

    /// Several due slots, if more than the latest can start.
    fn several(&self) -> Option<Several> {
        Several::of(self.subject.record.as_ref().ok()?, self.explanation.slot?, self.now)
    }

    /// Returns `: due 2h ago and not started: see the Events below` for a slot of a cluster without a Job.
    fn late_text(&self) -> Option<String> {
        let slot = self
            .explanation
            .slot
            .filter(|_| self.explanation.reason == Reason::NotStarted)?;
        let span = span_text(slot, self.now);
        let advice = self.recorded.map_or("", |_| ": see the Events below");
        Some(format!(": due {span} ago and not started{advice}"))
    }

    /// Returns `: next run …, in 9m 55s` if nothing is due, with the slot if the run starts later.
    fn next_run_text(&self) -> Option<String> {
        let next = self
            .explanation
            .next_wakeup
            .filter(|_| self.explanation.reason == Reason::NotDue)?;
        let schedule = &self.subject.record.as_ref().ok()?.schedule;
        let (start, zone) = (schedule.start_of(next), schedule.effective_zone());
        let slot = if start == next {
            String::new()
        } else {
            format!(", for the slot {}", local_text(next, zone))
        };
        let wait = span_text(self.now, start);
        Some(format!(": next run {}, in {wait}{slot}", local_text(start, zone)))
    }

    /// The start of the next slot, at which the controller decides.
    fn next_start(&self) -> Option<Timestamp> {
        let next = self.explanation.next_wakeup?;
        let record = self.subject.record.as_ref();
        Some(record.map_or(next, |record| record.schedule.start_of(next)))
    }

    /// `, for the slot … (…), 5s late`.
    fn slot_text(&self, slot: Timestamp) -> String {
        let zone = self
            .subject
            .record
            .as_ref()
            .map(|record| record.schedule.effective_zone());
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
        let events = explanation.events.iter().filter(|event| !self.is_noted(&event.message));
        let events: Vec<String> = events.map(|event| self.event_text(event)).collect();
        lines(f, "events", &events)?;
        lines(f, "status", &self.status_lines())?;
        let nothing = explanation.job.is_none()
            && explanation.deletes.is_empty()
            && explanation.events.is_empty()
            && explanation.status.is_none();
        if nothing && explanation.reason != Reason::PerhapsResumed {
            line(f, "does", "nothing")?;
        }
        line(f, "next check", self.next_evaluation())
    }

    /// The Events of the cluster.
    fn recorded(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recorded = self.recorded.unwrap_or_default();
        let events = recorded.iter().filter(|event| !self.is_noted(&event.message));
        let mut texts: Vec<String> = events.take(PRINTED_MAX).map(|event| event.text(self.now)).collect();
        if recorded.is_empty() && self.explanation.reason == Reason::NotStarted {
            texts.push(match self.recorded {
                Some(_) => "no Events".to_owned(),
                None => self.unread_text(),
            });
        }
        lines(f, "recorded", &texts)
    }

    /// Whether a note says what an Event says: why an option cannot be used.
    fn is_noted(&self, message: &str) -> bool {
        self.subject.notes.iter().any(|note| note == message)
    }

    /// Says how to see the Events that were not read.
    fn unread_text(&self) -> String {
        let Subject { namespace, name, .. } = self.subject;
        format!("Events were not read; see them by kubectl events --for cronjob/{name} -n {namespace}")
    }

    fn next_evaluation(&self) -> String {
        let reason = self.explanation.reason;
        let several = self.several();
        if matches!(reason, Reason::Created | Reason::Adopted)
            && let Some(text) = several.as_ref().and_then(Several::next_text)
        {
            return text;
        }
        match self.next_start() {
            next if reason == Reason::CreateFailed => {
                let record = self.subject.record.as_ref().ok();
                // One of several slots is retried beyond the next one.
                let next = next.filter(|_| several.is_none());
                let end = end_of_tries(record, (self.explanation.slot, next), self.now);
                format!("in 100 ms, then by back-off{end}")
            }
            _ if reason == Reason::NotStarted => "when the controller evaluates the CronJob again".to_owned(),
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
    let local = |instant| local_text(instant, record.schedule.effective_zone());
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
