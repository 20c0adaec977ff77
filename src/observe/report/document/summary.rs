//! The beginning of the report, which says what it covers and what it does not know; and what is due next.

use std::fmt::Write as _;

use jiff::SignedDuration;

use super::{Block, paragraph};
use crate::observe::{
    report::{AheadEntry, Report, SlotCounts},
    words::{duration_words, instant_text, lateness_text, thousands},
};

pub(super) fn opening(report: &Report) -> Vec<Block> {
    let span = span_words(report.now.duration_since(report.since));
    let until = report.now.strftime("%-d %b %Y %H:%M UTC");
    let mut blocks = vec![paragraph(format!("The {span} until {until}."))];
    blocks.extend(permission(report));
    if report.n_cron_jobs > 0 {
        blocks.push(paragraph(population(report)));
        blocks.push(paragraph(outcomes(&report.slots)));
        blocks.extend(unknown(report));
    }
    blocks.extend(report.notes.iter().map(|note| paragraph(note.clone())));
    blocks
}

/// What the account may not read, and that nothing is there.
fn permission(report: &Report) -> Option<Block> {
    let names = report.unreadable_namespaces.join(", ");
    let fix = "It needs get, list and watch on cronjobs and jobs of batch.";
    match (report.n_cron_jobs, names.is_empty()) {
        (0, true) => Some(paragraph("There is no CronJob.")),
        (0, false) => Some(paragraph(format!(
            "No CronJob can be read: the account may not read these namespaces: {names}. {fix}"
        ))),
        (_, true) => None,
        (_, false) => Some(paragraph(format!(
            "The account may not read these namespaces, so they are not in this report: {names}. {fix}"
        ))),
    }
}

fn population(report: &Report) -> String {
    let cron_jobs = counted(report.n_cron_jobs, "CronJob");
    let suspended = match report.n_suspended {
        0 => String::new(),
        n => format!(", {} of them suspended", thousands(n)),
    };
    let creators = report.controllers.iter().map(|controller| {
        let lateness = controller.lateness_p50_seconds.map(SignedDuration::from_secs);
        let lateness =
            lateness.map(|lateness| format!(" (median lateness of the last hour {})", lateness_text(lateness)));
        let jobs = counted(controller.n_jobs, "Job");
        format!("{} created {jobs}{}", controller.name, lateness.unwrap_or_default())
    });
    let creators: Vec<String> = creators.collect();
    let creators = match creators.as_slice() {
        [] => String::new(),
        creators => format!(" In the last 24 hours {}.", creators.join(", ")),
    };
    format!("{cron_jobs}{suspended}.{creators}")
}

fn outcomes(slots: &SlotCounts) -> String {
    let SlotCounts {
        n_slots,
        n_started,
        n_late,
        n_failed,
        n_lost,
        n_skipped,
        n_frozen,
        n_excluded,
        n_open,
        n_unknown,
        n_undecided: _,
        n_doubled,
    } = slots;
    if *n_slots == 0 {
        return "No slot was due.".to_owned();
    }
    let mut text = format!(
        "Of {} due slots {} started, {} of them late; {} failed, and {} lost.",
        thousands(*n_slots),
        thousands(*n_started),
        thousands(*n_late),
        counted(*n_failed, "run"),
        match n_lost {
            0 if *n_unknown > 0 => "none is known to be".to_owned(),
            0 => "none was".to_owned(),
            1 => "1 was".to_owned(),
            n => format!("{} were", thousands(*n)),
        },
    );
    if *n_doubled > 0 {
        let have = if *n_doubled == 1 { "has" } else { "have" };
        let _ = write!(text, " {} {have} more than one Job.", counted(*n_doubled, "slot"));
    }
    let n_skipped = n_skipped - n_frozen - n_excluded;
    if n_skipped > 0 {
        let n_skipped = were(n_skipped);
        let _ = write!(
            text,
            " {n_skipped} skipped because the CronJob asks for it: suspended, Forbid, or changed."
        );
    }
    if *n_frozen > 0 {
        let _ = write!(text, " {} skipped in a freeze of the namespace.", were(*n_frozen));
    }
    if *n_excluded > 0 {
        let n_excluded = were(*n_excluded);
        let _ = write!(text, " {n_excluded} skipped on dates that a calendar excludes.");
    }
    if *n_open > 0 {
        let _ = write!(text, " {} due without a Job yet.", are(*n_open));
    }
    text
}

/// What is not known is said.
fn unknown(report: &Report) -> Option<Block> {
    let begins = report
        .known_since
        .map(|known| format!(" What is known begins {}.", instant_text(known)));
    let begins_late = begins
        .filter(|_| report.known_since > Some(report.since))
        .unwrap_or_default();
    match report.slots.n_unknown {
        0 => None,
        n => {
            let undecided = match report.slots.n_undecided {
                0 => String::new(),
                n => format!(
                    " {} of them had no Job, and may be on a date that a calendar excludes, in a freeze or in a suspension.",
                    thousands(n)
                ),
            };
            Some(paragraph(format!(
                "Of {} due slots {} not known: nothing watched the cluster then, and it keeps no Jobs of that time.\
                 {undecided}{begins_late}",
                thousands(report.slots.n_slots),
                are(n),
            )))
        }
    }
}

pub(super) fn ahead(report: &Report) -> Vec<Block> {
    let AheadEntry {
        until,
        n_starts,
        peak,
        clock_changes,
    } = &report.ahead;
    let mut text = format!(
        "{} due until {}.",
        are_counted(*n_starts, "start"),
        instant_text(*until)
    );
    if let Some(peak) = peak {
        let _ = write!(
            text,
            " The peak is {} with {} in one minute, {} of them in {}.",
            instant_text(peak.at),
            counted(peak.n_starts, "start"),
            thousands(peak.n_starts_in_namespace),
            peak.namespace
        );
    }
    let mut blocks = vec![paragraph(text)];
    for change in clock_changes {
        let direction = if change.forward_seconds < 0 { "back" } else { "forward" };
        let seconds = SignedDuration::from_secs(change.forward_seconds.unsigned_abs().into());
        blocks.push(paragraph(format!(
            "Clocks in {} go {direction} by {} on {}.",
            change.zone,
            duration_words(seconds),
            instant_text(change.at)
        )));
    }
    blocks
}

/// Up to three days in hours, as people write them: `24 hours`.
fn span_words(span: SignedDuration) -> String {
    match span.as_hours() {
        hours @ 2..=72 if span == SignedDuration::from_hours(hours) => format!("{hours} hours"),
        _ => duration_words(span),
    }
}

/// `1 run`, `2 runs`.
pub(super) fn counted(n: u64, of: &str) -> String {
    format!("{} {of}{}", thousands(n), if n == 1 { "" } else { "s" })
}

fn are_counted(n: u64, of: &str) -> String {
    format!("{} {}", counted(n, of), if n == 1 { "is" } else { "are" })
}

fn are(n: u64) -> String {
    format!("{} {}", thousands(n), if n == 1 { "is" } else { "are" })
}

fn were(n: u64) -> String {
    format!("{} {}", thousands(n), if n == 1 { "was" } else { "were" })
}
