//! Describes a schedule in words. The words derive from the matching values, so equivalent texts get one description.

mod lines;

use jiff::SignedDuration;

use super::fires::{DayRule, Schedule, Spec};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The maximum number of times of day that are listed one by one.
const TIMES_LISTED_MAX: usize = 6;

/// Describes when the schedule fires, without its zone.
pub fn describe(schedule: &Schedule) -> String {
    if let Some(seconds) = schedule.period_seconds() {
        let period = SignedDuration::from_secs(seconds);
        return format!("every {period:#}, counted from the last slot that was started, else from the creation");
    }
    if let Some(lines) = schedule.as_lines() {
        return lines::describe(lines);
    }
    schedule.fields().map(describe_fields).unwrap_or_default()
}

/// A field whose steps start again with every cycle.
struct Cycle {
    min: u32,
    max: u32,
    /// The lengths that a cycle can have, ascending.
    lengths: &'static [u32],
    unit: &'static str,
    /// The value in words, before its number.
    value: &'static str,
    of: &'static str,
}

/// The cycles of the five fields, in their order.
const CYCLES: [Cycle; 5] = [
    Cycle::new((0, 59), &[60], ("minute", "minute"), "hour"),
    Cycle::new((0, 23), &[24], ("hour", "hour"), "day"),
    Cycle::new((1, 31), &[28, 29, 30, 31], ("day", "day"), "month"),
    Cycle::new((1, 12), &[12], ("month", "month"), "year"),
    Cycle::new((0, 6), &[7], ("day", "day of week"), "week"),
];

impl Cycle {
    const fn new(
        (min, max): (u32, u32),
        lengths: &'static [u32],
        (unit, value): (&'static str, &'static str),
        of: &'static str,
    ) -> Cycle {
        Cycle {
            min,
            max,
            lengths,
            unit,
            value,
            of,
        }
    }
}

/// Returns warnings about unexpected properties of a schedule, one sentence each: uneven steps, two day fields, `?`,
/// and intervals below a minute. `text` is the schedule as written.
pub fn surprises(text: &str, schedule: &Schedule) -> Vec<String> {
    if let Some(seconds) = schedule.period_seconds() {
        let is_below = seconds < 60;
        let sentence = "Jobs are named by the minute, so only the first instant of each minute starts one";
        return is_below.then(|| sentence.to_owned()).into_iter().collect();
    }
    if let Some(lines) = schedule.as_lines() {
        return lines::surprises(lines);
    }
    let fields: Vec<&str> = text.split_whitespace().filter(|field| !field.contains("TZ=")).collect();
    let steps = fields.iter().zip(&CYCLES);
    let mut sentences: Vec<String> = steps.filter_map(|(field, cycle)| uneven_step(field, cycle)).collect();
    if let Some(spec) = schedule.fields()
        && spec.day_rule == DayRule::Either
        && spec.days_of_month != 0
        && spec.days_of_week != 0
    {
        let sentence = "either day field is enough: the schedule fires on days that match the day of month or the day \
                        of week";
        sentences.push(sentence.to_owned());
    }
    if fields.iter().any(|field| field.contains('?')) {
        sentences.push("? is Quartz's; here it means the same as *".to_owned());
    }
    sentences
}

/// Describes a step, such as `*/7` or `5/25`, that does not divide the cycle of its field.
fn uneven_step(field: &str, cycle: &Cycle) -> Option<String> {
    let (first, step) = field.split_once('/')?;
    let first = if first == "*" { cycle.min } else { first.parse().ok()? };
    let step: u32 = step.parse().ok().filter(|step| *step > 1)?;
    let Cycle { unit, value, of, .. } = cycle;
    if step > cycle.max.checked_sub(first)? {
        let letter = unit.chars().next().unwrap_or_default();
        let other = match *unit {
            "minute" | "hour" if first == cycle.min => {
                format!("; for every {step} {unit}s write @every {step}{letter}")
            }
            _ => String::new(),
        };
        return Some(format!(
            "{field} matches {value} {first} alone: steps start again with every {of}{other}"
        ));
    }
    // In a shorter cycle the field matches nothing.
    let lengths = cycle.lengths.iter().filter(|length| first < cycle.min + **length);
    let rests = lengths.map(|length| {
        let n_steps = (cycle.min + length - 1 - first) / step;
        length - n_steps * step
    });
    let rests: std::collections::BTreeSet<u32> = rests.collect();
    let (shortest, longest) = (*rests.first()?, *rests.last()?);
    if (shortest, longest) == (step, step) {
        return None;
    }
    let plural = if longest == 1 { "" } else { "s" };
    let rest = match longest - shortest {
        0 => longest.to_string(),
        1 => format!("{shortest} or {longest}"),
        _ => format!("{shortest} to {longest}"),
    };
    Some(format!(
        "{field} is uneven: steps start again with every {of}, so the last one takes {rest} {unit}{plural}"
    ))
}

