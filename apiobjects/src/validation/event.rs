//! Validation of Events. There are few rules for Events without `eventTime`, which older clients write.

use serde_json::Value;

use super::{
    field_error::Errors,
    metadata::{self, member_text},
    names,
    path::Path,
};

/// Required fields with their maximum length in bytes.
const TEXTS: [(&str, usize); 3] = [("reportingInstance", 128), ("action", 128), ("reason", 128)];
const MESSAGE_LENGTH_MAX: usize = 1024;

/// Checks a new or updated Event.
pub(super) fn check(object: &Value, errors: &mut Errors) {
    let namespace = metadata::text(object, "namespace");
    let involved = member_text(&object["involvedObject"], "namespace");
    let is_old = object["eventTime"].is_null();
    let fits = match (is_old, involved) {
        (true, "") => matches!(namespace, "" | "default"),
        (true, involved) => involved == namespace,
        (false, "") => matches!(namespace, "default" | "kube-system"),
        (false, _) => true,
    };
    if !fits {
        let path = Path::root("involvedObject");
        errors.invalid(&path.child("namespace"), involved, "does not match event.namespace");
    }
    if !is_old {
        check_new(object, errors);
    }
    errors.invalid_for_each(&Path::root("namespace"), namespace, names::dns_subdomain(namespace));
}

fn check_new(object: &Value, errors: &mut Errors) {
    let path = Path::root("reportingComponent");
    let component = member_text(object, "reportingComponent");
    if component.is_empty() {
        errors.required(&path, "");
    }
    errors.invalid_for_each(&path, component, names::label_key(component));
    for (member, length_max) in TEXTS {
        let (path, text) = (Path::root(member), member_text(object, member));
        if text.is_empty() {
            errors.required(&path, "");
        }
        too_long(text, length_max, &path, errors);
    }
    too_long(
        member_text(object, "message"),
        MESSAGE_LENGTH_MAX,
        &Path::root("message"),
        errors,
    );
}

fn too_long(text: &str, length_max: usize, path: &Path<'_>, errors: &mut Errors) {
    if text.len() > length_max {
        errors.invalid(path, "", &format!("can have at most {length_max} characters"));
    }
}
