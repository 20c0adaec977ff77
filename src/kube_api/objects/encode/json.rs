//! JSON values as text. The large and frequent bodies are written by hand.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

/// Encodes a whole value.
pub(in crate::kube_api) fn to_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Appends a JSON string with its quotes.
pub(super) fn push_string(text: &mut String, value: &str) {
    text.push('"');
    push_escaped(text, value);
    text.push('"');
}

/// Appends `,"<name>":<value>` with the value unchanged.
pub(in crate::kube_api) fn push_raw_member(text: &mut String, name: &str, value: &str) {
    text.push(',');
    push_string(text, name);
    text.push(':');
    text.push_str(value);
}

/// Appends the contents of a JSON string.
pub(in crate::kube_api) fn push_escaped(text: &mut String, value: &str) {
    let mut rest = value;
    while let Some(position) = rest.find(|character: char| matches!(character, '"' | '\\' | '\0'..='\u{1f}')) {
        text.push_str(&rest[..position]);
        match rest.as_bytes()[position] {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            control => push_formatted(text, format_args!("\\u{control:04x}")),
        }
        rest = &rest[position + 1..];
    }
    text.push_str(rest);
}

/// Appends a time in the form of Kubernetes: RFC 3339, UTC, whole seconds (B-13.3).
pub(super) fn push_time(text: &mut String, time: Timestamp) {
    push_formatted(text, format_args!("{}", whole_seconds(time)));
}

/// Drops the fraction of a second.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    // The whole seconds of an instant in range are in range.
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn push_formatted(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string does not fail");
}
