//! Tests of O-6: activations under `clock-change: once`.

use std::str::FromStr as _;

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, TimeDelta, TimeZone as _};
use chrono_tz::Tz;

use super::{sample::Random, *};

/// The instant in Unix seconds at which a local time starts under `once`, by the zones of `chrono-tz`. `None` if the
/// zone skips the whole day.
pub(super) fn start_of(zone: Tz, local: NaiveDateTime) -> Option<i64> {
    if let Some(instant) = zone.from_local_datetime(&local).earliest() {
        return Some(instant.timestamp());
    }
    let is_shown = |local: NaiveDateTime| zone.from_local_datetime(&local).earliest().is_some();
    let midnight = local.date().and_time(chrono::NaiveTime::MIN);
    let minute = |n| midnight + TimeDelta::minutes(n);
    let is_day_skipped = !(0..1_440).any(|n| is_shown(minute(n)));
    let later = |n| local + TimeDelta::minutes(n);
    let end = (1..)
        .map(later)
        .find_map(|local| zone.from_local_datetime(&local).earliest());
    end.filter(|_| !is_day_skipped).map(|instant| instant.timestamp())
}

pub(super) fn local_of(wall: i64) -> NaiveDateTime {
    DateTime::from_timestamp(wall, 0).unwrap().naive_utc()
}

fn once(text: &str) -> Schedule {
    schedule(text).with_clock_change(ClockChange::Once)
}

#[track_caller]
fn check_once(text: &str, zone_name: &str, from: &str, expected: &[&str]) {
    let (schedule, zone) = (once(text), zone(zone_name));
    let mut reference = at(from);
    for (index, expected) in expected.iter().enumerate() {
        let next = schedule.next_after(reference, &zone).unwrap();
        assert_eq!(
            next.to_string(),
            *expected,
            "{text} in {zone_name} from {from}, activation {index}"
        );
        let last = schedule.last_in_chain(at(from).as_second(), next.as_second(), &zone);
        assert_eq!(last, Some(next.as_second()), "{text} in {zone_name} until {next}");
        reference = next;
    }
}

#[test]
fn a_skipped_time_starts_at_the_end_of_the_gap_o_6_1() {
    let berlin = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    check_once("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", &berlin);
    let at_midnight = ["2018-11-03T03:10:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:10:00Z"];
    check_once("10 0 * * *", "America/Sao_Paulo", "2018-11-03T00:00:00Z", &at_midnight);
    let by_half_an_hour = ["2026-10-02T15:45:00Z", "2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"];
    check_once(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-02T00:00:00Z",
        &by_half_an_hour,
    );
    // 01:00 to 03:00.
    let by_two_hours = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T23:30:00Z"];
    check_once("30 1 * * *", "Antarctica/Troll", "2026-03-28T00:00:00Z", &by_two_hours);
    // 23:00 to midnight: Saturday's run starts when Sunday does.
    let until_midnight = ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"];
    check_once("30 23 * * *", "America/Nuuk", "2026-03-28T00:00:00Z", &until_midnight);
}

