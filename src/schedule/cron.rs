//! Parses schedule text exactly as robfig/cron v3 `ParseStandard` (B-7).
//!
//! The parser accepts what the library accepts, oddities included, and rejects the rest with the library's exact error
//! texts, because users and tools see them in Events.

pub(super) mod duration;
mod integer;

pub use integer::quote;

use super::{
    clock_change::ClockChange,
    fires::{DayRule, Schedule, Spec},
    zone::Zone,
};

/// A schedule text that does not parse; `Display` is the library's error text (B-7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);

/// Parses a schedule with an optional `TZ=` or `CRON_TZ=` prefix (B-7.3).
///
/// # Errors
///
/// Returns the library's error text if the schedule or its zone is invalid.
pub fn parse_standard(text: &str) -> Result<Schedule, ParseError> {
    if text.is_empty() {
        return Err(ParseError("empty spec string".to_owned()));
    }
    let Some(prefixed) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return parse_without_zone(text, None);
    };
    let Some((name, rest)) = prefixed.split_once(' ') else {
        // The library slices out of bounds here; Kubernetes reports the panic with this text (B-7.9).
        let panic = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
        return Err(ParseError(panic.to_owned()));
    };
    let zone = match name {
        // In the library, `Local` means the zone of the reference (B-7.2).
        "Local" => None,
        _ => Some(Zone::load(name).map_err(|error| ParseError(format!("provided bad location {name}: {error}")))?),
    };
    parse_without_zone(rest.trim(), zone)
}

fn parse_without_zone(text: &str, zone: Option<Zone>) -> Result<Schedule, ParseError> {
    if text.starts_with('@') {
        return parse_descriptor(text, zone);
    }
    let mut fields = [""; 5];
    let mut count = 0;
    for field in text.split_whitespace() {
        if let Some(place) = fields.get_mut(count) {
            *place = field;
        }
        count += 1;
    }
    if count != fields.len() {
        let all = text.split_whitespace().collect::<Vec<_>>().join(" ");
        return Err(ParseError(format!("expected exactly 5 fields, found {count}: [{all}]")));
    }
    parse_fields(fields, zone)
}

/// Parses `@daily` and the like (B-7.4), or `@every` (B-7.5).
fn parse_descriptor(text: &str, zone: Option<Zone>) -> Result<Schedule, ParseError> {
    let fields = match text {
        "@yearly" | "@annually" => ["0", "0", "1", "1", "*"],
        "@monthly" => ["0", "0", "1", "*", "*"],
        "@weekly" => ["0", "0", "*", "*", "0"],
        "@daily" | "@midnight" => ["0", "0", "*", "*", "*"],
        "@hourly" => ["0", "*", "*", "*", "*"],
        _ => return parse_every(text),
    };
    parse_fields(fields, zone)
}

/// Parses `@every` (B-7.5): at least one second, fractions of a second are cut.
fn parse_every(text: &str) -> Result<Schedule, ParseError> {
    let Some(duration) = text.strip_prefix("@every ") else {
        return Err(ParseError(format!("unrecognized descriptor: {text}")));
    };
    match duration::parse_nanoseconds(duration) {
        Ok(nanoseconds) => Ok(Schedule::every((nanoseconds / 1_000_000_000).max(1))),
        Err(error) => Err(ParseError(format!("failed to parse duration {text}: {error}"))),
    }
}

fn parse_fields(fields: [&str; 5], zone: Option<Zone>) -> Result<Schedule, ParseError> {
    let minutes = parse_field(fields[0], &MINUTE)?;
    let hours = parse_field(fields[1], &HOUR)?;
    let days_of_month = parse_field(fields[2], &DAY_OF_MONTH)?;
    let months = parse_field(fields[3], &MONTH)?;
    let days_of_week = parse_field(fields[4], &DAY_OF_WEEK)?;
    let day_rule = if days_of_month.has_star || days_of_week.has_star {
        DayRule::Both
    } else {
        DayRule::Either
    };
    Ok(Schedule::spec(Spec {
        minutes: minutes.bits,
        hours: low_bits(hours.bits),
        days_of_month: low_bits(days_of_month.bits),
        months: low_bits(months.bits),
        days_of_week: low_bits(days_of_week.bits),
        day_rule,
        clock_change: ClockChange::Literal,
        zone,
    }))
}