fn describe_fields(spec: &Spec) -> String {
    let fields = Fields {
        minutes: values(spec.minutes, 0..=59),
        hours: values(spec.hours.into(), 0..=23),
        days_of_month: values(spec.days_of_month.into(), 1..=31),
        months: values(spec.months.into(), 1..=12),
        days_of_week: values(spec.days_of_week.into(), 0..=6),
        is_either_day: spec.day_rule == DayRule::Either,
    };
    match (fields.empty(), fields.days()) {
        (Some(empty), _) => format!("never: no {empty} matches"),
        (None, None) => "never: no day matches".to_owned(),
        (None, Some(days)) => {
            let (times, is_repeating) = fields.times();
            // A description that covers the whole day already implies every day.
            let suffix = if is_repeating {
                days.strip_prefix("every day")
            } else {
                None
            };
            let days = suffix.unwrap_or(&days).trim_start();
            format!("{times} {days}").trim_end().to_owned()
        }
    }
}

fn values(bits: u64, bounds: std::ops::RangeInclusive<u8>) -> Vec<u8> {
    bounds.filter(|value| bits >> value & 1 == 1).collect()
}

/// The matching values of each field, ascending.
struct Fields {
    minutes: Vec<u8>,
    hours: Vec<u8>,
    days_of_month: Vec<u8>,
    months: Vec<u8>,
    days_of_week: Vec<u8>,
    is_either_day: bool,
}

