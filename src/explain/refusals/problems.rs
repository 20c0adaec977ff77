//! Unknown fields and values of a wrong type, in words.

use apiobjects::{
    Resource,
    decoding::{FieldProblem, ProblemKind, ValueType, places},
};
use serde_json::{Number, Value};

use crate::explain::advice::{shown, similar};

/// The maximum length of a value in a message, in characters.
const VALUE_LENGTH_MAX: usize = 60;

/// Fields whose name says nothing about where they belong.
const GENERIC: [&str; 6] = ["name", "key", "value", "type", "kind", "path"];

/// Returns the field, the problem and the fix.
pub(super) fn text(problem: &FieldProblem) -> String {
    let field = shown(&problem.field);
    match &problem.kind {
        ProblemKind::Unknown { known } => format!("{field}: unknown field; {}", unknown_advice(&problem.field, known)),
        ProblemKind::Type { expected, found } => {
            format!("{field}: {}; {}", found_text(found), type_advice(*expected, found))
        }
        ProblemKind::Value {
            expected,
            found,
            reason,
        } => {
            let (found, reason) = (value_text(found), shown(reason));
            format!("{field}: {found}: {reason}; {}", form(*expected))
        }
    }
}

fn unknown_advice(field: &str, known: &[&str]) -> String {
    let (parent, name) = field.rsplit_once('.').unwrap_or(("", field));
    if let Some(exact) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return format!("did you mean {exact}?");
    }
    let elsewhere = places(Resource::CronJob, name)
        .into_iter()
        .find(|place| !place.is_empty() && place != parent);
    match elsewhere {
        Some(place) if !GENERIC.contains(&name) && !place.starts_with("status") => {
            // A generated selector is the only one that is accepted.
            if name == "selector" {
                return "leave it out".to_owned();
            }
            return format!("it belongs in {place}");
        }
        Some(_) | None => {}
    }
    match similar(name, known.iter().copied(), name.len() / 4) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "leave it out".to_owned(),
    }
}

fn found_text(found: &Value) -> String {
    let kind = match found {
        Value::Null => return "null".to_owned(),
        Value::Array(_) => return "a list".to_owned(),
        Value::Object(_) => return "an object".to_owned(),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
    };
    format!("{} is {kind}", value_text(found))
}

/// A scalar as in JSON, and shortened.
fn value_text(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn type_advice(expected: ValueType, found: &Value) -> String {
    match (expected, found) {
        (ValueType::Text | ValueType::Time | ValueType::Base64, Value::Number(_) | Value::Bool(_)) => {
            "put it in quotes, as it is written".to_owned()
        }
        (ValueType::Int32, Value::Number(number)) if is_whole(number) => {
            format!("write a whole number from {} to {}", i32::MIN, i32::MAX)
        }
        (ValueType::Int64, Value::Number(number)) if is_whole(number) => {
            format!("write a whole number from {} to {}", i64::MIN, i64::MAX)
        }
        (ValueType::Int32 | ValueType::Int64, Value::String(text)) if text.trim().parse::<i64>().is_ok() => {
            "write a whole number, without quotes".to_owned()
        }
        (ValueType::Boolean, Value::String(text)) if matches!(&**text, "true" | "false") => {
            "write true or false, without quotes".to_owned()
        }
        (
            ValueType::Text
            | ValueType::Boolean
            | ValueType::Int32
            | ValueType::Int64
            | ValueType::IntegerOrText
            | ValueType::Quantity
            | ValueType::Time
            | ValueType::Base64
            | ValueType::List
            | ValueType::Object,
            _,
        ) => form(expected).to_owned(),
    }
}

/// Whether a number has no fraction.
fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn form(expected: ValueType) -> &'static str {
    match expected {
        ValueType::Text => "write text",
        ValueType::Boolean => "write true or false",
        ValueType::Int32 | ValueType::Int64 => "write a whole number",
        ValueType::IntegerOrText => "write a whole number or text",
        ValueType::Quantity => "write an amount such as 500m or 128Mi",
        ValueType::Time => "write a time such as 2026-11-21T10:30:00Z",
        ValueType::Base64 => "write text in base64",
        ValueType::List => "write a list, with a dash before each entry",
        ValueType::Object => "write an object, with its fields indented below it",
    }
}
