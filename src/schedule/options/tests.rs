//! Tests of the options: values, offsets, and the choice among due slots.

mod decisions;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::schedule::{
    ConcurrencyPolicy, CronJobSchedule, Zone, parse_standard,
    policy::{Decision, Facts, SkipReason, decide},
};

fn read(option: OptionName, value: &str, schedule: &str) -> Options {
    let schedule = parse_standard(schedule).unwrap();
    let get = |name: &str| (name == option.annotation()).then_some(value);
    Options::read(get, Some(&schedule), u64::MAX / 2)
}

fn problem(option: OptionName, value: &str, schedule: &str) -> Option<String> {
    let options = read(option, value, schedule);
    let problems: Vec<String> = options
        .invalid
        .iter()
        .map(|invalid| invalid.problem.to_string())
        .collect();
    assert!(problems.len() < 2);
    if !problems.is_empty() {
        let (invalid, own) = (options.invalid.clone(), options.own.clone());
        let none = Options {
            invalid,
            own,
            ..Options::NONE
        };
        assert_eq!(options, none, "{value}: an invalid value has no effect");
    }
    problems.into_iter().next()
}

fn at(text: &str) -> Timestamp {
    format!("2026-05-05T{text}Z").parse().unwrap()
}

#[test]
fn every_example_is_valid() {
    for option in OptionName::OF_CRON_JOB {
        let get = |name: &str| (name == option.annotation()).then(|| option.example());
        let schedule = CronJobSchedule::new("0 * * * *", None, &Zone::utc()).with_options("hello", get, 0);
        assert_eq!(schedule.options().invalid, [], "{option:?}");
        assert_ne!(*schedule.options(), Options::NONE, "{option:?}");
        if option == OptionName::Schedule {
            continue;
        }
        assert_eq!(problem(option, option.example(), "0 * * * *"), None, "{option:?}");
        assert_ne!(read(option, option.example(), "0 * * * *"), Options::NONE, "{option:?}");
    }
}

#[test]
fn the_table_of_the_documentation_has_each_option_with_its_example() {
    const PAGE: &str = include_str!("../../../docs/start/options.md");
    for option in OptionName::OF_CRON_JOB.into_iter().chain([OptionName::FreezeUntil]) {
        let begin = format!("| [`{}`](#", option.annotation());
        let rows: Vec<&str> = PAGE.lines().filter(|line| line.starts_with(&begin)).collect();
        let cells: Vec<&str> = rows.first().map_or(Vec::new(), |row| row.split(" | ").collect());
        assert_eq!((rows.len(), cells.len()), (1, 5), "{option:?}");
        let is_of_cron_job = OptionName::OF_CRON_JOB.contains(&option);
        let is_of_namespace = OptionName::OF_NAMESPACE.contains(&option) || option == OptionName::FreezeUntil;
        assert_eq!(cells[1].contains("CronJob"), is_of_cron_job, "{option:?}");
        assert_eq!(cells[1].contains("namespace"), is_of_namespace, "{option:?}");
        assert_eq!(cells[3].trim_matches(['`', '"']), option.example(), "{option:?}");
    }
}

#[test]
fn an_invalid_value_is_named_with_an_example() {
    let options = read(OptionName::Spread, &"ten minutes".repeat(20), "0 * * * *");
    let message = options.invalid[0].to_string();
    assert_eq!(
        message,
        "annotation cronwheel.dev/spread is \"ten minutesten minutesten minutesten minutesten minutesten mi…\": it is \
         no duration; a valid value is \"10m\"; the CronJob runs as without it"
    );
}

/// A value is truncated to be kept, and what remains of it does not count.
#[test]
fn the_begin_of_a_long_value_is_no_value() {
    let long = |value: &str, end: &str| format!("{value}{}{end}", " ".repeat(70));
    for (option, value) in [
        (OptionName::MissedRuns, long("all", "5")),
        (OptionName::OnResume, long("skip", "not")),
        (OptionName::Spread, long("10m", "s")),
        (OptionName::NotOn, "holidays".repeat(9)),
        (OptionName::RunNow, "token".repeat(14)),
    ] {
        assert!(problem(option, &value, "0 * * * *").is_some(), "{value}");
    }
    assert_eq!(problem(OptionName::MissedRuns, &long("all", ""), "0 * * * *"), None);
}

