//! Logs the failures of requests for Leases and for the installation's ConfigMap, and finds out whether a replica with
//! `--alone` was never permitted to use Leases.
//!
//! Without these permissions a replica never takes a shard. The permission task names them in `/readyz`.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    controller::{
        clock::Clock,
        permissions::{FailureLog, Right},
    },
    kube_api::{leases::LeaseError, objects::classify::cause_text},
    shard::BootInstant,
    telemetry::metrics::ApiMetrics,
};

/// The refused requests. The election task alone uses `has_been_member` and `is_reported`.
#[derive(Clone)]
pub(super) struct Refusals {
    log: FailureLog,
    clock: Clock,
    /// A replica with `--alone` continues without these permissions, so the log reports once that they are missing.
    is_alone: bool,
    is_reported: bool,
    /// Whether this replica has been a member, which proves that the permissions were granted.
    has_been_member: bool,
    /// The instant since which each right has been refused without interruption. Clones share it.
    refused_since: Arc<Mutex<BTreeMap<Right, BootInstant>>>,
}

impl Refusals {
    pub(super) fn new(metrics: &ApiMetrics, clock: &Clock, is_alone: bool) -> Refusals {
        Refusals {
            log: metrics.failures.clone(),
            clock: clock.clone(),
            is_alone,
            is_reported: false,
            has_been_member: false,
            refused_since: Arc::default(),
        }
    }

    /// Records the error of a request that is repeated until it succeeds. Returns whether it was refused for lack of
    /// permission.
    pub(super) fn note_error(&self, right: Right, error: &LeaseError) -> bool {
        let (code, text) = match error {
            // A watch whose version is too old is no failure: a list follows.
            LeaseError::Refused { code: 410, .. } if right[0] == "watch" => return false,
            LeaseError::Refused {
                code: code @ (401 | 403),
                message,
                ..
            } => (Some(*code), message.clone()),
            LeaseError::Refused { .. }
            | LeaseError::Unanswered { .. }
            | LeaseError::Unreadable { .. }
            | LeaseError::Installation { .. } => (None, cause_text(error)),
        };
        self.note(right, code, &text)
    }

    /// Records a request that failed: the HTTP status of its answer, if any, and the error. Returns whether it was
    /// refused for lack of permission.
    pub(super) fn note(&self, right: Right, code: Option<u16>, error: &str) -> bool {
        let now = self.clock.boot();
        let is_refused = matches!(code, Some(401 | 403));
        if is_refused {
            self.refused_since().entry(right).or_insert(now);
        } else if code.is_some() {
            self.note_permitted(right);
        }
        if !is_refused || !self.is_alone {
            self.log.note(right, code, error, now);
        }
        is_refused
    }

    /// Records an answer that is no refusal.
    pub(super) fn note_permitted(&self, right: Right) {
        self.refused_since().remove(&right);
    }

    fn refused_since(&self) -> MutexGuard<'_, BTreeMap<Right, BootInstant>> {
        self.refused_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether this replica is a member.
    pub(super) fn note_membership(&mut self, is_member: bool) {
        self.has_been_member |= is_member;
    }

    /// Whether this replica lacks a permission that it never had: no incarnation was a member, and a right has been
    /// refused for at least `patience`. An API server that has just started refuses every request until it has read its
    /// Roles. Such a passing refusal must not end the wait for another replica.
    pub(super) fn never_had_permission(&self, patience: Duration) -> bool {
        let now = self.clock.boot();
        let has_lasted = |since: &BootInstant| now.since(*since) >= patience;
        !self.has_been_member && self.refused_since().values().any(has_lasted)
    }

    /// Reports once that this replica runs without the permissions.
    pub(super) fn report_once(&mut self, namespace: &str) {
        if !std::mem::replace(&mut self.is_reported, true) {
            tracing::warn!(
                namespace,
                remedy = "make sure that no other replica runs, or apply the Role cronwheel-leases and its RoleBinding of \
                          deploy/manifests/rbac.yaml there",
                "the account may not use Leases, so other replicas cannot be detected"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::Metrics;

    #[tokio::test(start_paused = true)]
    async fn a_lone_replica_goes_on_without_permissions_it_never_had() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
        let mut refusals = Refusals::new(&Metrics::register().election.api, &clock, true);
        let patience = Duration::from_secs(10);
        let unanswered = refusals.note(["list", "leases"], None, "connection refused");
        tokio::time::advance(patience).await;
        assert!(!unanswered && !refusals.never_had_permission(patience));
        assert!(refusals.note(["list", "leases"], Some(403), "forbidden"));
        tokio::time::advance(patience / 2).await;
        refusals.note(["list", "leases"], Some(403), "forbidden");
        assert!(!refusals.never_had_permission(patience), "the refusal may pass");
        refusals.note_permitted(["list", "leases"]);
        tokio::time::advance(patience / 2).await;
        assert!(!refusals.never_had_permission(patience), "the refusal has passed");
        refusals.note(["list", "leases"], Some(403), "forbidden");
        tokio::time::advance(patience).await;
        refusals.note_membership(false);
        assert!(refusals.never_had_permission(patience));
        refusals.note_membership(true);
        refusals.note_membership(false);
        assert!(
            !refusals.never_had_permission(patience),
            "a former member waits for other replicas as before"
        );
    }
}
