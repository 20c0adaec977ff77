//! Label and field selectors: which objects a list or a watch includes.

use serde_json::Value;

use super::{Stored, selector_error::SelectorError};
use crate::{Resource, objects::label_selector::LabelSelector};

/// The selection of a list or a watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selector {
    /// Whether labels and fields are unrestricted.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.requirements().is_empty() && self.fields.0.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.labels.matches(|key| object.label(key)) && self.fields.matches(object)
    }
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

    #[test]
    fn unsupported_field_selectors_are_refused() {
        assert!(FieldSelector::parse(Resource::CronJob, "metadata.name=a,metadata.namespace!=b").is_ok());
        assert!(FieldSelector::parse(Resource::Event, "involvedObject.uid=1").is_ok());
        let refused = FieldSelector::parse(Resource::Event, "spec.schedule=1").unwrap_err();
        assert_eq!(refused.0, "field label not supported: spec.schedule");
    }
}
