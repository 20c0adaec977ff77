//! Label and field selectors: which objects a list or a watch includes.

use serde_json::Value;

use super::{Stored, selector_error::SelectorError, shard_selector::ShardSelector};
use crate::resource::Resource;

/// The selection of a list or a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) shards: Option<ShardSelector>,
}

impl Selector {
    /// Whether labels and fields are unrestricted. Shards are ignored: counts include the objects of other shards.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.0.is_empty() && self.fields.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        let is_of_shards = || self.shards.as_ref().is_none_or(|shards| shards.matches(object));
        self.labels.matches(object) && self.fields.matches(object) && is_of_shards()
    }
}

/// Requirements on labels, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    /// Also met if the label is missing.
    NotIn(String, Vec<String>),
}

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
    pub(crate) fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        let parts = split_outside_brackets(text);
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(requirement)
            .collect::<Result<_, _>>()
            .map(LabelSelector)
    }

    fn matches(&self, object: &Stored) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.is_met(|key| object.label(key)))
    }
}

impl Requirement {
    fn is_met<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let is_in = |key: &str, values: &[String]| label(key).map(|value| values.iter().any(|wanted| wanted == value));
        match self {
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
            Requirement::In(key, values) => is_in(key, values) == Some(true),
            Requirement::NotIn(key, values) => is_in(key, values) != Some(true),
        }
    }
}

fn split_outside_brackets(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let is_separator = |character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    };
    text.split(is_separator).map(str::trim).collect()
}

fn requirement(text: &str) -> Result<Requirement, SelectorError> {
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some((head, values)) = text.split_once('(') {
        let values = values
            .strip_suffix(')')
            .ok_or_else(|| unreadable(text))?
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let tokens: Vec<&str> = head.split_whitespace().collect();
        return match tokens.as_slice() {
            [name, "in"] => Ok(Requirement::In(key(name)?, values)),
            [name, "notin"] => Ok(Requirement::NotIn(key(name)?, values)),
            _ => Err(unreadable(text)),
        };
    }
    if let Some((name, value)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(key(name)?, one(value)));
    }
    if let Some((name, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(key(name)?, one(value)));
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(Requirement::Absent(key(name)?)),
        None => Ok(Requirement::Exists(key(text)?)),
    }
}

fn key(text: &str) -> Result<String, SelectorError> {
    let text = text.trim();
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    if text.is_empty() || !text.bytes().all(is_key) {
        return Err(unreadable(text));
    }
    Ok(text.to_owned())
}

fn unreadable(text: &str) -> SelectorError {
    SelectorError(format!(
        "unable to parse requirement: found '{text}', expected: a label selector"
    ))
}

/// Requirements on fields, all of which must be met.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelector(Vec<FieldRequirement>);

#[derive(Clone, Debug)]
struct FieldRequirement {
    field: Field,
    value: String,
    is_equal: bool,
}

#[derive(Clone, Debug)]
enum Field {
    Name,
    Namespace,
    /// The names of the path, from the root of the object.
    Inner(Vec<String>),
}

impl Field {
    fn parse(path: &str) -> Field {
        match path {
            "metadata.name" => Field::Name,
            "metadata.namespace" => Field::Namespace,
            path => Field::Inner(path.split('.').map(ToOwned::to_owned).collect()),
        }
    }
}

impl FieldSelector {
    /// Parses `metadata.name=a,metadata.namespace!=b`. Only fields that the API server supports are accepted.
    pub(crate) fn parse(resource: Resource, text: &str) -> Result<FieldSelector, SelectorError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts
            .map(|part| field_requirement(resource, part))
            .collect::<Result<_, _>>()
            .map(FieldSelector)
    }

    fn matches(&self, object: &Stored) -> bool {
        let mut read = None;
        self.0.iter().all(|requirement| {
            let is_value = match &requirement.field {
                Field::Name => object.key.name() == requirement.value,
                Field::Namespace => object.key.namespace().unwrap_or_default() == requirement.value,
                Field::Inner(path) => {
                    let path: Vec<_> = path.iter().map(String::as_str).collect();
                    field(read.get_or_insert_with(|| object.value()), &path) == requirement.value
                }
            };
            is_value == requirement.is_equal
        })
    }
}

fn field_requirement(resource: Resource, text: &str) -> Result<FieldRequirement, SelectorError> {
    let (path, value, is_equal) = if let Some((path, value)) = text.split_once("!=") {
        (path, value, false)
    } else if let Some((path, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (path, value, true)
    } else {
        return Err(SelectorError(format!(
            "invalid selector: '{text}'; can't understand '{text}'"
        )));
    };
    if !matches!(path, "metadata.name" | "metadata.namespace") && !selectable(resource).contains(&path) {
        return Err(not_selectable(resource, path));
    }
    Ok(FieldRequirement {
        field: Field::parse(path),
        value: value.to_owned(),
        is_equal,
    })
}

/// Returns the error for an unsupported field. The message depends on the kind.
fn not_selectable(resource: Resource, path: &str) -> SelectorError {
    SelectorError(match resource {
        Resource::CronJob | Resource::Lease | Resource::ConfigMap => {
            format!("\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
        Resource::Job => format!("field label \"{path}\" not supported for Job"),
        Resource::Event | Resource::Namespace => format!("field label not supported: {path}"),
    })
}

/// The supported fields besides name and namespace.
fn selectable(resource: Resource) -> &'static [&'static str] {
    match resource {
        Resource::Event => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        Resource::Job => &["status.successful"],
        Resource::Namespace => &["status.phase"],
        Resource::CronJob | Resource::Lease | Resource::ConfigMap => &[],
    }
}

/// Returns the text of a field as selectors compare it. Missing numbers are 0.
fn field(object: &Value, path: &[&str]) -> String {
    if path == ["status", "successful"] {
        return object["status"]["succeeded"].as_i64().unwrap_or_default().to_string();
    }
    if path == ["source"] {
        return object["source"]["component"].as_str().unwrap_or_default().to_owned();
    }
    let found = path.iter().try_fold(object, |value, name| value.get(*name));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let parsed = LabelSelector::parse(selector).unwrap();
        let label = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let is_met = parsed.0.iter().all(|requirement| requirement.is_met(label));
        assert_eq!(is_met, expected, "{selector} on {labels:?}");
    }

    #[test]
    fn label_selectors_match_as_in_the_api_server() {
        let labels = [("app", "shop"), ("tier", "2")];
        for (selector, expected) in [
            ("", true),
            ("app=shop", true),
            ("app==shop,tier=2", true),
            ("app=shop,tier=3", false),
            ("app!=shop", false),
            ("other!=x", true),
            ("tier in (1,2)", true),
            ("tier in (1, 3), app", false),
            ("tier notin (1,3),app", true),
            ("other notin (a)", true),
            ("other", false),
            ("!other,app", true),
            ("!app", false),
        ] {
            check(selector, &labels, expected);
        }
        for selector in ["tier in (1", "a b", "=x", "x in 1", "(a)"] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }

    #[test]
    fn unsupported_field_selectors_are_refused() {
        assert!(FieldSelector::parse(Resource::CronJob, "metadata.name=a,metadata.namespace!=b").is_ok());
        assert!(FieldSelector::parse(Resource::Event, "involvedObject.uid=1").is_ok());
        let refused = FieldSelector::parse(Resource::Event, "spec.schedule=1").unwrap_err();
        assert_eq!(refused.0, "field label not supported: spec.schedule");
    }
}
