//! Walks from activation to activation and compares the result with the calendar.

use std::fmt;

use cronwheel::schedule::{CronJobSchedule, Schedule, Zone};
use jiff::Timestamp;

use super::{
    Breadth,
    calendar::{self, Days},
    mix::{CronJob, Rule},
    zones::{Change, Decade, SoakZone},
};

const DAY_SECONDS: i64 = 86_400;

/// Frequent schedules are walked this far before and after each change.
const AROUND_SECONDS: i64 = 2 * DAY_SECONDS;

/// The distance before its reference and after its result in which a search uses offsets, with a margin.
const NEAR_SECONDS: i64 = 2 * DAY_SECONDS;

/// The result of walks.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) n_walks: u64,
    pub(super) n_fires: u64,
    /// Instants of the calendar without an activation. All are near odd changes.
    pub(super) n_missing: u64,
    /// Activations that are not in the calendar. All are near odd changes.
    pub(super) n_extra: u64,
    pub(super) longest_silence: i64,
}

impl Walked {
    pub(super) fn add(&mut self, other: &Walked) {
        self.n_walks += other.n_walks;
        self.n_fires += other.n_fires;
        self.n_missing += other.n_missing;
        self.n_extra += other.n_extra;
        self.longest_silence = self.longest_silence.max(other.longest_silence);
    }
}

impl fmt::Display for Walked {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} walks, {} activations, {} days between two at most; around odd changes {} fewer and {} more than in the calendar",
            self.n_walks,
            self.n_fires,
            self.longest_silence / DAY_SECONDS,
            self.n_missing,
            self.n_extra
        )
    }
}

/// A part of a walk.
pub(super) struct Stretch {
    /// The reference of the first search.
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) fires: Vec<i64>,
    /// The positions in `fires` at departures from the calendar, ascending.
    pub(super) departures: Vec<usize>,
}

/// Walks the schedule of a CronJob through the decade, or around the changes of its zone if the schedule is frequent.
/// If a zone skips a whole day, the search may find nothing (B-8.4). The walk then continues after that day.
pub(super) fn walk(
    cron_job: &CronJob,
    zone: &SoakZone,
    decade: &Decade,
    days: &Days,
    breadth: &Breadth,
    walked: &mut Walked,
) -> Vec<Stretch> {
    let schedule = parsed(cron_job);
    let mut stretches = stretches(cron_job, zone, decade, breadth);
    stretches.reverse();
    let mut walks = Vec::new();
    while let Some((from, mut until)) = stretches.pop() {
        let fires = fires(&schedule, from, until);
        let last = fires.last().copied().unwrap_or(from);
        if let Some(skipped) = zone.day_skipped_between(last, until)
            && next(&schedule, last).is_none()
        {
            stretches.push((skipped + NEAR_SECONDS, until));
            until = skipped;
        }
        let expected = calendar::instants(cron_job, zone, days, from, until);
        let differences = differences(&fires, &expected);
        let walk = Walk {
            from,
            until,
            fires: &fires,
        };
        check(cron_job, zone, &walk, &differences);
        record(&fires, from, until, walked);
        walked.n_missing += differences.missing.len() as u64;
        walked.n_extra += differences.extra.len() as u64;
        let departures = differences.missing.iter().chain(&differences.extra);
        let mut departures: Vec<usize> = departures
            .map(|instant| fires.partition_point(|fire| fire < instant))
            .collect();
        departures.sort_unstable();
        walks.push(Stretch {
            from,
            until,
            fires,
            departures,
        });
    }
    walks
}

pub(super) fn parsed(cron_job: &CronJob) -> Schedule {
    let whole = CronJobSchedule::new(&cron_job.schedule, cron_job.time_zone, &Zone::utc());
    whole
        .parsed
        .unwrap_or_else(|error| panic!("{:?} in {:?}: {error}", cron_job.schedule, cron_job.time_zone))
}

/// The stretches to walk: start and end.
fn stretches(cron_job: &CronJob, zone: &SoakZone, decade: &Decade, breadth: &Breadth) -> Vec<(i64, i64)> {
    if cron_job.n_per_year() <= breadth.n_per_year_max {
        // The walk does not start at a full minute.
        return vec![(decade.begin + 17, decade.end)];
    }
    let mut around: Vec<i64> = zone
        .changes_in(decade)
        .map(|change| change.at)
        .filter(|at| (decade.begin + AROUND_SECONDS..decade.end - AROUND_SECONDS).contains(at))
        .take(breadth.n_changes_max)
        .collect();
    if around.is_empty() {
        around.push(decade.begin + AROUND_SECONDS);
    }
    around
        .into_iter()
        .map(|at| (at - AROUND_SECONDS, at + AROUND_SECONDS))
        .collect()
}

