//! Tests of B-8, rule by rule, and comparisons of the two algorithms.

mod chains;
mod lines;
mod once;
mod sample;
mod second_opinion;

use super::*;
use crate::schedule::parse_standard;

fn zone(name: &str) -> Zone {
    Zone::load(name).unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn schedule(text: &str) -> Schedule {
    parse_standard(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

pub(super) fn spec(text: &str) -> Spec {
    match schedule(text).rule {
        Rule::Spec(spec) => spec,
        rule @ (Rule::Every(_) | Rule::Lines(_)) => panic!("{text:?} is {rule:?}"),
    }
}

/// Checks successive activations. `-` stands for no activation and comes last.
#[track_caller]
fn check(text: &str, zone_name: &str, from: &str, expected: &[&str]) {
    let (schedule, zone) = (schedule(text), zone(zone_name));
    let mut reference = at(from);
    for (index, expected) in expected.iter().enumerate() {
        let next = schedule.next_after(reference, &zone);
        let found = next.map_or_else(|| "-".to_owned(), |next| next.to_string());
        assert_eq!(
            found, *expected,
            "{text} in {zone_name} from {from}, activation {index}"
        );
        reference = next.unwrap_or(reference);
    }
}

#[test]
fn activations_are_later_than_the_reference_at_whole_seconds_b_8_1() {
    check("* * * * *", "UTC", "2026-05-15T10:30:00Z", &["2026-05-15T10:31:00Z"]);
    check(
        "* * * * *",
        "UTC",
        "2026-05-15T10:29:59.999999999Z",
        &["2026-05-15T10:30:00Z"],
    );
    check(
        "* * * * *",
        "UTC",
        "2026-05-15T10:30:00.000000001Z",
        &["2026-05-15T10:31:00Z"],
    );
    check(
        "* * * * *",
        "UTC",
        "1969-12-31T23:58:59.5Z",
        &["1969-12-31T23:59:00Z", "1970-01-01T00:00:00Z"],
    );
    check(
        "59 23 31 12 *",
        "UTC",
        "2026-12-31T23:58:59Z",
        &["2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"],
    );
    check(
        "0 0 29 2 *",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
    );
}

#[test]
fn day_rule_b_7_8() {
    // Every 13th and every Friday match.
    let union = [
        "2026-11-13T00:00:00Z",
        "2026-11-20T00:00:00Z",
        "2026-11-27T00:00:00Z",
        "2026-12-04T00:00:00Z",
    ];
    check("0 0 13 * 5", "UTC", "2026-11-07T00:00:00Z", &union);
    check(
        "0 0 13 * *",
        "UTC",
        "2026-11-07T00:00:00Z",
        &["2026-11-13T00:00:00Z", "2026-12-13T00:00:00Z"],
    );
    check("0 0 13 * 0-6", "UTC", "2026-11-07T00:00:00Z", &["2026-11-08T00:00:00Z"]);
    check(
        "0 0 */1 * 5",
        "UTC",
        "2026-11-07T00:00:00Z",
        &["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"],
    );
}

#[test]
fn every_is_anchored_to_the_reference_b_7_5_b_8_5() {
    check(
        "@every 90s",
        "Asia/Tokyo",
        "2026-05-15T10:30:30.75Z",
        &["2026-05-15T10:32:00Z", "2026-05-15T10:33:30Z"],
    );
    check(
        "TZ=Asia/Tokyo @every 1ns",
        "UTC",
        "2026-05-15T10:30:30Z",
        &["2026-05-15T10:30:31Z"],
    );
    check("@every 2562047h", "UTC", "9999-01-01T00:00:00Z", &["-"]);
    assert!(schedule("@every 1h").is_every());
    assert!(!schedule("@hourly").is_every());
}

#[test]
fn the_zone_of_the_schedule_precedes_the_given_zone_b_7_2() {
    check(
        "0 0 * * *",
        "Asia/Tokyo",
        "2026-05-15T10:30:30Z",
        &["2026-05-15T15:00:00Z"],
    );
    check(
        "TZ=Local 0 0 * * *",
        "Asia/Tokyo",
        "2026-05-15T10:30:30Z",
        &["2026-05-15T15:00:00Z"],
    );
    check(
        "TZ=Europe/Berlin 0 0 * * *",
        "Asia/Tokyo",
        "2026-05-15T10:30:30Z",
        &["2026-05-15T22:00:00Z"],
    );
}

#[test]
fn a_time_in_a_gap_is_skipped_b_8_4() {
    let days = ["2026-03-07T07:30:00Z", "2026-03-09T06:30:00Z"];
    check("30 2 * * *", "America/New_York", "2026-03-07T00:00:00Z", &days);
    check(
        "0 2 * * *",
        "Europe/Berlin",
        "2026-03-28T12:00:00Z",
        &["2026-03-30T00:00:00Z"],
    );
    check(
        "30 1 * * *",
        "Europe/London",
        "2026-03-28T12:00:00Z",
        &["2026-03-30T00:30:00Z"],
    );
    let hours = ["2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z"];
    check("0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", &hours);
}

#[test]
fn a_time_in_an_overlap_fires_twice_b_8_4() {
    let twice = ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"];
    check("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", &twice);
    let midnight = ["2026-11-01T04:00:00Z", "2026-11-01T05:00:00Z", "2026-11-02T05:00:00Z"];
    check("@daily", "America/Havana", "2026-10-31T12:00:00Z", &midnight);
}

#[test]
fn a_gap_at_midnight_may_skip_or_move_the_day_b_8_4() {
    check(
        "30 0 * * *",
        "America/Santiago",
        "2024-09-07T10:00:00Z",
        &["2024-09-09T03:30:00Z"],
    );
    // East of Greenwich, the gap at midnight skips the Friday, unless the search begins on it.
    check(
        "0 12 * * 5",
        "Africa/Cairo",
        "2026-04-23T12:00:00Z",
        &["2026-05-01T09:00:00Z"],
    );
    check(
        "0 12 * * 5",
        "Africa/Cairo",
        "2026-04-23T22:30:00Z",
        &["2026-04-24T09:00:00Z"],
    );
    check(
        "0 12 * * 4,5",
        "Africa/Cairo",
        "2026-04-23T12:00:00Z",
        &["2026-04-24T09:00:00Z"],
    );
    check(
        "0 12 * * 0",
        "Asia/Beirut",
        "2026-03-26T22:00:00Z",
        &["2026-04-05T09:00:00Z"],
    );
    // The hour loop does not pass hour 0, so the day is not checked again. The activation falls on a Friday, or on
    // Sunday the eighth.
    check(
        "0 1 * * 4",
        "Africa/Cairo",
        "2026-04-23T12:00:00Z",
        &["2026-04-23T22:00:00Z"],
    );
    check(
        "0 5 7 * *",
        "America/Santiago",
        "2024-09-07T10:00:00Z",
        &["2024-09-08T08:00:00Z"],
    );
}

#[test]
fn a_shift_by_half_an_hour_moves_the_minutes_b_8_4() {
    check(
        "0 5 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T10:00:00Z",
        &["2026-04-05T18:30:00Z"],
    );
    check(
        "*/10 5 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T10:00:00Z",
        &["2026-04-04T19:00:00Z"],
    );
    check(
        "0 0 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T14:00:00Z",
        &["2026-04-06T13:30:00Z"],
    );
}

#[test]
fn impossible_dates_have_no_activation_b_8_4() {
    for text in [
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        ", * * * *",
        "* , * * *",
        "* * * , *",
        "* * , * ,",
        "* * * * ,",
    ] {
        for zone in ["UTC", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe"] {
            check(text, zone, "2026-03-29T00:00:00Z", &["-"]);
        }
    }
    check("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["-"]);
    check("0 0 29 2 *", "UTC", "2098-12-31T23:59:58Z", &["-"]);
    check("0 0 29 2 *", "UTC", "2098-12-31T23:59:59Z", &["2104-02-29T00:00:00Z"]);
}

#[test]
fn no_activation_follows_the_maximum_timestamp() {
    check("* * * * *", "UTC", "9999-12-30T22:00:00.999999999Z", &["-"]);
    let start = Timestamp::MIN.to_string();
    for name in ["UTC", "Asia/Kolkata", "America/New_York"] {
        assert!(
            schedule("* * * * *").next_after(at(&start), &zone(name)).is_some(),
            "{name}"
        );
        assert_eq!(
            schedule("0 0 1 1 *").next_after(Timestamp::MAX, &zone(name)),
            None,
            "{name}"
        );
    }
}

#[test]
fn the_search_ends_at_a_skipped_calendar_day_b_8_4() {
    check("0 0 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", &["-"]);
    check(
        "0 0 30 12 *",
        "Pacific/Apia",
        "2012-01-01T00:00:00Z",
        &["2012-12-29T10:00:00Z"],
    );
    check("0 0 21 8 *", "Pacific/Kwajalein", "1993-08-01T00:00:00Z", &["-"]);
}

#[test]
fn next_activation_is_later_even_if_the_library_returns_its_reference() {
    let (schedule, zone) = (schedule("23-49/3 0 * ? 0-FRI"), zone("America/St_Johns"));
    let reference = at("2004-10-31T02:53:00Z");
    assert_eq!(schedule.library_next_after(reference, &zone), Some(reference));
    assert_eq!(schedule.next_after(reference, &zone), Some(at("2004-10-31T03:53:00Z")));
}

#[test]
fn search_and_walk_agree_b_8_3() {
    let mut random = sample::Random::new(0x5eed_0001);
    for _ in 0..20_000 {
        let text = sample::schedule_text(&mut random);
        let zone = sample::zone(&mut random);
        let mut reference = sample::instant(&mut random, &zone);
        let spec = spec(&text);
        for _ in 0..3 {
            let (quick, walked) = (
                library_next(&spec, &zone, reference),
                walk::next(&spec, &zone, reference),
            );
            assert_eq!(quick, walked, "{text} in {zone:?} from {reference}; {random}");
            let Some(next) = quick else { break };
            let stepped_to = next_of_spec(&spec, &zone, reference);
            assert!(
                stepped_to > Some(reference),
                "{text} in {zone:?} from {reference}: {stepped_to:?}; {random}"
            );
            assert!(
                stepped_to == quick || next <= reference,
                "{text} in {zone:?} from {reference}; {random}"
            );
            reference = next.max(reference + 1);
        }
    }
}

#[test]
fn backward_search_is_the_forward_search_reversed() {
    let mut random = sample::Random::new(0x5eed_0002);
    for _ in 0..5_000 {
        let text = sample::schedule_text(&mut random);
        let spec = spec(&text);
        let wall = random.between(0, 4_000_000_000);
        let wall_min = wall - random.between(0, 400 * 86_400);
        let mut last = None;
        // Finds the last match from `wall_min` on by stepping forward. If `last_until` finds one, the steps begin
        // there.
        let mut reference = wall_min - 1;
        if let Some(found) = search::last_until(&spec, wall, wall_min) {
            assert!(
                (wall_min..=wall).contains(&found),
                "{text} until {wall}: {found}; {random}"
            );
            reference = found - 1;
        }
        while let Some(next) = search::first_after(&spec, reference).filter(|next| *next <= wall) {
            assert_eq!(last, None, "{text} until {wall}: a later match at {next}; {random}");
            (reference, last) = (next, Some(next));
        }
        assert_eq!(
            search::last_until(&spec, wall, wall_min),
            last,
            "{text} until {wall} from {wall_min}; {random}"
        );
    }
}

#[test]
fn calendar_matches_jiff() {
    for day in (-800_000_i64..800_000).step_by(13).chain(-1_000..40_000) {
        let date = calendar::Date::of_day(day);
        let expected = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(day);
        let (year, month, day_of_month) = (date.year, date.month, date.day);
        assert_eq!(
            format!("{year:06}-{month:02}-{day_of_month:02}"),
            format!("{:06}-{:02}-{:02}", expected.year(), expected.month(), expected.day())
        );
        assert_eq!(calendar::day_number(year, month.into(), day_of_month.into()), day);
        assert_eq!(
            calendar::weekday(day),
            expected.weekday().to_sunday_zero_offset().unsigned_abs()
        );
        assert_eq!(
            calendar::day_number(year, i64::from(month) + 1, 1) - calendar::day_number(year, month.into(), 1),
            i64::from(expected.days_in_month())
        );
    }
    assert_eq!(calendar::day_number(2026, 14, 32), calendar::day_number(2027, 3, 4));
}
