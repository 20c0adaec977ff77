//! The label selector of the namespaces that an installation manages (`--namespace-selector`).

use std::{fmt, str::FromStr};

use apiobjects::label_selector::{LabelSelector, Requirement};

/// As much as the names of `--namespace` have in the Lease of a member, every renewal of which repeats it: about 250 names
/// of the most length. Escaped, it is part of an address, of which an HTTP client takes 64 KiB. The chart has the same bound.
const TEXT_MAX_BYTES: usize = 16 << 10;

/// The label in the command for a selector from which no command can be derived.
const ANY_LABEL: &str = "KEY=VALUE";

/// The label that the API server sets to the name of a namespace.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A label selector with at least one requirement, in one spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceSelector(LabelSelector);

/// Why a text is no selector of namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamespaceSelectorError {
    /// The syntax, a key or a value is invalid.
    #[error("{0}; write it as for kubectl --selector, such as cronwheel.dev/managed=true")]
    Invalid(String),
    /// It has no requirement.
    #[error(
        "it selects all namespaces; omit --namespace-selector for that, or write a label, such as cronwheel.dev/managed=true"
    )]
    Empty,
    /// It is too long.
    #[error("it has {0} bytes; write at most {TEXT_MAX_BYTES}, for example with one label for all namespaces")]
    TooLong(usize),
}

impl FromStr for NamespaceSelector {
    type Err = NamespaceSelectorError;

    fn from_str(text: &str) -> Result<NamespaceSelector, NamespaceSelectorError> {
        if text.len() > TEXT_MAX_BYTES {
            return Err(NamespaceSelectorError::TooLong(text.len()));
        }
        let selector = LabelSelector::parse(text);
        let selector = selector.map_err(|error| NamespaceSelectorError::Invalid(error.to_string()))?;
        if selector.requirements().is_empty() {
            return Err(NamespaceSelectorError::Empty);
        }
        Ok(NamespaceSelector(selector))
    }
}

impl fmt::Display for NamespaceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl NamespaceSelector {
    /// Selects every namespace, by the label that the API server sets.
    pub fn every() -> NamespaceSelector {
        NamespaceSelector(Requirement::Exists(NAME_LABEL.to_owned()).into())
    }

    /// Returns the command that labels a namespace so that the selector selects it. It names the label if only one is
    /// required; most namespaces lack those that must be missing.
    pub fn label_command(&self) -> String {
        self.label_command_for("NAME")
    }

    /// Returns [`NamespaceSelector::label_command`] for these namespaces, with a space between.
    pub fn label_command_for(&self, namespaces: &str) -> String {
        let label = match &self.required_labels()[..] {
            [(key, value)] => format!("{key}={value}"),
            _ => ANY_LABEL.to_owned(),
        };
        format!("kubectl label namespace {namespaces} {label}")
    }

    /// Whether a namespace with these labels is selected. `label` returns the value of a label.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.matches(label)
    }

    /// Returns labels that a namespace needs at least so that the selector selects it, without that of its name, which
    /// cannot be set. Where it accepts several values, the first one.
    pub fn required_labels(&self) -> Vec<(String, String)> {
        let label = |requirement: &Requirement| match requirement {
            Requirement::In(key, values) => Some((key.clone(), values.first()?.clone())),
            Requirement::Exists(key) => Some((key.clone(), "true".to_owned())),
            Requirement::Absent(_) | Requirement::NotIn(..) => None,
        };
        let labels = self.0.requirements().iter().filter_map(label);
        labels.filter(|(key, _)| key != NAME_LABEL).collect()
    }

    /// Returns what to tell while no namespace is selected.
    pub fn no_namespace_text(&self) -> String {
        format!(
            "no namespace matches --namespace-selector {self}, so no CronJob is managed; select one: {}",
            self.label_command()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NamespaceSelector, NamespaceSelectorError> {
        text.parse()
    }

    #[test]
    fn a_selector_is_written_in_one_way() {
        for (text, expected) in [
            ("cronwheel.dev/managed=true", "cronwheel.dev/managed=true"),
            ("a == b", "a=b"),
            ("a!=b,c", "a!=b,c"),
            ("a in (x, y),!d", "a in (x,y),!d"),
            ("a notin (x,y)", "a notin (x,y)"),
        ] {
            assert_eq!(parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn every_namespace_has_the_label_of_its_name() {
        let every = NamespaceSelector::every();
        assert_eq!(parse(&every.to_string()), Ok(every.clone()));
        assert!(every.selects(|label| (label == "kubernetes.io/metadata.name").then_some("shop")));
    }

    #[test]
    fn an_invalid_selector_is_refused_with_a_remedy() {
        for (text, expected) in [
            ("", "omit --namespace-selector"),
            (" , ", "omit --namespace-selector"),
            ("a b", "Invalid value: \"a b\""),
            ("a in x", "Invalid value: \"a in x\""),
            ("a in (x", "found 'a in (x'"),
            ("/x=y", "prefix part must be non-empty"),
            ("a=b c", "a valid label must be an empty string or consist of"),
            ("a=true;rm", "cronwheel.dev/managed=true"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let long = format!("a={}", "b".repeat(TEXT_MAX_BYTES));
        assert!(parse(&long).unwrap_err().to_string().contains("at most 16384"));
    }

    #[test]
    fn the_command_sets_the_label_that_is_selected() {
        for (text, label) in [
            ("cronwheel.dev/managed=true", "cronwheel.dev/managed=true"),
            ("a in (x,y)", "a=x"),
            ("a", "a=true"),
            ("!a", ANY_LABEL),
            ("a!=b", ANY_LABEL),
            ("a=b,c=d", ANY_LABEL),
            ("a=b,kubernetes.io/metadata.name notin (c,d)", "a=b"),
            ("a=b,kubernetes.io/metadata.name", "a=b"),
            ("kubernetes.io/metadata.name in (c,d)", ANY_LABEL),
        ] {
            let command = parse(text).unwrap().label_command();
            assert_eq!(command, format!("kubectl label namespace NAME {label}"));
        }
    }
}
