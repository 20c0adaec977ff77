//! Tests of O-5: schedules of the `cron` crate, in UTC compared with the crate, in zones with `chrono-tz`.

use std::str::FromStr as _;

use chrono::{DateTime, Days, TimeZone as _, Utc};
use chrono_tz::Tz;

use super::{
    once::{local_of, start_of},
    sample::Random,
    second_opinion::DATA_DIFFERS,
    *,
};
use crate::schedule::{CronJobSchedule, SchedulesError, due};

fn lines(text: &str, clock_change: ClockChange) -> Schedule {
    let lines = Lines::parse(text, None).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    Schedule::lines(lines).with_clock_change(clock_change)
}

#[track_caller]
fn check_lines(clock_change: ClockChange, text: &str, zone_name: &str, from: &str, expected: &[&str]) {
    let (schedule, zone) = (lines(text, clock_change), zone(zone_name));
    let mut reference = at(from);
    for expected in expected {
        let next = schedule.next_after(reference, &zone);
        let found = next.map_or_else(|| "-".to_owned(), |next| next.to_string());
        assert_eq!(found, *expected, "{text:?} in {zone_name} after {reference}");
        reference = next.unwrap_or(reference);
    }
}

#[track_caller]
fn literal(text: &str, zone_name: &str, from: &str, expected: &[&str]) {
    check_lines(ClockChange::Literal, text, zone_name, from, expected);
}

#[test]
fn the_activations_are_those_of_each_line_o_5_1() {
    let both = ["2026-12-01T02:30:15Z", "2026-12-01T12:00:00Z", "2026-12-02T02:30:15Z"];
    literal(
        "# nights\n15 30 2 * * *\n\n  # L, W and #\r\n  0 0 12 1 * *\r\n",
        "UTC",
        "2026-11-30T12:00:00Z",
        &both,
    );
    // Activations of two lines at one instant are one.
    let noon = ["2026-12-01T12:00:00Z", "2026-12-02T12:00:00Z"];
    literal("0 0 12 * * *\n0 0 12 * * Tue", "UTC", "2026-12-01T00:00:00Z", &noon);
    let years = ["2027-01-01T00:00:00Z", "2029-01-01T00:00:00Z", "-"];
    literal("0 0 0 1 1 * 2025,2027,2029", "UTC", "2026-01-01T00:00:00Z", &years);
    // Day of week 1 is Sunday, and both day fields must match.
    literal("0 0 0 * * 1", "UTC", "2026-11-27T00:00:00Z", &["2026-11-29T00:00:00Z"]);
    literal(
        "0 0 0 13 * Fri",
        "UTC",
        "2026-11-27T00:00:00Z",
        &["2027-08-13T00:00:00Z"],
    );
    literal(
        "@daily",
        "Europe/Berlin",
        "2026-11-27T00:00:00Z",
        &["2026-11-27T23:00:00Z"],
    );
}

