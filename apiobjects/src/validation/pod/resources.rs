//! Validation of the resources of a container.

use std::cmp::Ordering;

use serde_json::Value;

use crate::{
    decoding::compare_quantities,
    validation::{field_error::Errors, metadata::members, names, path::Path},
};

/// Resources of a container without a domain.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];
/// Other resources that the server knows, of volumes and quotas.
const STANDARD_RESOURCES: [&str; 17] = [
    "storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Checks names and amounts, and that no request exceeds its limit.
pub(super) fn check(resources: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, amount) in members(&resources["limits"]) {
        self::amount(name, amount, &limits.key(name), errors);
    }
    for (name, amount) in members(&resources["requests"]) {
        self::amount(name, amount, &requests.key(name), errors);
        let request = amount.as_str().unwrap_or_default();
        match resources["limits"][name.as_str()].as_str() {
            Some(limit) => {
                let order = compare_quantities(request, limit);
                let relation = match order {
                    Some(Ordering::Less | Ordering::Greater) if !may_be_overcommitted(name) => "equal to",
                    Some(Ordering::Greater) => "less than or equal to",
                    Some(Ordering::Less | Ordering::Equal) | None => continue,
                };
                errors.invalid(
                    &requests,
                    request,
                    &format!("must be {relation} {name} limit of {limit}"),
                );
            }
            None if !may_be_overcommitted(name) => {
                errors.required(&limits, "Limit must be set for non overcommitable resources");
            }
            None => {}
        }
    }
    let is_huge = |list: &str| members(&resources[list]).any(|(name, _)| is_huge_page(name));
    let has_base = |list: &str| members(&resources[list]).any(|(name, _)| matches!(&**name, "cpu" | "memory"));
    let lists = ["limits", "requests"];
    if lists.iter().any(|list| is_huge(list)) && !lists.iter().any(|list| has_base(list)) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

fn amount(name: &str, amount: &Value, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    let amount = amount.as_str().unwrap_or_default();
    if compare_quantities(amount, "0") == Some(Ordering::Less) {
        errors.invalid(path, amount, "must be greater than or equal to 0");
    }
    // Amounts are in their canonical form, in which parts of units have a suffix.
    let is_part = amount.ends_with(['m', 'u', 'n']);
    if is_part && is_extended(name) {
        errors.invalid(path, amount, "must be an integer");
    }
}

fn resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let messages = names::label_key(name);
    if !messages.is_empty() {
        errors.invalid_for_each(path, name, messages);
    }
    let is_of_container = CONTAINER_RESOURCES.contains(&name) || is_huge_page(name);
    if name.contains('/') {
        if !is_native(name) && !is_extended(name) {
            errors.invalid(path, name, "doesn't follow extended resource name standard");
        }
        return;
    }
    if !is_of_container && !STANDARD_RESOURCES.contains(&name) && names::label_key(name).is_empty() {
        errors.invalid(path, name, "must be a standard resource type or fully qualified");
    }
    if !is_of_container {
        errors.invalid(path, name, "must be a standard resource for containers");
    }
}

fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources of vendors, which have a domain.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::label_key(&format!("requests.{name}")).is_empty()
}

fn may_be_overcommitted(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}
