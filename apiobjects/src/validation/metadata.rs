//! Validation of the metadata of every object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{field_error::Errors, names, path::Path};

const METADATA: Path<'static> = Path::root("metadata");
/// The maximum total size of the annotations of an object, keys and values, in bytes.
const ANNOTATIONS_LENGTH_MAX: usize = 256 * 1024;
/// Finalizers that the server itself defines.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
const IMMUTABLE: &str = "field is immutable";

/// The rule for names of objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRule {
    DnsSubdomain,
    DnsLabel,
    PathSegment,
}

impl NameRule {
    fn messages(self, name: &str) -> Vec<String> {
        match self {
            NameRule::DnsSubdomain => names::dns_subdomain(name),
            NameRule::DnsLabel => names::dns_label(name),
            NameRule::PathSegment => names::path_segment(name, false),
        }
    }

    /// Checks a prefix to which a suffix will be appended. It may end with a dash.
    pub(super) fn prefix_messages(self, prefix: &str) -> Vec<String> {
        if self == NameRule::PathSegment {
            return names::path_segment(prefix, true);
        }
        match prefix
            .strip_suffix('-')
            .and_then(|rest| rest.char_indices().next_back())
        {
            Some((at, _)) => self.messages(&format!("{}a", &prefix[..at])),
            None => self.messages(prefix),
        }
    }
}

/// Returns a string in the metadata. Empty if absent.
pub(super) fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    member_text(&object["metadata"], member)
}

/// Returns a string in an object. Empty if absent.
pub(super) fn member_text<'a>(object: &'a Value, member: &str) -> &'a str {
    object.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Checks the metadata of an object.
pub(super) fn check(object: &Value, is_namespaced: bool, rule: NameRule, errors: &mut Errors) {
    let prefix = text(object, "generateName");
    if !prefix.is_empty() {
        errors.invalid_for_each(&METADATA.child("generateName"), prefix, rule.prefix_messages(prefix));
    }
    match text(object, "name") {
        "" => errors.required(&METADATA.child("name"), "name or generateName is required"),
        name => errors.invalid_for_each(&METADATA.child("name"), name, rule.messages(name)),
    }
    let path = METADATA.child("namespace");
    match (is_namespaced, text(object, "namespace")) {
        (true, "") => errors.required(&path, ""),
        (true, namespace) => errors.invalid_for_each(&path, namespace, names::dns_label(namespace)),
        (false, "") => {}
        (false, _) => errors.forbidden(&path, "not allowed on this type"),
    }
    let metadata = &object["metadata"];
    errors.non_negative(&METADATA.child("generation"), metadata.get("generation"));
    check_attachments(metadata, errors);
    finalizers(metadata, errors);
}

/// Checks the metadata of an object whose API group also validates finalizers: each must be a standard name or have a
/// domain.
pub(super) fn check_with_finalizers(object: &Value, is_namespaced: bool, rule: NameRule, errors: &mut Errors) {
    check(object, is_namespaced, rule, errors);
    finalizer_names(object, errors);
}

/// Checks an update of the metadata of an object whose API group also validates finalizers.
pub(super) fn check_update_with_finalizers(new: &Value, old: &Value, errors: &mut Errors) {
    check_update(new, old, errors);
    finalizer_names(new, errors);
}

/// Checks an update of the metadata.
pub(super) fn check_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["metadata"], &old["metadata"]);
    if !old["deletionTimestamp"].is_null() {
        no_new_finalizers(new, old, errors);
    }
    if member_text(new, "resourceVersion").is_empty() {
        errors.invalid(
            &METADATA.child("resourceVersion"),
            "",
            "must be specified for an update",
        );
    }
    if new["generation"].as_i64() < old["generation"].as_i64() {
        errors.invalid(
            &METADATA.child("generation"),
            new["generation"].clone(),
            "must not be decremented",
        );
    }
    let members = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for member in members {
        immutable(&METADATA.child(member), &new[member], &old[member], errors);
    }
    check_attachments(new, errors);
}

/// Checks that a field is unchanged.
pub(super) fn immutable(path: &Path<'_>, new: &Value, old: &Value, errors: &mut Errors) {
    if new != old {
        errors.invalid(path, new.clone(), IMMUTABLE);
    }
}

