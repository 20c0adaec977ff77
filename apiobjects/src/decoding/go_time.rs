//! Times as Go's `time` package parses and formats them, in the two precisions of the API.

use jiff::Timestamp;

use crate::times;

/// The precision of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

/// Formats a time as the API server does: in UTC, with this precision.
pub(super) fn normalise(text: &str, precision: Precision) -> Result<String, String> {
    let (layout, written): (_, fn(Timestamp) -> String) = match precision {
        Precision::Seconds => ("2006-01-02T15:04:05Z07:00", times::seconds),
        Precision::Microseconds => ("2006-01-02T15:04:05.000000Z07:00", times::microseconds),
    };
    match misfit(text, precision) {
        Some(Misfit::Extra(extra)) => Err(format!("parsing time {text:?}: extra text: {extra:?}")),
        Some(Misfit::Part(rest, part)) => Err(format!(
            "parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"
        )),
        None => match text.parse::<Timestamp>() {
            Ok(time) => Ok(written(time)),
            Err(_) => Err(format!("parsing time {text:?}: day out of range")),
        },
    }
}

/// The first place at which a text does not match the layout.
enum Misfit<'a> {
    /// The remaining text, and the part of the layout that it should start with.
    Part(&'a str, &'static str),
    /// The text after the end of the layout.
    Extra(&'a str),
}

fn misfit(text: &str, precision: Precision) -> Option<Misfit<'_>> {
    let mut rest = text;
    for part in ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"] {
        let is_number = part.starts_with(|c: char| c.is_ascii_digit());
        let fits = |taken: &str| {
            if is_number {
                taken.bytes().all(|byte| byte.is_ascii_digit())
            } else {
                taken == part
            }
        };
        match rest.split_at_checked(part.len()) {
            Some((taken, after)) if fits(taken) => rest = after,
            _ => return Some(Misfit::Part(rest, part)),
        }
    }
    let n_digits = |fraction: &str| fraction.bytes().take_while(u8::is_ascii_digit).count();
    match (precision, rest.strip_prefix('.')) {
        // Go's parser accepts any number of fractional digits that the layout does not contain.
        (Precision::Seconds, Some(fraction)) if n_digits(fraction) > 0 => rest = &fraction[n_digits(fraction)..],
        (Precision::Microseconds, Some(fraction)) if n_digits(fraction) >= 6 => rest = &fraction[6..],
        (Precision::Microseconds, _) => return Some(Misfit::Part(rest, ".000000")),
        (Precision::Seconds, _) => {}
    }
    let after = match rest.as_bytes() {
        [b'Z', ..] => &rest[1..],
        [b'+' | b'-', a, b, b':', c, d, ..] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()) => &rest[6..],
        _ => return Some(Misfit::Part(rest, "Z07:00")),
    };
    (!after.is_empty()).then_some(Misfit::Extra(after))
}
