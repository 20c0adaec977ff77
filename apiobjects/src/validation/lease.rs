//! Validation of Leases.

use serde_json::Value;

use super::{
    field_error::Errors,
    metadata::{self, NameRule},
    path::Path,
};

/// Checks a new Lease.
pub(super) fn create(object: &Value, errors: &mut Errors) {
    metadata::check(object, true, NameRule::DnsSubdomain, errors);
    spec(&object["spec"], errors);
}

/// Checks an update of a Lease.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    metadata::check_update(new, old, errors);
    spec(&new["spec"], errors);
}

fn spec(spec: &Value, errors: &mut Errors) {
    let path = Path::root("spec");
    let duration = &spec["leaseDurationSeconds"];
    if duration.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(
            &path.child("leaseDurationSeconds"),
            duration.clone(),
            "must be greater than 0",
        );
    }
    errors.non_negative(&path.child("leaseTransitions"), spec.get("leaseTransitions"));
}
