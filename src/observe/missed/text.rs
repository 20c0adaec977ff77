//! The slots without a Job as text for a terminal.

use std::fmt::Write as _;

use super::{LostCommands, Missed, MissedEntry};
use crate::observe::words::{harmless, instant_text, thousands};

const HEADS: [&str; 6] = ["NAMESPACE", "CRONJOB", "SLOTS", "FIRST", "LAST", "WHY"];

pub(super) fn render(missed: &Missed) -> String {
    let mut text = heading(missed);
    for note in &missed.notes {
        let _ = writeln!(text, "note: {}", harmless(note));
    }
    if missed.missed.is_empty() {
        return text;
    }
    text.push('\n');
    text += &table(&missed.missed);
    let n_hidden = missed.n_entries - missed.missed.len();
    if n_hidden > 0 {
        let n_hidden = thousands(n_hidden.try_into().unwrap_or(u64::MAX));
        let _ = writeln!(
            text,
            "… and {n_hidden} more lines; give a namespace by -n, or a shorter --since"
        );
    }
    text += &commands(&missed.lost);
    text
}

/// The commands that start lost slots.
fn commands(lost: &LostCommands) -> String {
    let mut text = String::new();
    if lost.first.is_empty() {
        return text;
    }
    text += "\nTo start the lost slots of a CronJob, from the first to the last one:\n";
    for command in &lost.first {
        let _ = writeln!(text, "  {}", harmless(command));
    }
    match lost.n - lost.first.len() {
        0 => {}
        1 => text += "… and 1 more CronJob with lost slots; -o json has all commands\n",
        n => {
            let n = thousands(n.try_into().unwrap_or(u64::MAX));
            let _ = writeln!(
                text,
                "… and {n} more CronJobs with lost slots; -o json has all commands"
            );
        }
    }
    if lost.have_others {
        text += "Slots between these that have no Job for another reason start too; --dry-run lists them.\n";
    }
    text
}

fn heading(missed: &Missed) -> String {
    let (since, now) = (instant_text(missed.since), instant_text(missed.now));
    let cluster = harmless(&missed.cluster);
    let slots = match missed.n_slots {
        0 => "no slot".to_owned(),
        1 => "1 slot".to_owned(),
        n => format!("{} slots", thousands(n)),
    };
    let cron_jobs = match missed.n_cron_jobs {
        1 => "1 CronJob".to_owned(),
        n => format!("{} CronJobs", thousands(n)),
    };
    let unknown = match missed.n_unknown {
        0 => String::new(),
        n => format!(", and {} of which that is not known", thousands(n)),
    };
    format!("{cluster}: {slots} of {cron_jobs} without a Job{unknown}, from {since} to {now}\n")
}

fn cells(entry: &MissedEntry) -> [String; 6] {
    [
        harmless(&entry.namespace),
        harmless(&entry.name),
        thousands(entry.n_slots),
        entry.first.to_string(),
        entry.last.to_string(),
        harmless(&format!("{}: {}", entry.reason, entry.sentence)),
    ]
}

fn table(entries: &[MissedEntry]) -> String {
    let rows: Vec<[String; 6]> = [HEADS.map(str::to_owned)]
        .into_iter()
        .chain(entries.iter().map(cells))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let cells = row
            .iter()
            .zip(widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                2 => format!("{cell:>width$}"),
                _ => format!("{cell:width$}"),
            });
        text += cells.collect::<Vec<_>>().join("   ").trim_end();
        text.push('\n');
    }
    text
}
