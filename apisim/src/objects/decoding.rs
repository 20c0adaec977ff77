//! From JSON to an object as the API server keeps it: types are checked, fields that nobody knows are taken out, so are
//! nulls and empty values that Go's encoder would not write, and what it always writes is put in.
//!
//! The first wrong type ends it with the words of Go's decoder; unknown fields are told all together.

mod go_time;
mod quantity;
mod scalars;
mod walk;

use serde_json::{Map, Value};

pub(super) use self::scalars::kind_of;
use self::walk::Walk;
use super::schema::{Schema, Struct};
use crate::Resource;

/// What to do about fields that nobody knows: the parameter `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped and told.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// Reads the parameter; none where it is not one of the three.
    pub fn parse(text: &str) -> Option<FieldValidation> {
        match text {
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            "Strict" => Some(FieldValidation::Strict),
            _ => None,
        }
    }
}

/// An object that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// As it is to be kept.
    pub object: Value,
    /// Texts for `Warning` headers of the answer.
    pub warnings: Vec<String>,
}

/// Why a body is no object. The answer is 400 `BadRequest` with this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is no JSON object.
    #[error(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {reason}"
    )]
    Unrecognized {
        /// What it should have been.
        kind: &'static str,
        /// What it is, with its first bytes.
        reason: String,
    },
    /// It is one, and not of this kind.
    #[error("{found} in version \"{version}\" cannot be handled as a {kind}: {reason}")]
    NotHandled {
        /// The kind that it says it is.
        found: String,
        /// The version that it says it is.
        version: String,
        /// What it should have been.
        kind: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Reads a request's body.
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

/// Checks an object and gives it the form in which it is kept.
pub fn decode(
    resource: Resource,
    members: Map<String, Value>,
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let said = |member: &str| members.get(member).and_then(Value::as_str).unwrap_or_default();
    let found = Some(said("kind"))
        .filter(|kind| !kind.is_empty())
        .unwrap_or(resource.kind())
        .to_owned();
    let api_version = Some(said("apiVersion")).filter(|version| !version.is_empty());
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
    let told: Vec<_> = unknown_fields
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    match validation {
        FieldValidation::Strict if !told.is_empty() => {
            Err(refuse(format!("strict decoding error: {}", told.join(", "))))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(Decoded { object, warnings: told }),
        FieldValidation::Ignore => Ok(Decoded {
            object,
            warnings: Vec::new(),
        }),
    }
}

/// Gives a value of this type the form in which it is kept. Returns the paths of the fields that nobody knows.
pub(super) fn normalise(shape: &'static Struct, value: &mut Value) -> Result<Vec<String>, String> {
    let mut walk = Walk::new(shape);
    walk.object(shape, value);
    walk.finish()
}

/// Why an object that says this of itself is not of this kind.
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

/// The package of the server's own types of this kind, which it names in errors.
fn internal_package(resource: Resource) -> &'static str {
    match resource {
        Resource::CronJob | Resource::Job => "batch",
        Resource::Lease => "coordination",
        Resource::Event | Resource::Namespace | Resource::ConfigMap => "core",
    }
}

/// The beginning of a body, as errors show it.
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