#[test]
fn clock_changes_are_literal_by_default_o_5_2() {
    let gap = ["2026-03-28T01:30:30Z", "2026-03-30T00:30:30Z"];
    literal("30 30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", &gap);
    let twice = ["2026-10-25T00:30:30Z", "2026-10-25T01:30:30Z", "2026-10-26T01:30:30Z"];
    literal("30 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &twice);
    // Unlike those of the library, the activations do not depend on a path (B-8.4).
    literal(
        "0 0 12 * * Fri",
        "Africa/Cairo",
        "2026-04-20T00:00:00Z",
        &["2026-04-24T09:00:00Z"],
    );
    literal(
        "0 0 0 30 12 *",
        "Pacific/Apia",
        "2011-12-01T00:00:00Z",
        &["2012-12-29T10:00:00Z"],
    );
}

#[test]
fn lines_follow_once_o_5_3() {
    let once = |text, from, expected| check_lines(ClockChange::Once, text, "Europe/Berlin", from, expected);
    let gap = ["2026-03-28T01:30:30Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:30Z"];
    once("30 30 2 * * *", "2026-03-28T00:00:00Z", &gap);
    let first = ["2026-10-25T00:30:30Z", "2026-10-26T01:30:30Z"];
    once("30 30 2 * * *", "2026-10-24T12:00:00Z", &first);
    // The line of every hour stays literal.
    let mixed = ["2026-10-25T00:30:00Z", "2026-10-25T00:45:00Z", "2026-10-25T01:45:00Z"];
    once("0 30 2 * * *\n0 45 * * * *", "2026-10-25T00:00:00Z", &mixed);
}

#[test]
fn an_option_that_cannot_be_used_is_refused_o_5_4() {
    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = Lines::parse(text, None).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text:?}");
    }
    refused("\n \n", "no schedule; write one in each line, such as 0 30 2 * * *");
    refused("# later\n", "no schedule; write one in each line, such as 0 30 2 * * *");
    refused(&"0 0 0 * * *\n".repeat(17), "more than 16 schedules");
    refused(&" ".repeat(4_097), "longer than 4096 bytes");
    refused(
        &format!("0 0 0 * * * *{}", ",*".repeat(513)),
        "more than 512 commas; write ranges such as 0-30 or steps such as */5",
    );
    // The message about the annotation has its value without the lines of white space before the first line.
    refused(
        "\n \n0 0 0 * * *\n# one more\n30 2 * * *",
        "line 3: 5 fields instead of 6 or 7; write second, minute, hour, day of month, month, day of week and, if \
         needed, year",
    );
    refused(
        "@every 5m",
        "line 1: \"@every 5m\" is unknown; the names are @yearly, @monthly, @weekly, @daily and @hourly",
    );
    refused(
        "0 0 25 * * *",
        "line 1: hour \"25\" is not understood; write values of 0 to 23, as in 1, 1-4, 1,4 or */2",
    );
    refused(
        "0 0 0 * * 0",
        "line 1: day of week \"0\" is not understood; write values of 1 to 7, where 1 is Sunday, or names such as Sun, \
         as in 1, 1-4, 1,4 or */2",
    );
    for (text, day) in [
        ("0 0 0 L * *", "day of month \"L\""),
        ("0 0 0 15W * *", "day of month \"15W\""),
        ("0 0 0 * * 6#3", "day of week \"6#3\""),
        ("0 0 0 * * 6L", "day of week \"6L\""),
    ] {
        let error = Lines::parse(text, None).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("line 1: {day}: L, W and # are not supported")),
            "{error}"
        );
    }
    let error = Lines::parse(&format!("0 0 0 * * {}", "x".repeat(4_000)), None).unwrap_err();
    assert!(error.to_string().len() < 250, "{error}");
}

#[test]
fn a_schedule_that_lists_every_value_is_accepted_o_5_4() {
    let list =
        |range: std::ops::RangeInclusive<u16>| range.map(|value| value.to_string()).collect::<Vec<_>>().join(",");
    let fields = [0..=59, 0..=59, 0..=23, 1..=31, 1..=12, 1..=7, 1_970..=2_100].map(list);
    assert!(Lines::parse(&fields.join(" "), None).is_ok());
}

#[test]
fn any_text_is_parsed_or_refused_with_a_line_o_5_4() {
    const PARTS: [&str; 16] = [
        "*", "?", "0", "5", "59", "/", "-", ",", " ", " ", "\n", "Mon", "@daily", "2027", "ö", "L",
    ];
    let mut random = Random::new(0x5eed_0009);
    let mut n_parsed = 0;
    for _ in 0..5_000 {
        let n_parts = random.between(1, 24);
        let text: String = (0..n_parts)
            .map(|_| random.pick(&PARTS.each_ref().map(|part| *part)))
            .collect();
        match Lines::parse(&text, None) {
            Ok(lines) => {
                n_parsed += 1;
                let schedule = Schedule::lines(lines);
                let first = schedule.next_after(at("2026-01-01T00:00:00Z"), &Zone::utc());
                assert!(first.is_none_or(|first| first > at("2026-01-01T00:00:00Z")), "{text:?}");
            }
            Err(SchedulesError::Line { line, .. }) => assert!((1..=text.lines().count()).contains(&line), "{text:?}"),
            Err(error) => assert_eq!(error, SchedulesError::Empty, "{text:?}"),
        }
    }
    assert!(n_parsed > 5, "{n_parsed}");
}

