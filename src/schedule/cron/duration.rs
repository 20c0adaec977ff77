//! Go's `time.ParseDuration` with its error texts.

/// Parses a Go duration to nanoseconds. The error is Go's text.
pub(in crate::schedule) fn parse_nanoseconds(text: &str) -> Result<i64, String> {
    let (is_negative, unsigned) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    let fail = |reason: &str| format!("time: {reason} {}", quote(text));
    if unsigned.is_empty() {
        return Err(fail("invalid duration"));
    }
    let mut rest = unsigned;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let nanoseconds = parse_component(&mut rest).map_err(|reason| fail(&reason))?;
        // Twice the largest magnitude wraps to zero, in Go too.
        total = total.wrapping_add(nanoseconds);
        if total > MAGNITUDE_MAX {
            return Err(fail("invalid duration"));
        }
    }
    let value = if is_negative {
        0_i64.checked_sub_unsigned(total)
    } else {
        i64::try_from(total).ok()
    };
    value.ok_or_else(|| fail("invalid duration"))
}

const MAGNITUDE_MAX: u64 = 1 << 63;

/// Consumes one number with its unit from the front. The error is the middle part of Go's text.
fn parse_component(rest: &mut &str) -> Result<u64, String> {
    let invalid = || "invalid duration".to_owned();
    let whole_digits = take_digits(rest);
    let whole: u64 = match whole_digits {
        "" => 0,
        digits => digits
            .parse()
            .ok()
            .filter(|whole| *whole <= MAGNITUDE_MAX)
            .ok_or_else(invalid)?,
    };
    let mut fraction_digits = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        *rest = after_point;
        fraction_digits = take_digits(rest);
    }
    if whole_digits.is_empty() && fraction_digits.is_empty() {
        return Err(invalid());
    }
    let unit_length = rest
        .bytes()
        .take_while(|byte| *byte != b'.' && !byte.is_ascii_digit())
        .count();
    let (unit, after_unit) = rest.split_at(unit_length);
    *rest = after_unit;
    if unit.is_empty() {
        return Err("missing unit in duration".to_owned());
    }
    let unit_nanoseconds =
        nanoseconds_of_unit(unit).ok_or_else(|| format!("unknown unit {} in duration", quote(unit)))?;
    if whole > MAGNITUDE_MAX / unit_nanoseconds {
        return Err(invalid());
    }
    let nanoseconds = whole * unit_nanoseconds + fraction_nanoseconds(fraction_digits, unit_nanoseconds);
    if nanoseconds > MAGNITUDE_MAX {
        Err(invalid())
    } else {
        Ok(nanoseconds)
    }
}

fn nanoseconds_of_unit(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn take_digits<'a>(rest: &mut &'a str) -> &'a str {
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(length);
    *rest = after;
    digits
}

/// The fraction of a unit in nanoseconds, computed in floating point and truncated as in Go. Digits that no longer fit
/// are dropped.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the arithmetic of the original, down to its rounding"
)]
fn fraction_nanoseconds(digits: &str, unit_nanoseconds: u64) -> u64 {
    let (mut value, mut scale) = (0_u64, 1.0_f64);
    for byte in digits.bytes() {
        let larger = (value <= (MAGNITUDE_MAX - 1) / 10).then(|| value * 10 + u64::from(byte - b'0'));
        let Some(larger) = larger.filter(|larger| *larger <= MAGNITUDE_MAX) else {
            break;
        };
        value = larger;
        scale *= 10.0;
    }
    if value == 0 {
        0
    } else {
        (value as f64 * (unit_nanoseconds as f64 / scale)) as u64
    }
}

/// Quotes a text as Go's package `time` does: bytes outside printable ASCII are hexadecimal.
fn quote(text: &str) -> String {
    use std::fmt::Write as _;

    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => {
                let written = write!(quoted, "\\x{byte:02x}");
                debug_assert!(written.is_ok(), "writing to a string does not fail");
            }
        }
    }
    quoted.push('"');
    quoted
}
