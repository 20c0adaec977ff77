//! Validation of tolerations and of the security context of a Pod and a container.

use serde_json::{Value, json};

use super::{elements, member_text};
use crate::validation::{field_error::Errors, names, path::Path};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const IDS: std::ops::RangeInclusive<i64> = 0..=2_147_483_647;

/// Checks the tolerations of a Pod.
pub(super) fn tolerations(tolerations: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (at, toleration) in elements(tolerations).iter().enumerate() {
        let path = path.index(at);
        let text = |member| member_text(toleration, member);
        let (key, operator, value, effect) = (text("key"), text("operator"), text("value"), text("effect"));
        if !key.is_empty() {
            errors.invalid_for_each(&path.child("key"), key, names::label_key(key));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&path.child("operator"), operator, detail);
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.child("effect"), effect, detail);
        }
        match operator {
            "" | "Equal" => {
                let messages = names::label_value(value);
                if !messages.is_empty() {
                    errors.invalid(&path.child("operator"), value, &messages.join(";"));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => errors.invalid(
                &path.child("operator"),
                value,
                "value must be empty when `operator` is 'Exists'",
            ),
            "Lt" | "Gt" => {
                let supported = ["Equal", "Exists", "Lt", "Gt"];
                errors.unsupported(&path.child("operator"), operator, &supported);
            }
            _ => errors.unsupported(&path.child("operator"), operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() && !EFFECTS.contains(&effect) {
            errors.unsupported(&path.child("effect"), effect, &EFFECTS);
        }
    }
}

/// Checks the security context of a Pod.
pub(super) fn security_of_pod(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    ids(context, &["fsGroup", "runAsUser", "runAsGroup"], path, errors);
    for (at, group) in elements(&context["supplementalGroups"]).iter().enumerate() {
        id(group, &path.child("supplementalGroups").index(at), errors);
    }
}

/// Checks the security context of a container.
pub(super) fn security_of_container(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    ids(context, &["runAsUser", "runAsGroup"], path, errors);
    if context["allowPrivilegeEscalation"] == json!(false) && context["privileged"] == json!(true) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid(path, context.clone(), detail);
    }
}

fn ids(context: &Value, members: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for member in members {
        id(&context[*member], &path.child(member), errors);
    }
}

fn id(id: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(id) = id.as_i64().filter(|id| !IDS.contains(id)) {
        errors.invalid(path, id, "must be between 0 and 2147483647, inclusive");
    }
}
