//! Scalar values: which JSON types they accept, and their stored form.

use serde_json::{Number, Value};

use super::{
    go_time::{self, Precision},
    quantity,
};
use crate::schema::Kind;

/// The message of Go's quantity parser.
const QUANTITY_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// The error in a value.
pub(super) enum Wrong {
    /// JSON of another type. Holds that type.
    Type(String),
    /// The right type, but it cannot be parsed.
    Value(String),
}

/// Checks a value and brings it into its stored form.
pub(super) fn check(kind: &Kind, value: &mut Value) -> Result<(), Wrong> {
    let kept = match (kind, &*value) {
        // Go's decoder ignores null.
        (Kind::Any, _)
        | (_, Value::Null)
        | (Kind::String(_) | Kind::IntOrString, Value::String(_))
        | (Kind::Bool, Value::Bool(_)) => return Ok(()),
        (Kind::Int32 | Kind::IntOrString, Value::Number(number)) => {
            return integer(number, |number| i32::try_from(number).is_ok());
        }
        (Kind::Int64, Value::Number(number)) => return integer(number, |_| true),
        (Kind::Bytes, Value::String(text)) => return base64(text).map_err(Wrong::Value),
        (Kind::Time, Value::String(text)) => go_time::normalise(text, Precision::Seconds),
        (Kind::MicroTime, Value::String(text)) => go_time::normalise(text, Precision::Microseconds),
        (Kind::Quantity, other) => quantity::normalise(other).ok_or_else(|| QUANTITY_ERROR.to_owned()),
        (_, other) => return Err(Wrong::Type(kind_of(other).to_owned())),
    };
    *value = Value::String(kept.map_err(Wrong::Value)?);
    Ok(())
}

/// The name of a JSON type in Go's decoder.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn integer(number: &Number, is_in_range: fn(i64) -> bool) -> Result<(), Wrong> {
    match number.as_i64() {
        Some(integer) if is_in_range(integer) => Ok(()),
        _ => Err(Wrong::Type(format!("number {number}"))),
    }
}

/// Checks base64 with padding. The decoded bytes are not needed.
fn base64(text: &str) -> Result<(), String> {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let bad = match digits.bytes().position(|byte| !is_digit(byte)) {
        Some(at) => at,
        None if text.len().is_multiple_of(4) && text.len() - digits.len() < 3 => return Ok(()),
        None => digits.len(),
    };
    Err(format!("illegal base64 data at input byte {bad}"))
}
