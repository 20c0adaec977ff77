//! Arranges the figures as lines for a screen of a given size, or as one line without a screen.

mod log_line;
mod table;

use std::iter;

use jiff::{SignedDuration, Timestamp};

use self::{log_line::log_line, table::table};
use super::{
    audit::RunCounts,
    faults::FaultCounts,
    figures::{Figures, Row},
    hints::{Hints, wrapped},
    lateness::Lateness,
    text::{at_most, counted, cut, grouped, wrapped_at_commas},
};
use crate::cli::calendar::duration_text;

/// The constant part.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// The address of the API server.
    pub(super) api_server: String,
    /// The address of the metrics.
    pub(super) metrics: String,
    /// The commands to try.
    pub(super) hints: Hints,
}

/// The variable part.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) now: Timestamp,
    pub(super) up: SignedDuration,
    pub(super) is_ending: bool,
    pub(super) figures: Figures,
    pub(super) lateness: Option<Lateness>,
    /// The faults that were injected, with `--faults`.
    pub(super) faults: Option<FaultCounts>,
    /// Number of CronJobs that are still to be created.
    pub(super) n_to_fill: u32,
    /// Lines of the log, the newest last.
    pub(super) log: Vec<String>,
}

/// Columns and rows of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// A line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_title: bool,
}

/// Number of log lines that have the same priority as the entries of the lists.
const LOG_LINES: usize = 4;

/// Number of entries of each part for which less important parts are left out.
const LISTED_MIN: usize = 2;

/// The width of the names of figures.
const NAME_COLUMNS: usize = 13;

/// The parts of a screen besides the figures and the lists.
#[derive(Clone, Copy)]
struct Detail {
    has_addresses: bool,
    n_hints_max: usize,
    has_log: bool,
}

const fn detail(has_addresses: bool, n_hints_max: usize, has_log: bool) -> Detail {
    Detail {
        has_addresses,
        n_hints_max,
        has_log,
    }
}

/// The levels of detail, from large screens to small ones.
const DETAILS: [Detail; 5] = [
    detail(true, 2, true),
    detail(true, 2, false),
    detail(true, 1, false),
    detail(false, 1, false),
    detail(false, 0, false),
];

impl Guide {
    /// Returns the first lines of an output that is no screen.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.address_lines().to_vec();
        lines.extend(hint_lines(&self.hints.commands(&Figures::default()), usize::MAX));
        lines
    }

    fn address_lines(&self) -> [String; 2] {
        [field("API server", &self.api_server), field("metrics", &self.metrics)]
    }
}

impl Picture {
    /// Returns the whole screen. Each part begins with a title, and a part without other lines is left out. No line is
    /// wider than the screen, and there are no more lines than rows.
    pub(super) fn screen(&self, guide: &Guide, size: Size) -> Vec<Line> {
        let tables = self.tables(size);
        let wanted = |detail: Detail| {
            let log = if detail.has_log { self.log.len() } else { 0 };
            let n_rows = |table: &Vec<String>| table.len().saturating_sub(1);
            [n_rows(&tables[0]), n_rows(&tables[1]), log]
        };
        let needed = |detail: &Detail| {
            let parts = wanted(*detail).into_iter().filter(|n_lines| *n_lines > 0);
            let listed: usize = parts.map(|n_lines| 2 + n_lines.min(LISTED_MIN)).sum();
            self.head(guide, *detail, size.columns).len() + listed
        };
        let smallest = DETAILS[DETAILS.len() - 1];
        let fitting = DETAILS.into_iter().find(|detail| needed(detail) <= size.rows);
        let detail = fitting.unwrap_or(smallest);
        let head = self.head(guide, detail, size.columns);
        let n_lines = shares(size.rows.saturating_sub(head.len()), wanted(detail));
        let [next_runs, latest_jobs] = tables;
        let log = self.log.iter().skip(self.log.len().saturating_sub(n_lines[2]));
        let log = iter::once("LOG".to_owned()).chain(log.map(|line| log_line(line)));
        let parts = [
            head,
            next_runs.into_iter().take(1 + n_lines[0]).collect(),
            latest_jobs.into_iter().take(1 + n_lines[1]).collect(),
            log.collect(),
        ];
        let line = |text: &str, is_title| Line {
            text: cut(text, size.columns),
            is_title,
        };
        let mut lines = Vec::new();
        for part in parts.iter().filter(|part| part.len() > 1) {
            if !lines.is_empty() {
                lines.push(line("", false));
            }
            let texts = part.iter().enumerate();
            lines.extend(texts.map(|(position, text)| line(text, position == 0)));
        }
        lines.truncate(size.rows);
        lines
    }

    /// Returns everything in one line.
    pub(super) fn log_line(&self) -> String {
        let figures = &self.figures;
        let next = match figures.next_runs.first() {
            Some([cron_job, _, next_run]) if figures.has_next_run() => format!(", next {cron_job} {next_run}"),
            Some(_) | None => String::new(),
        };
        let faults = self.faults.map(|faults| format!("; {faults}")).unwrap_or_default();
        let text = format!(
            "{:.0} {}; last minute {}; Jobs {}; runs {}{faults}{next}",
            self.now,
            counted(figures.n_cron_jobs as u64, "CronJob"),
            self.starts_text(),
            self.jobs_text(),
            runs_text(&figures.runs),
        );
        cut(&text, usize::MAX)
    }

