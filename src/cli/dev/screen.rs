//! Formats the figures: as a screen of a given size, or as one line without a screen.

use jiff::{SignedDuration, Timestamp};

use super::{
    board::{Figures, LatestFire, NextFire},
    lateness::Lateness,
};
use crate::shard::{InstantOutcome, OutcomeCounts};

/// The constant part.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    /// The address of the API server.
    pub(super) api_server: String,
    /// The address of the metrics.
    pub(super) metrics: String,
    /// The commands to try.
    pub(super) commands: Vec<String>,
}

/// The variable part.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) now: Timestamp,
    pub(super) up: SignedDuration,
    pub(super) figures: Figures,
    pub(super) lateness: Option<Lateness>,
    pub(super) outcome_counts: OutcomeCounts,
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

/// The title and the empty line under it.
const HEAD_LINES: usize = 2;

const FIGURE_LINES: usize = 4;

/// Number of log lines on a screen with room for them.
const LOG_LINES: usize = 4;

/// Number of fires of each kind that are listed even if the log then has no room.
const LISTED_MIN: usize = 2;

impl Guide {
    /// Returns the first lines, wrapped to this number of columns. Commands can be copied as they are.
    pub(super) fn lines(&self, columns: usize) -> Vec<String> {
        let mut lines = vec![
            field("API server", &self.api_server),
            field("metrics", &self.metrics),
            "Try, in another terminal:".to_owned(),
        ];
        lines.extend(self.commands.iter().flat_map(|command| wrapped(command, columns)));
        lines
    }
}

impl Picture {
    /// Returns how many fires of each kind fit on a screen.
    pub(super) fn n_listed(size: Size, guide: &Guide) -> usize {
        let head = HEAD_LINES + guide.lines(size.columns).len();
        // Each part begins with an empty line; lists and log also have titles.
        let parts = (1 + FIGURE_LINES) + 2 + 2 + (2 + LOG_LINES);
        (size.rows.saturating_sub(head + parts) / 2).max(LISTED_MIN)
    }

    /// Returns the whole screen. No line is wider than the screen, and there are no more lines than rows.
    pub(super) fn screen(&self, guide: &Guide, size: Size) -> Vec<Line> {
        let mut lines = vec![title(&format!(
            "cronwheel dev, up {}. Ctrl-C ends it.",
            duration_text(self.up)
        ))];
        lines.push(plain(""));
        lines.extend(guide.lines(size.columns).iter().map(|line| plain(line)));
        lines.push(plain(""));
        lines.extend(self.figure_lines().iter().map(|line| plain(line)));
        lines.push(plain(""));
        lines.push(title(&row("NEXT FIRES", "SCHEDULE", "IN")));
        lines.extend(self.figures.next_fires.iter().map(|fire| plain(&self.next_line(fire))));
        lines.push(plain(""));
        lines.push(title(&row("LATEST JOBS", "SLOT", "STATE")));
        lines.extend(self.figures.latest_fires.iter().map(|fire| plain(&latest_line(fire))));
        let n_log_lines = size.rows.saturating_sub(lines.len() + 2).min(LOG_LINES);
        if n_log_lines > 0 && !self.log.is_empty() {
            lines.push(plain(""));
            lines.push(title("LOG"));
            let first = self.log.len().saturating_sub(n_log_lines);
            lines.extend(self.log.iter().skip(first).map(|line| plain(&log_line(line))));
        }
        lines.truncate(size.rows);
        for line in &mut lines {
            line.text = cut(&line.text, size.columns);
        }
        lines
    }

    /// Returns everything in one line.
    pub(super) fn log_line(&self) -> String {
        let Figures {
            n_cron_jobs,
            n_fires,
            n_running,
            n_complete,
            n_failed,
            next_fires,
            ..
        } = &self.figures;
        let next = match next_fires.first() {
            Some(fire) => format!(", next {} in {}", fire.name, self.until(fire.at)),
            None => String::new(),
        };
        let text = format!(
            "{:.0} {}; last minute {}; Jobs {} running, {} complete, {} failed{next}",
            self.now,
            counted(*n_cron_jobs as u64, "CronJob"),
            self.fires_text(*n_fires),
            grouped(*n_running as u64),
            grouped(*n_complete),
            grouped(*n_failed),
        );
        cut(&text, usize::MAX)
    }