impl Fields {
    /// The name of a field that matches nothing. Such a schedule never fires.
    fn empty(&self) -> Option<&'static str> {
        [
            (&self.minutes, "minute"),
            (&self.hours, "hour"),
            (&self.months, "month"),
        ]
        .into_iter()
        .find_map(|(values, name)| values.is_empty().then_some(name))
    }

    /// The times of day, and whether they repeat throughout the day.
    fn times(&self) -> (String, bool) {
        let has_all_hours = self.hours.len() == 24;
        match (self.minutes.as_slice(), step(&self.minutes, 60)) {
            (_, Some(step)) => {
                let every = match (step, self.minutes[0]) {
                    (1, _) => "every minute".to_owned(),
                    (step, 0) => format!("every {step} minutes"),
                    (step, first) => format!("every {step} minutes from minute {first}"),
                };
                if has_all_hours {
                    (every, true)
                } else {
                    (format!("{every} {}", self.stretch()), false)
                }
            }
            ([0], None) if has_all_hours => ("every hour".to_owned(), true),
            ([minute], None) if has_all_hours => (format!("at minute {minute} of every hour"), true),
            ([minute], None) if let Some(hours) = step(&self.hours, 24) => {
                let first = self.hours[0];
                (format!("every {hours} hours from {first:02}:{minute:02}"), true)
            }
            (minutes, None) if has_all_hours => (format!("at minutes {} of every hour", list(minutes)), true),
            (minutes, None) if minutes.len() * self.hours.len() <= TIMES_LISTED_MAX => (self.listed_times(), false),
            ([minute], None) => (format!("at minute {minute} {}", self.of_hours()), false),
            (minutes, None) => (format!("at minutes {} {}", list(minutes), self.of_hours()), false),
        }
    }

    /// Lists every time, hour by hour.
    fn listed_times(&self) -> String {
        let time = |hour| self.minutes.iter().map(move |minute| format!("{hour:02}:{minute:02}"));
        let times: Vec<String> = self.hours.iter().flat_map(time).collect();
        format!("at {}", join(&times))
    }

    /// The range in which minutes repeat within some hours.
    fn stretch(&self) -> String {
        match (self.hours.as_slice(), self.minutes.as_slice()) {
            ([first, .., last], [minute, .., last_minute]) if is_run(&self.hours) => {
                format!("from {first:02}:{minute:02} to {last:02}:{last_minute:02}")
            }
            ([hour], [minute, .., last_minute]) => {
                format!("from {hour:02}:{minute:02} to {hour:02}:{last_minute:02}")
            }
            _ => self.of_hours(),
        }
    }

    fn of_hours(&self) -> String {
        let plural = if self.hours.len() == 1 { "" } else { "s" };
        format!("of hour{plural} {}", list(&self.hours))
    }

    /// The days, or `None` if no day matches.
    fn days(&self) -> Option<String> {
        let (in_month, in_week) = (self.days_of_month.as_slice(), self.days_of_week.as_slice());
        let is_all_month = in_month.len() == 31;
        let is_all_week = in_week.len() == 7;
        if self.is_either_day {
            return match (in_month, in_week) {
                ([], []) => None,
                _ if is_all_month || is_all_week => Some(self.every_day()),
                (_, []) => Some(self.of_months()),
                ([], _) => Some(self.of_week()),
                _ => Some(format!("{} and {}", self.of_months(), self.of_week())),
            };
        }
        match (in_month, in_week) {
            ([], _) | (_, []) => None,
            _ if is_all_month && is_all_week => Some(self.every_day()),
            // One of the two fields has a star, so all its values match.
            _ if is_all_month => Some(self.of_week()),
            _ => Some(self.of_months()),
        }
    }

    fn every_day(&self) -> String {
        self.in_months("every day")
    }

    fn of_week(&self) -> String {
        self.in_months(&format!("on {}", names(&WEEKDAYS, &self.days_of_week, 0)))
    }

    fn of_months(&self) -> String {
        let months = names(&MONTHS, &self.months, 1);
        match self.days_of_month.as_slice() {
            [day] if self.months.len() == 12 => format!("on day {day} of every month"),
            days if self.months.len() == 12 => format!("on days {} of every month", list(days)),
            [day] => format!("on day {day} of {months}"),
            days => format!("on days {} of {months}", list(days)),
        }
    }

    fn in_months(&self, days: &str) -> String {
        if self.months.len() == 12 {
            days.to_owned()
        } else {
            format!("{days} in {}", names(&MONTHS, &self.months, 1))
        }
    }
}

/// The step of values that repeat evenly over the whole cycle, if there are at least three.
fn step(values: &[u8], cycle: u8) -> Option<u8> {
    let [first, second, _, ..] = values else { return None };
    let step = second - first;
    let is_even = values.windows(2).all(|pair| pair[1] - pair[0] == step);
    (is_even && cycle.is_multiple_of(step) && values.len() == usize::from(cycle / step)).then_some(step)
}

/// Whether the values are consecutive.
fn is_run(values: &[u8]) -> bool {
    values.windows(2).all(|pair| pair[1] == pair[0] + 1)
}

/// Formats values, with runs of three or more as `a to b`.
fn list(values: &[u8]) -> String {
    let runs: Vec<String> = runs(values, |value| value.to_string());
    join(&runs)
}

fn names(names: &[&str], values: &[u8], first: u8) -> String {
    let name = |value: u8| {
        names
            .get(usize::from(value - first))
            .copied()
            .unwrap_or_default()
            .to_owned()
    };
    join(&runs(values, name))
}

fn runs(values: &[u8], word: impl Fn(u8) -> String) -> Vec<String> {
    let mut words = Vec::new();
    for run in values.chunk_by(|one, next| *next == one + 1) {
        match run {
            [first, _, .., last] if run.len() > 2 => words.push(format!("{} to {}", word(*first), word(*last))),
            few => words.extend(few.iter().map(|value| word(*value))),
        }
    }
    words
}

/// Formats `a`, `a and b`, or `a, b and c`.
fn join(words: &[String]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        words => words.concat(),
    }
}

#[cfg(test)]
mod tests;
