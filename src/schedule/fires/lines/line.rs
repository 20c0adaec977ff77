//! One schedule of the `cron` crate: its matching times, and what is wrong with a text that does not parse.

use std::{ops::Bound, str::FromStr as _};

use chrono::{DateTime, Datelike as _, Utc};
use cron::TimeUnitSpec as _;

use super::super::{WallTimes, calendar};
use crate::schedule::clock_change::ClockChange;

/// A field in messages.
struct Field {
    name: &'static str,
    values: &'static str,
}

const FIELDS: [Field; 7] = [
    Field::new("second", "0 to 59"),
    Field::new("minute", "0 to 59"),
    Field::new("hour", "0 to 23"),
    Field::new("day of month", "1 to 31"),
    Field::new("month", "1 to 12, or names such as Jan"),
    Field::new("day of week", "1 to 7, where 1 is Sunday, or names such as Sun"),
    Field::new("year", "1970 to 2100"),
];

const DESCRIPTORS: &str = "@yearly, @monthly, @weekly, @daily and @hourly";

/// Longer parts of a text are cut in messages.
const SHOWN_MAX_CHARS: usize = 40;

impl Field {
    const fn new(name: &'static str, values: &'static str) -> Field {
        Field { name, values }
    }
}

/// A schedule, and what it does at clock changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) schedule: cron::Schedule,
    /// `Literal` for hour fields with all hours.
    pub(super) clock_change: ClockChange,
}

impl Line {
    /// Parses a schedule, or returns the problem in words.
    pub(super) fn parse(text: &str) -> Result<Line, String> {
        let schedule = cron::Schedule::from_str(text).map_err(|_| problem(text))?;
        Ok(Line {
            schedule,
            clock_change: ClockChange::Literal,
        })
    }

    pub(super) fn set_clock_change(&mut self, clock_change: ClockChange) {
        if !self.schedule.hours().is_all() {
            self.clock_change = clock_change;
        }
    }

    pub(super) fn has_seconds(&self) -> bool {
        self.schedule.seconds().iter().any(|second| second != 0)
    }
}

impl WallTimes for Line {
    fn first_after(&self, wall: i64) -> Option<i64> {
        // The first year is 1970, and `cron` does not know years before Christ.
        let after = wall_clock(wall.max(-1))?;
        self.schedule.after(&after).next().map(|next| next.timestamp())
    }

    fn last_until(&self, wall: i64, wall_min: i64) -> Option<i64> {
        let year = u32::try_from(wall_clock(wall)?.year()).ok()?;
        let last_year = self
            .schedule
            .years()
            .range((Bound::Unbounded, Bound::Included(year)))
            .next_back()?;
        let mut end = wall + 1;
        if last_year < year {
            // Without this, `cron` would start in the month of `wall` also in the earlier year.
            end = calendar::day_number(i64::from(last_year) + 1, 1, 1) * calendar::DAY_SECONDS;
        }
        let last = self.schedule.after(&wall_clock(end)?).next_back()?;
        Some(last.timestamp()).filter(|last| *last >= wall_min)
    }
}

/// A wall-clock second as an instant of a clock that never changes.
fn wall_clock(wall: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(wall, 0)
}

/// What is wrong with a text that `cron` does not parse.
fn problem(text: &str) -> String {
    if text.starts_with('@') {
        return format!("{} is unknown; the names are {DESCRIPTORS}", shown(text));
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if !(6..=7).contains(&fields.len()) {
        let plural = if fields.len() == 1 { "" } else { "s" };
        return format!(
            "{} field{plural} instead of 6 or 7; write second, minute, hour, day of month, month, day of week and, if \
             needed, year",
            fields.len()
        );
    }
    let faulty = fields.iter().zip(&FIELDS).enumerate();
    let mut faulty = faulty.filter(|(place, (text, _))| !is_field(text, *place));
    let Some((_, (text, field))) = faulty.next() else {
        return format!("{} is no schedule", shown(text));
    };
    let Field { name, values } = field;
    let text_shown = shown(text);
    if is_quartz(text) {
        return format!("{name} {text_shown}: L, W and # are not supported; write values of {values}");
    }
    format!("{name} {text_shown} is not understood; write values of {values}, as in 1, 1-4, 1,4 or */2")
}

/// Whether a field has L, W or #, which Quartz knows for days.
fn is_quartz(field: &str) -> bool {
    let is_quartz = |item: &str| {
        let value = item.trim_end_matches(['L', 'W']);
        item.contains('#')
            || item.starts_with("L-")
            || value.len() < item.len() && value.bytes().all(|byte| byte.is_ascii_digit())
    };
    field.split(',').any(is_quartz)
}

/// Whether `cron` parses the text as the field at a place.
fn is_field(text: &str, place: usize) -> bool {
    let mut fields = ["*"; 7];
    fields[place] = text;
    cron::Schedule::from_str(&fields.join(" ")).is_ok()
}

/// A quoted part of a text, cut if it is long.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN_MAX_CHARS).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{dots}")
}
