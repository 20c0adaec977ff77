//! Errors in single fields.

use serde_json::Value;

use super::path::Path;

/// An error in one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The path of the field.
    pub field: String,
    /// The human-readable message, without the path.
    pub message: String,
}

/// The errors found so far, in order.
#[derive(Default)]
pub(super) struct Errors(Vec<FieldError>);

impl Errors {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_list(self) -> Vec<FieldError> {
        self.0
    }

    /// Adds an error for a value that breaks a rule.
    pub(super) fn invalid(&mut self, path: &Path<'_>, value: impl Into<Value>, detail: &str) {
        self.invalid_formatted(path, &formatted(&value.into()), detail);
    }

    /// Adds an error for a value that breaks a rule and is already formatted.
    pub(super) fn invalid_formatted(&mut self, path: &Path<'_>, value: &str, detail: &str) {
        self.add("FieldValueInvalid", path, format!("Invalid value: {value}: {detail}"));
    }

    /// Adds an error for a value that breaks a rule and is too large for a message.
    pub(super) fn invalid_without_value(&mut self, path: &Path<'_>, detail: &str) {
        self.add("FieldValueInvalid", path, format!("Invalid value: {detail}"));
    }

    /// Adds an error for a missing value.
    pub(super) fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.add("FieldValueRequired", path, with_detail("Required value", detail));
    }

    /// Adds an error for a value that is not one of the supported ones.
    pub(super) fn unsupported(&mut self, path: &Path<'_>, value: impl Into<Value>, supported: &[&str]) {
        let supported: Vec<_> = supported.iter().map(|value| format!("{value:?}")).collect();
        let value = formatted(&value.into());
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        self.add("FieldValueNotSupported", path, message);
    }

    /// Adds an error for a duplicate value.
    pub(super) fn duplicate(&mut self, path: &Path<'_>, value: &str) {
        self.add("FieldValueDuplicate", path, format!("Duplicate value: {value:?}"));
    }

    /// Adds an error for a duplicate number.
    pub(super) fn duplicate_number(&mut self, path: &Path<'_>, value: i64) {
        self.add("FieldValueDuplicate", path, format!("Duplicate value: {value}"));
    }

    /// Adds an error for a reference to something that does not exist.
    pub(super) fn not_found(&mut self, path: &Path<'_>, value: &str) {
        self.add("FieldValueNotFound", path, format!("Not found: {value:?}"));
    }

    /// Adds an error for a field that must be absent.
    pub(super) fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.add("FieldValueForbidden", path, with_detail("Forbidden", detail));
    }

    /// Adds an error for a value longer than this many bytes.
    pub(super) fn too_long(&mut self, path: &Path<'_>, n_bytes_max: usize) {
        self.add(
            "FieldValueTooLong",
            path,
            format!("Too long: may not be more than {n_bytes_max} bytes"),
        );
    }

    /// Adds an error for each message of a rule in [`names`](super::names) that a value breaks.
    pub(super) fn invalid_for_each(&mut self, path: &Path<'_>, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(path, value, &message);
        }
    }

    /// Adds an error for a number below zero. Absent values are valid.
    pub(super) fn non_negative(&mut self, path: &Path<'_>, value: Option<&Value>) {
        if let Some(number) = value.and_then(Value::as_i64).filter(|number| *number < 0) {
            self.invalid(path, number, "must be greater than or equal to 0");
        }
    }

    fn add(&mut self, reason: &'static str, path: &Path<'_>, message: String) {
        self.0.push(FieldError {
            reason,
            field: path.to_string(),
            message,
        });
    }
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() {
        text.to_owned()
    } else {
        format!("{text}: {detail}")
    }
}

/// Formats a value for messages: strings in quotes, other values as JSON.
fn formatted(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), |text| format!("{text:?}"))
}
