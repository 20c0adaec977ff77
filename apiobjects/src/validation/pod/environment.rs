//! Validation of the environment of a container.

use serde_json::Value;

use super::{elements, member_text};
use crate::validation::{field_error::Errors, metadata, names, path::Path};

/// Fields of a Pod that a variable can have, of those that the server knows.
const FIELDS_OF_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a Pod that a file can have.
const FIELDS_OF_FILES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// Fields that the server knows, besides those.
const OTHER_FIELDS: [&str; 4] = ["spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase"];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];

/// The place of a reference to a field of the Pod.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Variable,
    File,
}

/// Checks `env`.
pub(super) fn variables(variables: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (at, variable) in elements(variables).iter().enumerate() {
        let path = path.index(at);
        match member_text(variable, "name") {
            "" => errors.required(&path.child("name"), ""),
            name => errors.invalid_for_each(&path.child("name"), name, names::environment_variable(name)),
        }
        if !variable["valueFrom"].is_null() {
            source(variable, &path.child("valueFrom"), errors);
        }
    }
}

fn source(variable: &Value, path: &Path<'_>, errors: &mut Errors) {
    let source = &variable["valueFrom"];
    let present = SOURCES.iter().filter(|name| !source[**name].is_null());
    let n_sources = present.clone().count();
    for name in present {
        let (reference, path) = (&source[*name], path.child(name));
        match *name {
            "fieldRef" => field(reference, Reader::Variable, &path, errors),
            "resourceFieldRef" => resource(reference, Reader::Variable, &path, errors),
            "configMapKeyRef" | "secretKeyRef" => key(reference, &path, errors),
            _ => {}
        }
    }
    let detail = match n_sources {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if !member_text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid(path, "", detail);
}

/// Checks a reference to a field of the Pod.
pub(super) fn field(reference: &Value, reader: Reader, path: &Path<'_>, errors: &mut Errors) {
    for member in ["apiVersion", "fieldPath"] {
        if member_text(reference, member).is_empty() {
            return errors.required(&path.child(member), "");
        }
    }
    let label = member_text(reference, "fieldPath");
    let path_of_field = path.child("fieldPath");
    let fail = |errors: &mut Errors, reason: &str| {
        errors.invalid(&path_of_field, label, &format!("error converting fieldPath: {reason}"));
    };
    if member_text(reference, "apiVersion") != "v1" {
        let version = member_text(reference, "apiVersion");
        return fail(errors, &format!("unsupported pod version: {version}"));
    }
    if let Some((field, subscript)) = subscripted(label) {
        let subscript = match field {
            "metadata.annotations" => subscript.to_lowercase(),
            "metadata.labels" => subscript.to_owned(),
            _ => return fail(errors, &format!("field label does not support subscript: {label}")),
        };
        return errors.invalid_for_each(path, &subscript, names::label_key(&subscript));
    }
    let is_known = [&FIELDS_OF_VARIABLES[..], &FIELDS_OF_FILES, &OTHER_FIELDS]
        .concat()
        .contains(&label);
    if !is_known {
        return fail(errors, &format!("field label not supported: {label}"));
    }
    let field = if label == "spec.host" { "spec.nodeName" } else { label };
    let allowed: &[&str] = match reader {
        Reader::Variable => &FIELDS_OF_VARIABLES,
        Reader::File => &FIELDS_OF_FILES,
    };
    if !allowed.contains(&field) {
        errors.unsupported(&path_of_field, field, allowed);
    }
}

/// Splits `metadata.labels['app']`.
fn subscripted(label: &str) -> Option<(&str, &str)> {
    label
        .strip_suffix("']")?
        .split_once("['")
        .filter(|(field, _)| !field.is_empty())
}

/// Checks a reference to a resource of a container.
pub(super) fn resource(reference: &Value, reader: Reader, path: &Path<'_>, errors: &mut Errors) {
    let resource = member_text(reference, "resource");
    let is_huge_page = ["limits.hugepages-", "requests.hugepages-"]
        .iter()
        .any(|prefix| resource.starts_with(prefix));
    if reader == Reader::File && member_text(reference, "containerName").is_empty() {
        errors.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&path.child("resource"), "");
    } else if !RESOURCES.contains(&resource) && !is_huge_page {
        errors.unsupported(&path.child("resource"), resource, &RESOURCES);
    }
}

/// Checks a reference to a key of a `ConfigMap` or a Secret.
fn key(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = member_text(reference, "name");
    errors.invalid_for_each(&path.child("name"), name, names::dns_subdomain(name));
    match member_text(reference, "key") {
        "" => errors.required(&path.child("key"), ""),
        key => errors.invalid_for_each(&path.child("key"), key, names::config_key(key)),
    }
}

/// Checks `envFrom`.
pub(super) fn sources(sources: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (at, source) in elements(sources).iter().enumerate() {
        let of_entry = path.index(at);
        let prefix = member_text(source, "prefix");
        errors.invalid_for_each(&of_entry.child("prefix"), prefix, names::environment_variable(prefix));
        let references = ["configMapRef", "secretRef"];
        let present = references.iter().filter(|name| !source[**name].is_null());
        let n_references = present.clone().count();
        for name in present {
            let path = of_entry.child(name);
            match member_text(&source[*name], "name") {
                "" => errors.required(&path.child("name"), ""),
                prefix => {
                    let messages = metadata::NameRule::DnsSubdomain.prefix_messages(prefix);
                    errors.invalid_for_each(&path.child("name"), prefix, messages);
                }
            }
        }
        match n_references {
            0 => errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"),
            1 => {}
            _ => errors.invalid(path, "", "may not have more than one field specified at a time"),
        }
    }
}
