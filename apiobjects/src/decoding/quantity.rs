//! Quantities, such as `500m` or `128Mi`, in the canonical form of the API server.

use std::cmp::Ordering;

use serde_json::Value;

/// Longer numbers are kept as written.
const N_DIGITS_MAX: usize = 27;
/// The smallest power of ten that a quantity can have.
const EXPONENT_MIN: i32 = -9;
const EXPONENT_MAX: i32 = 18;
const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Returns a quantity in its canonical form, or `None` if the value is not a quantity.
pub(super) fn normalise(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let n_digits = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = unsigned.split_at(n_digits.unwrap_or(unsigned.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let places = i32::try_from(fraction.len()).ok()?;
    let form = Form::parse(suffix)?;
    let mantissa = digits.parse::<i128>().ok().filter(|_| digits.len() <= N_DIGITS_MAX);
    let written = mantissa.and_then(|mantissa| form.write(mantissa, places));
    let sign = if text.starts_with('-') && written.as_deref() != Some("0") {
        "-"
    } else {
        ""
    };
    Some(written.map_or_else(|| text.clone(), |written| format!("{sign}{written}")))
}

/// Compares two quantities by their size. `None` if one is not a quantity, or has more digits than can be compared.
pub(super) fn compare(one: &str, other: &str) -> Option<Ordering> {
    Some(nano_units(one)?.cmp(&nano_units(other)?))
}

/// The size in billionths, rounded up as in the canonical form.
fn nano_units(text: &str) -> Option<i128> {
    let canonical = normalise(&Value::from(text))?;
    let unsigned = canonical.strip_prefix('-').unwrap_or(&canonical);
    let (digits, suffix) = unsigned.split_at(unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len()));
    let mantissa: i128 = digits.parse().ok()?;
    let factor = match Form::parse(suffix)? {
        Form::Decimal(exponent) | Form::Exponent(exponent) => {
            10_i128.checked_pow(u32::try_from(exponent - EXPONENT_MIN).ok()?)?
        }
        Form::Binary(power) => 1024_i128.checked_pow(power)?.checked_mul(1_000_000_000)?,
    };
    let size = mantissa.checked_mul(factor)?;
    Some(if unsigned.len() < canonical.len() { -size } else { size })
}

/// The notation of a quantity's magnitude.
enum Form {
    /// A suffix for this power of ten.
    Decimal(i32),
    /// A power of ten.
    Exponent(i32),
    /// A suffix for this power of 1024.
    Binary(u32),
}

impl Form {
    fn parse(suffix: &str) -> Option<Form> {
        if let Some((_, exponent)) = DECIMAL_SUFFIXES.iter().find(|(known, _)| *known == suffix) {
            return Some(Form::Decimal(*exponent));
        }
        if let Some(power) = BINARY_SUFFIXES.iter().position(|known| *known == suffix) {
            return Some(Form::Binary(u32::try_from(power).ok()?));
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        Some(Form::Exponent(exponent))
    }

    /// Formats a number with `places` digits after the decimal point. Returns `None` if it is too large.
    fn write(&self, mantissa: i128, places: i32) -> Option<String> {
        match self {
            Form::Decimal(exponent) => decimal(mantissa, exponent - places, decimal_suffix),
            Form::Exponent(exponent) => decimal(mantissa, exponent.checked_sub(places)?, |exponent| {
                Some(if exponent == 0 {
                    String::new()
                } else {
                    format!("e{exponent}")
                })
            }),
            Form::Binary(power) => {
                let scaled = mantissa.checked_mul(1024_i128.checked_pow(*power)?)?;
                let divisor = 10_i128.checked_pow(places.try_into().ok()?)?;
                let value = scaled / divisor + i128::from(scaled % divisor != 0);
                binary(value)
            }
        }
    }
}

/// Formats a number in the largest unit, in steps of a thousand, that divides it.
fn decimal(mantissa: i128, exponent: i32, suffix: impl Fn(i32) -> Option<String>) -> Option<String> {
    let (mut mantissa, mut exponent) = (mantissa, exponent);
    if mantissa == 0 {
        return Some("0".to_owned());
    }
    while mantissa % 10 == 0 && exponent < EXPONENT_MAX {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent < EXPONENT_MIN {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 != 0);
        exponent += 1;
    }
    while exponent % 3 != 0 {
        mantissa = mantissa.checked_mul(10)?;
        exponent -= 1;
    }
    Some(format!("{mantissa}{}", suffix(exponent)?))
}

fn decimal_suffix(exponent: i32) -> Option<String> {
    let (suffix, _) = DECIMAL_SUFFIXES.iter().find(|(_, known)| *known == exponent)?;
    Some((*suffix).to_owned())
}

fn binary(value: i128) -> Option<String> {
    if value < 1024 {
        return decimal(value, 0, decimal_suffix);
    }
    let (mut value, mut suffixes) = (value, BINARY_SUFFIXES.iter().peekable());
    let mut suffix = suffixes.next()?;
    while value % 1024 == 0
        && let Some(next) = suffixes.next()
    {
        value /= 1024;
        suffix = next;
    }
    Some(format!("{value}{suffix}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{compare, normalise};

    #[test]
    fn quantities_have_a_canonical_form() {
        let cases = [
            ("500m", "500m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("2500000", "2500k"),
            ("0", "0"),
            ("0Gi", "0"),
            ("-0.5", "-500m"),
            ("+1", "1"),
            ("1.", "1"),
            (".5", "500m"),
            ("1e3", "1e3"),
            ("12e2", "1200"),
            ("128Mi", "128Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Gi", "512Mi"),
            ("1.5Ki", "1536"),
            ("100Ki", "100Ki"),
            ("0.0000000001", "1n"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ];
        for (text, expected) in cases {
            assert_eq!(normalise(&json!(text)).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(normalise(&json!(2)).as_deref(), Some("2"));
        for text in ["", "x", ".", "1.2.3", "1x", "--1", "1 m", "1e", "1KI"] {
            assert_eq!(normalise(&json!(text)), None, "{text:?}");
        }
    }

    #[test]
    fn quantities_are_compared_by_size() {
        use std::cmp::Ordering::{Equal, Greater, Less};
        for (one, other, expected) in [
            ("500m", "1", Some(Less)),
            ("1000m", "1", Some(Equal)),
            ("1Gi", "1G", Some(Greater)),
            ("1e3", "1k", Some(Equal)),
            ("-1Mi", "0", Some(Less)),
            ("x", "1", None),
        ] {
            assert_eq!(compare(one, other), expected, "{one} {other}");
        }
    }
}
