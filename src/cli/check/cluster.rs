//! What the API server and the account must offer, before anything is installed.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::finding::{Finding, Names, Unread, counted};
use crate::{
    controller::permissions::{PERMISSIONS, POLICY_PERMISSIONS, Permission, Place},
    kube_api::access_review::AccessRequest,
};

/// The minor version of Kubernetes 1 from which admission policies are stable.
const MINOR_MIN: u32 = 30;

/// The default of `--max-clock-skew`.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_secs(2);

/// The API group of admission policies.
pub(super) const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// The API group of priority and fairness.
pub(super) const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// Judges the document `/version`.
pub(super) fn version(document: &Result<Value, Unread>) -> Finding {
    const TITLE: &str = "server version";
    let document = match document {
        Ok(document) => document,
        Err(unread) => return Finding::unread(TITLE, unread),
    };
    let text = |member: &str| document[member].as_str().unwrap_or_default();
    // Providers append characters: `30+`.
    let number = |text: &str| {
        text.trim_end_matches(|letter: char| !letter.is_ascii_digit())
            .parse::<u32>()
    };
    let git_version = text("gitVersion");
    match (number(text("major")), number(text("minor"))) {
        (Ok(1), Ok(minor)) if minor < MINOR_MIN => Finding::failed(
            TITLE,
            format!("{git_version} is older than v1.{MINOR_MIN}"),
            format!("update the control plane to v1.{MINOR_MIN} or newer"),
        ),
        (Ok(_), Ok(_)) => Finding::fine(TITLE, format!("{git_version}, at least v1.{MINOR_MIN}")),
        _ => Finding::warning(
            TITLE,
            format!("cannot be read from {git_version:?}"),
            format!("kubectl version: the server must be v1.{MINOR_MIN} or newer"),
        ),
    }
}

/// Judges whether a group serves a resource. `group` is its discovery document; `None` if it does not exist.
fn is_served(group: Option<&Value>, plural: &str) -> bool {
    let resources = group.and_then(|group| group["resources"].as_array());
    resources
        .into_iter()
        .flatten()
        .any(|resource| resource["name"] == plural)
}

/// Judges whether admission policies are served.
pub(super) fn policies(group: &Result<Option<Value>, Unread>) -> Finding {
    const TITLE: &str = "admission policies";
    match group {
        Ok(group) if is_served(group.as_ref(), "validatingadmissionpolicies") => Finding::fine(
            TITLE,
            "ValidatingAdmissionPolicy is served by admissionregistration.k8s.io/v1",
        ),
        Ok(_) => Finding::failed(
            TITLE,
            "ValidatingAdmissionPolicy is not served by admissionregistration.k8s.io/v1, so no policy can silence the \
             built-in controller",
            "enable admissionregistration.k8s.io/v1 in --runtime-config of kube-apiserver, or switch the built-in \
             controller off by its flag",
        ),
        Err(unread) => Finding::unread(TITLE, unread),
    }
}

/// Judges priority and fairness.
pub(super) fn fairness(group: &Result<Option<Value>, Unread>) -> Finding {
    const TITLE: &str = "priority and fairness";
    match group {
        Ok(group) if is_served(group.as_ref(), "flowschemas") => {
            Finding::fine(TITLE, "FlowSchema is served by flowcontrol.apiserver.k8s.io/v1")
        }
        Ok(_) => Finding::warning(
            TITLE,
            "FlowSchema is not served by flowcontrol.apiserver.k8s.io/v1: on a busy API server, renewals of Leases wait with \
             everything else",
            "install with --set flowSchema.enabled=false",
        ),
        Err(unread) => Finding::unread(TITLE, unread),
    }
}

/// An answer with a `Date` header, and the local times around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DateAnswer {
    pub(super) sent: Timestamp,
    pub(super) received: Timestamp,
    /// In whole seconds, rounded down.
    pub(super) date: Timestamp,
}

impl DateAnswer {
    /// Returns how far the local clock is ahead of the API server's, at least.
    pub(super) fn ahead(self) -> SignedDuration {
        let latest = self
            .date
            .saturating_add(SignedDuration::from_secs(1))
            .unwrap_or(self.date);
        let (late, early) = (
            self.sent.duration_since(latest),
            self.received.duration_since(self.date),
        );
        if late > SignedDuration::ZERO {
            late
        } else {
            early.min(SignedDuration::ZERO)
        }
    }

    /// Whether the clocks differ by more than a replica tolerates.
    pub(super) fn is_off(self) -> bool {
        self.ahead().abs() > CLOCK_SKEW_MAX
    }

