//! Namespaces with a freeze, and whether somebody follows it: the built-in controller does not, and cronwheel does in the
//! namespaces that it selects by label.

use jiff::Timestamp;
use serde_json::Value;

use super::{
    finding::{Finding, Names, counted},
    installation::Managed,
};
use crate::{
    cli::freeze::until_text,
    schedule::options::{NamespaceOptions, OptionName},
};

const TITLE: &str = "freezes";

/// Longest part of an annotation that a line has.
const SHOWN_MAX_CHARS: usize = 64;

/// The namespaces whose freeze has not ended, and those whose annotation cannot be read.
#[derive(Debug, Default)]
pub(super) struct Freezes {
    followed: Names,
    ignored: Names,
    /// The first of those whose freeze is ignored.
    ignored_namespaces: Vec<String>,
    invalid: Names,
}

impl Freezes {
    /// Reads these namespaces. `is_followed` is whether cronwheel follows the freeze of one.
    pub(super) fn new(namespaces: &[Value], is_followed: impl Fn(&str) -> bool, now: Timestamp) -> Freezes {
        let mut freezes = Freezes::default();
        for namespace in namespaces {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            freezes.add(name, namespace, is_followed(name), now);
        }
        freezes
    }

    fn add(&mut self, name: &str, namespace: &Value, is_followed: bool, now: Timestamp) {
        let annotations = &namespace["metadata"]["annotations"];
        let get = |name: &str| annotations.get(name).and_then(Value::as_str);
        let Some(text) = get(OptionName::FreezeUntil.annotation()).filter(|text| text.trim() != "none") else {
            return;
        };
        match NamespaceOptions::read(get).and_then(|options| options.freeze) {
            None => self.invalid.add(|| {
                let shown: String = text.chars().take(SHOWN_MAX_CHARS).collect();
                format!("{name} ({shown:?})")
            }),
            Some(freeze) if !freeze.holds_at(now) => {}
            Some(freeze) if is_followed => self.followed.add(|| format!("{name} {}", until_text(&freeze, now))),
            Some(freeze) => {
                self.ignored.add(|| format!("{name} {}", until_text(&freeze, now)));
                if self.ignored_namespaces.len() < Names::SHOWN_MAX {
                    self.ignored_namespaces.push(name.to_owned());
                }
            }
        }
    }

    /// Judges the freezes where an installation runs; `None` without any.
    pub(super) fn finding(&self, managed: &Managed) -> Option<Finding> {
        let (ignored, mend) = match managed {
            Managed::Selected(_) => (
                "which the built-in controller ignores until cronwheel manages the namespace",
                managed.manage_command(&self.ignored_namespaces),
            ),
            Managed::All | Managed::Named(_) => (
                "which has no effect, since the replicas do not select namespaces by label",
                "give the replicas --freeze-until, or a --namespace-selector".to_owned(),
            ),
        };
        self.judged(ignored, mend)
    }

    /// Judges the freezes before cronwheel is installed; `None` without any.
    pub(super) fn finding_before_switch(&self) -> Option<Finding> {
        let managed = Managed::of_chart();
        let mend = format!(
            "install cronwheel, and {}",
            managed.manage_command(&self.ignored_namespaces)
        );
        self.judged(
            "which the built-in controller ignores until cronwheel manages the namespace",
            mend,
        )
    }

    fn judged(&self, ignored: &str, mend: String) -> Option<Finding> {
        let mut reasons = Vec::new();
        let mut mends = Vec::new();
        let counted = |names: &Names| counted(names.len(), "namespace");
        if !self.followed.is_empty() {
            reasons.push(format!(
                "nothing starts in {}: {}",
                counted(&self.followed),
                self.followed
            ));
        }
        if !self.ignored.is_empty() {
            let namespaces = counted(&self.ignored);
            reasons.push(format!("{namespaces} with a freeze {ignored}: {}", self.ignored));
            mends.push(mend);
        }
        if !self.invalid.is_empty() {
            let (namespaces, annotation) = (counted(&self.invalid), OptionName::FreezeUntil.annotation());
            reasons.push(format!(
                "{namespaces} whose {annotation} is no instant: {}",
                self.invalid
            ));
            mends.push("cronwheel freeze NAMESPACE --until INSTANT, or cronwheel thaw NAMESPACE".to_owned());
        }
        match (reasons.is_empty(), mends.is_empty()) {
            (true, _) => None,
            (false, true) => Some(Finding::fine(TITLE, reasons.join("; "))),
            (false, false) => Some(Finding::warning(TITLE, reasons.join("; "), mends.join("; "))),
        }
    }
}
