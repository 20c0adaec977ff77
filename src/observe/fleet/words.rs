//! Times, durations and schedules in words.

use jiff::{SignedDuration, Timestamp, tz::Offset};

use crate::{
    observe::{
        facts::CronJobFacts,
        words::{duration_short, thousands},
    },
    schedule::{Schedule, Zone, describe::describe, options::OptionName},
};

/// Formats a number of seconds by [`duration_short`].
pub(super) fn duration_text(seconds: u32) -> String {
    duration_short(SignedDuration::from_secs(seconds.into()))
}

/// Formats a time of day in a zone, with the date if that is not the day of `now`: `18:47`, `Thu 26 Nov 18:47`.
pub(super) fn time_text(instant: Timestamp, now: Timestamp, zone: &Zone) -> String {
    let wall = |instant: Timestamp| {
        let offset = Offset::from_seconds(zone.offset_seconds_at(instant.as_second()));
        offset.unwrap_or(Offset::UTC).to_datetime(instant)
    };
    let (at, today) = (wall(instant), wall(now).date());
    let day = if at.date() == today { "" } else { "%a %-d %b " };
    let time = if at.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    at.strftime(&[day, time].concat()).to_string()
}

/// `a run`, `5 runs`.
pub(super) fn runs_text(n_runs: u32) -> String {
    match n_runs {
        1 => "a run".to_owned(),
        n_runs => format!("{} runs", thousands(n_runs.into())),
    }
}

/// The schedule in words, or what is wrong with it.
pub(super) fn schedule_text(facts: &CronJobFacts) -> String {
    match (&facts.schedule.zone, &facts.schedule.parsed) {
        (Some(Err(error)), _) => error.to_string(),
        (_, Err(error)) => error.to_string(),
        (_, Ok(schedule)) => describe(schedule),
    }
}

/// Why a CronJob has no next slot.
pub(super) fn never_text(facts: &CronJobFacts) -> String {
    let text = &facts.schedule.text;
    match (&facts.schedule.zone, &facts.schedule.parsed) {
        (Some(Err(error)), _) => format!("{error}; it never runs"),
        (_, Ok(schedule)) if facts.schedule.options().has_schedules => {
            let date = if schedule.may_end() { "later date" } else { "such date" };
            format!(
                "annotation {}: no {date}; it never runs",
                OptionName::Schedule.annotation()
            )
        }
        (_, Err(error)) => format!("the schedule {text} is invalid: {error}; it never runs"),
        (_, Ok(schedule)) => {
            let words = describe(schedule);
            match words.strip_prefix("never: ") {
                Some(why) => format!("{text}: {why}; it never runs"),
                None => format!("{text}: no such date; it never runs"),
            }
        }
    }
}

/// Whether the schedule is an interval.
pub(super) fn is_interval(facts: &CronJobFacts) -> bool {
    facts.schedule.parsed.as_ref().is_ok_and(Schedule::is_every)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_zone_with_the_date_of_another_day() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-27T21:04:00Z");
        let berlin = Zone::load("Europe/Berlin").unwrap();
        for (instant, expected) in [
            ("2026-11-27T17:47:00Z", "18:47"),
            ("2026-11-27T17:47:20Z", "18:47:20"),
            ("2026-11-26T22:47:00Z", "Thu 26 Nov 23:47"),
            ("2026-11-26T23:47:00Z", "00:47"),
        ] {
            assert_eq!(time_text(at(instant), now, &berlin), expected);
        }
    }
}