    fn figure_lines(&self) -> [String; FIGURE_LINES] {
        let figures = &self.figures;
        let extra = |count: u64, what: &str| match count {
            0 => String::new(),
            count => format!(", {} {what}", grouped(count)),
        };
        let cron_jobs = format!(
            "{}{}{}",
            grouped(figures.n_cron_jobs as u64),
            extra(figures.n_suspended as u64, "suspended"),
            extra(self.n_to_fill.into(), "more to come")
        );
        let jobs = format!(
            "{} running, {} complete, {} failed",
            grouped(figures.n_running as u64),
            grouped(figures.n_complete),
            grouped(figures.n_failed)
        );
        [
            field("CronJobs", &cron_jobs),
            field("last minute", &self.fires_text(figures.n_fires)),
            field("Jobs", &jobs),
            field("due instants", &self.instants_text()),
        ]
    }

    fn fires_text(&self, n_fires: usize) -> String {
        let fires = counted(n_fires as u64, "fire");
        match self.lateness {
            None => fires,
            Some(Lateness {
                p50_seconds,
                max_seconds,
            }) => format!(
                "{fires}, lateness p50 {}, max {}",
                at_most("", p50_seconds),
                at_most("<= ", max_seconds)
            ),
        }
    }

    /// Returns the account of the controller: the outcomes of due instants.
    fn instants_text(&self) -> String {
        let outcome_counts = &self.outcome_counts;
        let ended = InstantOutcome::ALL
            .into_iter()
            .map(|outcome| (outcome_counts.outcome(outcome), outcome.as_str()));
        let all = ended.chain([(outcome_counts.open_instants, "open")]);
        let duration_text: Vec<String> = all
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{} {}", grouped(count), name.replace('_', " ")))
            .collect();
        if duration_text.is_empty() {
            "none yet".to_owned()
        } else {
            format!("{}: {}", grouped(outcome_counts.due_instants), duration_text.join(", "))
        }
    }

    fn next_line(&self, fire: &NextFire) -> String {
        row(&fire.name, &fire.schedule, &self.until(fire.at))
    }

    /// In whole seconds, rounded up: nothing is due before its instant.
    fn until(&self, at: Timestamp) -> String {
        let left = at.duration_since(self.now);
        let seconds = left.as_secs() + i64::from(left.subsec_nanos() > 0);
        duration_text(SignedDuration::from_secs(seconds.max(0)))
    }
}

fn latest_line(fire: &LatestFire) -> String {
    row(&fire.name, &format!("{:.0}", fire.slot), fire.state)
}

/// Shortens a line of the log for a narrow screen: without the date and the source.
fn log_line(line: &str) -> String {
    let mut words = line.split_whitespace();
    let time = words
        .next()
        .and_then(|time| Some((time.parse::<Timestamp>().ok()?, words.next()?, words.next()?)));
    match time {
        Some((time, level, from)) if from.ends_with(':') => {
            let words: Vec<&str> = words.collect();
            format!("{} {level:<5} {}", time.strftime("%H:%M:%S"), words.join(" "))
        }
        _ => line.to_owned(),
    }
}

/// Wraps a command into lines that a shell reads as one: broken at spaces outside quotes, indented.
fn wrapped(command: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = "  ".to_owned();
    for word in words(command) {
        // The space before the word, and the space and the backslash after it.
        let has_room = line.len() + 1 + word.len() + 2 <= columns;
        if !has_room && !line.trim().is_empty() {
            lines.push(format!("{line} \\"));
            line = String::from("    ");
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

/// Splits at spaces outside single quotes.
fn words(command: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let splits = command.split(move |character| {
        is_quoted ^= character == '\'';
        character == ' ' && !is_quoted
    });
    splits.collect()
}

fn title(text: &str) -> Line {
    Line {
        text: text.to_owned(),
        is_title: true,
    }
}

fn plain(text: &str) -> Line {
    Line {
        text: text.to_owned(),
        is_title: false,
    }
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<13}{value}")
}

fn row(name: &str, middle: &str, end: &str) -> String {
    format!("{name:<38} {middle:<28} {end}")
}

/// Formats a duration in whole seconds, with days apart: `2d 3h`, `4m 5s`.
fn duration_text(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().max(0);
    let (days, rest) = (seconds / 86_400, SignedDuration::from_secs(seconds % 86_400));
    match days {
        0 => format!("{rest:#}"),
        _ => format!("{days}d {}h", rest.as_hours()),
    }
}

/// Formats seconds in a suitable unit.
fn at_most(sign: &str, seconds: f64) -> String {
    if seconds.is_infinite() {
        "over 1 min".to_owned()
    } else if seconds < 1.0 {
        format!("{sign}{:.1} ms", seconds * 1e3)
    } else {
        format!("{sign}{seconds:.1} s")
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Fits text into this number of columns. Control characters become spaces.
fn cut(text: &str, columns: usize) -> String {
    let harmless = |character: char| if character.is_control() { ' ' } else { character };
    text.chars().take(columns).map(harmless).collect()
}

#[cfg(test)]
mod tests;
