//! Validation of a `ConfigMap`.

use serde_json::Value;

use super::{
    field_error::Errors,
    metadata::{self, NameRule, members},
    names,
    path::Path,
};

/// The maximum total size of the values of a `ConfigMap`, in bytes.
const LENGTH_MAX: usize = 1024 * 1024;
const DATA: Path<'static> = Path::root("data");
const BINARY_DATA: Path<'static> = Path::root("binaryData");

/// Checks a `ConfigMap`.
pub(super) fn check(object: &Value, errors: &mut Errors) {
    metadata::check_with_finalizers(object, true, NameRule::DnsSubdomain, errors);
    let mut length = 0;
    for (key, value) in members(&object["data"]) {
        errors.invalid_for_each(&DATA.key(key), key, names::config_key(key));
        if object["binaryData"].get(key).is_some() {
            errors.invalid(&DATA.key(key), key.as_str(), "duplicate of key present in binaryData");
        }
        length += value.as_str().map_or(0, str::len);
    }
    for (key, value) in members(&object["binaryData"]) {
        errors.invalid_for_each(&BINARY_DATA.key(key), key, names::config_key(key));
        // Four digits of base64 encode three bytes.
        length += value.as_str().map_or(0, str::len) / 4 * 3;
    }
    if length > LENGTH_MAX {
        errors.too_long(&Path::root(""), LENGTH_MAX);
    }
}

/// Checks an update of a `ConfigMap`.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    metadata::check_update_with_finalizers(new, old, errors);
    if old["immutable"] == Value::Bool(true) {
        let detail = "field is immutable when `immutable` is set";
        let is_lifted = new["immutable"] != Value::Bool(true);
        let members = ["data", "binaryData"]
            .into_iter()
            .filter(|member| new[*member] != old[*member]);
        for member in is_lifted.then_some("immutable").into_iter().chain(members) {
            errors.forbidden(&Path::root(member), detail);
        }
    }
    check(new, errors);
}
