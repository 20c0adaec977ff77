//! The effect of a clock change on the runs of its day.
//!
//! The effect is computed from the activations themselves. Around a change they depend on the path of the library's
//! search (B-8.4), which loses runs hours away from the change, and whole days. The activations are compared with
//! those of a clock without changes.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{CronJobSchedule, Schedule, Zone, due, zone::OffsetChange};

const DAY_SECONDS: i64 = 86_400;

/// The time before the day at which a chain starts, if that of the CronJob starts later.
const LEAD_SECONDS: i64 = 7 * DAY_SECONDS;

/// More activations than the longest day has minutes.
const RUNS_MAX: usize = 3 * 24 * 60;

/// A schedule that names more times of the day, which takes seconds (O-5), is not examined.
const TIMES_MAX: usize = 24 * 60;

/// The local day on which time is skipped or repeated. Times of day are seconds since its midnight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeDay {
    /// The midnight of the day in local time, read as UTC, in Unix seconds.
    pub midnight_wall: i64,
    /// Number of runs on the day.
    pub n_runs: usize,
    /// Times that the schedule names and at which nothing runs, ascending.
    pub lost: Vec<i64>,
    /// Times that the schedule names and that come more than once, ascending.
    pub repeated: Vec<i64>,
    /// Times that the schedule names, are skipped, and run at the end of the gap (O-6.1), ascending.
    pub moved: Vec<i64>,
    /// The time of day at the end of the gap: 24:00 if the gap ends with the day.
    pub moved_to: i64,
    /// Times of runs that the schedule does not name, ascending.
    pub strange: Vec<i64>,
    /// Times that come twice and run once, by `clock-change: once` (O-6.1), ascending.
    pub once: Vec<i64>,
}

impl ChangeDay {
    /// The day of `change`, which is a change of the schedule's own zone, in the chain of activations from `since`.
    pub fn new(effective: &CronJobSchedule, schedule: &Schedule, since: Timestamp, change: &OffsetChange) -> ChangeDay {
        let (from, to) = walls(change);
        let midnight_wall = from.min(to).div_euclid(DAY_SECONDS) * DAY_SECONDS;
        let touched = from.min(to) - midnight_wall..from.max(to) - midnight_wall;
        let wanted = wanted(schedule, midnight_wall);
        if wanted.len() > TIMES_MAX {
            return ChangeDay::undisturbed(midnight_wall, wanted.len());
        }
        let mut runs = runs(effective, schedule, since, (change, midnight_wall));
        runs.sort_unstable();
        let n_of = |time: &i64| runs.iter().filter(|run| *run == time).count();
        // A schedule whose times stay the same under the change, such as an hourly one in most zones, neither misses the
        // skipped times nor shows the repeated ones. Where clocks change by half an hour, an hourly schedule does.
        let is_even = is_unchanged_by(&wanted, to - from);
        let is_reported = |time: &&i64| !is_even || !touched.contains(*time);
        let times = wanted.iter().filter(is_reported);
        let moved_to = touched.end;
        let has_gap = from < to && touched != (0..DAY_SECONDS);
        let is_moved =
            |time: &i64| has_gap && touched.contains(time) && schedule.is_moved_out_of_gap(midnight_wall + time);
        let (moved, lost): (Vec<i64>, Vec<i64>) = times
            .clone()
            .filter(|time| n_of(time) == 0)
            .partition(|time| is_moved(time));
        let is_strange = |run: &&i64| !wanted.contains(run) && (moved.is_empty() || **run != moved_to);
        let is_once = |time: &&i64| to < from && touched.contains(*time) && schedule.follows_once() && n_of(time) == 1;
        let once = times.clone().filter(is_once).copied().collect();
        let mut strange: Vec<i64> = runs.iter().filter(is_strange).copied().collect();
        strange.dedup();
        ChangeDay {
            midnight_wall,
            n_runs: runs.len(),
            lost,
            repeated: times.filter(|time| n_of(time) > 1).copied().collect(),
            moved,
            moved_to,
            strange,
            once,
        }
    }

    fn undisturbed(midnight_wall: i64, n_runs: usize) -> ChangeDay {
        ChangeDay {
            midnight_wall,
            n_runs,
            lost: Vec::new(),
            repeated: Vec::new(),
            moved: Vec::new(),
            moved_to: 0,
            strange: Vec::new(),
            once: Vec::new(),
        }
    }

    /// Whether the runs differ from other days.
    pub fn is_disturbed(&self) -> bool {
        [&self.lost, &self.repeated, &self.moved, &self.strange]
            .iter()
            .any(|times| !times.is_empty())
    }

