//! The option `schedule` (O-5): schedules in the grammar of the `cron` crate, with seconds and years.
//!
//! `cron` parses them and finds the matching times of a wall clock without zone changes. This module maps the times to
//! instants.

mod distance;
mod line;

use std::cmp;

use self::{distance::shortest_seconds, line::Line};
use super::{WallTimes, once, shown};
use crate::schedule::{clock_change::ClockChange, zone::Zone};

/// The longest text of the option. The limit bounds the cost of a CronJob event, each of which parses the text.
pub const SCHEDULES_MAX_BYTES: usize = 4096;

/// The maximum number of schedules in the option. Every search for an activation searches each of them.
pub const SCHEDULES_MAX: usize = 16;

/// The maximum number of commas in the option. A schedule that lists every value of every field has 318. Parsing
/// takes 2 µs for a comma at most, behind which stands every year.
const COMMAS_MAX: usize = 512;

/// A text of the option `schedule` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulesError {
    /// The text is too long.
    #[error("longer than {SCHEDULES_MAX_BYTES} bytes")]
    TooLong,
    /// The text has too many schedules.
    #[error("more than {SCHEDULES_MAX} schedules")]
    TooMany,
    /// The lists of values are too long.
    #[error("more than {COMMAS_MAX} commas; write ranges such as 0-30 or steps such as */5")]
    TooManyCommas,
    /// The text has only white space and comments.
    #[error("no schedule; write one in each line, such as 0 30 2 * * *")]
    Empty,
    /// A schedule does not parse.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line, from 1 on.
        line: usize,
        /// The problem in words.
        problem: String,
    },
}

/// One or several schedules. Their activations are those of each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::schedule) struct Lines {
    lines: Box<[Line]>,
    /// The zone of the activations; `None` means the zone of the reference (B-7.2).
    pub(in crate::schedule) zone: Option<Zone>,
}

impl Lines {
    /// Parses the text of the option: one schedule a line. Lines of white space and comments do not count.
    pub(in crate::schedule) fn parse(text: &str, zone: Option<Zone>) -> Result<Lines, SchedulesError> {
        if text.len() > SCHEDULES_MAX_BYTES {
            return Err(SchedulesError::TooLong);
        }
        // Messages have the value without white space around it, so the number is that of a line in there.
        let numbered = text.trim().lines().zip(1..).map(|(text, number)| (text.trim(), number));
        let is_schedule = |(text, _): &(&str, usize)| !text.is_empty() && !text.starts_with('#');
        let filled: Vec<(&str, usize)> = numbered.filter(is_schedule).collect();
        if filled.iter().map(|(text, _)| text.matches(',').count()).sum::<usize>() > COMMAS_MAX {
            return Err(SchedulesError::TooManyCommas);
        }
        if filled.is_empty() {
            return Err(SchedulesError::Empty);
        }
        if filled.len() > SCHEDULES_MAX {
            return Err(SchedulesError::TooMany);
        }
        let parse = |(text, line)| Line::parse(text).map_err(|problem| SchedulesError::Line { line, problem });
        let lines: Result<Vec<Line>, SchedulesError> = filled.into_iter().map(parse).collect();
        Ok(Lines {
            lines: lines?.into(),
            zone,
        })
    }

    pub(super) fn set_clock_change(&mut self, clock_change: ClockChange) {
        for line in &mut self.lines {
            line.set_clock_change(clock_change);
        }
    }

    /// Whether any schedule is not literal.
    pub(super) fn follow_once(&self) -> bool {
        self.lines.iter().any(|line| line.clock_change == ClockChange::Once)
    }

    /// The texts of the schedules with what they do at clock changes.
    pub(super) fn key(&self) -> String {
        let lines = self.lines.iter();
        let lines = lines.map(|line| [line.clock_change.as_str(), " ", line.schedule.source()].concat());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The schedules in the order of the text.
    pub(in crate::schedule) fn schedules(&self) -> impl Iterator<Item = &cron::Schedule> {
        self.lines.iter().map(|line| &line.schedule)
    }

    pub(super) fn next_after(&self, local: &Zone, reference: i64) -> Option<i64> {
        let zone = self.zone.as_ref().unwrap_or(local);
        let next = self.lines.iter().filter_map(|line| match line.clock_change {
            ClockChange::Literal => shown::next_after(line, zone, reference),
            ClockChange::Once => once::next_after(line, zone, reference),
        });
        next.min()
    }

    pub(super) fn last_until(&self, local: &Zone, earliest: i64, now: i64) -> Option<i64> {
        let zone = self.zone.as_ref().unwrap_or(local);
        self.lines.iter().fold(None, |last, line| {
            // Only a later activation matters.
            let earliest = cmp::max(last.unwrap_or(earliest), earliest);
            let of_line = match line.clock_change {
                ClockChange::Literal => shown::last_until(line, zone, earliest, now),
                ClockChange::Once => once::last_until(line, zone, earliest, now),
            };
            of_line.or(last)
        })
    }

    /// The shortest time between two activations on a wall clock that never changes, in seconds, if it is below two days.
    pub(in crate::schedule) fn shortest_distance_seconds(&self) -> Option<i64> {
        shortest_seconds(&self.lines)
    }

    /// The matching wall-clock seconds of each schedule.
    pub(super) fn wall_times(&self) -> impl Iterator<Item = &dyn WallTimes> {
        self.lines.iter().map(|line| line as &dyn WallTimes)
    }

    /// The first matching wall-clock second after another.
    pub(super) fn wall_after(&self, wall: i64) -> Option<i64> {
        self.lines.iter().filter_map(|line| line.first_after(wall)).min()
    }

    /// Whether a schedule that is not literal matches a wall-clock second.
    pub(super) fn is_moved_out_of_gap(&self, wall: i64) -> bool {
        let once = self.lines.iter().filter(|line| line.clock_change == ClockChange::Once);
        once.into_iter().any(|line| line.first_after(wall - 1) == Some(wall))
    }

    /// Whether any activation is at another second than 0.
    pub(in crate::schedule) fn has_seconds(&self) -> bool {
        self.lines.iter().any(Line::has_seconds)
    }
}
