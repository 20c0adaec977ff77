//! Decoding: from JSON to the form in which the API server stores an object. It checks types and removes unknown
//! fields, nulls and the empty values that Go's encoder omits. It adds the fields that Go's encoder always writes.
//!
//! The first wrong type is an error with the message of Go's decoder. Unknown fields are reported together.

mod go_time;
mod problem;
mod quantity;
mod scalars;
mod walk;

use serde_json::{Map, Value};

pub use self::problem::{FieldProblem, ProblemKind, ValueType};
pub(super) use self::scalars::kind_of;
use self::walk::Walk;
use super::schema::{Schema, Struct};
use crate::Resource;

/// How to treat unknown fields: the parameter `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them.
    Ignore,
    /// Drops them and returns warnings.
    #[default]
    Warn,
    /// Refuses the request.
    Strict,
}

impl FieldValidation {
    /// Parses the parameter. Returns `None` for unknown values.
    pub fn parse(text: &str) -> Option<FieldValidation> {
        match text {
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            "Strict" => Some(FieldValidation::Strict),
            _ => None,
        }
    }
}

/// A decoded object.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// The object in its stored form.
    pub object: Value,
    /// Texts for the `Warning` headers of the response.
    pub warnings: Vec<String>,
}

/// An error from decoding a body. The response is 400 `BadRequest` with this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The body is not a JSON object.
    #[error(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {reason}"
    )]
    Unrecognized {
        /// The expected kind.
        kind: &'static str,
        /// The error, with the first bytes of the body.
        reason: String,
    },
    /// The body is a JSON object, but not of this kind.
    #[error("{found} in version \"{version}\" cannot be handled as a {kind}: {reason}")]
    NotHandled {
        /// The kind that the object names.
        found: String,
        /// The version that the object names.
        version: String,
        /// The expected kind.
        kind: &'static str,
        /// The error.
        reason: String,
    },
}

/// Decodes the body of a request.
pub fn parse(resource: Resource, body: &[u8], validation: FieldValidation) -> Result<Decoded, DecodeError> {
    let unrecognized = |reason: String| DecodeError::Unrecognized {
        kind: resource.kind(),
        reason,
    };
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        let reason = if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        unrecognized(format!("{reason} ({})", first_bytes(body)))
    })?;
    match value {
        Value::Object(members) => decode(resource, members, validation),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(unrecognized(format!(
                "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }} ({})",
                kind_of(&other),
                first_bytes(body)
            )))
        }
    }
}

/// Checks an object and brings it into its stored form.
pub fn decode(
    resource: Resource,
    members: Map<String, Value>,
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let text = |member: &str| members.get(member).and_then(Value::as_str).unwrap_or_default();
    let found = Some(text("kind"))
        .filter(|kind| !kind.is_empty())
        .unwrap_or(resource.kind())
        .to_owned();
    let api_version = Some(text("apiVersion")).filter(|version| !version.is_empty());
    let api_version = api_version.unwrap_or(resource.api_version()).to_owned();
    let version = api_version.rsplit('/').next().unwrap_or_default().to_owned();
    let refuse = |reason: String| DecodeError::NotHandled {
        found: found.clone(),
        version: version.clone(),
        kind: resource.kind(),
        reason,
    };
    if let Some(reason) = other_kind(resource, &found, &api_version) {
        return Err(refuse(reason));
    }
    let mut object = Value::Object(members);
    let unknown_fields = normalise(Schema::get().of(resource), &mut object).map_err(&refuse)?;
    if let Some(members) = object.as_object_mut() {
        members.insert("kind".to_owned(), resource.kind().into());
        members.insert("apiVersion".to_owned(), resource.api_version().into());
    }
    let warnings: Vec<_> = unknown_fields
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    match validation {
        FieldValidation::Strict if !warnings.is_empty() => {
            Err(refuse(format!("strict decoding error: {}", warnings.join(", "))))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(Decoded { object, warnings }),
        FieldValidation::Ignore => Ok(Decoded {
            object,
            warnings: Vec::new(),
        }),
    }
}

/// Returns all fields that the decoder does not accept. A request with any of them is refused if unknown fields are
/// ([`FieldValidation::Strict`]); the response then names the first wrong type, or otherwise all unknown fields.
pub fn problems(resource: Resource, members: Map<String, Value>) -> Vec<FieldProblem> {
    let shape = Schema::get().of(resource);
    let mut walk = Walk::new(shape);
    walk.object(shape, &mut Value::Object(members));
    walk.into_problems()
}

/// Returns the objects inside of this kind that have a field of this name, by path, the nearest to the root first. A list
/// is written `containers[]`.
pub fn places(resource: Resource, field: &str) -> Vec<String> {
    crate::schema::places(Schema::get().of(resource), field)
}

/// Compares two quantities, such as `500m` and `1`. `None` if one is no quantity or too large to compare.
pub(crate) fn compare_quantities(one: &str, other: &str) -> Option<std::cmp::Ordering> {
    quantity::compare(one, other)
}

/// Brings a value of this type into its stored form. Returns the paths of unknown fields.
pub(super) fn normalise(shape: &'static Struct, value: &mut Value) -> Result<Vec<String>, String> {
    let mut walk = Walk::new(shape);
    walk.object(shape, value);
    walk.finish()
}

/// Returns the error for an object of another kind or version. `None` if it is of the expected kind.
fn other_kind(resource: Resource, found: &str, api_version: &str) -> Option<String> {
    if (found, api_version) == (resource.kind(), resource.api_version()) {
        return None;
    }
    let is_served = |other: &Resource| (other.kind(), other.api_version()) == (found, api_version);
    Some(match Resource::ALL.iter().find(|other| is_served(other)) {
        Some(_) => format!(
            "converting (v1.{found}) to ({}.{}): unknown conversion",
            internal_package(resource),
            resource.kind()
        ),
        None => format!(
            "no kind {found:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ),
    })
}

/// The package of the server's internal types for this kind. Error messages contain it.
fn internal_package(resource: Resource) -> &'static str {
    match resource {
        Resource::CronJob | Resource::Job => "batch",
        Resource::Lease => "coordination",
        Resource::Event | Resource::Namespace | Resource::ConfigMap => "core",
    }
}

/// The beginning of a body, in the format of error messages.
fn first_bytes(body: &[u8]) -> String {
    const N_BYTES_MAX: usize = 16;
    match std::str::from_utf8(body) {
        Ok("") => "<empty>".to_owned(),
        Ok(text) if text.starts_with('{') => text.to_owned(),
        _ => body
            .iter()
            .take(N_BYTES_MAX)
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}")),
    }
}

#[cfg(test)]
mod tests;
