//! The admission policy of the chart that silences the built-in controller.
//!
//! The only place that knows how the chart renders it: the user that it names, its parameters, and its message.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    built_in::time,
    finding::{Finding, Unread, counted},
    requirements::Requirements,
};
use crate::coordination::LEASE_LABEL;

/// The label of the chart, by which a policy is taken that names no installation.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "cronwheel");

/// The user that the policy concerns, by which it is told from the other policies of the chart.
const USER: &str = "system:serviceaccount:kube-system:cronjob-controller";

const TITLE: &str = "admission policy";

const INSTALL: &str =
    "helm upgrade with builtInController.silence=true, or switch the built-in controller off by its flag";

/// Operations of admission.
const CREATE: &str = "CREATE";
const DELETE: &str = "DELETE";

/// Precedes the installation in the message of a refusal.
const RUN_BY: &str = "are run by the installation";

/// The age of a Lease from which the policy lets the built-in controller stand in.
const FRESH_MAX: SignedDuration = SignedDuration::from_secs(60);

/// The installation to which policies belong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub(super) installation: &'a str,
    pub(super) lease_namespace: &'a str,
}

/// The policies and bindings of a cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Policies {
    pub(super) policies: Vec<Value>,
    pub(super) bindings: Vec<Value>,
}

/// The Leases that are the parameters of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) namespace: String,
    /// The label selector.
    pub(super) selector: String,
}

/// A policy, and its binding if it has one.
#[derive(Clone, Copy, Debug)]
struct Bound<'a> {
    policy: &'a Value,
    binding: Option<&'a Value>,
}

