//! Tests of B-9.1, B-9.2 and the exact slot on hand-written cases. `tests/it/vectors.rs` has the recorded answers.

use super::*;
use crate::schedule::parse_standard;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(text: &str) -> Schedule {
    parse_standard(text).unwrap()
}

/// Checks whether many activations were missed, and the exact slot.
#[track_caller]
fn check(text: &str, earliest: &str, now: &str, is_many: bool, exact: &str) {
    let (schedule, utc, earliest, now) = (schedule(text), Zone::utc(), at(earliest), at(now));
    assert_eq!(
        is_many_missed(&schedule, &utc, earliest, now),
        Ok(is_many),
        "{text} at {now}"
    );
    let slot = most_recent(&schedule, &utc, earliest, now);
    assert_eq!(
        slot.map_or_else(|| "-".to_owned(), |slot| slot.to_string()),
        exact,
        "{text} at {now}"
    );
}

#[test]
fn earliest_time_b_9_1() {
    let (created, last, now) = (
        at("2026-01-01T00:00:00Z"),
        at("2026-02-01T00:00:00Z"),
        at("2026-03-01T00:00:00.5Z"),
    );
    assert_eq!(earliest_time(created, None, None, now), created);
    assert_eq!(earliest_time(created, Some(last), None, now), last);
    assert_eq!(earliest_time(created, Some(last), Some(0), now), now);
    assert_eq!(
        earliest_time(created, Some(last), Some(60), now),
        at("2026-02-28T23:59:00.5Z")
    );
    assert_eq!(earliest_time(created, Some(last), Some(86_400 * 365), now), last);
    // The start of the deadline is before the earliest representable instant.
    for seconds in [1_000_000_000_000, i64::MAX] {
        assert_eq!(earliest_time(created, Some(last), Some(seconds), now), last);
    }
}

#[test]
fn before_the_first_and_the_second_activation_b_9_2() {
    let earliest = "2026-05-15T10:00:00Z";
    let first = "2026-05-15T11:00:00Z";
    check("0 * * * *", earliest, "2026-05-15T10:59:59.999Z", false, "-");
    check("0 * * * *", earliest, first, false, first);
    check("0 * * * *", earliest, "2026-05-15T11:59:59.999Z", false, first);
}

#[test]
fn more_than_a_hundred_missed_activations_are_many_b_9_2() {
    let earliest = "2026-05-15T00:00:00Z";
    let two = "2026-05-15T00:02:00Z";
    check("* * * * *", earliest, two, false, two);
    let hundred = "2026-05-15T01:40:00Z";
    check("* * * * *", earliest, "2026-05-15T01:40:59.999Z", false, hundred);
    let next = "2026-05-15T01:41:00Z";
    check("* * * * *", earliest, next, true, next);
    check("* * * * *", "1999-12-31T23:59:00Z", next, true, next);
}

#[test]
fn an_irregular_schedule_loses_no_slot_b_9_3() {
    let (thursday, friday) = ("2026-05-14T10:30:00Z", "2026-05-15T16:30:00Z");
    let last = "2026-05-15T12:30:00Z";
    check("30 10,11,12 * * 1-5", thursday, friday, false, last);
}

#[test]
fn a_schedule_without_activations_never_runs_b_9_2() {
    let (earliest, now) = (at("2026-05-15T00:00:00Z"), at("2026-05-16T00:00:00Z"));
    for text in ["0 0 31 2 *", ", * * * *"] {
        assert_eq!(
            is_many_missed(&schedule(text), &Zone::utc(), earliest, now),
            Err(NeverRuns),
            "{text}"
        );
        assert_eq!(
            most_recent(&schedule(text), &Zone::utc(), earliest, now),
            None,
            "{text}"
        );
    }
    assert_eq!(
        NeverRuns.to_string(),
        "time difference between two schedules is less than 1 second"
    );
}

#[test]
fn every_keeps_its_grid_b_7_5() {
    let earliest = "2026-05-15T00:00:00.75Z";
    let last = "2026-05-15T00:58:30Z";
    check("@every 90s", earliest, "2026-05-15T00:01:29.999Z", false, "-");
    check("@every 90s", earliest, "2026-05-15T00:59:59.999Z", false, last);
    check("@every 1s", "1970-01-01T00:00:00Z", last, true, last);
    check("@every 1h", "2026-05-15T00:00:00Z", "2026-05-14T00:00:00Z", false, "-");
}

#[test]
fn minimum_and_maximum_timestamps_are_handled() {
    let utc = Zone::utc();
    for text in ["@every 1s", "@every 2562047h", "0 0 1 1 *", "0 0 29 2 *"] {
        for (earliest, now) in [(Timestamp::MIN, Timestamp::MAX), (Timestamp::MAX, Timestamp::MIN)] {
            let recent = most_recent(&schedule(text), &utc, earliest, now);
            assert!(
                recent.is_none_or(|slot| earliest < slot && slot <= now),
                "{text}: {recent:?}"
            );
            assert!(
                is_many_missed(&schedule(text), &utc, earliest, now).is_ok() || earliest > now,
                "{text}"
            );
        }
    }
}
