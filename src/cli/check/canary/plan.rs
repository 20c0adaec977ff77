//! Which namespaces a canary needs, and the labels that make one of them managed.

use std::collections::BTreeMap;

use super::LABEL;
use crate::{
    cli::check::{
        finding::{Finding, Names},
        installation::Managed,
    },
    kube_api::{NamespaceSelector, namespace_selector::NAME_LABEL},
};

/// The selector of the chart, if no replica says another one.
const SELECTOR: &str = "cronwheel.dev/managed=true";

/// The namespaces of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli::check) struct Plan {
    /// Where the managed one is, for messages.
    pub(in crate::cli::check) place: String,
    /// The labels that make it managed.
    pub(in crate::cli::check) labels: BTreeMap<String, String>,
    /// Whether a namespace without these labels is unmanaged.
    pub(in crate::cli::check) has_other: bool,
}

impl Plan {
    /// Returns the plan for the selector that is given, otherwise for the namespaces that the replicas manage.
    pub(in crate::cli::check) fn of(
        given: Option<&NamespaceSelector>,
        managed: Option<&Managed>,
    ) -> Result<Plan, Finding> {
        let text = match (given, managed) {
            (Some(selector), _) => return Plan::of_selector(selector),
            (None, Some(Managed::All)) => {
                return Ok(Plan {
                    place: "in a new namespace, and the replicas manage all".to_owned(),
                    labels: BTreeMap::new(),
                    has_other: false,
                });
            }
            (None, Some(Managed::Named(names))) => {
                let names: Names = names.iter().map(String::as_str).collect();
                return Err(not_checked(&format!(
                    "the replicas manage namespaces by their names ({names}), and a new namespace is none of them"
                )));
            }
            (None, Some(Managed::Selected(selector))) => selector,
            (None, None) => SELECTOR,
        };
        match text.parse() {
            Ok(selector) => Plan::of_selector(&selector),
            Err(error) => Err(not_checked(&format!("the selector {text} of the replicas: {error}"))),
        }
    }

    fn of_selector(selector: &NamespaceSelector) -> Result<Plan, Finding> {
        let labels: BTreeMap<String, String> = selector.required_labels().into_iter().collect();
        let is_selected = |labels: &BTreeMap<String, String>| {
            selector.selects(|key| match key {
                // No selector has the name of a canary.
                NAME_LABEL => Some("cronwheel-canary"),
                LABEL => Some("true"),
                _ => labels.get(key).map(String::as_str),
            })
        };
        if is_selected(&labels) {
            return Ok(Plan {
                place: format!("in the namespace with {selector}"),
                has_other: !is_selected(&BTreeMap::new()),
                labels,
            });
        }
        let reason = if selector.to_string().contains(NAME_LABEL) {
            format!("{selector} selects namespaces by {NAME_LABEL}, which cannot be given to a new namespace")
        } else {
            format!("no labels are known that {selector} selects")
        };
        Err(not_checked(&reason))
    }
}

fn not_checked(reason: &str) -> Finding {
    Finding::failed(
        "canary",
        format!("not checked: {reason}"),
        "cronwheel check says whether the policy is bound and a replica acts, and which Jobs of the last hour are of another \
         controller",
    )
}