impl Policies {
    /// Returns the policy of an installation that refuses the built-in controller an operation on Jobs.
    ///
    /// Parameters tell the installation. A policy without them names it in its message, or, if a person wrote it, has the
    /// label of the chart.
    fn of(&self, operation: &str, owner: Owner<'_>) -> Option<Bound<'_>> {
        let mut bounds = Vec::new();
        for policy in self.policies.iter().filter(|policy| refuses(policy, operation)) {
            let name = &policy["metadata"]["name"];
            let its = self
                .bindings
                .iter()
                .filter(|binding| &binding["spec"]["policyName"] == name);
            let its = its.map(|binding| Bound {
                policy,
                binding: Some(binding),
            });
            let n_before = bounds.len();
            bounds.extend(its);
            if bounds.len() == n_before {
                bounds.push(Bound { policy, binding: None });
            }
        }
        let find = |is_it: &dyn Fn(Bound<'_>) -> bool| bounds.iter().copied().find(|bound| is_it(*bound));
        find(&|bound| bound.has_parameters_of(owner))
            .or_else(|| find(&|bound| bound.names(owner)))
            .or_else(|| find(&|bound| bound.may_be_of_any()))
    }

    /// Returns the Leases on which the policy of an installation depends; `None` if it has no parameters.
    pub(super) fn parameters(&self, owner: Owner<'_>) -> Option<Parameters> {
        let reference = self.of(CREATE, owner)?.reference()?;
        let labels = reference.pointer("/selector/matchLabels").and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels = labels.filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
        Some(Parameters {
            namespace: reference["namespace"].as_str()?.to_owned(),
            selector: labels.collect::<Vec<_>>().join(","),
        })
    }

    /// Judges whether the policies of an installation refuse the writes of the built-in controller now in the namespaces that
    /// replicas manage. `managed` is not known if no replica publishes it. `leases` are the parameters.
    pub(super) fn finding(
        &self,
        owner: Owner<'_>,
        managed: Option<&Requirements>,
        leases: &Result<Vec<Value>, Unread>,
        now: Timestamp,
    ) -> Finding {
        let Some(creates) = self.of(CREATE, owner) else {
            return Finding::warning(
                TITLE,
                format!(
                    "no ValidatingAdmissionPolicy silences the built-in controller for installation {} in {}",
                    owner.installation, owner.lease_namespace
                ),
                INSTALL,
            );
        };
        let name = creates.name();
        let Some(deletes) = self.of(DELETE, owner) else {
            return Finding::failed(
                TITLE,
                format!("{name} has no counterpart that refuses the built-in controller the deletion of Jobs"),
                INSTALL,
            );
        };
        let both = [creates, deletes];
        if let Some(failed) = both.iter().find_map(Bound::is_without_effect) {
            return failed;
        }
        let fresh = match leases {
            _ if creates.reference().is_none() => None,
            Ok(leases) => match leases.iter().filter(|lease| is_fresh(lease, now)).count() {
                0 => return stale(name, leases.len()),
                n => Some(n),
            },
            Err(unread) => return Finding::unread(TITLE, unread),
        };
        let other = managed.and_then(|managed| both.iter().find_map(|bound| bound.selects_others(managed)));
        other.unwrap_or_else(|| {
            let deletes = deletes.name();
            let fresh = fresh.map(|n| format!(": {} with a fresh Lease", counted(n, "replica")));
            Finding::fine(
                TITLE,
                format!(
                    "{name} and {deletes} are bound and refuse the built-in controller's writes{}",
                    fresh.unwrap_or_default()
                ),
            )
        })
    }
}

fn stale(name: &str, n_leases: usize) -> Finding {
    Finding::failed(
        TITLE,
        format!(
            "{name} is bound, and refuses nothing now: none of {} of replicas that act was renewed within 60 s, so the \
             built-in controller stands in",
            counted(n_leases, "Lease")
        ),
        "cronwheel shards says why no replica acts",
    )
}

impl<'a> Bound<'a> {
    /// The reference of the binding to parameters; `None` if the policy always refuses, or has no binding.
    fn reference(&self) -> Option<&'a Value> {
        self.binding?
            .pointer("/spec/paramRef")
            .filter(|reference| !reference.is_null())
    }

    fn name(&self) -> &'a str {
        self.policy["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Says why the policy refuses nothing anywhere.
    fn is_without_effect(&self) -> Option<Finding> {
        let name = self.name();
        let reason = match self.binding {
            None => format!("{name} has no binding, so it refuses nothing"),
            Some(binding) if !has(&binding["spec"]["validationActions"], "Deny") => {
                format!("the binding of {name} does not deny")
            }
            Some(_) => return None,
        };
        Some(Finding::failed(TITLE, reason, INSTALL))
    }

    /// Says if the policy is for other namespaces than those that replicas manage.
    fn selects_others(&self, managed: &Requirements) -> Option<Finding> {
        let of_policy = &self.policy["spec"]["matchConstraints"]["namespaceSelector"];
        let of_binding = &self.binding?["spec"]["matchResources"]["namespaceSelector"];
        let selected = Requirements::of_objects([of_policy, of_binding]);
        if selected.as_ref() == Some(managed) {
            return None;
        }
        let name = self.name();
        let selected = selected.map_or_else(|| "an unknown selector".to_owned(), |selected| selected.to_string());
        Some(Finding::warning(
            TITLE,
            format!(
                "{name} is for {selected}, but replicas manage {managed}: both controllers or none run the CronJobs of \
                 namespaces that only one of these selects"
            ),
            "install policy and replicas with the same values managedNamespaces and controller.namespaces of the chart",
        ))
    }

    fn has_parameters_of(&self, owner: Owner<'_>) -> bool {
        self.reference().is_some_and(|reference| {
            reference["namespace"] == owner.lease_namespace
                && reference["selector"]["matchLabels"][LEASE_LABEL] == owner.installation
        })
    }

    /// Whether the policy has no parameters and its message names the installation.
    fn names(&self, owner: Owner<'_>) -> bool {
        let Owner {
            installation,
            lease_namespace,
        } = owner;
        let named = format!("{RUN_BY} {installation} in {lease_namespace};");
        self.reference().is_none() && self.messages().any(|message| message.contains(&named))
    }

    /// Whether the policy has no parameters, has the label of the chart, and names no other installation.
    fn may_be_of_any(&self) -> bool {
        let (label, value) = LABEL;
        self.reference().is_none()
            && self.policy["metadata"]["labels"][label] == value
            && !self.messages().any(|message| message.contains(RUN_BY))
    }

    /// The messages of its validations, with single spaces.
    fn messages(&self) -> impl Iterator<Item = String> {
        let validations = self.policy.pointer("/spec/validations").and_then(Value::as_array);
        let messages = validations
            .into_iter()
            .flatten()
            .flat_map(|validation| [&validation["messageExpression"], &validation["message"]]);
        let messages = messages.filter_map(Value::as_str);
        messages.map(|message| message.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// Whether a policy refuses the built-in controller an operation on Jobs.
fn refuses(policy: &Value, operation: &str) -> bool {
    let conditions = policy.pointer("/spec/matchConditions").and_then(Value::as_array);
    let mut expressions = conditions
        .into_iter()
        .flatten()
        .map(|condition| &condition["expression"]);
    let rules = policy
        .pointer("/spec/matchConstraints/resourceRules")
        .and_then(Value::as_array);
    let mut rules = rules.into_iter().flatten();
    expressions.any(|expression| expression.as_str().is_some_and(|text| text.contains(USER)))
        && rules.any(|rule| has(&rule["resources"], "jobs") && has(&rule["operations"], operation))
}

fn has(list: &Value, item: &str) -> bool {
    list.as_array()
        .is_some_and(|items| items.iter().any(|found| found == item))
}

fn is_fresh(lease: &Value, now: Timestamp) -> bool {
    let renewed = time(&lease["spec"]["renewTime"]);
    renewed.is_some_and(|renewed| now.duration_since(renewed) < FRESH_MAX)
}