#[test]
fn of_a_repeated_time_only_the_first_starts_o_6_1() {
    let berlin = ["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    check_once("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", &berlin);
    // From an instant in the second of the two hours.
    check_once(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-25T01:10:00Z",
        &["2026-10-26T01:30:00Z"],
    );
    let by_half_an_hour = ["2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"];
    check_once(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-03T00:00:00Z",
        &by_half_an_hour,
    );
    let at_midnight = ["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"];
    check_once("@daily", "America/Havana", "2026-10-31T12:00:00Z", &at_midnight);
    let by_two_hours = ["2026-10-25T00:30:00Z", "2026-10-26T02:30:00Z"];
    check_once("30 2 * * *", "Antarctica/Troll", "2026-10-24T12:00:00Z", &by_two_hours);
}

#[test]
fn times_that_start_together_are_one_activation_o_6_1() {
    let starts = [
        "2026-03-29T00:40:00Z",
        "2026-03-29T01:00:00Z",
        "2026-03-29T01:20:00Z",
        "2026-03-29T01:40:00Z",
        "2026-03-29T23:00:00Z",
    ];
    check_once("*/20 1-3 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", &starts);
}

#[test]
fn a_day_that_the_zone_skips_has_no_activation_o_6_2() {
    // Samoa skipped 30 December 2011, a Friday.
    let daily = ["2011-12-29T12:30:00Z", "2011-12-30T12:30:00Z", "2011-12-31T12:30:00Z"];
    check_once("30 2 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", &daily);
    check_once(
        "30 2 * * 5",
        "Pacific/Apia",
        "2011-12-29T00:00:00Z",
        &["2012-01-05T12:30:00Z"],
    );
    check_once(
        "0 0 21 8 *",
        "Pacific/Kwajalein",
        "1993-08-01T00:00:00Z",
        &["1994-08-20T12:00:00Z"],
    );
    let (schedule, apia) = (once("0 0 30 12 *"), zone("Pacific/Apia"));
    let (begin, end) = (
        at("2011-12-01T00:00:00Z").as_second(),
        at("2012-06-01T00:00:00Z").as_second(),
    );
    assert_eq!(schedule.last_in_chain(begin, end, &apia), None);
}

#[test]
fn the_weekday_of_a_skipped_day_does_not_leak_o_6_1() {
    check_once(
        "0 12 * * 5",
        "Africa/Cairo",
        "2026-04-23T12:00:00Z",
        &["2026-04-24T09:00:00Z"],
    );
    check_once(
        "0 0 * * 5",
        "Africa/Cairo",
        "2026-04-23T12:00:00Z",
        &["2026-04-23T22:00:00Z"],
    );
}

#[test]
fn schedules_of_every_hour_stay_literal_o_6_3() {
    for text in ["30 * * * *", "*/20 * * * *", "5 */1 * * 1-5", "@hourly", "@every 7h"] {
        assert_eq!(once(text), schedule(text), "{text}");
    }
    assert_ne!(once("0 0-22 * * *"), schedule("0 0-22 * * *"));
    let literal = once("0 2 * * *").with_clock_change(ClockChange::Literal);
    assert_eq!(literal, schedule("0 2 * * *"));
}

#[test]
fn an_option_makes_a_schedule_differ_o_6_4() {
    use crate::schedule::CronJobSchedule;
    let new = |text| CronJobSchedule::new(text, Some("Europe/Berlin"), &Zone::utc());
    assert!(new("0 2 * * *").differs_from(&new("0 2 * * *").with_clock_change(ClockChange::Once)));
    assert!(!new("0 * * * *").differs_from(&new("0 * * * *").with_clock_change(ClockChange::Once)));
}

#[test]
fn schedules_with_other_options_have_other_keys_o_6_4() {
    assert_eq!(
        (once("0 * * * *").options_key(), schedule("0 2 * * *").options_key()),
        (None, None)
    );
    assert_eq!(once("0 2 * * *").options_key().as_deref(), Some("once"));
}

#[test]
fn the_values_of_clock_change_have_names() {
    for value in [ClockChange::Literal, ClockChange::Once] {
        assert_eq!(ClockChange::of_name(value.as_str()), Some(value));
    }
    assert_eq!(ClockChange::of_name("Once"), None);
    assert_eq!(ClockChange::default(), ClockChange::Literal);
}

/// Days of the model before and after the days on which activations are compared: a zone with a repeated day moves its
/// times by a day.
const MARGIN_DAYS: u64 = 2;

/// The starts of every matching minute of some days.
fn model(spec: &Spec, other: Tz, first: NaiveDate, n_days: u64) -> Vec<i64> {
    let begin = (first - Days::new(MARGIN_DAYS))
        .and_time(chrono::NaiveTime::MIN)
        .and_utc()
        .timestamp();
    let n_minutes = i64::try_from((n_days + 2 * MARGIN_DAYS) * 1_440).unwrap();
    let is_match = |wall: i64| {
        let (day, minute) = (wall.div_euclid(86_400), wall.div_euclid(60));
        let date = calendar::Date::of_day(day);
        spec.has_month(date.month)
            && spec.has_day(date.day, calendar::weekday(day))
            && spec.has_hour(minute.rem_euclid(1_440) / 60)
            && spec.has_minute(minute.rem_euclid(60))
    };
    let walls = (0..n_minutes)
        .map(|minute| begin + minute * 60)
        .filter(|wall| is_match(*wall));
    let mut starts: Vec<i64> = walls.filter_map(|wall| start_of(other, local_of(wall))).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// A schedule of some hours, so that `once` applies.
fn schedule_text(random: &mut Random) -> String {
    loop {
        let text = sample::schedule_text(random);
        if spec(&text).hours != ALL_HOURS {
            return text;
        }
    }
}

#[test]
fn next_and_last_match_a_list_of_all_minutes_o_6_1() {
    let mut random = Random::new(0x5eed_0007);
    let mut n_compared = 0;
    for _ in 0..600 {
        let zone = sample::zone(&mut random);
        if second_opinion::DATA_DIFFERS.contains(&zone.name()) {
            continue;
        }
        let text = schedule_text(&mut random);
        let schedule = once(&text);
        let middle = sample::instant(&mut random, &zone);
        let first = local_of(middle).date() - Days::new(2);
        let starts = model(&spec(&text), Tz::from_str(zone.name()).unwrap(), first, 4);
        let begin = first.and_time(chrono::NaiveTime::MIN).and_utc().timestamp();
        let end = begin + 4 * 86_400;
        for _ in 0..8 {
            let (one, other) = (random.between(begin, end), random.between(begin, end));
            let (earliest, now) = (one.min(other), one.max(other));
            let place = |instant: i64| starts.partition_point(|start| *start <= instant);
            let context = format!("{text} in {zone:?} from {earliest} to {now}; {random}");
            if let Some(next) = starts.get(place(earliest)) {
                assert_eq!(schedule.next_second(earliest, &zone), Some(*next), "{context}");
            }
            let last = starts[place(earliest)..place(now)].last().copied();
            assert_eq!(schedule.last_in_chain(earliest, now, &zone), last, "{context}");
            n_compared += starts[place(earliest)..place(now)].len();
        }
    }
    assert!(n_compared > 10_000, "{n_compared}");
}

#[test]
fn next_and_last_agree_for_years_o_6_1() {
    let mut random = Random::new(0x5eed_0008);
    for _ in 0..200 {
        let (text, zone) = (schedule_text(&mut random), sample::zone(&mut random));
        let schedule = once(&text);
        let earliest = sample::instant(&mut random, &zone);
        let mut reference = earliest;
        for _ in 0..200 {
            let Some(next) = schedule.next_second(reference, &zone) else {
                break;
            };
            let context = format!("{text} in {zone:?}: {next} after {reference}; {random}");
            assert!(next > reference && next % 60 == 0, "{context}");
            let last = |from, until| schedule.last_in_chain(from, until, &zone);
            assert_eq!(last(earliest, next), Some(next), "{context}");
            assert_eq!(last(reference, next - 1), None, "{context}");
            let within = random.between(reference, next - 1);
            assert_eq!(schedule.next_second(within, &zone), Some(next), "{context}");
            reference = next;
        }
    }
}

#[test]
fn activations_go_on_beyond_the_table_of_the_zone_o_6_1() {
    let spring = ["2150-03-28T01:30:00Z", "2150-03-29T01:00:00Z", "2150-03-30T00:30:00Z"];
    check_once("30 2 * * *", "Europe/Berlin", "2150-03-28T00:00:00Z", &spring);
    let autumn = ["2150-10-25T00:30:00Z", "2150-10-26T01:30:00Z"];
    check_once("30 2 * * *", "Europe/Berlin", "2150-10-24T12:00:00Z", &autumn);
    let turn = ["2099-12-31T07:30:00Z", "2100-01-01T07:30:00Z"];
    check_once("30 2 * * *", "America/New_York", "2099-12-31T00:00:00Z", &turn);
    for name in ["UTC", "America/New_York"] {
        let schedule = once("0 0 1 1 *");
        assert!(schedule.next_after(Timestamp::MIN, &zone(name)).is_some(), "{name}");
        assert_eq!(schedule.next_after(Timestamp::MAX, &zone(name)), None, "{name}");
        let last = schedule.last_in_chain(Timestamp::MIN.as_second(), Timestamp::MAX.as_second(), &zone(name));
        assert!(last.is_some(), "{name}");
    }
}
