//! Validation of Namespaces.

use serde_json::Value;

use super::{
    field_error::Errors,
    metadata::{self, NameRule, elements, member_text},
    names,
    path::Path,
};

/// Checks a new Namespace.
pub(super) fn create(object: &Value, errors: &mut Errors) {
    metadata::check_with_finalizers(object, false, NameRule::DnsLabel, errors);
    let spec = Path::root("spec");
    for finalizer in elements(&object["spec"]["finalizers"]).iter().filter_map(Value::as_str) {
        errors.invalid_for_each(&spec.child("finalizers"), finalizer, names::label_key(finalizer));
    }
}

/// Checks that the phase agrees with the deletion timestamp.
pub(super) fn check_phase(object: &Value, errors: &mut Errors) {
    let phase = member_text(&object["status"], "phase");
    let status = Path::root("status");
    match (object["metadata"]["deletionTimestamp"].is_null(), phase) {
        (true, "Active") | (false, "Terminating") => {}
        (true, phase) => {
            let detail = "may only be 'Active' if `deletionTimestamp` is empty";
            errors.invalid(&status.child("Phase"), phase, detail);
        }
        (false, phase) => {
            let detail = "may only be 'Terminating' if `deletionTimestamp` is not empty";
            errors.invalid(&status.child("Phase"), phase, detail);
        }
    }
}
