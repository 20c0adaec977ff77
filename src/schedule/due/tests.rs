//! Tests of B-9.1, B-9.2 and the exact slot on hand-written cases. `tests/it/vectors.rs` has the recorded answers.

use super::*;
use crate::schedule::parse_standard;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(text: &str) -> Schedule {
    parse_standard(text).unwrap()
}

#[track_caller]
fn check(text: &str, earliest: &str, now: &str, estimated: (&str, Missed, u64), exact: &str) {
    let (schedule, utc, earliest, now) = (schedule(text), Zone::utc(), at(earliest), at(now));
    let formatted = |slot: Option<Timestamp>| slot.map_or_else(|| "-".to_owned(), |slot| slot.to_string());
    let estimate = estimate(&schedule, &utc, earliest, now).unwrap();
    assert_eq!(
        (formatted(estimate.slot).as_str(), estimate.missed, estimate.activations),
        estimated,
        "{text} at {now}"
    );
    assert_eq!(
        formatted(most_recent(&schedule, &utc, earliest, now)),
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
    check(
        "0 * * * *",
        earliest,
        "2026-05-15T10:59:59.999Z",
        ("-", Missed::None, 0),
        "-",
    );
    let first = "2026-05-15T11:00:00Z";
    check("0 * * * *", earliest, first, (first, Missed::None, 1), first);
    check(
        "0 * * * *",
        earliest,
        "2026-05-15T11:59:59.999Z",
        (first, Missed::None, 1),
        first,
    );
}

#[test]
fn classes_of_missed_activations_b_9_2() {
    let earliest = "2026-05-15T00:00:00Z";
    let two = "2026-05-15T00:02:00Z";
    check("* * * * *", earliest, two, (two, Missed::Few, 2), two);
    let hundred = "2026-05-15T01:40:00Z";
    check(
        "* * * * *",
        earliest,
        "2026-05-15T01:40:59.999Z",
        (hundred, Missed::Few, 100),
        hundred,
    );
    let next = "2026-05-15T01:41:00Z";
    check("* * * * *", earliest, next, (next, Missed::Many, 101), next);
    check(
        "* * * * *",
        "1999-12-31T23:59:00Z",
        next,
        (next, Missed::Many, 13_868_742),
        next,
    );
}

#[test]
fn only_the_estimate_loses_a_slot_of_an_irregular_schedule_b_9_3() {
    let (thursday, friday) = ("2026-05-14T10:30:00Z", "2026-05-15T16:30:00Z");
    check(
        "30 10,11,12 * * 1-5",
        thursday,
        friday,
        ("-", Missed::Few, 30),
        "2026-05-15T12:30:00Z",
    );
}

#[test]
fn a_schedule_without_activations_never_runs_b_9_2() {
    let (earliest, now) = (at("2026-05-15T00:00:00Z"), at("2026-05-16T00:00:00Z"));
    for text in ["0 0 31 2 *", ", * * * *"] {
        assert_eq!(
            estimate(&schedule(text), &Zone::utc(), earliest, now),
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
    check(
        "@every 90s",
        earliest,
        "2026-05-15T00:01:29.999Z",
        ("-", Missed::None, 0),
        "-",
    );
    let last = "2026-05-15T00:58:30Z";
    check(
        "@every 90s",
        earliest,
        "2026-05-15T00:59:59.999Z",
        (last, Missed::Few, 39),
        last,
    );
    check(
        "@every 1s",
        "1970-01-01T00:00:00Z",
        last,
        (last, Missed::Many, 1_778_806_710),
        last,
    );
    check(
        "@every 1h",
        "2026-05-15T00:00:00Z",
        "2026-05-14T00:00:00Z",
        ("-", Missed::None, 0),
        "-",
    );
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
            let estimate = estimate(&schedule(text), &utc, earliest, now);
            assert!(estimate.is_ok_and(|estimate| estimate.slot.is_none_or(|slot| slot <= now)) || earliest > now);
        }
    }
}