#[test]
fn seconds_are_noticed_o_5_5() {
    let has_seconds = |text| lines(text, ClockChange::Literal).has_seconds();
    assert!(!has_seconds("0 */5 * * * *\n0 0 0 1 1 * 2027"));
    assert!(!has_seconds("@hourly"));
    assert!(has_seconds("0 0 0 * * *\n*/30 0 0 * * *"));
    assert!(has_seconds("30 0 0 * * *"));
    assert!(!schedule("@every 90s").has_seconds() && !schedule("* * * * *").has_seconds());
}

#[test]
fn a_schedule_of_some_years_ends_o_5_6() {
    let utc = Zone::utc();
    let (created, end) = (at("2026-01-01T00:00:00Z"), at("2040-01-01T00:00:00Z"));
    let last_one = lines("0 0 12 24 12 * 2026", ClockChange::Literal);
    let slot = at("2026-12-24T12:00:00Z");
    // The last activation runs, although none follows, and later nothing is missed.
    assert_eq!(due::is_many_missed(&last_one, &utc, created, slot), Ok(false));
    assert_eq!(due::most_recent(&last_one, &utc, created, slot), Some(slot));
    assert_eq!(due::is_many_missed(&last_one, &utc, slot, end), Ok(false));
    assert_eq!(due::most_recent(&last_one, &utc, slot, end), None);
    let never = lines("0 0 12 30 2 *", ClockChange::Literal);
    assert_eq!(due::is_many_missed(&never, &utc, created, end), Err(due::NeverRuns));
    // More than five years ahead.
    literal(
        "0 0 0 1 1 * 2050",
        "UTC",
        "2026-01-01T00:00:00Z",
        &["2050-01-01T00:00:00Z"],
    );
}

#[test]
fn lines_replace_the_activations_in_the_zone_of_the_cron_job_o_5_1() {
    let new = |text, zone| CronJobSchedule::new(text, zone, &zone_of("Asia/Tokyo"));
    let from = at("2026-11-27T00:00:00Z");
    for (text, zone, expected) in [
        ("0 3 * * *", Some("Europe/Berlin"), "2026-11-27T12:00:30Z"),
        ("@every 1h", Some("Europe/Berlin"), "2026-11-27T12:00:30Z"),
        ("0 3 * * *", None, "2026-11-27T04:00:30Z"),
        ("TZ=America/New_York 0 3 * * *", None, "2026-11-27T18:00:30Z"),
        ("TZ=Local 0 3 * * *", Some("Europe/Berlin"), "2026-11-27T04:00:30Z"),
    ] {
        let before = new(text, zone);
        let after = before.clone().with_schedules("30 0 13 * * *").unwrap();
        assert_eq!(after.next_run(from, from), Some(at(expected)), "{text} in {zone:?}");
        assert_eq!(after.effective_zone(), before.effective_zone(), "{text} in {zone:?}");
        assert_eq!(&*after.text, text);
        assert!(after.differs_from(&before) && !after.differs_from(&after.clone()));
    }
    let invalid = new("61 * * * *", None);
    assert!(invalid.with_schedules("30 0 13 * * *").unwrap().parsed.is_err());
    assert!(new("0 3 * * *", None).with_schedules("0 3 * * *").is_err());
}

fn zone_of(name: &str) -> Zone {
    zone(name)
}

/// Six or seven fields in several forms.
fn lines_text(random: &mut Random) -> String {
    let field = |random: &mut Random, min: i64, max: i64| match random.between(0, 5) {
        0 | 1 => "*".to_owned(),
        2 => format!("*/{}", random.between(1, max)),
        3 => {
            let low = random.between(min, max);
            format!("{low}-{}", random.between(low, max))
        }
        _ => format!("{},{}", random.between(min, max), random.between(min, max)),
    };
    let line = |random: &mut Random| {
        let mut fields = vec![random.pick(&["0", "0,30", "15", "0,45"]).to_owned()];
        for (min, max) in [(0, 59), (0, 23), (1, 31), (1, 12), (1, 7)] {
            fields.push(field(random, min, max));
        }
        if random.between(0, 3) == 0 {
            fields.push(field(random, 2_000, 2_036));
        }
        fields.join(" ").replace("*/2036", "*")
    };
    let n_lines = random.between(1, 3);
    (0..n_lines).map(|_| line(random)).collect::<Vec<_>>().join("\n")
}

