//! Random schedules in several dialects, zones and manifests: no panic, no empty hint, and no suggestion that breaks the
//! rule of suggestions: it parses, and fires when the original says in its own dialect.
//!
//! A run takes a minute at most, unless `CRONWHEEL_FUZZ_SECONDS` is set, as by `make fuzz-advice`.

#![allow(clippy::disallowed_methods, reason = "the duration of a run is wall time")]

mod dialects;
#[path = "../e2e/cases/checking/manifests.rs"]
mod manifests;

use std::time::{Duration, Instant};

use clap::Parser as _;
use cronwheel::{
    cli::{
        explain::{self, ExplainArgs},
        next::{self, NextArgs},
    },
    schedule::{Zone, parse_standard},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::random::{self, Random};

/// The time for each of the tests below. They run at the same time.
const DURATION: Duration = Duration::from_secs(20);

/// The end of 2025.
const START_SECONDS: i64 = 1_767_225_599;

/// The number of compared minutes.
const N_MINUTES: usize = 40;

#[derive(clap::Parser)]
struct NextCommand {
    #[command(flatten)]
    args: NextArgs,
}

#[derive(clap::Parser)]
struct ExplainCommand {
    #[command(flatten)]
    args: ExplainArgs,
}

fn start() -> Timestamp {
    Timestamp::from_second(START_SECONDS).unwrap()
}

/// Repeats a body until the time is over. Returns the number of times.
fn repeat(mut body: impl FnMut(&mut Random)) -> usize {
    let given = std::env::var("CRONWHEEL_FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let end = Instant::now() + given.map_or(DURATION, Duration::from_secs);
    let mut random = Random::new(random::seed());
    for number in 0.. {
        if Instant::now() >= end {
            return number;
        }
        body(&mut random);
    }
    unreachable!("the time ends first")
}

/// Runs `next`. Returns the error.
fn next_error(arguments: &[&str]) -> Option<String> {
    let command = NextCommand::try_parse_from([&["next", "-n", "1"], arguments].concat()).ok()?;
    let error = next::run(command.args, start(), &b""[..], Vec::new()).err()?;
    Some(error.to_string())
}

/// Returns the corrected schedule, after `write '` or `did you mean`.
fn suggestion(error: &str) -> Option<&str> {
    if let Some((_, rest)) = error.rsplit_once("write '") {
        return rest.split_once('\'').map(|(suggestion, _)| suggestion);
    }
    let (_, rest) = error.rsplit_once("did you mean @")?;
    let at = error.len() - rest.len() - 1;
    error[at..].split_once('?').map(|(suggestion, _)| suggestion)
}

/// The minutes in Unix time at which a schedule of Kubernetes fires.
fn minutes(text: &str) -> Vec<i64> {
    let schedule = parse_standard(text).unwrap_or_else(|error| panic!("{text} was suggested: {error}"));
    let next = |at: &Timestamp| schedule.next_after(*at, &Zone::utc());
    let instants = std::iter::successors(next(&start()), next);
    instants.take(N_MINUTES).map(|at| at.as_second() / 60).collect()
}

#[test]
fn suggestions_for_other_dialects_keep_the_meaning() {
    let mut n_suggested = 0;
    let n_drawn = repeat(|random| {
        let dialects::Drawn { text, meaning } = dialects::draw(random);
        let Some(error) = next_error(&[&text]) else { return };
        assert!(
            error.starts_with("refused by the API server: ") || error.starts_with("never: "),
            "{error}"
        );
        check_words(&error);
        let Some(suggestion) = suggestion(&error) else { return };
        n_suggested += 1;
        let (ours, theirs) = (minutes(suggestion), dialects::minutes(&meaning, start(), N_MINUTES));
        let n_compared = ours.len().min(theirs.len());
        assert_eq!(
            ours[..n_compared],
            theirs[..n_compared],
            "{text} is not {suggestion}: {error}"
        );
        assert_eq!(
            ours.is_empty(),
            theirs.is_empty(),
            "{text} is not {suggestion}: {error}"
        );
    });
    assert!(
        n_suggested * 4 > n_drawn,
        "only {n_suggested} of {n_drawn} have a suggestion"
    );
}

/// No part of an error is empty.
#[track_caller]
fn check_words(error: &str) {
    for gap in [": ;", "; ;", ";  ", "write ''", "write  "] {
        assert!(
            !error.contains(gap) || error.contains("schedule \"\""),
            "{gap:?} in {error}"
        );
    }
    assert!(!error.trim_end().ends_with([';', ':', ',']), "{error}");
    assert!(!error.contains('\n'), "{error:?}");
}

#[test]
fn any_text_gets_advice_that_parses() {
    let pieces = [
        "*",
        "/",
        "-",
        ",",
        "?",
        "L",
        "W",
        "#",
        "@",
        "every",
        "daily",
        "5",
        "60",
        "7",
        "mon",
        "Sunday",
        "TZ=",
        "Europe/Berlin",
        " ",
        "\n",
        "\t",
        "'",
        "\"",
        "“",
        "–",
        "\u{200b}",
        "\\*",
        "cron(",
        ")",
        "rate(",
        "H",
        "0",
        "1-5",
        "22-5",
        "* * * * *",
        "2026",
        "root",
        "/bin/sh",
        "# x",
        "1d",
        "minutes",
        "\u{feff}",
        "٣",
        "é",
    ];
    repeat(|random| {
        let text: String = (0..random.between(1, 9))
            .map(|_| {
                if random.is_one_in(2) {
                    format!("{} ", random.pick(&pieces))
                } else {
                    random.pick(&pieces).to_owned()
                }
            })
            .collect();
        let Some(error) = next_error(&["--", &text]) else {
            return;
        };
        check_words(&error);
        if error.starts_with("refused by the API server: schedule")
            && let Some(suggestion) = suggestion(&error)
        {
            assert!(parse_standard(suggestion).is_ok(), "{text:?}: {error}");
        }
    });
}

#[test]
fn any_zone_gets_advice_that_loads() {
    let names: Vec<&str> = [
        "Europe/Berlin",
        "America/New_York",
        "Asia/Kolkata",
        "UTC",
        "GMT",
        "Etc/GMT",
        "China",
        "Berlin",
        "New York",
        "EST",
        "Pacific",
    ]
    .to_vec();
    let letters = [
        "a", "B", "/", "_", " ", "-", "+", "5", "12", ":30", "\n", "'", "\\", "é", "",
    ];
    repeat(|random| {
        let mut name = random.pick(&names).to_owned();
        for _ in 0..random.between(1, 3) {
            let at = name.floor_char_boundary(random.below(name.len() + 1));
            let end = name.ceil_char_boundary((at + random.below(2)).min(name.len()));
            name.replace_range(at..end, random.pick(&letters));
        }
        let Some(error) = next_error(&["@daily", &format!("--time-zone={name}")]) else {
            return;
        };
        check_words(&error);
        check_zone(&name, &error);
    });
    for hours in -14..=14_i32 {
        for prefix in ["GMT", "UTC", "utc", "Etc/UTC", ""] {
            let name = format!("{prefix}{hours:+}");
            if let Some(error) = next_error(&["@daily", &format!("--time-zone={name}")]) {
                let zone = check_zone(&name, &error);
                let offset = zone.map(|zone| zone.offset_seconds_at(START_SECONDS));
                assert!(offset.is_none_or(|offset| offset == hours * 3_600), "{name}: {error}");
            }
        }
    }
}

/// Checks that the suggested zone loads.
#[track_caller]
fn check_zone(name: &str, error: &str) -> Option<Zone> {
    let (_, advice) = error.split_once("unknown time zone ")?;
    if advice.contains("write a name of the IANA database") {
        return None;
    }
    let starts = [
        ": write ",
        "; write ",
        ", write ",
        "did you mean ",
        "its zone is ",
        "such as ",
    ];
    // The last one is about what remains after other corrections.
    let found = starts.iter().filter_map(|start| advice.rsplit_once(start));
    let (_, rest) = found.max_by_key(|(head, _)| head.len())?;
    let zone = rest.split([',', '?', ' ']).next()?;
    Some(Zone::load(zone).unwrap_or_else(|failure| panic!("{name:?}: {failure}: {error}")))
}

#[test]
fn any_manifest_is_checked() {
    let mut number = 0;
    repeat(|random| {
        number += 1;
        let items: Vec<Value> = (0..20).map(|at| manifests::draw(random, number * 20 + at)).collect();
        let mut text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        if random.is_one_in(3) {
            // Some of these are no longer JSON.
            let at = text.floor_char_boundary(random.below(text.len()));
            text.insert_str(at, random.pick(&["\"", "{", ",", "5", "\n---\n", "null", "e9"]));
        }
        let command = ExplainCommand::parse_from(["explain", "-f", "-", "--check"]);
        let mut output = Vec::new();
        let result = explain::run(&command.args, start(), text.as_bytes(), &mut output, Vec::new());
        let output = String::from_utf8(output).unwrap();
        let Some((lines, _)) = output.trim_end().rsplit_once('\n') else {
            assert!(result.is_ok() || output.is_empty(), "{output}");
            return;
        };
        assert!(result.is_err(), "{output}");
        for line in lines.lines() {
            check_words(line);
        }
    });
}
