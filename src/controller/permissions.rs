//! The permissions that cronwheel needs: one table, equal to the rules of `deploy/manifests/rbac.yaml`.

mod failure_log;

use std::fmt;

pub use self::failure_log::{FailureLog, Right};
use crate::shard::Scope;

/// The place in which a permission is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Every watched namespace.
    Watched,
    /// The namespace of the Leases.
    LeaseNamespace,
    /// The cluster.
    Cluster,
}

/// One verb on one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The verb.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The plural of the resource; a subresource follows after `/`.
    pub resource: &'static str,
    /// The place in which the permission is needed.
    pub place: Place,
    /// Whether no Job starts without the permission.
    pub is_required: bool,
    /// The consequence if the permission is missing.
    pub consequence: &'static str,
}

/// A permission for one verb on a resource of the watched namespaces.
const fn watched(verb: &'static str, resource: &'static str, consequence: &'static str) -> Permission {
    Permission {
        verb,
        group: "batch",
        resource,
        place: Place::Watched,
        is_required: false,
        consequence,
    }
}

/// A permission for one verb on Events.
const fn event(verb: &'static str, consequence: &'static str) -> Permission {
    Permission {
        group: "",
        ..watched(verb, "events", consequence)
    }
}

/// A permission for one verb on Leases.
const fn lease(verb: &'static str, consequence: &'static str) -> Permission {
    Permission {
        group: "coordination.k8s.io",
        place: Place::LeaseNamespace,
        ..watched(verb, "leases", consequence)
    }
}

/// A permission for one verb on namespaces.
const fn namespaces(verb: &'static str) -> Permission {
    Permission {
        group: "",
        place: Place::Cluster,
        ..watched(verb, "namespaces", NO_JOB_STARTS)
    }
}

/// A permission for one verb on ConfigMaps.
const fn calendars(verb: &'static str) -> Permission {
    let consequence = "CronJobs with the annotation cronwheel.dev/not-on start nothing";
    Permission {
        group: "",
        ..watched(verb, "configmaps", consequence)
    }
}

/// A permission for one verb on a resource of admission.
const fn admission(verb: &'static str, resource: &'static str) -> Permission {
    Permission {
        group: "admissionregistration.k8s.io",
        place: Place::Cluster,
        ..watched(
            verb,
            resource,
            "nothing tells that the admission policy against the built-in controller is gone",
        )
    }
}

/// Marks a permission without which no Job starts.
const fn required(permission: Permission) -> Permission {
    Permission {
        is_required: true,
        ..permission
    }
}

const NO_JOB_STARTS: &str = "no Job starts";
const TAKES_NO_SHARDS: &str = "this replica takes no shards";

/// Every permission of `deploy/manifests/rbac.yaml`.
#[rustfmt::skip]
pub const PERMISSIONS: [Permission; 20] = [
    watched("get", "cronjobs", "CronJobs whose template is too large to be kept start nothing"),
    required(watched("list", "cronjobs", NO_JOB_STARTS)),
    required(watched("watch", "cronjobs", NO_JOB_STARTS)),
    watched("update", "cronjobs/status", "statuses are not stored, and finished Jobs are kept"),
    watched("update", "cronjobs/finalizers", "Jobs are refused where OwnerReferencesPermissionEnforcement is enabled"),
    watched("get", "jobs", "under Forbid and Replace a create without an answer holds later slots back"),
    required(watched("list", "jobs", NO_JOB_STARTS)),
    required(watched("watch", "jobs", NO_JOB_STARTS)),
    required(watched("create", "jobs", NO_JOB_STARTS)),
    watched("delete", "jobs", "finished Jobs are kept, and Replace cannot replace"),
    event("create", "no Events are written"),
    event("patch", "repeated Events are not counted"),
    required(namespaces("list")),
    required(namespaces("watch")),
    lease("get", "silent replicas are not evicted"),
    required(lease("list", TAKES_NO_SHARDS)),
    required(lease("watch", TAKES_NO_SHARDS)),
    required(lease("create", TAKES_NO_SHARDS)),
    required(lease("patch", TAKES_NO_SHARDS)),
    lease("delete", "the Lease of a replica that left stays"),
];

/// The permissions of replicas that read calendars, which the chart grants by `calendars.enabled`.
pub const CALENDAR_PERMISSIONS: [Permission; 2] = [calendars("list"), calendars("watch")];

/// The permissions of replicas that watch over admission policies, which the chart grants by `builtInController.silence`.
/// They are for the objects that `--built-in-policy` names.
pub const POLICY_PERMISSIONS: [Permission; 2] = [
    admission("get", "validatingadmissionpolicies"),
    admission("get", "validatingadmissionpolicybindings"),
];

impl Place {
    /// Returns the remedy for a missing permission of this place: the Role that grants it.
    fn remedy(self) -> &'static str {
        match self {
            Place::Watched => "apply the ClusterRole cronwheel of deploy/manifests/rbac.yaml and a binding",
            Place::Cluster => {
                "apply the ClusterRole cronwheel of deploy/manifests/rbac.yaml and its ClusterRoleBinding, or use --namespace"
            }
            Place::LeaseNamespace => {
                "apply the Role cronwheel-leases and its RoleBinding of deploy/manifests/rbac.yaml there"
            }
        }
    }
}

impl Permission {
    /// Returns the remedy if it is missing.
    fn remedy(&self) -> &'static str {
        if CALENDAR_PERMISSIONS.contains(self) {
            return "set the chart value calendars.enabled, which grants it";
        }
        self.place.remedy()
    }
}

/// Returns the remedy for a refused request on a resource.
fn remedy(resource: &str) -> &'static str {
    let mut permissions = PERMISSIONS
        .iter()
        .chain(&CALENDAR_PERMISSIONS)
        .chain(&POLICY_PERMISSIONS);
    let permission = permissions.find(|it| it.resource == resource);
    permission.map_or("check the credentials", Permission::remedy)
}

/// Maximum number of namespaces that a message names; it counts the others.
const NAMED_MAX: usize = 3;

/// A permission that the account lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingPermission {
    /// The missing permission.
    pub permission: Permission,
    /// Scopes in which the permission is missing; never empty.
    pub scopes: Vec<Scope>,
    /// Number of namespaces in which the permission is needed, or 1 for all namespaces at once.
    pub n_needed: usize,
}

impl MissingPermission {
    /// Returns whether no Job starts anywhere. If the permission exists in one of several namespaces, that namespace
    /// continues.
    pub fn stops_everything(&self) -> bool {
        self.permission.is_required && self.scopes.len() >= self.n_needed
    }

    /// Returns the whole message: the missing permission, the consequence, and the remedy.
    pub fn explanation(&self) -> String {
        format!("the account may not {self}; {}", self.permission.remedy())
    }
}

impl fmt::Display for MissingPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Permission {
            verb,
            resource,
            consequence,
            ..
        } = self.permission;
        let named: Vec<String> = self.scopes.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        write!(f, "{verb} {resource} in {}", named.join(", "))?;
        let n_others = self.scopes.len() - named.len();
        if n_others > 0 {
            write!(f, " and {n_others} others")?;
        }
        write!(f, ": {consequence}")
    }
}

#[cfg(test)]
mod tests;
