//! Reading JSON member by member, so that a value that cannot be read spoils its own field and nothing else.

use std::{borrow::Cow, fmt};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A field that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldError {
    /// Path in the object, e.g. `spec.suspend`.
    pub(super) field: &'static str,
    /// What is wrong with it.
    pub(super) problem: Box<str>,
}

/// Longest text of a problem, in bytes: it goes into events and logs.
const PROBLEM_MAX_BYTES: usize = 256;

impl FieldError {
    pub(super) fn new(field: &'static str, problem: &str) -> FieldError {
        // A value out of the object may be quoted in it, whatever its size.
        let end = problem.floor_char_boundary(PROBLEM_MAX_BYTES);
        FieldError {
            field,
            problem: problem[..end].into(),
        }
    }
}

/// The members of a JSON object, in their order, unread.
pub(super) struct Members<'a>(pub(super) Vec<Member<'a>>);

/// One member of a JSON object.
pub(super) struct Member<'a> {
    /// The name as written, in its quotes.
    pub(super) raw_name: &'a str,
    /// The value as written.
    pub(super) value: &'a RawValue,
}

impl<'a> Member<'a> {
    /// The name without its quotes and escapes.
    pub(super) fn name(&self) -> Cow<'a, str> {
        let bare = self.raw_name.trim_matches('"');
        if self.raw_name.contains('\\') {
            serde_json::from_str(self.raw_name).map_or(Cow::Borrowed(bare), Cow::Owned)
        } else {
            Cow::Borrowed(bare)
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                    members.push(Member {
                        raw_name: name.get(),
                        value,
                    });
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A string, borrowed where it holds no escapes.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Reads a value, or says what is wrong with it.
pub(super) fn read<'a, T: Deserialize<'a>>(field: &'static str, value: &'a RawValue) -> Result<T, FieldError> {
    serde_json::from_str(value.get()).map_err(|error| {
        let text = error.to_string();
        // The position is within the value, which says nothing about the object.
        let end = text.rfind(" at line ").unwrap_or(text.len());
        FieldError::new(field, &text[..end])
    })
}

/// Reads a value unless it is absent or null.
pub(super) fn read_optional<'a, T: Deserialize<'a>>(
    field: &'static str,
    value: Option<&'a RawValue>,
) -> Result<Option<T>, FieldError> {
    match value {
        Some(value) if !is_null(value) => read(field, value).map(Some),
        _ => Ok(None),
    }
}

/// Reads a string unless it is absent or null.
pub(super) fn text<'a>(field: &'static str, value: Option<&'a RawValue>) -> Result<Option<Cow<'a, str>>, FieldError> {
    Ok(read_optional::<Text<'a>>(field, value)?.map(|text| text.0))
}

/// Reads a string that must be there and must not be empty.
pub(super) fn required_text<'a>(field: &'static str, value: Option<&'a RawValue>) -> Result<Cow<'a, str>, FieldError> {
    let text = text(field, value)?.filter(|text| !text.is_empty());
    text.ok_or_else(|| FieldError::new(field, "missing"))
}

/// Reads an RFC 3339 time unless it is absent or null.
pub(super) fn time(field: &'static str, value: Option<&RawValue>) -> Result<Option<Timestamp>, FieldError> {
    let Some(text) = text(field, value)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(time) => Ok(Some(time)),
        Err(_) => Err(FieldError::new(field, &format!("{text:?} is no RFC 3339 time"))),
    }
}

/// Whether a value is the literal null.
pub(super) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}
