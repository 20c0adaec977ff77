//! What the API server does not allow this replica to do with Leases and the installation's ConfigMap.
//!
//! Without these rights a replica takes no shards, however long it waits. The log says so once a minute, and `/readyz` at
//! every probe.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{cluster::leases::LeaseError, state::sharding::BootInstant};

/// How often the log repeats it.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// A kind of request: its verb and its resource, as a Role names them.
pub(super) type Right = [&'static str; 2];

/// The requests that are refused at present. Clones are one.
#[derive(Clone, Default)]
pub(super) struct Refusals(Arc<Mutex<Refused>>);

#[derive(Default)]
struct Refused {
    messages: BTreeMap<Right, String>,
    logged_at: Option<BootInstant>,
}

impl Refusals {
    /// Takes note of how a request went; whether it was refused for lack of a right.
    pub(super) fn note<T>(&self, right: Right, result: &Result<T, LeaseError>) -> bool {
        match result {
            Err(LeaseError::Refused { code, message, .. }) => self.note_answer(right, Some(*code), Some(message)),
            // No answer is no news of what is allowed.
            Err(LeaseError::Unanswered { .. }) => false,
            Ok(_) | Err(_) => self.note_answer(right, None, None),
        }
    }

    /// The same for an answer with this status and this text.
    pub(super) fn note_answer(&self, right: Right, code: Option<u16>, message: Option<&str>) -> bool {
        let mut refused = self.lock();
        if let Some(code @ (401 | 403)) = code {
            let message = message.unwrap_or("no reason given");
            refused.messages.insert(right, format!("{message} ({code})"));
            return true;
        }
        refused.messages.remove(&right);
        false
    }

    /// What is missing, what follows from it, and how to give it; none while nothing is refused.
    pub(super) fn text(&self, namespace: &str, is_alone: bool) -> Option<String> {
        let refused = self.lock();
        let ([verb, resource], message) = refused.messages.first_key_value()?;
        let role = "apply the Role cronwheel-leases and its RoleBinding of deploy/rbac.yaml there";
        let remedy = if is_alone {
            format!("other replicas cannot be seen, so make sure that none runs, or {role}")
        } else {
            format!("{role}, or run a single replica with --alone")
        };
        Some(format!(
            "the account may not {verb} {resource} in namespace {namespace}: {message}; {remedy}"
        ))
    }

    /// Whether the log should have it now: at first, and where it keeps Jobs from being started, again.
    pub(super) fn is_due_for_log(&self, now: BootInstant, is_repeated: bool) -> bool {
        let mut refused = self.lock();
        let is_over = |at| is_repeated && now.since(at) >= LOG_INTERVAL;
        let is_due = refused.logged_at.is_none_or(is_over);
        if is_due {
            refused.logged_at = Some(now);
        }
        is_due
    }

    fn lock(&self) -> MutexGuard<'_, Refused> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::leases::ExchangeError;

    fn forbidden() -> Result<(), LeaseError> {
        Err(LeaseError::Refused {
            request: "listing the Leases of kube-system".to_owned(),
            code: 403,
            message: "leases.coordination.k8s.io is forbidden".to_owned(),
        })
    }

    #[test]
    fn a_missing_right_is_named_with_the_role_until_it_is_given() {
        let refusals = Refusals::default();
        assert_eq!(refusals.text("kube-system", false), None);
        assert!(refusals.note(["list", "leases"], &forbidden()));
        let text = refusals.text("kube-system", false).unwrap();
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
        assert!(refusals.text("kube-system", false).is_some());
        refusals.note(["list", "leases"], &Ok(()));
        assert_eq!(refusals.text("kube-system", false), None);
    }

    #[test]
    fn the_log_has_it_once_a_minute() {
        let refusals = Refusals::default();
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let due: Vec<bool> = [0, 1, 59, 60, 61, 121]
            .map(|second| refusals.is_due_for_log(at(second), true))
            .into();
        assert_eq!(due, [true, false, false, true, false, true]);
        assert!(!refusals.is_due_for_log(at(999), false));
    }
}
