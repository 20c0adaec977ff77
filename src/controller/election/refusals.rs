//! Refused requests for Leases and for the installation's ConfigMap.
//!
//! Without these permissions a replica never takes a shard. `/readyz` names them at every probe.

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

/// The requests that are refused at present. Clones share the messages. The election task alone uses `is_reported`,
/// `has_been_member` and `refused_since`.
#[derive(Clone)]
pub(super) struct Refusals {
    messages: Arc<Mutex<BTreeMap<Right, String>>>,
    log: FailureLog,
    clock: Clock,
    /// A replica with `--alone` continues without these permissions, so the log names them once.
    is_alone: bool,
    is_reported: bool,
    /// Whether this replica has been a member, which proves that the permissions were granted.
    has_been_member: bool,
    /// The instant since which at least one request has been refused without interruption.
    refused_since: Option<BootInstant>,
}

impl Refusals {
    /// Creates an empty set.
    pub(super) fn new(metrics: &ApiMetrics, clock: &Clock, is_alone: bool) -> Refusals {
        Refusals {
            messages: Arc::default(),
            log: metrics.failures.clone(),
            clock: clock.clone(),
            is_alone,
            is_reported: false,
            has_been_member: false,
            refused_since: None,
        }
    }

    /// Records the result of a request that is repeated until it succeeds. Returns whether it was refused for lack of
    /// permission.
    pub(super) fn note<T>(&self, right: Right, result: &Result<T, LeaseError>) -> bool {
        let is_refused = match result {
            Err(LeaseError::Refused { code, message, .. }) => self.note_answer(right, Some(*code), Some(message)),
            // A request without an answer proves nothing about permissions.
            Err(LeaseError::Unanswered { .. }) => false,
            Ok(_) | Err(_) => self.note_answer(right, None, None),
        };
        // A watch whose version is too old is no failure: a list follows.
        let is_expired_watch = right[0] == "watch" && matches!(result, Err(LeaseError::Refused { code: 410, .. }));
        if let Err(error) = result
            && !is_refused
            && !is_expired_watch
        {
            self.log.note(right, None, &cause_text(error), self.clock.boot());
        }
        is_refused
    }

    /// Records an answer by its HTTP status and message. Returns whether it was refused for lack of permission.
    pub(super) fn note_answer(&self, right: Right, code: Option<u16>, message: Option<&str>) -> bool {
        if let Some(code @ (401 | 403)) = code {
            let message = message.unwrap_or("no reason given");
            if !self.is_alone {
                self.log.refused(right, code, message, self.clock.boot());
            }
            self.lock().insert(right, format!("{message} ({code})"));
            return true;
        }
        self.lock().remove(&right);
        false
    }

    /// Returns the missing permission, its effect and the remedy; `None` while no request is refused.
    pub(super) fn text(&self, namespace: &str) -> Option<String> {
        let messages = self.lock();
        let ([verb, resource], message) = messages.first_key_value()?;
        let role = "apply the Role cronwheel-leases and its RoleBinding of deploy/manifests/rbac.yaml there";
        let remedy = if self.is_alone {
            format!("other replicas cannot be seen, so make sure that none runs, or {role}")
        } else {
            format!("{role}, or run a single replica with --alone")
        };
        Some(format!(
            "the account may not {verb} {resource} in namespace {namespace}: {message}; {remedy}"
        ))
    }

    /// Whether this replica lacks a permission that it never had: the refusal has lasted for `patience`, and no
    /// incarnation was a member. An API server that has just started refuses every request until it has read its Roles.
    /// Such a passing refusal must not end the wait for another replica.
    pub(super) fn were_always(&mut self, is_member: bool, patience: Duration) -> bool {
        self.has_been_member |= is_member;
        let now = self.clock.boot();
        let is_refused = !self.lock().is_empty();
        self.refused_since = is_refused.then(|| self.refused_since.unwrap_or(now));
        let has_lasted = self.refused_since.is_some_and(|since| now.since(since) >= patience);
        !self.has_been_member && has_lasted
    }

    /// Logs a text the first time it is called.
    pub(super) fn report_once(&mut self, text: &str) {
        if !std::mem::replace(&mut self.is_reported, true) {
            tracing::warn!("{text}");
        }
    }

    /// Locked for one insertion, removal or copy.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Right, String>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kube_api::ExchangeError, telemetry::metrics::Metrics};

    fn forbidden() -> Result<(), LeaseError> {
        Err(LeaseError::Refused {
            request: "listing the Leases of kube-system".to_owned(),
            code: 403,
            message: "leases.coordination.k8s.io is forbidden".to_owned(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_permission_names_its_role_until_it_is_granted() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
        let refusals = Refusals::new(&Metrics::register().election.api, &clock, false);
        assert_eq!(refusals.text("kube-system"), None);
        assert!(refusals.note(["list", "leases"], &forbidden()));
        let text = refusals.text("kube-system").unwrap();
        for part in [
            "may not list leases",
            "kube-system",
            "403",
            "Role cronwheel-leases",
            "--alone",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let unanswered = LeaseError::Unanswered {
            request: String::new(),
            source: ExchangeError::Timeout(Duration::ZERO),
        };
        refusals.note::<()>(["list", "leases"], &Err(unanswered));
        assert!(refusals.text("kube-system").is_some());
        refusals.note(["list", "leases"], &Ok(()));
        assert_eq!(refusals.text("kube-system"), None);
    }
    #[tokio::test(start_paused = true)]
    async fn a_lone_replica_goes_on_without_permissions_it_never_had() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
        let mut refusals = Refusals::new(&Metrics::register().election.api, &clock, true);
        let patience = Duration::from_secs(10);
        assert!(!refusals.were_always(false, patience), "no request was refused");
        refusals.note(["list", "leases"], &forbidden());
        assert!(!refusals.were_always(false, patience), "the refusal may be temporary");
        tokio::time::advance(Duration::from_secs(9)).await;
        refusals.note(["list", "leases"], &Ok(()));
        assert!(!refusals.were_always(false, patience), "the refusal has ended");
        refusals.note(["list", "leases"], &forbidden());
        assert!(
            !refusals.were_always(false, patience),
            "the time counts from the next refusal"
        );
        tokio::time::advance(patience).await;
        assert!(refusals.were_always(false, patience));
        assert!(!refusals.were_always(true, patience));
        refusals.note(["patch", "leases"], &forbidden());
        tokio::time::advance(patience).await;
        assert!(
            !refusals.were_always(false, patience),
            "it waits for other replicas as before"
        );
    }
}