    /// Returns `, so …`, or an empty text if the change concerns no run.
    pub fn text(&self) -> String {
        let no_run = if self.n_runs == 0 {
            "there is no run on that day: "
        } else {
            ""
        };
        let moved_to = time_of_day(self.moved_to);
        let parts = [
            phrase(&self.lost, "is lost", "are lost").map(|lost| [no_run, &lost].concat()),
            phrase(&self.repeated, "runs twice", "come twice"),
            phrase(&self.once, "runs once", "come once"),
            phrase(
                &self.moved,
                &format!("runs at {moved_to}"),
                &format!("come as one at {moved_to}"),
            ),
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

/// Returns the local times before and after the change, read as UTC, in Unix seconds.
pub fn walls(change: &OffsetChange) -> (i64, i64) {
    (
        change.at + i64::from(change.before_seconds),
        change.at + i64::from(change.after_seconds),
    )
}

/// Formats a time of day: `02:30`, with seconds if there are any.
pub fn time_of_day(seconds: i64) -> String {
    let minute = format!("{:02}:{:02}", seconds / 3_600, seconds / 60 % 60);
    match seconds % 60 {
        0 => minute,
        second => format!("{minute}:{second:02}"),
    }
}

/// Whether the times of a whole day are the same if all move by the seconds of a clock change.
fn is_unchanged_by(times: &BTreeSet<i64>, seconds: i64) -> bool {
    let moved = |time: &i64| (time + seconds).rem_euclid(DAY_SECONDS);
    times.iter().all(|time| times.contains(&moved(time)))
}

fn phrase(times: &[i64], of_one: &str, of_many: &str) -> Option<String> {
    let first = time_of_day(*times.first()?);
    Some(match times.len() {
        1 => format!("{first} {of_one}"),
        n_times => format!("{n_times} runs {of_many}, {first} the first"),
    })
}

/// Returns the times of day that the schedule names, without clock changes.
fn wanted(schedule: &Schedule, midnight_wall: i64) -> BTreeSet<i64> {
    schedule
        .wall_times_after(midnight_wall - 1)
        .map(|wall| wall - midnight_wall)
        .take_while(|time| *time < DAY_SECONDS)
        .take(TIMES_MAX + 1)
        .collect()
}

/// Returns the times of day of the runs on the day of the change.
fn runs(
    effective: &CronJobSchedule,
    schedule: &Schedule,
    since: Timestamp,
    (change, midnight_wall): (&OffsetChange, i64),
) -> Vec<i64> {
    let (zone, default_zone) = (effective.effective_zone(), &effective.default_zone);
    let (before, after) = (i64::from(change.before_seconds), i64::from(change.after_seconds));
    let start = midnight_wall - before.max(after);
    let end = midnight_wall + DAY_SECONDS - before.min(after);
    let since = if since.as_second() < start {
        since
    } else {
        instant(start - LEAD_SECONDS)
    };
    let base = due::most_recent(schedule, default_zone, since, instant(start - 1)).unwrap_or(since);
    let local = |at: i64| at + i64::from(zone.offset_seconds_at(at)) - midnight_wall;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::ClockChange;

    /// Checks the text for the first change of the zone after an instant.
    #[track_caller]
    fn check(text: &str, zone: &str, after: &str, expected: &str) {
        check_option(ClockChange::Literal, text, zone, after, expected);
    }

    #[track_caller]
    fn check_option(clock_change: ClockChange, text: &str, zone: &str, after: &str, expected: &str) {
        let effective = CronJobSchedule::new(text, Some(zone), &Zone::utc()).with_clock_change(clock_change);
        let after: Timestamp = after.parse().unwrap();
        let change = effective.effective_zone().next_change_after(after.as_second()).unwrap();
        let day = ChangeDay::new(&effective, effective.parsed.as_ref().unwrap(), after, &change);
        assert_eq!(day.text(), expected, "{text} in {zone}");
        // One run is as on other days.
        assert_eq!(day.is_disturbed(), !expected.is_empty() && day.once.is_empty());
    }

    #[test]
    fn a_clock_change_loses_and_repeats_runs() {
        let (spring, autumn) = ("2027-03-01T00:00:00Z", "2026-10-01T00:00:00Z");
        check(
            "30 2 * * *",
            "Europe/Berlin",
            spring,
            ", so there is no run on that day: 02:30 is lost",
        );
        check("30 2 * * *", "Europe/Berlin", autumn, ", so 02:30 runs twice");
        check("30 4 * * *", "Europe/Berlin", autumn, "");
        check("0 * * * *", "Europe/Berlin", spring, "");
        check(
            "*/20 1-3 * * *",
            "Europe/Berlin",
            spring,
            ", so 3 runs are lost, 02:00 the first",
        );
    }

    #[test]
    fn under_once_a_clock_change_moves_runs_to_the_end_of_the_gap_o_6_1() {
        let once = |text, zone, after, expected| check_option(ClockChange::Once, text, zone, after, expected);
        let (spring, autumn) = ("2027-03-01T00:00:00Z", "2026-10-01T00:00:00Z");
        once("30 2 * * *", "Europe/Berlin", spring, ", so 02:30 runs at 03:00");
        once("30 2 * * *", "Europe/Berlin", autumn, ", so 02:30 runs once");
        once(
            "*/30 2-3 * * *",
            "Europe/Berlin",
            autumn,
            ", so 2 runs come once, 02:00 the first",
        );
        once("30 4 * * *", "Europe/Berlin", autumn, "");
        once("*/30 * * * *", "Europe/Berlin", autumn, "");
        once("0 3 * * *", "Europe/Berlin", spring, "");
        once(
            "*/20 1-3 * * *",
            "Europe/Berlin",
            spring,
            ", so 3 runs come as one at 03:00, 02:00 the first",
        );
        // The gap ends with the day.
        once(
            "30 23 * * *",
            "America/Nuuk",
            "2026-01-01T00:00:00Z",
            ", so 23:30 runs at 24:00",
        );
        once("15 2 * * *", "Australia/Lord_Howe", autumn, ", so 02:15 runs at 02:30");
        once("0 * * * *", "Australia/Lord_Howe", autumn, ", so 02:00 is lost");
    }
}