fn low_bits<T: TryFrom<u64>>(bits: u64) -> T {
    T::try_from(bits).ok().expect("the bounds of the field fit the mask")
}

/// The range and the names of a field's values (B-7.7).
struct Bounds {
    min: u64,
    max: u64,
    /// Three-letter names; the first stands for `min`.
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds {
    min: 0,
    max: 59,
    names: &[],
};
const HOUR: Bounds = Bounds {
    min: 0,
    max: 23,
    names: &[],
};
const DAY_OF_MONTH: Bounds = Bounds {
    min: 1,
    max: 31,
    names: &[],
};
const MONTH: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const DAY_OF_WEEK: Bounds = Bounds {
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// The values of a field, one bit each, and its star mark (B-7.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FieldSet {
    bits: u64,
    has_star: bool,
}

fn parse_field(field: &str, bounds: &Bounds) -> Result<FieldSet, ParseError> {
    let mut set = FieldSet::default();
    for item in field.split(',').filter(|item| !item.is_empty()) {
        let parsed = parse_item(item, bounds)?;
        set.bits |= parsed.bits;
        set.has_star |= parsed.has_star;
    }
    Ok(set)
}

/// Parses one `range` or `range/step`. The order of the checks decides which error an item with two faults gets.
fn parse_item(item: &str, bounds: &Bounds) -> Result<FieldSet, ParseError> {
    let mut slash_parts = item.split('/');
    let mut ends = slash_parts.next().unwrap_or_default().split('-');
    let (first, second, third) = (ends.next().unwrap_or_default(), ends.next(), ends.next());
    let is_star = first == "*" || first == "?";
    let (start, mut end) = match second {
        _ if is_star => (bounds.min, bounds.max),
        None => parse_number_or_name(first, bounds).map(|value| (value, value))?,
        Some(second) => {
            let start = parse_number_or_name(first, bounds)?;
            // If there is a third part, the library does not parse the second.
            if third.is_some() {
                return Err(ParseError(format!("too many hyphens: {item}")));
            }
            (start, parse_number_or_name(second, bounds)?)
        }
    };
    let mut step = 1;
    if let Some(text) = slash_parts.next() {
        if slash_parts.next().is_some() {
            return Err(ParseError(format!("too many slashes: {item}")));
        }
        step = parse_number(text)?;
        if second.is_none() {
            end = bounds.max;
        }
    }
    check_range(item, bounds, start, end, step)?;
    Ok(FieldSet {
        bits: bits_of(start, end, step),
        has_star: is_star && step == 1,
    })
}

fn check_range(item: &str, bounds: &Bounds, start: u64, end: u64, step: u64) -> Result<(), ParseError> {
    let (min, max) = (bounds.min, bounds.max);
    Err(ParseError(if start < min {
        format!("beginning of range ({start}) below minimum ({min}): {item}")
    } else if end > max {
        format!("end of range ({end}) above maximum ({max}): {item}")
    } else if start > end {
        format!("beginning of range ({start}) beyond end of range ({end}): {item}")
    } else if step == 0 {
        format!("step of range should be a positive number: {item}")
    } else {
        return Ok(());
    }))
}

fn bits_of(start: u64, end: u64, step: u64) -> u64 {
    let mut bits = 0;
    let mut value = start;
    while value <= end {
        bits |= 1 << value;
        value = value.saturating_add(step);
    }
    bits
}

fn parse_number_or_name(text: &str, bounds: &Bounds) -> Result<u64, ParseError> {
    let named = bounds
        .names
        .iter()
        .zip(bounds.min..)
        .find(|(name, _)| is_name(text, name));
    named.map_or_else(|| parse_number(text), |(_, value)| Ok(value))
}

/// Whether the text equals the name after Go's lower-casing, which maps one non-ASCII letter, `İ`, to a letter of a
/// name.
fn is_name(text: &str, name: &str) -> bool {
    text.chars()
        .map(|c| if c == 'İ' { 'i' } else { c.to_ascii_lowercase() })
        .eq(name.chars())
}

fn parse_number(text: &str) -> Result<u64, ParseError> {
    let number =
        integer::parse(text).map_err(|error| ParseError(format!("failed to parse int from {text}: {error}")))?;
    u64::try_from(number).map_err(|_| ParseError(format!("negative number ({number}) not allowed: {text}")))
}

#[cfg(test)]
mod tests;