#[test]
fn a_window_is_shorter_than_the_shortest_time_between_two_runs() {
    let no_duration = "it is no duration";
    let no_seconds = "it is no whole number of seconds above zero";
    for (value, schedule, expected) in [
        ("10m", "0 * * * *", None),
        ("59m59s", "0 * * * *", None),
        (
            "60m",
            "0 * * * *",
            Some("it is not shorter than 3600 s, the shortest time between two runs"),
        ),
        ("1s", "* * * * *", None),
        (
            "1m",
            "* * * * *",
            Some("it is not shorter than 60 s, the shortest time between two runs"),
        ),
        // 59 and 0 are a minute apart, across the hour.
        (
            "61s",
            "0,30,59 * * * *",
            Some("it is not shorter than 60 s, the shortest time between two runs"),
        ),
        ("28m59s", "0,30,59 9 * * *", None),
        (
            "29m",
            "0,30,59 9,10 * * *",
            Some("it is not shorter than 60 s, the shortest time between two runs"),
        ),
        ("24h", "0 3 * * 0", None),
        (
            "24h",
            "0 3 * * *",
            Some("it is not shorter than 86400 s, the shortest time between two runs"),
        ),
        (
            "2h",
            "0 23,1 * * *",
            Some("it is not shorter than 7200 s, the shortest time between two runs"),
        ),
        ("2h", "0 23,1 * * 1", None),
        ("24h", "0 0 29 2 *", None),
        ("25h", "0 0 29 2 *", Some("it is longer than a day")),
        ("10m", "@every 15m", None),
        (
            "15m",
            "@every 15m",
            Some("it is not shorter than 900 s, the shortest time between two runs"),
        ),
        ("10m", "0 0 30 2 *", None),
        ("none", "* * * * *", None),
        ("600", "0 * * * *", Some(no_duration)),
        ("", "0 * * * *", Some(no_duration)),
        ("1.5s", "0 * * * *", Some(no_seconds)),
        ("-10m", "0 * * * *", Some(no_seconds)),
        ("0s", "0 * * * *", Some(no_seconds)),
    ] {
        assert_eq!(
            problem(OptionName::Spread, value, schedule).as_deref(),
            expected,
            "{value} of {schedule}"
        );
    }
}

#[test]
fn a_rule_for_missed_runs_is_a_word_or_all_with_a_count() {
    let no_word = Some("it is none of latest, skip and all");
    let no_count = Some("the count is no number from 1 to 100");
    for (value, rule, expected) in [
        ("latest", CatchUp::Latest, None),
        ("skip", CatchUp::Skip, None),
        ("all", CatchUp::All(100), None),
        (" all  10 ", CatchUp::All(10), None),
        ("all 100", CatchUp::All(100), None),
        ("all 101", CatchUp::Latest, no_count),
        ("all 0", CatchUp::Latest, no_count),
        ("all -1", CatchUp::Latest, no_count),
        ("all ten", CatchUp::Latest, no_count),
        ("all 10 20", CatchUp::Latest, no_word),
        ("latest 3", CatchUp::Latest, no_word),
        ("Skip", CatchUp::Latest, no_word),
        ("", CatchUp::Latest, no_word),
        ("none", CatchUp::Latest, None),
    ] {
        let options = read(OptionName::MissedRuns, value, "0 * * * *");
        assert_eq!(options.missed_runs, rule, "{value:?}");
        for option in [OptionName::MissedRuns, OptionName::OnResume] {
            assert_eq!(problem(option, value, "0 * * * *").as_deref(), expected, "{value:?}");
        }
    }
}

