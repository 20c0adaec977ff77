//! Queries in bulk, one a line, answered in the form of the recorded answers in `tests/vectors`.
//!
//! The answers equal the library's ([`library_next_after`](crate::schedule::Schedule::library_next_after)), so that
//! whole files can be compared with those of another implementation. A malformed line is answered with `BAD` and does
//! not end the run.

use std::{
    io::{self, BufRead, Read as _, Write},
    iter,
};

use jiff::Timestamp;

use super::COUNT_MAX;
use crate::{cli::error::CommandError, schedule::Zone, shard::CronJobSchedule};

/// Longer lines are not stored. The API server stores no object near this size.
const LINE_BYTES_MAX: usize = 1 << 20;

pub(super) fn run(mut input: impl BufRead, output: &mut impl Write) -> Result<(), CommandError> {
    let mut line = Vec::new();
    let (mut line_number, mut n_malformed) = (0_u64, 0);
    let cannot_read = |error| CommandError::caused("cannot read the queries from standard input", error);
    while read_line(&mut input, &mut line).map_err(cannot_read)? {
        line_number += 1;
        let answer = answer_line(&line).unwrap_or_else(|message| {
            n_malformed += 1;
            format!("BAD\tline {line_number}: {message}")
        });
        writeln!(output, "{answer}").map_err(CommandError::Write)?;
    }
    match n_malformed {
        0 => Ok(()),
        n_malformed => {
            let verb = if n_malformed == 1 { "was" } else { "were" };
            Err(
                format!("{n_malformed} of the lines {verb} not answered; correct the lines that are answered with BAD")
                    .into(),
            )
        }
    }
}

/// Reads the next line without its end; false at the end of the input. The rest of a line that is too long is dropped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    // Room for a line of the maximum size and its \r\n. A longer line stays above the maximum, and `answer_line`
    // refuses it.
    let n_bytes = input.by_ref().take(LINE_BYTES_MAX as u64 + 2).read_until(b'\n', line)?;
    if line.pop_if(|byte| *byte == b'\n').is_some() {
        line.pop_if(|byte| *byte == b'\r');
    } else if line.len() > LINE_BYTES_MAX {
        input.skip_until(b'\n')?;
    }
    Ok(n_bytes > 0)
}

/// Returns the query and its answer. The error describes the problem with the query.
fn answer_line(line: &[u8]) -> Result<String, String> {
    if line.len() > LINE_BYTES_MAX {
        return Err(format!("longer than {LINE_BYTES_MAX} bytes"));
    }
    let text = str::from_utf8(line).map_err(|_| "not in UTF-8".to_owned())?;
    let columns: Vec<&str> = text.split('\t').collect();
    let &[schedule, zone, from, count] = columns.as_slice() else {
        let n_columns = columns.len();
        return Err(format!(
            "{n_columns} columns instead of 4: schedule, zone, instant in RFC 3339, count"
        ));
    };
    let from: Timestamp = from
        .parse()
        .map_err(|error| format!("the instant in column 3: {error}"))?;
    let count = count.parse().ok().filter(|count| (1..=COUNT_MAX).contains(count));
    let count = count.ok_or_else(|| format!("the count in column 4 is no number from 1 to {COUNT_MAX}"))?;
    let schedule = unescape(schedule)?;
    let zone = Some(zone).filter(|zone| !zone.is_empty());
    let utc = Zone::utc();
    let effective = CronJobSchedule::new(&schedule, zone, &utc);
    // The zone is checked first, as by the controller (B-6.2).
    let answer = match (effective.zone, effective.parsed) {
        (Some(Err(error)), _) => format!("ERR\t{}", escaped(&error.to_string())),
        (_, Err(error)) => format!("ERR\t{}", escaped(&error.0)),
        (_, Ok(schedule)) => activations(from, count, |at| schedule.library_next_after(at, &utc)),
    };
    Ok(format!("{text}\t{answer}"))
}

/// Returns this number of activations, or fewer and a dash. `next` is called only for activations that are returned.
pub(super) fn activations(from: Timestamp, count: u32, mut next: impl FnMut(Timestamp) -> Option<Timestamp>) -> String {
    let mut reference = from;
    let found = iter::from_fn(|| {
        reference = next(reference)?;
        Some(reference.to_string())
    });
    let found: Vec<String> = found.chain(iter::once("-".to_owned())).take(count as usize).collect();
    found.join(" ")
}

fn unescape(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('\\') => '\\',
                _ => return Err(r"a \ in column 1 that is not one of \t, \n, \r, \\".to_owned()),
            },
            _ => c,
        });
    }
    Ok(plain)
}

fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('\t', r"\t")
        .replace('\n', r"\n")
        .replace('\r', r"\r")
}