    /// Returns the line that remains at the end.
    pub(super) fn totals_line(&self) -> String {
        let faults = self.faults.map(|faults| format!("; {faults}")).unwrap_or_default();
        let (up, runs) = (self.up_text(), runs_text(&self.figures.runs));
        format!("cronwheel dev ran for {up}: runs {runs}{faults}")
    }
}

/// The parts of the screen.
impl Picture {
    fn head(&self, guide: &Guide, detail: Detail, columns: usize) -> Vec<String> {
        let end = if self.is_ending {
            "Ending; Ctrl-C ends it at once."
        } else {
            "Ctrl-C ends it."
        };
        let up = self.up_text();
        let mut lines = vec![format!("cronwheel dev, up {up}. {end}"), String::new()];
        if detail.has_addresses {
            lines.extend(guide.address_lines());
        }
        if detail.n_hints_max > 0 {
            let mut commands = guide.hints.commands(&self.figures);
            commands.drain(..commands.len().saturating_sub(detail.n_hints_max));
            lines.extend(hint_lines(&commands, columns));
        }
        if detail.has_addresses || detail.n_hints_max > 0 {
            lines.push(String::new());
        }
        lines.extend(self.figure_lines(columns));
        lines
    }

    fn up_text(&self) -> String {
        duration_text(u64::try_from(self.up.as_secs()).unwrap_or(0))
    }

    fn figure_lines(&self, columns: usize) -> Vec<String> {
        let mut fields = vec![
            ("CronJobs", self.cron_jobs_text()),
            ("last minute", self.starts_text()),
            ("Jobs", self.jobs_text()),
            ("runs", runs_text(&self.figures.runs)),
        ];
        fields.extend(self.faults.map(|faults| ("injected", faults.to_string())));
        let lines = fields.into_iter().flat_map(|(name, value)| {
            let names = iter::once(name).chain(iter::repeat(""));
            let values = wrapped_at_commas(&value, columns.saturating_sub(NAME_COLUMNS));
            names
                .zip(values)
                .map(|(name, value)| field(name, &value))
                .collect::<Vec<_>>()
        });
        lines.collect()
    }

    fn cron_jobs_text(&self) -> String {
        let figures = &self.figures;
        let extra = |count: u64, what: &str| match count {
            0 => String::new(),
            count => format!(", {} {what}", grouped(count)),
        };
        [
            grouped(figures.n_cron_jobs as u64),
            extra(figures.n_suspended as u64, "suspended"),
            extra(figures.n_blocked as u64, "blocked by Forbid"),
            extra(figures.n_never as u64, "never due"),
            extra(self.n_to_fill.into(), "more to come"),
        ]
        .concat()
    }

    fn jobs_text(&self) -> String {
        let figures = &self.figures;
        format!(
            "{} running, {} complete, {} failed",
            grouped(figures.n_running as u64),
            grouped(figures.n_complete),
            grouped(figures.n_failed)
        )
    }

    fn starts_text(&self) -> String {
        let starts = counted(self.figures.n_starts as u64, "start");
        match self.lateness {
            None => starts,
            Some(Lateness {
                p50_seconds,
                max_seconds,
            }) => format!(
                "{starts}, lateness p50 {}, max {}",
                at_most(p50_seconds),
                at_most(max_seconds)
            ),
        }
    }

    /// Returns the tables of next runs and of latest Jobs, each with its header if it has rows.
    fn tables(&self, size: Size) -> [Vec<String>; 2] {
        let figures = &self.figures;
        let titles: [Row; 2] = [
            ["CRONJOB", "SCHEDULE", "NEXT RUN"].map(str::to_owned),
            ["LATEST JOB", "SLOT", "STATE"].map(str::to_owned),
        ];
        table(titles, [&figures.next_runs, &figures.latest_jobs], size.columns)
    }
}

fn runs_text(runs: &RunCounts) -> String {
    let started = format!("{} started", grouped(runs.started));
    let others = [(runs.held_back, "held back"), (runs.waiting, "waiting")];
    let others = others.into_iter().filter(|(count, _)| *count > 0);
    let ends = [(runs.missed, "missed"), (runs.doubled, "doubled")];
    let parts = others
        .chain(ends)
        .map(|(count, what)| format!(", {} {what}", grouped(count)));
    iter::once(started).chain(parts).collect()
}

fn hint_lines(commands: &[String], columns: usize) -> Vec<String> {
    let title = iter::once("Try, in another terminal:".to_owned());
    title
        .chain(commands.iter().flat_map(|command| wrapped(command, columns)))
        .collect()
}

/// Divides rows between parts that need these numbers of lines, each with an empty line and a title. Small parts get
/// all rows that they need, and the log gets the rows that the lists leave.
fn shares(n_rows: usize, wanted: [usize; 3]) -> [usize; 3] {
    let n_parts = wanted.iter().filter(|n_lines| **n_lines > 0).count();
    let mut left = n_rows.saturating_sub(2 * n_parts);
    let limits = [wanted[0], wanted[1], wanted[2].min(LOG_LINES)];
    let mut shares = [0; 3];
    while left > 0 {
        let open = (0..shares.len()).filter(|part| shares[*part] < limits[*part]);
        let Some(smallest) = open.min_by_key(|part| shares[*part]) else {
            break;
        };
        shares[smallest] += 1;
        left -= 1;
    }
    shares[2] += left.min(wanted[2] - shares[2]);
    shares
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<NAME_COLUMNS$}{value}")
}

#[cfg(test)]
mod tests;
