//! Answers of robfig/cron v3.0.1 with the parser of Kubernetes 1.36.3, row by row (`tests/vectors/README.md`).

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;

use clap::Parser as _;
use cronwheel::{
    cli::next::{self, NextArgs},
    schedule::{
        Schedule, Zone,
        due::{self, Missed},
        tzdb_version,
    },
    shard::CronJobSchedule,
};
use jiff::Timestamp;

const NEXT: &str = include_str!("../vectors/next.tsv");
const PARSE: &str = include_str!("../vectors/parse.tsv");
const DUE: &str = include_str!("../vectors/due.tsv");

/// Compares our answer for each row with the rest of that row.
fn check_rows(file: &str, n_rows: usize, n_questions: usize, answer: impl Fn(&[&str]) -> String) {
    let mut differing = Vec::new();
    for (index, row) in file.lines().enumerate() {
        let columns: Vec<&str> = row.split('\t').collect();
        let (questions, expected) = columns.split_at(n_questions);
        let (expected, got) = (expected.join("\t"), answer(questions));
        if got != expected {
            differing.push(format!(
                "row {}: {}\n  expected {expected}\n  got      {got}",
                index + 1,
                questions.join(" | ")
            ));
        }
    }
    let shown = differing.iter().take(10).fold(String::new(), |mut shown, row| {
        writeln!(shown, "{row}").unwrap();
        shown
    });
    assert!(
        differing.is_empty(),
        "{} rows differ, the first ten of them:\n{shown}",
        differing.len()
    );
    assert_eq!(file.lines().count(), n_rows, "rows were lost from the file");
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('\\') => '\\',
                other => panic!("an unknown escape {other:?} in {text}"),
            },
            _ => c,
        });
    }
    plain
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

fn effective(text: &str, zone: &str) -> CronJobSchedule {
    CronJobSchedule::new(
        &unescape(text),
        Some(zone).filter(|zone| !zone.is_empty()),
        &Zone::utc(),
    )
}

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn shown(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "-".to_owned(), |instant| instant.to_string())
}

/// The library's successive answers. In zones that change a minute after midnight it may return its own reference. Only
/// there does the next activation of cronwheel differ.
fn successive(schedule: &Schedule, from: &str, count: &str) -> String {
    let mut answers = Vec::new();
    let mut reference = instant(from);
    for _ in 0..count.parse::<usize>().unwrap() {
        let next = schedule.library_next_after(reference, &Zone::utc());
        answers.push(shown(next));
        let stepped_to = schedule.next_after(reference, &Zone::utc());
        let Some(next) = next else {
            assert_eq!(stepped_to, None, "{schedule:?} from {reference}");
            break;
        };
        assert!(
            stepped_to > Some(reference),
            "{schedule:?} from {reference} does not advance"
        );
        assert!(
            stepped_to == Some(next) || next <= reference,
            "{schedule:?} from {reference}: {stepped_to:?}"
        );
        reference = next;
    }
    answers.join(" ")
}

fn answer_to_next(questions: &[&str]) -> String {
    let &[text, zone, from, count] = questions else {
        panic!("{} columns", questions.len())
    };
    match effective(text, zone).parsed {
        Ok(schedule) => successive(&schedule, from, count),
        Err(error) => format!("ERR\t{}", escape(&error.to_string())),
    }
}

#[test]
fn time_zone_database_has_the_version_of_the_vectors() {
    assert_eq!(tzdb_version(), "2026e");
}

#[test]
fn successive_activations_match_the_go_library_b_8() {
    check_rows(NEXT, 12_000, 4, answer_to_next);
}

#[test]
fn schedule_parsing_matches_the_go_library_b_7() {
    check_rows(PARSE, 3_000, 4, answer_to_next);
}

/// B-9.1, B-9.2, the exact slot and B-9.6, which are columns 7 to 11.
#[test]
fn due_slots_match_the_built_in_controller_b_9() {
    check_rows(DUE, 6_000, 6, |questions| {
        let &[text, zone, created, last, deadline, now] = questions else {
            panic!("{} columns", questions.len())
        };
        let schedule = effective(text, zone).parsed.unwrap();
        let last = Some(last).filter(|last| *last != "-").map(instant);
        let deadline = Some(deadline)
            .filter(|seconds| *seconds != "-")
            .map(|seconds| seconds.parse().unwrap());
        let (created, now, utc) = (instant(created), instant(now), Zone::utc());
        let earliest = due::earliest_time(created, last, deadline, now);
        let (slot, missed) = match due::estimate(&schedule, &utc, earliest, now) {
            Ok(estimate) => (shown(estimate.slot), estimate.missed),
            Err(error) => (format!("ERR {error}"), Missed::None),
        };
        let missed = match missed {
            Missed::None => "none",
            Missed::Few => "few",
            Missed::Many => "many",
        };
        let exact = due::most_recent(&schedule, &utc, earliest, now);
        let delay = requeue_delay_ms(&schedule, due::earliest_time(created, last, None, now), now);
        format!("{earliest}\t{slot}\t{missed}\t{}\t{delay}", shown(exact))
    });
}

/// B-9.6. Cronwheel does not use the delay, but it shows that base and next activation are right.
fn requeue_delay_ms(schedule: &Schedule, earliest: Timestamp, now: Timestamp) -> i128 {
    let utc = Zone::utc();
    let base = match due::estimate(schedule, &utc, earliest, now) {
        Ok(estimate) => match (estimate.slot, estimate.missed) {
            (Some(slot), _) => slot,
            (None, Missed::None) => earliest,
            (None, Missed::Few | Missed::Many) => now,
        },
        Err(_) => now,
    };
    let Some(next) = schedule.next_after(base, &utc) else {
        return -1;
    };
    (next.as_nanosecond() + 100_000_000 - now.as_nanosecond()).div_euclid(1_000_000)
}

#[derive(clap::Parser)]
struct NextCommand {
    #[command(flatten)]
    args: NextArgs,
}

/// Passes the queries of a file to `cronwheel next --stdin`, whose output must equal the file. The recorded answers are
/// those of the parser alone: if a zone cannot be loaded, the controller starts nothing, whatever the parser says.
fn check_bulk(file: &str) {
    let (mut questions, mut expected) = (String::new(), String::new());
    for row in file.lines() {
        let columns: Vec<&str> = row.splitn(5, '\t').collect();
        let question = columns[..4].join("\t");
        let answer = match columns[1] {
            "Bad/Zone" => "ERR\tunknown time zone Bad/Zone",
            _ => columns[4],
        };
        writeln!(questions, "{question}").unwrap();
        writeln!(expected, "{question}\t{answer}").unwrap();
    }
    let command = NextCommand::parse_from(["next", "--stdin"]);
    let mut answers = Vec::new();
    next::run(command.args, Timestamp::UNIX_EPOCH, questions.as_bytes(), &mut answers).unwrap();
    let answers = String::from_utf8(answers).unwrap();
    let first = answers
        .lines()
        .zip(expected.lines())
        .find(|(answer, row)| answer != row);
    assert!(answers == expected, "the first row that differs: {first:?}");
}

#[test]
fn bulk_answers_equal_the_recorded_files() {
    check_bulk(NEXT);
    check_bulk(PARSE);
}
