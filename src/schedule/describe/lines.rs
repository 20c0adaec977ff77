//! Describes the schedules of the option `schedule` (O-5), which have seconds and years.

use std::collections::BTreeSet;

use cron::TimeUnitSpec;

use super::{Fields, TIMES_LISTED_MAX, WEEKDAYS, join, list, names, runs, step};
use crate::schedule::fires::Lines;

const FIRST_YEAR: u32 = 1970;

/// Describes each schedule.
pub(super) fn describe(lines: &Lines) -> String {
    let words: Vec<String> = lines.schedules().map(describe_one).collect();
    words.join("; ")
}

/// Returns what differs from the schedules of Kubernetes, one sentence each.
pub(super) fn surprises(lines: &Lines) -> Vec<String> {
    let has_day_number = |schedule: &cron::Schedule| {
        let field = schedule.source().split_whitespace().nth(5).unwrap_or_default();
        field
            .split(',')
            .any(|item| item.starts_with(|first: char| first.is_ascii_digit()))
    };
    let has_two_days =
        |schedule: &cron::Schedule| !schedule.days_of_month().is_all() && !schedule.days_of_week().is_all();
    let notes = [
        (
            lines.schedules().any(has_day_number),
            "days of the week count from 1, which is Sunday",
        ),
        (
            lines.schedules().any(has_two_days),
            "both day fields must match: the schedule fires on days that match the day of month and the day of week",
        ),
    ];
    notes
        .into_iter()
        .filter(|(applies, _)| *applies)
        .map(|(_, note)| note.to_owned())
        .collect()
}

fn describe_one(schedule: &cron::Schedule) -> String {
    let fields = Fields {
        minutes: values(schedule.minutes(), 0),
        hours: values(schedule.hours(), 0),
        days_of_month: values(schedule.days_of_month(), 0),
        months: values(schedule.months(), 0),
        days_of_week: values(schedule.days_of_week(), 1),
        is_either_day: false,
    };
    let (times, is_repeating) = times(&values(schedule.seconds(), 0), &fields);
    let days = days(&fields);
    let suffix = days.strip_prefix("every day").filter(|_| is_repeating);
    let days = suffix.unwrap_or(&days).trim_start();
    let years = years(schedule);
    let parts = [times.as_str(), days, &years]
        .into_iter()
        .filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ").trim_end_matches(',').to_owned()
}

/// The values of a field, less the value that counts as 0.
fn values(field: &impl TimeUnitSpec, zero: u32) -> Vec<u8> {
    field
        .iter()
        .filter_map(|value| u8::try_from(value - zero).ok())
        .collect()
}

/// The times of day, and whether they repeat throughout the day.
fn times(seconds: &[u8], fields: &Fields) -> (String, bool) {
    let is_every_minute = fields.minutes.len() == 60 && fields.hours.len() == 24;
    match seconds {
        [0] => fields.times(),
        [second] if fields.minutes.len() * fields.hours.len() <= TIMES_LISTED_MAX => {
            let of_hour = |hour| {
                fields
                    .minutes
                    .iter()
                    .map(move |minute| format!("{hour:02}:{minute:02}:{second:02}"))
            };
            let times: BTreeSet<String> = fields.hours.iter().flat_map(of_hour).collect();
            (format!("at {}", join(&Vec::from_iter(times))), false)
        }
        _ if is_every_minute && seconds.len() == 60 => ("every second".to_owned(), true),
        [0, ..] if is_every_minute && let Some(step) = step(seconds, 60) => (format!("every {step} seconds"), true),
        _ => {
            let (times, is_repeating) = fields.times();
            let plural = if seconds.len() == 1 { "" } else { "s" };
            (format!("{times}, at second{plural} {},", list(seconds)), is_repeating)
        }
    }
}

fn days(fields: &Fields) -> String {
    let (is_all_month, is_all_week) = (fields.days_of_month.len() == 31, fields.days_of_week.len() == 7);
    match (is_all_month, is_all_week) {
        (true, true) => fields.every_day(),
        (true, false) => fields.of_week(),
        (false, true) => fields.of_months(),
        (false, false) => {
            let weekdays = names(&WEEKDAYS, &fields.days_of_week, 0);
            format!("{}, only on {weekdays}", fields.of_months())
        }
    }
}

/// The years, or an empty text for all.
fn years(schedule: &cron::Schedule) -> String {
    if schedule.years().is_all() {
        return String::new();
    }
    let years = values(schedule.years(), FIRST_YEAR);
    format!(
        "in {}",
        join(&runs(&years, |year| (FIRST_YEAR + u32::from(year)).to_string()))
    )
}

#[cfg(test)]
mod tests;