#[test]
fn a_clock_change_that_changes_nothing_is_told() {
    let effect = "clock-change: a time that a clock change skips starts at the end of the gap, and a repeated one once";
    let no_effect = "clock-change: once changes nothing, because the schedule has all hours or is an interval";
    for (schedule, lines, expected) in [
        ("30 2 * * *", None, effect),
        ("0 * * * *", None, no_effect),
        ("@every 1h", None, no_effect),
        ("0 * * * *", Some("0 30 2 * * *\n0 0 * * * *"), effect),
        ("30 2 * * *", Some("0 0 * * * *"), no_effect),
    ] {
        let get = |name: &str| match name {
            "cronwheel.dev/clock-change" => Some("once"),
            "cronwheel.dev/schedule" => lines,
            _ => None,
        };
        let schedule = CronJobSchedule::new(schedule, None, &Zone::utc()).with_options("hello", get, 0);
        let sentences = schedule.options().sentences(ConcurrencyPolicy::Allow);
        assert!(sentences.contains(&expected.to_owned()), "{sentences:?}");
        let is_change = schedule.options().of_starts().contains(&OptionName::ClockChange);
        assert_eq!(is_change, expected == effect, "{sentences:?}");
    }
}

#[test]
fn clock_change_is_literal_or_once() {
    for (value, clock_change, is_valid) in [
        ("literal", ClockChange::Literal, true),
        ("once", ClockChange::Once, true),
        ("none", ClockChange::Literal, true),
        ("twice", ClockChange::Literal, false),
    ] {
        let options = read(OptionName::ClockChange, value, "0 2 * * *");
        assert_eq!(
            (options.clock_change, options.invalid.is_empty()),
            (clock_change, is_valid),
            "{value}"
        );
    }
}

#[test]
fn the_option_schedule_replaces_the_activations() {
    let schedule = |name: &str, value: &'static str, spread: Option<&'static str>| {
        let get = |name: &str| match name {
            "cronwheel.dev/schedule" => Some(value),
            "cronwheel.dev/spread" => spread,
            _ => None,
        };
        CronJobSchedule::new("0 3 * * *", None, &Zone::utc()).with_options(name, get, u64::MAX / 2 + 1)
    };
    let next = |schedule: &CronJobSchedule| {
        schedule
            .next_run(at("10:00:00"), at("10:00:00"))
            .unwrap()
            .strftime("%T")
            .to_string()
    };
    let problems = |schedule: &CronJobSchedule| schedule.options().invalid.len();
    let every_20_seconds = schedule("hello", "*/20 * * * * *\n0 5 10 * * * 2026", None);
    assert_eq!(next(&every_20_seconds), "10:00:20");
    assert!(every_20_seconds.has_seconds() && problems(&every_20_seconds) == 0);
    assert_eq!(
        &*every_20_seconds.text, "0 3 * * *",
        "what the built-in controller runs"
    );
    // The distance between two runs bounds the window.
    assert_eq!(problems(&schedule("hello", "*/20 * * * * *", Some("19s"))), 0);
    assert_eq!(problems(&schedule("hello", "*/20 * * * * *", Some("20s"))), 1);
    // A run of the year's first second counts.
    let yearly = "0 0 * * * *\n30 0 0 1 1 *";
    assert_eq!(problems(&schedule("hello", yearly, Some("29s"))), 0);
    assert_eq!(problems(&schedule("hello", yearly, Some("30s"))), 1);
    let longest = "a".repeat(51);
    assert_eq!(problems(&schedule(&longest, "*/20 * * * * *", None)), 0);
    let too_long = schedule(&"a".repeat(52), "*/20 * * * * *", None);
    assert_eq!((next(&too_long).as_str(), problems(&too_long)), ("03:00:00", 1));
    assert_eq!(
        problems(&schedule(&"a".repeat(52), "0 */20 * * * *", None)),
        0,
        "it has no seconds"
    );
    let mut invalid = schedule("hello", "*/20 * * * *", None);
    assert_eq!((next(&invalid).as_str(), problems(&invalid)), ("03:00:00", 1));
    invalid.inherit(
        NamespaceOptions::read(|name| name.ends_with("spread").then_some("10m")).as_ref(),
        0,
    );
    assert_eq!((problems(&invalid), invalid.options().spread_seconds), (1, Some(600)));
    assert_eq!(*schedule("hello", "none", None).options(), Options::NONE);
}

