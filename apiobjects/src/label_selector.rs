//! Label selectors: which objects a list or a watch includes, in the syntax of `kubectl --selector`.

use std::fmt;

use crate::validation::names;

/// A selector that cannot be parsed, with the message of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// Requirements on labels, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

/// A requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label exists.
    Exists(String),
    /// The label is missing.
    Absent(String),
    /// The label has one of these values.
    In(String, Vec<String>),
    /// The label has none of these values, or is missing.
    NotIn(String, Vec<String>),
}

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`. An empty text selects everything.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        let parts = split_outside_brackets(text);
        let requirements = parts.into_iter().filter(|part| !part.is_empty()).map(requirement);
        requirements.collect::<Result<_, _>>().map(LabelSelector)
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether an object with these labels is selected. `label` returns the value of a label.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|requirement| requirement.is_met(&label))
    }
}

impl From<Requirement> for LabelSelector {
    fn from(requirement: Requirement) -> LabelSelector {
        LabelSelector(vec![requirement])
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

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Exists(key) => f.write_str(key),
            Requirement::Absent(key) => write!(f, "!{key}"),
            Requirement::In(key, values) => match values.as_slice() {
                [value] => write!(f, "{key}={value}"),
                values => write!(f, "{key} in ({})", values.join(",")),
            },
            Requirement::NotIn(key, values) => match values.as_slice() {
                [value] => write!(f, "{key}!={value}"),
                values => write!(f, "{key} notin ({})", values.join(",")),
            },
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
    if let Some((head, values)) = text.split_once('(') {
        let values = values.strip_suffix(')').ok_or_else(|| unreadable(text))?;
        let values = values.split(',').map(value).collect::<Result<_, _>>()?;
        let tokens: Vec<&str> = head.split_whitespace().collect();
        return match tokens.as_slice() {
            [name, "in"] => Ok(Requirement::In(key(name)?, values)),
            [name, "notin"] => Ok(Requirement::NotIn(key(name)?, values)),
            _ => Err(unreadable(text)),
        };
    }
    if let Some((name, text)) = text.split_once("!=") {
        return Ok(Requirement::NotIn(key(name)?, vec![value(text)?]));
    }
    if let Some((name, text)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Requirement::In(key(name)?, vec![value(text)?]));
    }
    match text.strip_prefix('!') {
        Some(name) => Ok(Requirement::Absent(key(name)?)),
        None => Ok(Requirement::Exists(key(text)?)),
    }
}

fn key(text: &str) -> Result<String, SelectorError> {
    valid(text.trim(), names::label_key)
}

fn value(text: &str) -> Result<String, SelectorError> {
    valid(text.trim(), names::label_value)
}

fn valid(text: &str, rules: fn(&str) -> Vec<String>) -> Result<String, SelectorError> {
    match rules(text).first() {
        None => Ok(text.to_owned()),
        Some(message) => Err(SelectorError(format!(
            "unable to parse requirement: Invalid value: \"{text}\": {message}"
        ))),
    }
}

fn unreadable(text: &str) -> SelectorError {
    SelectorError(format!(
        "unable to parse requirement: found '{text}', expected: a label selector"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_selectors_match_as_in_the_api_server() {
        let labels = [("app", "shop"), ("tier", "2")];
        let label = |key: &str| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
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
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(label), expected, "{selector} on {labels:?}");
            assert_eq!(LabelSelector::parse(&parsed.to_string()), Ok(parsed), "{selector}");
        }
    }

    #[test]
    fn invalid_selectors_are_refused() {
        for selector in [
            "tier in (1",
            "a b",
            "=x",
            "x in 1",
            "(a)",
            "!",
            "a=b c",
            "a=b=c",
            "a/b/c",
            "-a",
            "a=-",
            "a in (b c)",
            "a>1",
        ] {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }

    #[test]
    fn a_selector_has_one_spelling() {
        for (selector, expected) in [
            ("a==b", "a=b"),
            (" a = b ,, c", "a=b,c"),
            ("a in (b)", "a=b"),
            ("a notin ( b , c ), !d", "a notin (b,c),!d"),
            ("a notin (b)", "a!=b"),
            ("a=", "a="),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap().to_string(), expected);
        }
    }
}
