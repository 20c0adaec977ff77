//! Excluded slots against a walk that judges each slot by its date in the zone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::schedule::{CronJobSchedule, Zone, options::Calendar};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A schedule in a zone with a calendar of these lines.
fn schedule(text: &str, zone: &str, dates: &str) -> CronJobSchedule {
    let get = |name: &str| (name == "cronwheel.dev/not-on").then_some("holidays");
    let mut schedule = CronJobSchedule::new(text, Some(zone), &Zone::utc()).with_options("hello", get, 0);
    schedule.set_calendar(Calendar::read([("dates", dates)].into_iter()).map(Arc::new));
    schedule
}

/// The slots after an instant and not after another, each with whether its date is on the list.
fn walk(
    schedule: &CronJobSchedule,
    zone: &str,
    dates: &str,
    since: Timestamp,
    until: Timestamp,
) -> Vec<(Timestamp, bool)> {
    let zone = Zone::load(zone).unwrap().to_jiff();
    let is_excluded = |slot: Timestamp| {
        let date = slot.to_zoned(zone.clone()).date().to_string();
        dates.lines().any(|line| match line.split_once("..") {
            Some((first, last)) => first <= &*date && &*date <= last,
            None => line == date,
        })
    };
    let parsed = schedule.parsed.as_ref().unwrap();
    let next = |slot: &Timestamp| parsed.next_after(*slot, &schedule.default_zone);
    let slots = std::iter::successors(next(&since), next);
    slots
        .take_while(|slot| *slot <= until)
        .map(|slot| (slot, is_excluded(slot)))
        .collect()
}

const DATES: [&str; 4] = [
    "2026-03-29",
    "2026-03-28..2026-03-30\n2026-03-31",
    "2026-03-27\n2026-03-29\n2026-04-01..2026-04-03",
    "2026-10-24..2026-10-25\n2026-10-31\n2026-11-01",
];

#[test]
fn the_wanted_slots_are_those_on_other_dates_of_the_zone() {
    for zone in [
        "UTC",
        "Europe/Berlin",
        "Asia/Beirut",
        "America/Havana",
        "Pacific/Kiritimati",
        "America/St_Johns",
    ] {
        for text in ["30 2 * * *", "0 0 * * *", "*/20 * * * *", "59 23 * * 6,0", "@every 7h"] {
            for (dates, since, until) in DATES.into_iter().flat_map(|dates| {
                let spring = ("2026-03-25T11:00:00Z", "2026-04-05T13:10:00Z");
                let autumn = ("2026-10-22T11:00:00Z", "2026-11-03T13:10:00Z");
                [spring, autumn].map(|(since, until)| (dates, at(since), at(until)))
            }) {
                check(&schedule(text, zone, dates), (zone, dates), since, until);
            }
        }
    }
}

fn check(schedule: &CronJobSchedule, (zone, dates): (&str, &str), since: Timestamp, until: Timestamp) {
    let case = format!("{} in {zone}, not on {dates:?}", schedule.text);
    let slots = walk(schedule, zone, dates, since, until);
    let exclusion = schedule.exclusion().unwrap();
    let wanted: Vec<Timestamp> = slots
        .iter()
        .filter(|(_, is_excluded)| !is_excluded)
        .map(|(slot, _)| *slot)
        .collect();
    for (slot, is_excluded) in &slots {
        assert_eq!(exclusion.excludes(*slot), *is_excluded, "{case}: {slot}");
    }
    // From each slot backward and forward. An interval counts from the anchor.
    for (now, _) in &slots {
        let last = wanted.iter().rev().find(|slot| *slot <= now).copied();
        assert_eq!(exclusion.last_slot(since, since, *now), last, "{case}: last at {now}");
        let next = wanted.iter().find(|slot| *slot > now);
        if let Some(next) = next {
            assert_eq!(
                exclusion.next_in_chain(since, *now),
                Some(*next),
                "{case}: next after {now}"
            );
            assert_eq!(exclusion.next_after(*now), Some(*next), "{case}: next after {now}");
        }
    }
    // A number beyond a hundred is extrapolated.
    let days = SignedDuration::from_hours(24);
    let windows = std::iter::successors(Some(since), |from| Some(*from + days).filter(|from| *from < until));
    for from in windows {
        let to = (from + days).min(until);
        let in_window = slots
            .iter()
            .filter(|(slot, is_excluded)| *is_excluded && from < *slot && *slot < to);
        let counted = exclusion.count(since, from, to);
        assert_eq!(counted, in_window.count() as u64, "{case}: from {from} to {to}");
    }
}

#[test]
fn a_long_calendar_takes_no_walk_over_its_slots() {
    let schedule = schedule("* * * * *", "Europe/Berlin", "2000-01-01..2030-12-31");
    let exclusion = schedule.exclusion().unwrap();
    let now = at("2026-05-05T10:00:00Z");
    assert_eq!(exclusion.next_after(now), Some(at("2030-12-31T23:00:00Z")));
    let created = at("1999-12-31T22:50:30Z");
    assert_eq!(
        exclusion.last_slot(created, created, now),
        Some(at("1999-12-31T22:59:00Z"))
    );
}

#[test]
fn a_range_to_the_last_date_has_no_wanted_slot_after_it() {
    for dates in ["2026-05-05..9999-12-31", "2026-05-05..9999-12-30"] {
        for text in ["* * * * *", "@every 7h"] {
            let schedule = schedule(text, "Pacific/Kiritimati", dates);
            let exclusion = schedule.exclusion().unwrap();
            let created = at("2026-05-03T00:00:00Z");
            assert!(exclusion.excludes(at("2030-01-01T00:00:00Z")), "{dates}");
            assert_eq!(
                exclusion.next_after(at("2026-05-10T10:00:00Z")),
                None,
                "{dates}: {text}"
            );
            let last = exclusion.last_slot(created, created, at("2026-05-10T10:00:00Z"));
            assert!(
                last.is_some_and(|last| last < at("2026-05-04T10:00:00Z")),
                "{dates}: {text}"
            );
        }
    }
}

#[test]
fn the_search_for_a_wanted_slot_ends_after_five_years() {
    let now = at("2026-05-05T10:00:00Z");
    for (years, expected) in [(2026..2030, Some(at("2030-12-25T00:00:00Z"))), (2026..2066, None)] {
        let dates: Vec<String> = years.map(|year| format!("{year}-12-25")).collect();
        let schedule = schedule("0 0 25 12 *", "UTC", &dates.join("\n"));
        assert_eq!(schedule.next_wanted(now), expected, "{} dates", dates.len());
    }
}