/// The options of a daily CronJob in a namespace, with these annotations.
fn within(of_cron_job: (&str, &str), of_namespace: &[(&str, &str)]) -> CronJobSchedule {
    fn get<'a>(annotations: &[(&str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
        move |name| {
            let named = |(option, _): &&(&str, &str)| name.strip_prefix("cronwheel.dev/") == Some(option);
            annotations.iter().find(named).map(|(_, value)| *value)
        }
    }
    let schedule = CronJobSchedule::new("30 2 * * *", Some("Europe/Berlin"), &Zone::utc());
    let mut schedule = schedule.with_options("hello", get(&[of_cron_job]), u64::MAX / 2 + 1);
    let namespace = NamespaceOptions::read(get(of_namespace));
    schedule.inherit(namespace.as_ref(), u64::MAX / 2 + 1);
    schedule
}

#[test]
fn an_annotation_of_the_cron_job_wins_over_that_of_its_namespace() {
    for (of_cron_job, of_namespace, spread_seconds) in [
        (("", ""), ("spread", "10m"), Some(600)),
        (("spread", "4m"), ("spread", "10m"), Some(240)),
        (("spread", "none"), ("spread", "10m"), None),
        (("spread", "ten"), ("spread", "10m"), Some(600)),
        (("missed-runs", "skip"), ("spread", "10m"), Some(600)),
        (("", ""), ("on-resume", "skip"), None),
    ] {
        let schedule = within(of_cron_job, &[of_namespace]);
        assert_eq!(
            schedule.options().spread_seconds,
            spread_seconds,
            "{of_cron_job:?} in {of_namespace:?}"
        );
    }
    let mut schedule = within(("missed-runs", "skip"), &[("spread", "10m")]);
    schedule.inherit(None, 0);
    assert_eq!(
        (schedule.options().spread_seconds, schedule.options().missed_runs),
        (None, CatchUp::Skip)
    );
}

