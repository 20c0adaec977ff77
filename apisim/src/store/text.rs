//! The JSON of an object with the positions of its version, spec and status. A new version with another status is built
//! from the old text without parsing it.
//!
//! Members are in the order of their names, so the version precedes the spec, and the spec precedes the status.

use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::json::SIZE_USUAL_BYTES;

/// The JSON of an object with the positions of the parts that change.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) json: Bytes,
    /// The digits of `metadata.resourceVersion`.
    version: Range<usize>,
    /// Empty if there is none. The same holds for `status`.
    spec: Range<usize>,
    status: Range<usize>,
}

impl Text {
    /// Serializes an object that has a version. A given spec replaces the object's.
    pub(super) fn new(object: &Map<String, Value>, spec: Option<&[u8]>) -> Text {
        let mut json = Vec::with_capacity(SIZE_USUAL_BYTES);
        let (mut version_at, mut spec_at, mut status_at) = (0..0, 0..0, 0..0);
        write_members(&mut json, object, |json, name, value| match (name, value, spec) {
            ("metadata", Value::Object(metadata), _) => {
                write_members(json, metadata, |json, name, value| {
                    let written = write(json, value);
                    if name == "resourceVersion" {
                        // The range excludes the quotes.
                        version_at = written.start + 1..written.end - 1;
                    }
                });
            }
            ("spec", _, Some(spec)) => {
                spec_at = json.len()..json.len() + spec.len();
                json.extend_from_slice(spec);
            }
            ("spec", value, None) => spec_at = write(json, value),
            ("status", value, _) => status_at = write(json, value),
            (_, value, _) => drop(write(json, value)),
        });
        debug_assert!(!version_at.is_empty(), "the object has a version");
        debug_assert!(
            spec_at.is_empty() || version_at.end < spec_at.start,
            "members are sorted"
        );
        debug_assert!(
            status_at.is_empty() || version_at.end < status_at.start,
            "members are sorted"
        );
        debug_assert!(
            status_at.is_empty() || spec_at.end <= status_at.start,
            "members are sorted"
        );
        Text {
            json: json.into_boxed_slice().into(),
            version: version_at,
            spec: spec_at,
            status: status_at,
        }
    }

    /// The JSON of the spec. Empty if there is none.
    pub(super) fn spec(&self) -> Bytes {
        self.json.slice(self.spec.clone())
    }

    /// The JSON of the status. Empty if there is none.
    pub(super) fn status(&self) -> &[u8] {
        &self.json[self.status.clone()]
    }

    /// Returns the same object under another version, with this status if given. Returns `None` if there is no status
    /// to replace.
    pub(super) fn changed(&self, version: u64, status: Option<&Value>) -> Option<Text> {
        if status.is_some() && self.status.is_empty() {
            return None;
        }
        let mut json = Vec::with_capacity(self.json.len() + SIZE_USUAL_BYTES / 4);
        json.extend_from_slice(&self.json[..self.version.start]);
        json.extend_from_slice(version.to_string().as_bytes());
        let version = self.version.start..json.len();
        let shifted = |part: &Range<usize>| {
            let shift = |at: usize| at - self.version.end + version.end;
            if part.is_empty() {
                0..0
            } else {
                shift(part.start)..shift(part.end)
            }
        };
        let (spec, mut status_at) = (shifted(&self.spec), shifted(&self.status));
        if let Some(status) = status {
            json.extend_from_slice(&self.json[self.version.end..self.status.start]);
            status_at = write(&mut json, status);
            json.extend_from_slice(&self.json[self.status.end..]);
        } else {
            json.extend_from_slice(&self.json[self.version.end..]);
        }
        Some(Text {
            json: json.into_boxed_slice().into(),
            version,
            spec,
            status: status_at,
        })
    }

    /// Parses the object. Stored text is always valid JSON.
    pub(super) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    /// Parses the object with null in place of its spec, if it has one.
    pub(super) fn value_without_spec(&self) -> Value {
        if self.spec.is_empty() {
            return self.value();
        }
        let rest = [&self.json[..self.spec.start], b"null", &self.json[self.spec.end..]].concat();
        serde_json::from_slice(&rest).unwrap_or_default()
    }
}

/// Serializes a value. Returns its position.
fn write(json: &mut Vec<u8>, value: &Value) -> Range<usize> {
    let start = json.len();
    // Writing a value to memory does not fail.
    let _written = serde_json::to_writer(&mut *json, value);
    start..json.len()
}

fn write_members(
    json: &mut Vec<u8>,
    members: &Map<String, Value>,
    mut write_value: impl FnMut(&mut Vec<u8>, &str, &Value),
) {
    json.push(b'{');
    for (number, (name, value)) in members.iter().enumerate() {
        if number > 0 {
            json.push(b',');
        }
        let _written = serde_json::to_writer(&mut *json, name);
        json.push(b':');
        write_value(json, name, value);
    }
    json.push(b'}');
}
