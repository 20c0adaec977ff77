//! Numbers, durations and outcomes as words.

use jiff::SignedDuration;

pub(super) use crate::observe::words::{duration_short as duration, lateness_text as lateness, thousands as count};
use crate::observe::{
    facts::RunResult,
    slot::{LATE_AFTER, Mark, Shadow, SkipCause, Slot, SlotOutcome},
    view::ClockChange,
};

/// Formats the length of a list by [`count`].
pub(super) fn size(number: usize) -> String {
    count(number.try_into().unwrap_or(u64::MAX))
}

/// Formats a number with its noun: `1 run`, `2 runs`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// The word for the outcome of a slot.
pub(super) fn outcome_word(slot: &Slot, mark: Mark) -> &'static str {
    match &slot.outcome {
        SlotOutcome::Skipped(SkipCause::HeldByForbid { .. }) => "held back",
        SlotOutcome::Skipped(SkipCause::Frozen { .. }) => "frozen",
        SlotOutcome::Skipped(SkipCause::Excluded { .. }) => "excluded",
        SlotOutcome::Started {
            replaced_by: Some(_), ..
        } => "replaced",
        SlotOutcome::Started {
            result: RunResult::Deleted,
            ..
        } => "deleted",
        SlotOutcome::Started {
            is_backfilled: true,
            result: RunResult::Running | RunResult::Succeeded,
            ..
        } => "backfilled",
        SlotOutcome::Skipped(_)
        | SlotOutcome::Started { .. }
        | SlotOutcome::Open
        | SlotOutcome::Lost(_)
        | SlotOutcome::NotObserved
        | SlotOutcome::Undecided(_) => mark.as_str(),
    }
}

/// Why the outcome is what it is, or nothing if its word says everything.
pub(super) fn outcome_reason(slot: &Slot) -> String {
    match &slot.outcome {
        SlotOutcome::Started {
            replaced_by: Some(job_name),
            ..
        } => format!("replaced by Job {job_name}"),
        SlotOutcome::Started {
            is_backfilled: true,
            result,
            ..
        } => backfilled_reason(result),
        SlotOutcome::Started { result, .. } => started_reason(result, slot.lateness() > Some(LATE_AFTER)),
        absent @ (SlotOutcome::Open
        | SlotOutcome::Lost(_)
        | SlotOutcome::Skipped(_)
        | SlotOutcome::NotObserved
        | SlotOutcome::Undecided(_)) => absent.absence().unwrap_or_default(),
    }
}

fn started_reason(result: &RunResult, is_late: bool) -> String {
    match result {
        RunResult::Failed(reason) => reason.to_string(),
        RunResult::Deleted => "the Job was deleted before it ended".to_owned(),
        RunResult::Gone => "the Job is gone, and nothing watched its end".to_owned(),
        RunResult::Running if is_late => "running".to_owned(),
        RunResult::Succeeded if is_late => "succeeded".to_owned(),
        RunResult::Running | RunResult::Succeeded => String::new(),
    }
}

fn backfilled_reason(result: &RunResult) -> String {
    let by = "started by cronwheel backfill";
    match result {
        RunResult::Running | RunResult::Succeeded => format!("{by}, {}", result_word(result)),
        RunResult::Failed(_) | RunResult::Deleted | RunResult::Gone => {
            format!("{by}: {}", started_reason(result, false))
        }
    }
}

/// The word for the end of a Job.
pub(super) fn result_word(result: &RunResult) -> &'static str {
    match result {
        RunResult::Running => "running",
        RunResult::Succeeded => "succeeded",
        RunResult::Failed(_) => "failed",
        RunResult::Deleted => "deleted",
        RunResult::Gone => "gone",
    }
}

/// What cronwheel would have done with a slot.
pub(super) fn shadow(shadow: &Shadow) -> String {
    match shadow {
        Shadow::Starts => "starts it on time".to_owned(),
        Shadow::StartsAfter(wait, ended) => format!("starts it {} later, {}", duration(*wait), ended.when()),
        Shadow::Holds(reason) => format!("starts no Job: {reason}"),
    }
}

/// A change of the clocks: `clocks of Europe/Berlin go back 1 h`.
pub(super) fn clock_change(change: &ClockChange) -> String {
    let direction = if change.forward_seconds < 0 { "back" } else { "forward" };
    let by = duration(SignedDuration::from_secs(change.forward_seconds.into()));
    format!("clocks of {} go {direction} {by}", change.zone)
}

/// Summarises marks for readers who do not see the squares: `8 succeeded, 1 failed, 1 succeeded`.
pub(super) fn marks(marks: &[Mark]) -> String {
    let runs = marks.chunk_by(|a, b| a == b);
    let texts = runs.map(|run| format!("{} {}", run.len(), run[0].as_str()));
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_noun() {
        assert_eq!([1, 2_000].map(|number| counted(number, "run")), ["1 run", "2,000 runs"]);
    }

    #[test]
    fn squares_are_summed_up_in_their_order() {
        let text = marks(&[Mark::Succeeded, Mark::Succeeded, Mark::Lost, Mark::Succeeded]);
        assert_eq!(text, "2 succeeded, 1 lost, 1 succeeded");
    }
}
