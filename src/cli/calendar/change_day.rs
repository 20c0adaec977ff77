//! The effect of a clock change on the runs of its day.
//!
//! The effect is computed from the activations themselves. Around a change they depend on the path of the library's
//! search (B-8.4), which loses runs hours away from the change, and whole days. The activations are compared with
//! those of a clock without changes.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Calendar;
use crate::schedule::{Schedule, Zone, due, parse_standard, zone::OffsetChange};

const DAY_SECONDS: i64 = 86_400;

/// The time before the day at which a chain starts, if that of the CronJob starts later.
const LEAD_SECONDS: i64 = 7 * DAY_SECONDS;

/// More activations than the longest day has minutes.
const RUNS_MAX: usize = 3 * 24 * 60;

/// The local day on which time is skipped or repeated. Times of day are seconds since its midnight.
pub(super) struct ChangeDay {
    /// The midnight of the day in local time, read as UTC, in Unix seconds.
    pub(super) midnight_wall: i64,
    n_runs: usize,
    lost: Vec<i64>,
    repeated: Vec<i64>,
    /// Runs at times that the schedule does not name.
    strange: Vec<i64>,
}

impl ChangeDay {
    pub(super) fn new(calendar: &Calendar<'_>, change: &OffsetChange) -> ChangeDay {
        let (from, to) = walls(change);
        let midnight_wall = from.min(to).div_euclid(DAY_SECONDS) * DAY_SECONDS;
        let touched = from.min(to) - midnight_wall..from.max(to) - midnight_wall;
        let wanted = wanted(&calendar.effective.text, midnight_wall);
        let mut runs = runs(calendar, change, midnight_wall);
        runs.sort_unstable();
        let n_of = |time: &i64| runs.iter().filter(|run| *run == time).count();
        let hours: BTreeSet<i64> = wanted.iter().map(|time| time / 3_600).collect();
        // An hourly schedule neither misses the skipped hour nor shows the repeated one.
        let is_reported = |time: &&i64| hours.len() < 24 || !touched.contains(*time);
        let times = wanted.iter().filter(is_reported);
        let mut strange: Vec<i64> = runs.iter().filter(|run| !wanted.contains(run)).copied().collect();
        strange.dedup();
        ChangeDay {
            midnight_wall,
            n_runs: runs.len(),
            lost: times.clone().filter(|time| n_of(time) == 0).copied().collect(),
            repeated: times.filter(|time| n_of(time) > 1).copied().collect(),
            strange,
        }
    }

    /// Whether the runs differ from other days.
    pub(super) fn is_disturbed(&self) -> bool {
        !(self.lost.is_empty() && self.repeated.is_empty() && self.strange.is_empty())
    }

    /// Returns `, so …`, or an empty text if the runs are as on other days.
    pub(super) fn text(&self) -> String {
        let no_run = if self.n_runs == 0 {
            "there is no run on that day: "
        } else {
            ""
        };
        let parts = [
            phrase(&self.lost, "is lost", "are lost").map(|lost| [no_run, &lost].concat()),
            phrase(&self.repeated, "runs twice", "come twice"),
            phrase(
                &self.strange,
                "comes, which the schedule does not name",
                "come that the schedule does not name",
            ),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!(", so {}", parts.join(", and "))
        }
    }
}

/// Returns the local times before and after the change, read as UTC.
pub(super) fn walls(change: &OffsetChange) -> (i64, i64) {
    (
        change.at + i64::from(change.before_seconds),
        change.at + i64::from(change.after_seconds),
    )
}

fn phrase(times: &[i64], of_one: &str, of_many: &str) -> Option<String> {
    let first = times.first()?;
    let first = format!("{:02}:{:02}", first / 3_600, first / 60 % 60);
    Some(match times.len() {
        1 => format!("{first} {of_one}"),
        n_times => format!("{n_times} runs {of_many}, {first} the first"),
    })
}

/// Returns the times of day that the schedule names, without clock changes.
fn wanted(text: &str, midnight_wall: i64) -> BTreeSet<i64> {
    let Ok(schedule) = parse_standard(without_zone(text)) else {
        return BTreeSet::new();
    };
    let utc = Zone::utc();
    activations(&schedule, &utc, midnight_wall - 1)
        .map(|at| at - midnight_wall)
        .take_while(|time| *time < DAY_SECONDS)
        .collect()
}

/// Returns the times of day of the runs on the day of the change.
fn runs(calendar: &Calendar<'_>, change: &OffsetChange, midnight_wall: i64) -> Vec<i64> {
    let (schedule, default_zone) = (calendar.schedule, &calendar.effective.default_zone);
    let (before, after) = (i64::from(change.before_seconds), i64::from(change.after_seconds));
    let start = midnight_wall - before.max(after);
    let end = midnight_wall + DAY_SECONDS - before.min(after);
    let since = if calendar.since.as_second() < start {
        calendar.since
    } else {
        instant(start - LEAD_SECONDS)
    };
    let base = due::most_recent(schedule, default_zone, since, instant(start - 1)).unwrap_or(since);
    let local = |at: i64| at + i64::from(calendar.zone.offset_seconds_at(at)) - midnight_wall;
    activations(schedule, default_zone, base.as_second())
        .take_while(|at| *at < end)
        .map(local)
        .filter(|time| (0..DAY_SECONDS).contains(time))
        .collect()
}

fn activations<'a>(schedule: &'a Schedule, local: &'a Zone, after: i64) -> impl Iterator<Item = i64> + 'a {
    let next = move |at: &Timestamp| schedule.next_after(*at, local);
    std::iter::successors(Some(instant(after)), next)
        .skip(1)
        .map(Timestamp::as_second)
        .take(RUNS_MAX)
}

fn instant(unix_seconds: i64) -> Timestamp {
    Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::MAX)
}

/// Returns the text after `TZ=…`, trimmed like the library does (B-7.3).
fn without_zone(text: &str) -> &str {
    let is_zoned = text.starts_with("TZ=") || text.starts_with("CRON_TZ=");
    text.split_once(' ')
        .filter(|_| is_zoned)
        .map_or(text, |(_, rest)| rest)
        .trim()
}
