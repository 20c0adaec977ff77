//! Checks at start whether the account has the permissions that this replica needs, and reports missing ones.
//!
//! Each permission is checked by a `SelfSubjectAccessReview`, because rules reviews are incomplete if a webhook
//! authorizes. An API server without reviews delays nothing: the log reports the failed reviews, and refused requests
//! as they occur.

use std::{collections::BTreeMap, time::Duration};

use super::{
    clock::Clock,
    permissions::{CALENDAR_PERMISSIONS, MissingPermission, PERMISSIONS, POLICY_PERMISSIONS, Permission, Place},
    recorded_send::send_recorded,
};
use crate::{
    kube_api::{Answer, ApiClient, access_review::AccessRequest, latest_value::LatestSender},
    shard::Scope,
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// A missing permission is reviewed again at this interval, since nothing else tells the replica that it was granted. A
/// refusal leads to a review within the same time.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The scope of permissions on objects without a namespace.
const CLUSTER: &[Scope] = &[Scope::Cluster];

/// The task that checks permissions.
pub struct PermissionTask {
    /// Client for reviews.
    pub api: ApiClient,
    /// The watched namespaces.
    pub scopes: Vec<Scope>,
    /// The namespace of the Leases.
    pub lease_scope: Scope,
    /// Whether labels select the managed namespaces.
    pub selects_namespaces: bool,
    /// Whether ConfigMaps are read.
    pub reads_calendars: bool,
    /// The admission policies that are read.
    pub policies: Vec<Box<str>>,
    /// The clock.
    pub clock: Clock,
    /// Metrics of requests and answers, with the log of refusals.
    pub api_metrics: ApiMetrics,
    /// The snapshot of missing permissions for metrics and probes.
    pub snapshot: LatestSender<Vec<MissingPermission>>,
}

/// Results of reviews, by verb, resource and scope.
type Allowed = BTreeMap<(&'static str, &'static str, Scope), bool>;

fn key(permission: &Permission, scope: &Scope) -> (&'static str, &'static str, Scope) {
    (permission.verb, permission.resource, scope.clone())
}

impl PermissionTask {
    /// Checks at the start, again while a permission is missing, and after a request was refused; never returns.
    pub async fn run(self) {
        let (mut allowed, failures) = (Allowed::new(), &self.api_metrics.failures);
        loop {
            if let Err(message) = self.check(&mut allowed).await {
                let right = ApiCall::ReviewAccess.labels();
                failures.note(right, None, &message, self.clock.boot());
            }
            self.report(self.missing(&allowed));
            tokio::time::sleep(CHECK_INTERVAL).await;
            // A granted permission is reviewed again only after a refusal, and then in all namespaces.
            let refused = failures.take_refusals();
            allowed.retain(|(verb, resource, _), is_allowed| !*is_allowed || !refused.contains(&[*verb, *resource]));
        }
    }

    /// Reviews every permission that is not known to be granted, one after another, so that the connection has room for
    /// other requests. If a review fails, returns the message of the failure; earlier results remain.
    async fn check(&self, allowed: &mut Allowed) -> Result<(), String> {
        for permission in self.needed() {
            for scope in self.scopes_of(&permission) {
                let key = key(&permission, scope);
                if allowed.get(&key) != Some(&true) {
                    let is_allowed = self.is_allowed(&permission, scope).await?;
                    allowed.insert(key, is_allowed);
                }
            }
        }
        Ok(())
    }

    /// Returns the permissions that this replica needs.
    fn needed(&self) -> impl Iterator<Item = Permission> + use<> {
        let (reads_calendars, reads_policies) = (self.reads_calendars, !self.policies.is_empty());
        let of_calendars = CALENDAR_PERMISSIONS.into_iter().filter(move |_| reads_calendars);
        let of_policies = POLICY_PERMISSIONS.into_iter().filter(move |_| reads_policies);
        PERMISSIONS.into_iter().chain(of_calendars).chain(of_policies)
    }

    /// Returns the permissions that are known to be missing.
    fn missing(&self, allowed: &Allowed) -> Vec<MissingPermission> {
        let missing = self.needed().map(|permission| {
            let needed = self.scopes_of(&permission);
            let is_missing = |scope: &&Scope| allowed.get(&key(&permission, scope)) == Some(&false);
            MissingPermission {
                permission,
                scopes: needed.iter().filter(is_missing).cloned().collect(),
                n_needed: needed.len(),
            }
        });
        missing.filter(|missing| !missing.scopes.is_empty()).collect()
    }

    /// Returns the scopes in which this replica needs a permission.
    fn scopes_of(&self, permission: &Permission) -> &[Scope] {
        match permission.place {
            Place::Watched => &self.scopes,
            Place::LeaseNamespace => std::slice::from_ref(&self.lease_scope),
            Place::Cluster if self.selects_namespaces || POLICY_PERMISSIONS.contains(permission) => CLUSTER,
            Place::Cluster => &[],
        }
    }

    async fn is_allowed(&self, permission: &Permission, scope: &Scope) -> Result<bool, String> {
        let access = AccessRequest {
            verb: permission.verb,
            group: permission.group,
            resource: permission.resource,
            namespace: match scope {
                Scope::Cluster => None,
                Scope::Namespace(name) => Some(name),
            },
            // A Role may grant these for the objects of this installation only.
            name: self
                .policies
                .first()
                .map(|name| &**name)
                .filter(|_| POLICY_PERMISSIONS.contains(permission)),
        };
        let review = self.api.review_access(&access);
        let (answered, _) = send_recorded(&self.clock, &self.api_metrics, ApiCall::ReviewAccess, review).await;
        match answered.answer {
            Answer::Outcome(is_allowed) => is_allowed,
            Answer::Throttled { message, .. } | Answer::Unavailable { message, .. } => Err(message),
        }
    }

    /// Logs a change, and publishes the missing permissions to `/readyz` and metrics.
    fn report(&self, missing: Vec<MissingPermission>) {
        if missing != *self.snapshot.borrow() {
            if missing.is_empty() {
                tracing::info!("the account has all permissions");
            } else {
                let texts: Vec<String> = missing.iter().map(ToString::to_string).collect();
                tracing::warn!(
                    "the account lacks permissions of deploy/manifests/rbac.yaml: {}",
                    texts.join("; ")
                );
            }
        }
        self.snapshot.send_replace(missing);
    }
}

#[cfg(test)]
mod tests;
