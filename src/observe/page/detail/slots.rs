//! The last slots and the other runs as tables.

use maud::{Markup, html};

use super::super::{clock::Clock, words};
use crate::observe::{
    facts::{Run, RunResult},
    slot::{LATE_AFTER, Slot, SlotOutcome},
    view::{Detail, Row},
};

/// Other runs that are listed.
const OTHERS_MAX: usize = 20;

/// The slots, the newest first.
pub(super) fn table(detail: &Detail, clock: &Clock) -> Markup {
    html! {
        @if detail.slots.is_empty() {
            p.nothing { "No slot was due yet." }
        } @else {
            div.scroll tabindex="0" role="region" aria-label="Slots" {
                table.slots {
                    thead {
                        tr {
                            th scope="col" { "Slot" }
                            th scope="col" { "Outcome" }
                            th.num scope="col" { "Lateness" }
                            th.num scope="col" { "Duration" }
                            th scope="col" { "Job" }
                            th scope="col" { "cronwheel" }
                        }
                    }
                    tbody { @for slot in detail.slots.iter().rev() { (row(slot, &detail.row, clock)) } }
                }
            }
        }
    }
}

fn row(slot: &Slot, row: &Row, clock: &Clock) -> Markup {
    let mark = slot.mark(clock.now);
    let reason = words::outcome_reason(slot);
    let is_late = slot.lateness() > Some(LATE_AFTER);
    let job_name = match &slot.outcome {
        SlotOutcome::Started { job_name, .. } => job_name.as_ref(),
        SlotOutcome::Open
        | SlotOutcome::Lost(_)
        | SlotOutcome::Skipped(_)
        | SlotOutcome::NotObserved
        | SlotOutcome::Undecided(_) => "–",
    };
    html! {
        tr {
            th scope="row" { (clock.time(slot.at, &row.zone)) }
            td.outcome {
                span.squares aria-hidden="true" { i.(mark.as_str()) {} } " " (words::outcome_word(slot, mark))
                @if !reason.is_empty() { small { (reason) } }
            }
            td.num.late-text[is_late] { (slot.lateness().map_or_else(|| "–".to_owned(), words::lateness)) }
            td.num { (slot.run_time().map_or_else(|| "–".to_owned(), words::lateness)) }
            td.job { (job_name) @for other in &slot.other_jobs { small { "and " (other) } } }
            td.dim { (slot.with_cronwheel.as_ref().map_or_else(|| "–".to_owned(), words::shadow)) }
        }
    }
}

/// The Jobs that belong to no slot, the newest first.
pub(super) fn other_runs(detail: &Detail, clock: &Clock) -> Markup {
    let rest = detail.other_runs.len().saturating_sub(OTHERS_MAX);
    html! {
        @if !detail.other_runs.is_empty() {
            section.panel data-part="others" {
                h2 { "Other Jobs " small { "they belong to no slot" } }
                div.scroll tabindex="0" role="region" aria-label="Other Jobs" {
                    table.slots {
                        thead {
                            tr {
                                th scope="col" { "Created" }
                                th scope="col" { "Job" }
                                th scope="col" { "Result" }
                                th.num scope="col" { "Duration" }
                                th scope="col" { "Created by" }
                            }
                        }
                        tbody {
                            @for run in detail.other_runs.iter().rev().take(OTHERS_MAX) { (other_run(run, &detail.row, clock)) }
                        }
                    }
                }
                @if rest > 0 { p.rest { (rest) " older ones are not listed." } }
            }
        }
    }
}

fn other_run(run: &Run, row: &Row, clock: &Clock) -> Markup {
    let duration = run
        .finished
        .filter(|_| run.result != RunResult::Gone)
        .map(|finished| words::lateness(finished.duration_since(run.created)));
    html! {
        tr {
            th scope="row" { (clock.time(run.created, &row.zone)) }
            td.job { (run.job_name) }
            td { (words::result_word(&run.result)) }
            td.num { (duration.unwrap_or_else(|| "–".to_owned())) }
            td { (run.creator.as_str()) }
        }
    }
}