pub(super) fn fires(schedule: &Schedule, from: i64, until: i64) -> Vec<i64> {
    let mut fires = Vec::new();
    let mut at = from;
    while let Some(next) = next(schedule, at) {
        assert!(next > at, "{schedule:?} goes from {at} to {next}");
        if next > until {
            break;
        }
        fires.push(next);
        at = next;
    }
    fires
}

fn next(schedule: &Schedule, at: i64) -> Option<i64> {
    let next = schedule.next_after(Timestamp::from_second(at).expect("an instant"), &Zone::utc());
    next.map(Timestamp::as_second)
}

fn record(fires: &[i64], from: i64, until: i64, walked: &mut Walked) {
    walked.n_walks += 1;
    walked.n_fires += fires.len() as u64;
    if fires.is_empty() {
        return;
    }
    let ends = [from].into_iter().chain(fires.iter().copied());
    let silences = ends.zip(fires.iter().copied().chain([until]));
    let longest = silences.map(|(before, after)| after - before).max();
    walked.longest_silence = walked.longest_silence.max(longest.unwrap_or(0));
}

/// Activations. Each is found from the previous one.
pub(super) struct Walk<'a> {
    pub(super) from: i64,
    pub(super) until: i64,
    pub(super) fires: &'a [i64],
}

impl Walk<'_> {
    /// The start and end of the search that found an instant or skipped it.
    fn search_over(&self, instant: i64) -> (i64, i64) {
        let place = self.fires.partition_point(|fire| *fire < instant);
        let begin = place.checked_sub(1).map_or(self.from, |before| self.fires[before]);
        (begin, self.fires.get(place).copied().unwrap_or(self.until))
    }
}

/// The differences of two ascending sequences.
pub(super) struct Differences {
    /// Expected, but not found.
    pub(super) missing: Vec<i64>,
    /// Found, but not expected.
    pub(super) extra: Vec<i64>,
}

pub(super) fn differences(fires: &[i64], expected: &[i64]) -> Differences {
    let (mut missing, mut extra) = (Vec::new(), Vec::new());
    let mut fires = fires.iter().copied().peekable();
    for &instant in expected {
        while let Some(fire) = fires.next_if(|fire| *fire < instant) {
            extra.push(fire);
        }
        if fires.next_if_eq(&instant).is_none() {
            missing.push(instant);
        }
    }
    extra.extend(fires);
    Differences { missing, extra }
}

/// Asserts that a walk departs from the calendar only in searches across an odd change. Such a search may lose only the
/// day of the change and the next day among the days that it must find. If a month begins with the change, the search
/// may skip that month and be late in the next month. This has not happened since 2011.
pub(super) fn check(cron_job: &CronJob, zone: &SoakZone, walk: &Walk<'_>, differences: &Differences) {
    let odd: Vec<Change> = match cron_job.rule {
        Rule::Every(_) => Vec::new(),
        Rule::Calendar(_) => zone.changes().filter(|change| change.is_odd()).collect(),
    };
    let n_days_max = |(begin, end): (i64, i64)| {
        let near = begin - NEAR_SECONDS..=end + NEAR_SECONDS;
        let passed = odd.iter().filter(|change| near.contains(&change.at));
        passed
            .map(|change| if change.begins_month() { 31 + 31 } else { 2 })
            .max()
    };
    let fail = |kind: &str, instant: i64| -> ! {
        let at = Timestamp::from_second(instant).expect("an instant");
        panic!("{:?} in {}: {kind} {at}", cron_job.schedule, zone.name);
    };
    let mut lost = Lost::default();
    for &instant in &differences.missing {
        let search = walk.search_over(instant);
        lost.count(search, instant);
        if n_days_max(search).is_none_or(|n_days_max| lost.n_days > n_days_max) {
            fail("does not run at", instant);
        }
    }
    for &instant in &differences.extra {
        if n_days_max(walk.search_over(instant)).is_none() {
            fail("runs against its fields at", instant);
        }
    }
}

/// The days that a search has lost.
#[derive(Default)]
struct Lost {
    search: (i64, i64),
    n_days: u32,
    day_begun: i64,
}

impl Lost {
    fn count(&mut self, search: (i64, i64), instant: i64) {
        if self.search != search {
            *self = Lost {
                search,
                ..Lost::default()
            };
        }
        if self.n_days == 0 || instant - self.day_begun >= DAY_SECONDS {
            self.n_days += 1;
            self.day_begun = instant;
        }
    }
}
