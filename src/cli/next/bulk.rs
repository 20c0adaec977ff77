//! Queries in bulk, one a line, answered in the form of the recorded answers in `tests/vectors`.
//!
//! The answers equal the library's ([`Schedule::library_next_after`]), so that whole files can be compared with those
//! of another implementation. A malformed line is answered with `BAD` and does not end the run.

use std::{
    borrow::Cow,
    io::{BufRead, Write},
};

use jiff::Timestamp;

use super::{COUNT_MAX, NextError};
use crate::{
    schedule::{Schedule, Zone},
    shard::CronJobSchedule,
};

/// Longer lines are not stored. The API server stores no object near this size.
const LINE_BYTES_MAX: usize = 1 << 20;

pub(super) fn run(mut input: impl BufRead, output: &mut impl Write) -> Result<(), NextError> {
    let mut line = Vec::new();
    let mut answer = Vec::new();
    let (mut line_number, mut n_malformed) = (0_u64, 0);
    while read_line(&mut input, &mut line).map_err(NextError::Read)? {
        line_number += 1;
        answer.clear();
        let result = match answer_line(&line, &mut answer) {
            Ok(()) => output.write_all(&answer),
            Err(message) => {
                n_malformed += 1;
                writeln!(output, "BAD\tline {line_number}: {message}")
            }
        };
        result.map_err(NextError::Write)?;
    }
    match n_malformed {
        0 => Ok(()),
        n_malformed => Err(NextError::Malformed { n_malformed }),
    }
}

/// Reads the next line without its end; false at the end of the input. Of a line that is too long, one byte more than
/// allowed is kept and the rest dropped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut is_any = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        line.extend_from_slice(&part[..part.len().min(LINE_BYTES_MAX + 1 - line.len())]);
        let consumed = part.len() + usize::from(end.is_some());
        input.consume(consumed);
        if end.is_some() {
            line.pop_if(|byte| *byte == b'\r');
            return Ok(true);
        }
    }
}

/// Writes the query again and its answer. The error describes the problem with the query.
fn answer_line(line: &[u8], answer: &mut Vec<u8>) -> Result<(), String> {
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
    answer.extend_from_slice(line);
    let effective = CronJobSchedule::new(&schedule, zone, &Zone::utc());
    // The zone is checked first, as by the controller (B-6.2).
    match (effective.zone, effective.parsed) {
        (Some(Err(error)), _) => append_error(&error.to_string(), answer),
        (_, Err(error)) => append_error(&error.0, answer),
        (_, Ok(schedule)) => append_activations(&schedule, from, count, answer),
    }
    answer.push(b'\n');
    Ok(())
}

fn append_activations(schedule: &Schedule, from: Timestamp, count: u32, answer: &mut Vec<u8>) {
    let utc = Zone::utc();
    let mut reference = from;
    for index in 0..count {
        answer.push(if index == 0 { b'\t' } else { b' ' });
        let Some(next) = schedule.library_next_after(reference, &utc) else {
            answer.push(b'-');
            break;
        };
        let written = write!(answer, "{next}");
        debug_assert!(written.is_ok(), "writing to a vector does not fail");
        reference = next;
    }
}

fn unescape(text: &str) -> Result<Cow<'_, str>, String> {
    if !text.contains('\\') {
        return Ok(Cow::Borrowed(text));
    }
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
    Ok(Cow::Owned(plain))
}

fn append_error(text: &str, answer: &mut Vec<u8>) {
    answer.extend_from_slice(b"\tERR\t");
    append_escaped(text, answer);
}

fn append_escaped(text: &str, answer: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'\t' => answer.extend_from_slice(br"\t"),
            b'\n' => answer.extend_from_slice(br"\n"),
            b'\r' => answer.extend_from_slice(br"\r"),
            b'\\' => answer.extend_from_slice(br"\\"),
            _ => answer.push(byte),
        }
    }
}
