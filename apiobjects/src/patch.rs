//! Applies a patch to an object, in the four formats of the API. The result is not decoded yet: pass it to [`decoded`],
//! then process it like any other object.

mod apply;
mod json_patch;
mod managed_fields;
mod strategic;

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub use self::{
    apply::{Applier, apply},
    json_patch::json_patch,
    strategic::strategic_merge,
};
use super::decoding::{self, DecodeError, Decoded, FieldValidation};
use crate::Resource;

/// The format of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchForm {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// The format of Kubernetes: the type of a list decides how it is merged.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchForm {
    /// All supported formats, as error messages list them.
    pub const CONTENT_TYPES: [&str; 4] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];

    /// Returns the format for a `Content-Type`.
    pub fn parse(content_type: &str) -> Option<PatchForm> {
        match content_type.split(';').next()?.trim() {
            "application/json-patch+json" => Some(PatchForm::Json),
            "application/merge-patch+json" => Some(PatchForm::Merge),
            "application/strategic-merge-patch+json" => Some(PatchForm::Strategic),
            "application/apply-patch+yaml" => Some(PatchForm::Apply),
            _ => None,
        }
    }
}

/// An error from applying a patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed: 400.
    #[error("{0}")]
    Malformed(String),
    /// An operation of a JSON patch failed: 422.
    #[error("the server rejected our request due to an error in our request")]
    Rejected,
    /// A directive is invalid: 500, as in the real server.
    #[error("{0}")]
    Directive(String),
    /// Other managers own fields that the patch would change: 409.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The result is not a valid object of the kind: 422.
    #[error(" \"\" is invalid: patch: Invalid value: {value:?}: {reason}")]
    Undecodable {
        /// The result or the patch.
        value: String,
        /// The error.
        reason: String,
    },
}

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: String,
    /// The path of the field.
    pub field: String,
}

/// Formats all conflicts as the server does.
fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [Conflict { manager, field }] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager:?}: {field}");
    }
    let managers: BTreeSet<_> = conflicts.iter().map(|conflict| &conflict.manager).collect();
    let lines = managers.into_iter().flat_map(|manager| {
        let fields = conflicts.iter().filter(move |conflict| conflict.manager == *manager);
        let fields = fields.map(|conflict| format!("- {}", conflict.field));
        std::iter::once(format!("conflicts with {manager:?}:")).chain(fields)
    });
    let lines: Vec<_> = lines.collect();
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// Parses the body of a patch. It is JSON in every format; `kubectl` sends JSON for apply too.
pub fn parse(form: PatchForm, body: &[u8]) -> Result<Value, PatchError> {
    let prefix = match form {
        PatchForm::Json | PatchForm::Merge => "error decoding patch: ",
        PatchForm::Strategic => "",
        PatchForm::Apply => "error decoding YAML: ",
    };
    let malformed = |reason: &str| PatchError::Malformed(format!("{prefix}{reason}"));
    let patch: Value = serde_json::from_slice(body).map_err(|error| {
        let reason = if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        };
        malformed(&reason)
    })?;
    let (is_expected_type, go_type) = match form {
        PatchForm::Json => (patch.is_array(), "[]handlers.jsonPatchOp"),
        PatchForm::Merge | PatchForm::Strategic | PatchForm::Apply => (patch.is_object(), "map[string]interface {}"),
    };
    if is_expected_type {
        return Ok(patch);
    }
    let found = decoding::kind_of(&patch);
    Err(malformed(&format!(
        "json: cannot unmarshal {found} into Go value of type {go_type}"
    )))
}

/// Decodes the result of a patch into its stored form.
pub fn decoded(
    resource: Resource,
    form: PatchForm,
    patch: &Value,
    patched: Value,
    validation: FieldValidation,
) -> Result<Decoded, PatchError> {
    // The error message contains the whole result, but decoding consumes it.
    let members = patched.as_object().cloned().unwrap_or_default();
    decoding::decode(resource, members, validation).map_err(|error| {
        let value = match form {
            PatchForm::Json | PatchForm::Merge => patched.to_string(),
            PatchForm::Strategic | PatchForm::Apply => format_as_go(patch),
        };
        let reason = match error {
            DecodeError::NotHandled { reason, .. } | DecodeError::Unrecognized { reason, .. } => reason,
        };
        PatchError::Undecodable { value, reason }
    })
}

/// RFC 7386: objects are merged, null removes a member, any other value replaces.
pub fn merge(old: &Value, patch: &Value) -> Value {
    let mut new = old.clone();
    merge_into(&mut new, patch);
    new
}

fn merge_into(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(members) = target.as_object_mut() else { return };
    for (name, change) in changes {
        if change.is_null() {
            members.remove(name);
        } else {
            merge_into(members.entry(name).or_insert(Value::Null), change);
        }
    }
}

/// Formats JSON as Go's `%v` does: `map[a:1 b:[x y]]`.
fn format_as_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(elements) => {
            let texts: Vec<_> = elements.iter().map(format_as_go).collect();
            format!("[{}]", texts.join(" "))
        }
        Value::Object(members) => {
            let texts: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{name}:{}", format_as_go(value)))
                .collect();
            format!("map[{}]", texts.join(" "))
        }
    }
}

#[cfg(test)]
mod tests;