fn schedules(text: &str) -> Vec<cron::Schedule> {
    text.lines()
        .map(|line| cron::Schedule::from_str(line).unwrap())
        .collect()
}

#[test]
fn activations_in_utc_are_those_of_the_cron_crate_o_5_1() {
    let mut random = Random::new(0x5eed_000a);
    let utc = Zone::utc();
    for _ in 0..1_000 {
        let text = lines_text(&mut random);
        let (schedule, others) = (lines(&text, ClockChange::Literal), schedules(&text));
        let earliest = random.between(946_684_800, 2_082_758_400);
        let mut reference = earliest;
        for _ in 0..5 {
            let after = DateTime::from_timestamp(reference, 0).unwrap();
            let expected = others.iter().filter_map(|other| other.after(&after).next()).min();
            let got = schedule.next_second(reference, &utc);
            assert_eq!(
                got,
                expected.map(|next| next.timestamp()),
                "{text:?} after {after}; {random}"
            );
            let Some(next) = got else { break };
            // A later instant before the next activation finds the same in both directions.
            let within = random.between(reference, next - 1);
            assert_eq!(
                schedule.next_second(within, &utc),
                Some(next),
                "{text:?} after {within}; {random}"
            );
            // The search for the last one goes back thirty years.
            let from = earliest.max(within - AGE_MAX_SECONDS);
            let last = schedule.last_in_chain(earliest, within, &utc);
            assert_eq!(
                last,
                Some(reference).filter(|_| reference > from),
                "{text:?} until {within}; {random}"
            );
            reference = next;
        }
    }
}

/// `cron` alone starts in the wrong month of an earlier year.
#[test]
fn the_last_activation_may_be_in_an_earlier_year_o_5_1() {
    let schedule = lines("0 0 0 1 12 * 2020", ClockChange::Literal);
    for (now, expected) in [
        ("2026-03-15T00:00:00Z", Some("2020-12-01T00:00:00Z")),
        ("2020-12-01T00:00:00Z", Some("2020-12-01T00:00:00Z")),
        ("2020-11-30T23:59:59Z", None),
    ] {
        let last = due::most_recent(&schedule, &Zone::utc(), at("2000-01-01T00:00:00Z"), at(now));
        assert_eq!(last, expected.map(at), "until {now}");
    }
}

/// Compares with a list of all activations near a clock change.
fn check_near_changes(
    clock_change: ClockChange,
    random: &mut Random,
    starts: impl Fn(&[cron::Schedule], Tz, i64, i64) -> Vec<i64>,
) {
    let mut n_compared = 0;
    for _ in 0..150 {
        let zone = sample::zone(random);
        if DATA_DIFFERS.contains(&zone.name()) {
            continue;
        }
        let text = lines_text(random);
        // A line of all hours is literal under `once`.
        let schedules: Vec<cron::Schedule> = schedules(&text);
        if clock_change == ClockChange::Once
            && schedules
                .iter()
                .any(|schedule| cron::TimeUnitSpec::is_all(schedule.hours()))
        {
            continue;
        }
        let schedule = lines(&text, clock_change);
        let middle = sample::instant(random, &zone).div_euclid(60) * 60;
        let (begin, end) = (middle - 43_200, middle + 43_200);
        let starts = starts(&schedules, Tz::from_str(zone.name()).unwrap(), begin, end);
        for _ in 0..8 {
            let (one, other) = (random.between(begin, end), random.between(begin, end));
            let (earliest, now) = (one.min(other), one.max(other));
            let place = |instant: i64| starts.partition_point(|start| *start <= instant);
            let context = format!("{text:?} in {zone:?} from {earliest} to {now}; {random}");
            if let Some(next) = starts.get(place(earliest)) {
                assert_eq!(schedule.next_second(earliest, &zone), Some(*next), "{context}");
            }
            let last = starts[place(earliest)..place(now)].last().copied();
            assert_eq!(schedule.last_in_chain(earliest, now, &zone), last, "{context}");
            n_compared += place(now) - place(earliest);
        }
    }
    assert!(n_compared > 1_000, "{n_compared}");
}

