//! Go's `strconv.Atoi` with its error texts.

use std::num::IntErrorKind;

/// Parses an optional sign and decimal digits. The error is Go's text.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let fail = |reason| Err(format!("strconv.Atoi: parsing {}: {reason}", quote(text)));
    let is_negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // `parse` would accept a second plus sign.
    if digits.starts_with('+') {
        return fail("invalid syntax");
    }
    let magnitude = match digits.parse::<u64>() {
        Ok(magnitude) => magnitude,
        // Like Go, `parse` stops at the digit that overflows, so it reports no syntax error after that digit.
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => return fail("value out of range"),
        Err(_) => return fail("invalid syntax"),
    };
    let value = if is_negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    value.map_or_else(|| fail("value out of range"), Ok)
}

/// Quotes a text as Go's `strconv.Quote` and `%q` do (B-6.2, B-6.4, B-7.1).
pub fn quote(text: &str) -> String {
    use std::fmt::Write as _;

    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            _ if is_printable(c) => quoted.push(c),
            _ => {
                let code = u32::from(c);
                let written = match code {
                    0..0x20 | 0x7f => write!(quoted, "\\x{code:02x}"),
                    0..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                };
                debug_assert!(written.is_ok(), "writing to a string does not fail");
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Go's `strconv.IsPrint`: letters, marks, numbers, punctuation, symbols, and the ASCII space.
fn is_printable(c: char) -> bool {
    // `escape_debug` uses the same classes. It escapes a mark only at the start of a text, hence the leading `a`.
    let mut buffer = [b'a'; 5];
    let length = 1 + c.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..length]).is_ok_and(|text| c == '\'' || text.escape_debug().nth(1) == Some(c))
}
