//! Daily schedules under `clock-change: once` (O-6): one run on every day of the calendar, in every zone, from 2000 to
//! 2040. `chrono-tz` gives the expected instants.

use std::str::FromStr as _;

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone as _};
use chrono_tz::Tz;
use cronwheel::schedule::{ClockChange, CronJobSchedule, Zone, due};
use jiff::Timestamp;

use super::{
    EVERY_NAME, USUAL, years_in_full,
    zones::{self, Decade, SoakZone},
};

/// 2000-01-01 and 2040-01-01.
const PERIOD: Decade = Decade {
    begin: 946_684_800,
    end: 2_208_988_800,
};

/// Days before and after a change on which runs are compared.
const AROUND_DAYS: u64 = 2;

/// The times of day of the full run, in seconds.
const TIMES: [i64; 5] = [0, 1_800, 5_400, 9_000, 84_600];

#[test]
fn a_daily_run_under_once_comes_on_every_day_o_6_1() {
    let is_full = years_in_full().is_some();
    let zones = zones::zones(&PERIOD, if is_full { &EVERY_NAME } else { &USUAL });
    let (mut n_names, mut n_runs, mut n_unknown) = (0, 0, 0);
    for zone in &zones {
        let Some(other) = same_zone(zone) else {
            n_unknown += zone.n_names;
            continue;
        };
        n_names += zone.n_names;
        n_runs += if is_full {
            TIMES
                .iter()
                .map(|time| check(zone, other, *time, first_day(), 40 * 365))
                .sum()
        } else {
            check_changes(zone, other)
        };
    }
    eprintln!("{n_names} names, {n_runs} runs; {n_unknown} names have other data in chrono-tz");
    assert!(
        n_names > 550 && n_unknown < 45 && n_runs > 50_000,
        "{n_names} names, {n_runs} runs"
    );
}

fn first_day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2000, 1, 1).expect("a date")
}

/// The zone of `chrono-tz`, whose data are of release 2025b, if it has the same offsets.
fn same_zone(zone: &SoakZone) -> Option<Tz> {
    let other = Tz::from_str(zone.name).ok()?;
    let is_same = |at: i64, offset: i64| {
        let utc = DateTime::from_timestamp(at, 0).expect("an instant").naive_utc();
        let local = other.from_utc_datetime(&utc).naive_local();
        (local - utc).num_seconds() == offset
    };
    let changes = zone.changes_in(&PERIOD);
    let is_alike = changes
        .into_iter()
        .all(|change| is_same(change.at - 1, change.before) && is_same(change.at, change.after));
    let spread = (PERIOD.begin..PERIOD.end).step_by(30 * 86_400);
    let is_alike = is_alike
        && spread.into_iter().all(|at| {
            zone.spans
                .iter()
                .any(|span| (span.start..span.end).contains(&at) && is_same(at, span.offset))
        });
    is_alike.then_some(other)
}

/// Compares the runs around each change, at times that the change skips or repeats.
fn check_changes(zone: &SoakZone, other: Tz) -> usize {
    let mut n_runs = 0;
    for change in zone.changes_in(&PERIOD) {
        let (begin, end) = change.wall_range();
        let middle = (begin + end) / 120 * 60;
        for wall in [begin, middle] {
            let day = DateTime::from_timestamp(wall, 0).expect("an instant").date_naive();
            let first = day - Days::new(AROUND_DAYS);
            n_runs += check(zone, other, wall.rem_euclid(86_400), first, 2 * AROUND_DAYS + 1);
        }
    }
    n_runs
}

/// Compares the runs of some days at a time of day. Returns their number.
fn check(zone: &SoakZone, other: Tz, time: i64, first: NaiveDate, n_days: u64) -> usize {
    let text = format!("{} {} * * *", time / 60 % 60, time / 3_600);
    let context = || format!("{text} in {} from {first}", zone.name);
    let cron_job = CronJobSchedule::new(&text, Some(zone.name), &Zone::utc()).with_clock_change(ClockChange::Once);
    let schedule = cron_job.parsed.as_ref().expect("a schedule");
    let local = |day| (first + Days::new(day)).and_time(NaiveTime::MIN) + TimeDelta::seconds(time);
    let expected: Vec<Timestamp> = (0..n_days).filter_map(|day| start_of(other, local(day))).collect();
    assert!(expected.is_sorted_by(|one, next| one < next), "{}", context());
    let before = Timestamp::from_second(expected[0].as_second() - 1).expect("an instant");
    let mut reference = before;
    for run in &expected {
        assert_eq!(run.as_second() % 60, 0, "{}: Jobs are named by the minute", context());
        assert_eq!(
            schedule.next_after(reference, &Zone::utc()),
            Some(*run),
            "{}",
            context()
        );
        assert_eq!(
            due::most_recent(schedule, &Zone::utc(), before, *run),
            Some(*run),
            "{}",
            context()
        );
        reference = *run;
    }
    expected.len()
}

/// The instant of a daily run: the first of two, the end of a gap, or none on a day that the zone skips.
fn start_of(zone: Tz, local: NaiveDateTime) -> Option<Timestamp> {
    let first = |local| zone.from_local_datetime(&local).earliest();
    let minute = |n: i64| local.date().and_time(NaiveTime::MIN) + TimeDelta::minutes(n);
    let instant = first(local).or_else(|| {
        (0..1_440).find_map(|n| first(minute(n)))?;
        (1..).find_map(|n| first(local + TimeDelta::minutes(n)))
    });
    instant.map(|instant| Timestamp::from_second(instant.timestamp()).expect("an instant"))
}