#[test]
fn an_invalid_annotation_of_the_cron_job_leaves_the_default_of_its_namespace() {
    let of_namespace = [("spread", "10m"), ("missed-runs", "skip"), ("clock-change", "once")];
    for (of_cron_job, expected, n_invalid) in [
        (("spread", "ten"), (Some(600), CatchUp::Skip, ClockChange::Once), 1),
        (
            ("missed-runs", "All 3"),
            (Some(600), CatchUp::Skip, ClockChange::Once),
            1,
        ),
        (
            ("clock-change", "Once"),
            (Some(600), CatchUp::Skip, ClockChange::Once),
            1,
        ),
        (
            ("clock-change", "none"),
            (Some(600), CatchUp::Skip, ClockChange::Literal),
            0,
        ),
        (
            ("missed-runs", "latest"),
            (Some(600), CatchUp::Latest, ClockChange::Once),
            0,
        ),
    ] {
        let options = within(of_cron_job, &of_namespace).options().clone();
        let found = (options.spread_seconds, options.missed_runs, options.clock_change);
        assert_eq!((found, options.invalid.len()), (expected, n_invalid), "{of_cron_job:?}");
    }
    // Both are reported.
    let both = within(("spread", "ten"), &[("spread", "25h")]);
    let invalid = both.options().invalid.iter().map(|invalid| invalid.is_of_namespace);
    assert_eq!(invalid.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_clock_change_of_the_namespace_begins_and_ends() {
    let skipped = "2026-03-28T12:00:00Z".parse().unwrap();
    let next = |schedule: &CronJobSchedule| schedule.next_run(skipped, skipped).unwrap().to_string();
    let mut schedule = within(("", ""), &[("clock-change", "once")]);
    assert_eq!(next(&schedule), "2026-03-29T01:00:00Z");
    schedule.inherit(None, 0);
    assert_eq!(next(&schedule), "2026-03-30T00:30:00Z");
    assert_eq!(*schedule.options(), Options::NONE);
}

#[test]
fn an_invalid_default_of_the_namespace_is_reported_for_its_cron_jobs() {
    let invalid = |of_namespace| within(("", ""), &[of_namespace]).options().invalid[0].to_string();
    assert_eq!(
        invalid(("spread", "25h")),
        "annotation cronwheel.dev/spread of the namespace is \"25h\": it is longer than a day; a valid value is \"10m\"; \
         the CronJob runs as without it"
    );
    assert_eq!(
        invalid(("freeze-until", "tomorrow")),
        "annotation cronwheel.dev/freeze-until of the namespace is \"tomorrow\": it is no instant in RFC 3339; a valid \
         value is \"2026-12-27T06:00:00Z\"; the CronJob runs as without it"
    );
}

#[test]
fn a_freeze_ends_at_its_instant() {
    let get = |name: &str| match name {
        "cronwheel.dev/freeze-until" => Some("2026-05-05T12:00:00+02:00"),
        "cronwheel.dev/freeze-reason" => Some("migration"),
        _ => None,
    };
    let freeze = NamespaceOptions::read(get).unwrap().freeze.unwrap();
    assert_eq!((freeze.until, &*freeze.reason), (at("10:00:00"), "migration"));
    assert!(freeze.holds_at(at("09:59:59.9")) && !freeze.holds_at(at("10:00:00")));
    assert_eq!(NamespaceOptions::read(|_| None), None);
}

#[test]
fn pass_scheduled_time_is_true_or_false() {
    for (value, passes, is_valid) in [("true", true, true), ("false", false, true), ("yes", false, false)] {
        let options = read(OptionName::PassScheduledTime, value, "0 * * * *");
        assert_eq!(
            (options.passes_scheduled_time, options.invalid.is_empty()),
            (passes, is_valid),
            "{value}"
        );
    }
}

#[test]
fn an_offset_is_below_the_window() {
    for (hash, window_seconds, offset_seconds) in [
        (0, 600, 0),
        (u64::MAX, 600, 599),
        (u64::MAX, 1, 0),
        (u64::MAX / 2 + 1, 600, 300),
    ] {
        assert_eq!(spread::offset_seconds(hash, window_seconds), offset_seconds);
    }
}

#[test]
fn the_offset_moves_the_start_and_not_the_slot() {
    let schedule = CronJobSchedule::new("0 * * * *", None, &Zone::utc());
    assert_eq!(schedule.start_of(at("10:00:00")), at("10:00:00"));
    let get = |name: &str| (name == "cronwheel.dev/spread").then_some("10m");
    let schedule = schedule.with_options("hello", get, u64::MAX / 2 + 1);
    assert_eq!(schedule.options().offset(), SignedDuration::from_mins(5));
    assert_eq!(schedule.start_of(at("10:00:00")), at("10:05:00"));
    assert_eq!(schedule.slots_until(at("10:05:00")), at("10:00:00"));
}

#[test]
fn o_10_a_run_that_is_asked_for_changes_nothing_for_slots() {
    let options = |annotations: &[(&str, &str)]| {
        let get = |name: &str| {
            annotations
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| *value)
        };
        Options::read(get, None, 0)
    };
    let skip = ("cronwheel.dev/missed-runs", "skip");
    let asked = options(&[skip, ("cronwheel.dev/run-now", "t1")]);
    assert_eq!(asked.run_now.as_deref(), Some("t1"));
    assert!(asked.treat_slots_like(&options(&[skip])));
    assert!(asked.treat_slots_like(&options(&[skip, ("cronwheel.dev/run-now", "no token")])));
    assert!(!asked.treat_slots_like(&options(&[])));
}

#[test]
fn o_10_o_11_other_values_of_run_now_and_manual_jobs_are_invalid() {
    for (name, value, expected) in [
        (
            "cronwheel.dev/run-now",
            "now!",
            "annotation cronwheel.dev/run-now is \"now!\": a token has 1 to 63 letters, digits, '-', '_' and '.', and begins \
             and ends with a letter or digit; a valid value is \"2026-12-24-a\"; the CronJob runs as without it",
        ),
        (
            "cronwheel.dev/manual-jobs",
            "true",
            "annotation cronwheel.dev/manual-jobs is \"true\": it is not count; a valid value is \"count\"; the CronJob runs \
             as without it",
        ),
    ] {
        let options = Options::read(|known| (known == name).then_some(value), None, 0);
        assert_eq!(options.invalid.len(), 1);
        assert_eq!(options.invalid[0].to_string(), expected);
        assert_eq!((options.run_now.is_none(), options.counts_manual_jobs), (true, false));
    }
    let none = Options::read(|known| (known == "cronwheel.dev/run-now").then_some("none"), None, 0);
    assert_eq!((none.run_now, none.invalid), (None, Vec::new()));
}
