//! JSON to typed values, with the field and the problem of a value that cannot be decoded.

use std::{borrow::Cow, ops::Deref};

use serde::Deserialize;

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// Path in the object, e.g. `spec.suspend`.
    pub(crate) field: Box<str>,
    /// The problem.
    pub(crate) problem: Box<str>,
}

/// Maximum size of a problem in bytes: it goes into Events and logs.
const PROBLEM_MAX_BYTES: usize = 256;

impl FieldError {
    pub(crate) fn new(field: &str, problem: &str) -> FieldError {
        // The text may quote a value of the object of any size.
        let end = problem.floor_char_boundary(PROBLEM_MAX_BYTES);
        FieldError {
            field: field.into(),
            problem: problem[..end].into(),
        }
    }

    pub(crate) fn missing(field: &str) -> FieldError {
        FieldError::new(field, "missing")
    }

    /// The error of an object on which cronwheel panicked.
    pub(crate) fn panic(message: &str) -> FieldError {
        FieldError::new("unknown field", &panic_problem(message))
    }
}

/// The problem of a value on which cronwheel panicked.
pub(super) fn panic_problem(message: &str) -> String {
    format!("cronwheel panicked, which is a fault of cronwheel: {message}")
}

/// Parses an object. After an error it parses the object again to find the invalid field, because a parser that always
/// knows its place is slow.
pub(super) fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FieldError> {
    serde_json::from_str(text).map_err(|error| {
        let again = serde_path_to_error::deserialize::<_, T>(&mut serde_json::Deserializer::from_str(text));
        let field = again.err().map_or_else(String::new, |error| error.path().to_string());
        // Events with the same message are counted as one, and this part would change with the rest of the object.
        let place = format!(" at line {} column {}", error.line(), error.column());
        FieldError::new(&field, error.to_string().trim_end_matches(&*place))
    })
}

/// A text, borrowed unless it has escapes: `Option<Cow<str>>` would always be a copy.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
