//! Comparison with the recorded results of robfig/cron v3.0.1 and the parser of Kubernetes 1.36.3
//! (`tests/vectors/README.md`).

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;

use clap::Parser as _;
use cronwheel::{
    cli::next::{self, NextArgs},
    schedule::{Schedule, Zone, due, tzdb_version},
    shard::CronJobSchedule,
};
use jiff::Timestamp;

const NEXT: &str = include_str!("../vectors/next.tsv");
const PARSE: &str = include_str!("../vectors/parse.tsv");
const DUE: &str = include_str!("../vectors/due.tsv");

/// Compares the computed answer of each row with the recorded answer in the rest of that row.
fn check_rows(file: &str, n_rows: usize, n_query_columns: usize, answer: impl Fn(&[&str]) -> String) {
    let mut differing = Vec::new();
    for (index, row) in file.lines().enumerate() {
        let columns: Vec<&str> = row.split('\t').collect();
        let (query, expected) = columns.split_at(n_query_columns);
        let (expected, got) = (expected.join("\t"), answer(query));
        if got != expected {
            differing.push(format!(
                "row {}: {}\n  expected {expected}\n  got      {got}",
                index + 1,
                query.join(" | ")
            ));
        }
    }
    let first_rows = differing.iter().take(10).fold(String::new(), |mut text, row| {
        writeln!(text, "{row}").unwrap();
        text
    });
    assert!(
        differing.is_empty(),
        "{} rows differ, the first ten of them:\n{first_rows}",
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

fn instant_text(instant: Option<Timestamp>) -> String {
    instant.map_or_else(|| "-".to_owned(), |instant| instant.to_string())
}

/// Returns successive activations as the library computes them. In zones whose offset changes a minute after midnight,
/// the library may return its own reference. Only there, the next activation of cronwheel differs.
fn successive(schedule: &Schedule, from: &str, count: &str) -> String {
    let mut answers = Vec::new();
    let mut reference = instant(from);
    for _ in 0..count.parse::<usize>().unwrap() {
        let next = schedule.library_next_after(reference, &Zone::utc());
        answers.push(instant_text(next));
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

fn answer_to_next(query: &[&str]) -> String {
    let &[text, zone, from, count] = query else {
        panic!("{} columns", query.len())
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

/// Columns 7 to 11: B-9.1, B-9.2, the exact slot and B-9.6.
#[test]
fn due_slots_match_the_built_in_controller_b_9() {
    check_rows(DUE, 6_000, 6, |query| {
        let &[text, zone, created, last, deadline, now] = query else {
            panic!("{} columns", query.len())
        };
        let schedule = effective(text, zone).parsed.unwrap();
        let last = Some(last).filter(|last| *last != "-").map(instant);
        let deadline = Some(deadline)
            .filter(|seconds| *seconds != "-")
            .map(|seconds| seconds.parse().unwrap());
        let (created, now, utc) = (instant(created), instant(now), Zone::utc());
        let earliest = due::earliest_time(created, last, deadline, now);
        let (slot, missed) = match due::is_many_missed(&schedule, &utc, earliest, now) {
            Ok(is_many) => {
                let estimate = estimate(&schedule, earliest, now).unwrap();
                assert_eq!(is_many, estimate.n_activations > 100, "{query:?}");
                (instant_text(estimate.slot), estimate.missed())
            }
            Err(error) => (format!("ERR {error}"), "none"),
        };
        let exact = due::most_recent(&schedule, &utc, earliest, now);
        let delay = requeue_delay_ms(&schedule, due::earliest_time(created, last, None, now), now);
        format!("{earliest}\t{slot}\t{missed}\t{}\t{delay}", instant_text(exact))
    });
}

/// The built-in controller's estimate (B-9.2). Cronwheel uses only whether the number is above a hundred.
struct Estimate {
    /// The slot that the built-in controller would start. It can be missing although one is due (B-9.3).
    slot: Option<Timestamp>,
    /// The number of activations since the earliest time.
    n_activations: i64,
}

impl Estimate {
    /// The built-in controller's class of the number.
    fn missed(&self) -> &'static str {
        match self.n_activations {
            ..=1 => "none",
            2..=100 => "few",
            _ => "many",
        }
    }
}

/// `None` without two activations.
fn estimate(schedule: &Schedule, earliest: Timestamp, now: Timestamp) -> Option<Estimate> {
    let utc = Zone::utc();
    let estimate = |slot, n_activations| Some(Estimate { slot, n_activations });
    let first = schedule.next_after(earliest, &utc)?;
    if now < first {
        return estimate(None, 0);
    }
    let second = schedule.next_after(first, &utc)?;
    if now < second {
        return estimate(Some(first), 1);
    }
    let gap = second.duration_since(first).as_secs();
    let n_activations = now.duration_since(first).as_secs() / gap + 1;
    let start = first.as_second() + (n_activations - 2) * gap;
    let start = Timestamp::from_second(start).unwrap();
    estimate(due::most_recent(schedule, &utc, start, now), n_activations)
}

/// B-9.6. Cronwheel does not use the delay. The test checks its base and next activation.
fn requeue_delay_ms(schedule: &Schedule, earliest: Timestamp, now: Timestamp) -> i128 {
    let utc = Zone::utc();
    let base = match estimate(schedule, earliest, now) {
        Some(Estimate { slot: Some(slot), .. }) => slot,
        Some(Estimate { n_activations: 0, .. }) => earliest,
        Some(_) | None => now,
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

/// Passes the queries of a file to `cronwheel next --stdin`. The output must equal the file, except for zones that
/// cannot be loaded: the recorded answers are those of the parser alone, and the controller starts nothing there.
fn check_bulk(file: &str) {
    let (mut queries, mut expected) = (String::new(), String::new());
    for row in file.lines() {
        let columns: Vec<&str> = row.splitn(5, '\t').collect();
        let query = columns[..4].join("\t");
        let answer = match columns[1] {
            "Bad/Zone" => "ERR\tunknown time zone Bad/Zone",
            _ => columns[4],
        };
        writeln!(queries, "{query}").unwrap();
        writeln!(expected, "{query}\t{answer}").unwrap();
    }
    let command = NextCommand::parse_from(["next", "--stdin"]);
    let mut answers = Vec::new();
    next::run(command.args, Timestamp::UNIX_EPOCH, queries.as_bytes(), &mut answers).unwrap();
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