    /// Returns the API server's time, if the clocks differ.
    pub(super) fn corrected(self, now: Timestamp) -> Timestamp {
        if self.is_off() {
            now.checked_sub(self.ahead()).unwrap_or(now)
        } else {
            now
        }
    }
}

/// Judges the clock of this machine.
pub(super) fn clock(answer: Option<DateAnswer>) -> Finding {
    const TITLE: &str = "clock";
    let Some(answer) = answer else {
        return Finding::warning(
            TITLE,
            "the answers of the API server have no Date header, by which replicas check their clock",
            "connect to the API server without a proxy that removes the header",
        );
    };
    let ahead = answer.ahead();
    let seconds = ahead.abs().as_secs();
    let side = if ahead > SignedDuration::ZERO {
        "ahead of"
    } else {
        "behind"
    };
    if answer.is_off() {
        return Finding::warning(
            TITLE,
            format!(
                "this machine's clock is at least {seconds} s {side} the API server's; a replica here would start nothing. \
                 The checks below use the API server's time"
            ),
            "synchronise the clocks of this machine, of the nodes and of the control plane by NTP",
        );
    }
    Finding::fine(TITLE, "this machine's clock agrees with the API server's")
}

/// A right and whether the account has it.
pub(super) type Right<'a> = (AccessRequest<'a>, Result<bool, Unread>);

/// The requests that the rules of the chart allow, of which the account must have each itself to grant it.
pub(super) fn granted(lease_namespace: &str) -> Vec<AccessRequest<'_>> {
    let request = |permission: &Permission| AccessRequest {
        verb: permission.verb,
        group: permission.group,
        resource: permission.resource,
        namespace: match permission.place {
            Place::Watched | Place::Cluster => None,
            Place::LeaseNamespace => Some(lease_namespace),
        },
        name: None,
    };
    PERMISSIONS.iter().chain(&POLICY_PERMISSIONS).map(request).collect()
}

/// The rights that an installation of the chart by helm needs. The API server requires that on Leases from the author of a
/// policy that has Leases as parameters.
pub(super) fn installs(namespace: &str) -> Vec<AccessRequest<'_>> {
    let access = |verb, group, resource, namespace| AccessRequest {
        verb,
        group,
        resource,
        namespace,
        name: None,
    };
    let create = |group, resource, namespace| access("create", group, resource, namespace);
    let here = Some(namespace);
    vec![
        // The release of helm.
        create("", "secrets", here),
        create("", "serviceaccounts", here),
        create("", "services", here),
        create("apps", "deployments", here),
        create("policy", "poddisruptionbudgets", here),
        create("rbac.authorization.k8s.io", "roles", here),
        create("rbac.authorization.k8s.io", "rolebindings", here),
        create("rbac.authorization.k8s.io", "clusterroles", None),
        create("rbac.authorization.k8s.io", "clusterrolebindings", None),
        create("admissionregistration.k8s.io", "validatingadmissionpolicies", None),
        create(
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings",
            None,
        ),
        create("flowcontrol.apiserver.k8s.io", "flowschemas", None),
        create("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", None),
        access("get", "coordination.k8s.io", "leases", None),
    ]
}

/// Judges rights. `purpose` says what they are for.
pub(super) fn rights(title: &'static str, purpose: &str, rights: &[Right<'_>]) -> Finding {
    if let Some(unread) = rights.iter().find_map(|(_, right)| right.as_ref().err()) {
        return Finding::unread(title, unread);
    }
    let missing = rights.iter().filter(|(_, right)| *right == Ok(false));
    let missing: Names = missing.map(|(access, _)| access_text(access)).collect();
    if missing.is_empty() {
        return Finding::fine(
            title,
            format!("the account has the {} {purpose}", counted(rights.len(), "right")),
        );
    }
    Finding::warning(
        title,
        format!(
            "the account lacks {} {purpose}: {missing}",
            counted(missing.len(), "right")
        ),
        "install with an account of the ClusterRole cluster-admin",
    )
}

/// `create deployments.apps in namespace kube-system`.
pub(super) fn access_text(access: &AccessRequest<'_>) -> String {
    let AccessRequest {
        verb,
        group,
        resource,
        namespace,
        ..
    } = access;
    let dot = if group.is_empty() { "" } else { "." };
    let place = match namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => "all namespaces".to_owned(),
    };
    format!("{verb} {resource}{dot}{group} in {place}")
}