/// Checks the labels in a map.
pub(super) fn labels(path: &Path<'_>, labels: &Value, errors: &mut Errors) {
    for (key, value) in members(labels) {
        errors.invalid_for_each(path, key, names::label_key(key));
        let value = value.as_str().unwrap_or_default();
        errors.invalid_for_each(path, value, names::label_value(value));
    }
}

/// Checks annotations: keys follow the rule of label keys, ignoring case, and the total size is limited.
pub(super) fn annotations(path: &Path<'_>, annotations: &Value, errors: &mut Errors) {
    let mut length = 0;
    for (key, value) in members(annotations) {
        errors.invalid_for_each(path, key, names::label_key(&key.to_lowercase()));
        length += key.len() + value.as_str().map_or(0, str::len);
    }
    if length > ANNOTATIONS_LENGTH_MAX {
        errors.too_long(path, ANNOTATIONS_LENGTH_MAX);
    }
}

/// The members of an object. Yields nothing if the value is not an object.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// The elements of a list. Empty if the value is not a list.
pub(super) fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn check_attachments(metadata: &Value, errors: &mut Errors) {
    labels(&METADATA.child("labels"), &metadata["labels"], errors);
    annotations(&METADATA.child("annotations"), &metadata["annotations"], errors);
    owner_references(&metadata["ownerReferences"], errors);
}

fn owner_references(references: &Value, errors: &mut Errors) {
    let path = METADATA.child("ownerReferences");
    let mut controller: Option<String> = None;
    for reference in elements(references) {
        if member_text(reference, "apiVersion")
            .rsplit('/')
            .next()
            .is_none_or(str::is_empty)
        {
            let version = member_text(reference, "apiVersion");
            errors.invalid(&path.child("apiVersion"), version, "version must not be empty");
        }
        for member in ["kind", "name", "uid"] {
            if member_text(reference, member).is_empty() {
                errors.invalid(&path.child(member), "", "must not be empty");
            }
        }
        if (member_text(reference, "apiVersion"), member_text(reference, "kind")) == ("v1", "Event") {
            errors.invalid(
                &path,
                reference.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            );
        }
        if reference["controller"] != Value::Bool(true) {
            continue;
        }
        let this = format!("{}/{}", member_text(reference, "kind"), member_text(reference, "name"));
        match &controller {
            None => controller = Some(this),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {this}"
                );
                errors.invalid_formatted(&path, &format_references(elements(references)), &detail);
            }
        }
    }
}

fn finalizers(metadata: &Value, errors: &mut Errors) {
    let path = METADATA.child("finalizers");
    let finalizers: Vec<_> = elements(&metadata["finalizers"])
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for finalizer in &finalizers {
        errors.invalid_for_each(&path, finalizer, names::label_key(finalizer));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid(&path, metadata["finalizers"].clone(), detail);
    }
}

fn finalizer_names(object: &Value, errors: &mut Errors) {
    let path = METADATA.child("finalizers");
    for (at, finalizer) in elements(&object["metadata"]["finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid(&path.index(at), name, detail);
        }
    }
}

/// Formats references as JSON, with the members in the order of the type.
fn format_references(references: &[Value]) -> String {
    let format_reference = |reference: &Value| {
        let members = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
        let present = members.iter().filter_map(|name| Some((name, reference.get(name)?)));
        let texts: Vec<_> = present.map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", texts.join(","))
    };
    let texts: Vec<_> = references.iter().map(format_reference).collect();
    format!("[{}]", texts.join(","))
}

fn no_new_finalizers(new: &Value, old: &Value, errors: &mut Errors) {
    let set = |metadata: &Value| -> BTreeSet<String> {
        let finalizers = elements(&metadata["finalizers"]).iter();
        finalizers
            .filter_map(|finalizer| Some(finalizer.as_str()?.to_owned()))
            .collect()
    };
    let (new, old) = (set(new), set(old));
    let added: Vec<_> = new.difference(&old).map(|finalizer| format!("{finalizer:?}")).collect();
    if !added.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.forbidden(&METADATA.child("finalizers"), &detail);
    }
}