#[test]
fn literal_activations_are_all_matching_local_times_o_5_2() {
    let mut random = Random::new(0x5eed_000b);
    check_near_changes(ClockChange::Literal, &mut random, |schedules, other, begin, end| {
        let instants = (begin..=end).step_by(15);
        let is_match = |at: &i64| {
            let local = Utc.timestamp_opt(*at, 0).unwrap().with_timezone(&other);
            schedules.iter().any(|schedule| schedule.includes(local))
        };
        instants.filter(is_match).collect()
    });
}

#[test]
fn activations_under_once_are_all_matching_times_o_5_3() {
    let mut random = Random::new(0x5eed_000c);
    check_near_changes(ClockChange::Once, &mut random, |schedules, other, begin, end| {
        let first = (local_of(begin) - Days::new(2)).and_utc().timestamp();
        let walls = (first..end + 2 * 86_400).step_by(15);
        let matching = walls
            .map(local_of)
            .filter(|local| schedules.iter().any(|schedule| schedule.includes(local.and_utc())));
        let mut starts: Vec<i64> = matching.filter_map(|local| start_of(other, local)).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    });
}

fn shortest(text: &str) -> Option<i64> {
    lines(text, ClockChange::Literal)
        .as_lines()
        .unwrap()
        .shortest_distance_seconds()
}

#[test]
fn the_shortest_time_is_found_however_rare_it_is_o_1() {
    for (text, expected) in [
        ("0 0 * * * *\n0 30 2 1 7 *", Some(1_800)),
        ("0 0 * * * *\n0 20 2 29 2 Sun 2032", Some(1_200)),
        ("0 0 * * * *\n0 0 3 * * *", Some(3_600)),
        ("0 50 23 31 12 *\n0 5 0 1 1 *", Some(900)),
        ("0 50 23 28 2 *\n0 5 0 1 3 *", Some(900)),
        ("0 50 23 28 2 * 2028\n0 5 0 1 3 * 2028", None),
        ("0 0 0 * * Mon\n0 30 0 * * Tue", Some(88_200)),
        ("0 0 0 * * Mon\n0 30 0 * * Wed", None),
        ("59 59 23 * * *\n0 0 0 * * *", Some(1)),
        ("*/2 * * * * *", Some(2)),
        ("@daily", Some(86_400)),
        ("0 0 0 1 1 * 2027\n0 30 0 1 1 * 2028", None),
        ("0 0 0 30 2 *", None),
    ] {
        assert_eq!(shortest(text), expected, "{text:?}");
    }
}

#[test]
fn the_shortest_time_is_that_of_all_activations_o_1() {
    let mut random = Random::new(0x5eed_000d);
    let mut n_found = 0;
    for _ in 0..30 {
        let line = |random: &mut Random| {
            let fields = [
                random.pick(&["0", "30", "7,40"]),
                random.pick(&["0", "59", "5,50"]),
                random.pick(&["0", "23", "2,3"]),
                random.pick(&["*", "1", "28-31", "*/10"]),
                random.pick(&["*", "1,12", "2,3"]),
                random.pick(&["*", "1", "2-4"]),
            ];
            fields.join(" ") + " 2027-2028"
        };
        let text = (0..3).map(|_| line(&mut random)).collect::<Vec<_>>().join("\n");
        let all = lines(&text, ClockChange::Literal);
        let activations: Vec<i64> = all.wall_times_after(0).collect();
        let distances = activations.windows(2).map(|pair| pair[1] - pair[0]);
        let expected = distances.min().filter(|distance| *distance <= 86_400);
        let found = shortest(&text).filter(|distance| *distance <= 86_400);
        assert_eq!(found, expected, "{text:?}; {random}");
        n_found += usize::from(found.is_some());
    }
    assert!(n_found > 10, "{n_found}");
}
