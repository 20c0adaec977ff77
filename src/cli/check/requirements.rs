//! Selectors of namespaces as sets, to compare those of policies with those of replicas.

use std::{collections::BTreeSet, fmt};

use apiobjects::label_selector::{LabelSelector, Requirement};
use serde_json::Value;

use crate::kube_api::namespace_selector::NAME_LABEL;

/// Requirements on the labels of a namespace, each in one spelling. All namespaces meet none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Requirements(BTreeSet<String>);

impl Requirements {
    /// Reads a selector as for `kubectl --selector`; `None` if it is invalid.
    pub(super) fn of_text(selector: &str) -> Option<Requirements> {
        let selector = LabelSelector::parse(selector).ok()?;
        let requirements = selector.requirements().iter().cloned();
        Some(Requirements(requirements.map(spelled).collect()))
    }

    /// The requirement of these names.
    pub(super) fn of_names(names: &BTreeSet<String>) -> Requirements {
        let names = names.iter().cloned().collect();
        Requirements([spelled(Requirement::In(NAME_LABEL.to_owned(), names))].into())
    }

    /// Reads label selectors of objects, of which all must be met; `None` if an operator is unknown.
    pub(super) fn of_objects<'a>(selectors: impl IntoIterator<Item = &'a Value>) -> Option<Requirements> {
        let mut requirements = BTreeSet::new();
        for selector in selectors {
            for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
                let values = vec![value.as_str()?.to_owned()];
                requirements.insert(spelled(Requirement::In(key.clone(), values)));
            }
            for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
                requirements.insert(spelled(requirement(expression)?));
            }
        }
        Some(Requirements(requirements))
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("all namespaces");
        }
        let requirements: Vec<&str> = self.0.iter().map(String::as_str).collect();
        write!(f, "namespaces with {}", requirements.join(","))
    }
}

fn requirement(expression: &Value) -> Option<Requirement> {
    let key = expression["key"].as_str()?.to_owned();
    let values = || {
        let values = expression["values"].as_array()?.iter();
        values
            .map(|value| Some(value.as_str()?.to_owned()))
            .collect::<Option<Vec<_>>>()
    };
    match expression["operator"].as_str()? {
        "In" => Some(Requirement::In(key, values()?)),
        "NotIn" => Some(Requirement::NotIn(key, values()?)),
        "Exists" => Some(Requirement::Exists(key)),
        "DoesNotExist" => Some(Requirement::Absent(key)),
        _ => None,
    }
}

fn spelled(mut requirement: Requirement) -> String {
    if let Requirement::In(_, values) | Requirement::NotIn(_, values) = &mut requirement {
        values.sort_unstable();
        values.dedup();
    }
    requirement.to_string()
}
