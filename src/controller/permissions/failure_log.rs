//! Log of the requests that fail or that the API server does not permit, of all tasks.
//!
//! A missing permission or an API server that is away can cause thousands of failures a minute. The log has one warning
//! per minute for each verb and resource that is refused and for each error, with the number of suppressed warnings.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::remedy;
use crate::shard::BootInstant;

/// Minimum interval between two warnings about one verb and resource.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// A verb and a resource, as a Role names them.
pub type Right = [&'static str; 2];

/// The key of refusals that do not depend on a right.
const CREDENTIALS: Right = ["authenticate", ""];

/// Maximum number of errors that are remembered. A new error replaces the oldest.
const ERRORS_MAX: usize = 64;

/// The log of failed and refused requests. Clones share one log.
#[derive(Clone, Debug, Default)]
pub struct FailureLog(Arc<Mutex<Failures>>);

#[derive(Debug, Default)]
struct Failures {
    n_refused: u64,
    refused: Warnings<Right>,
    failed: Warnings<String>,
}

impl FailureLog {
    /// Records a request that did not succeed and is repeated: the HTTP status of its answer, if it may be a
    /// lack of permission, and the message.
    pub fn note(&self, right: Right, code: Option<u16>, error: &str, now: BootInstant) {
        match code {
            Some(code @ (401 | 403)) => self.refused(right, code, error, now),
            Some(_) | None => self.failed(right, error, now),
        }
    }

    /// Records a refused request: its HTTP status, 401 or 403, and the server's message. All answers with 401 share a
    /// warning, because all requests have the same credentials.
    pub fn refused(&self, right: Right, code: u16, error: &str, now: BootInstant) {
        let due = {
            let mut failures = self.lock();
            failures.n_refused += 1;
            let key = if code == 401 { CREDENTIALS } else { right };
            failures.refused.take(key, now)
        };
        let (Some(n_suppressed), [verb, resource]) = (due, right) else {
            return;
        };
        if code == 401 {
            tracing::warn!(
                code,
                n_suppressed,
                error,
                remedy =
                    "check the token or the client certificate of the kubeconfig, or the ServiceAccount of the Pod",
                "the API server does not accept the credentials"
            );
        } else {
            tracing::warn!(
                verb,
                resource,
                code,
                n_suppressed,
                error,
                remedy = remedy(resource),
                "the API server does not permit a request"
            );
        }
    }

    /// Requests that fail for one reason, as while the API server is away, share a warning, which names the first of
    /// them.
    fn failed(&self, [verb, resource]: Right, error: &str, now: BootInstant) {
        let due = self.lock().failed.take(error.to_owned(), now);
        if let Some(n_suppressed) = due {
            let request = format!("{verb} {resource}");
            tracing::warn!(request, error, n_suppressed, "a request failed and is repeated");
        }
    }

    /// Returns the number of refusals since the start of the process.
    pub fn n_refused(&self) -> u64 {
        self.lock().n_refused
    }

    /// Locked for one record, not while the log is written: every lane waits for this lock.
    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// At most one warning per interval for each key: the instant of the last one, and the number of suppressed ones since.
#[derive(Debug, Default)]
struct Warnings<K>(BTreeMap<K, (BootInstant, u64)>);

impl<K: Ord + Clone> Warnings<K> {
    /// Returns the number of suppressed warnings since the last one if a warning is due.
    fn take(&mut self, key: K, now: BootInstant) -> Option<u64> {
        match self.0.get_mut(&key) {
            Some((at, n_suppressed)) if now.since(*at) < WARNING_INTERVAL => {
                *n_suppressed += 1;
                None
            }
            Some(warned) => Some(std::mem::replace(warned, (now, 0)).1),
            None => {
                if self.0.len() >= ERRORS_MAX {
                    let oldest = self.0.iter().min_by_key(|(_, (at, _))| *at);
                    let oldest = oldest.map(|(key, _)| key.clone());
                    oldest.map(|key| self.0.remove(&key));
                }
                self.0.insert(key, (now, 0));
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> BootInstant {
        BootInstant::after_boot(Duration::from_secs(seconds))
    }

    #[test]
    fn one_warning_a_minute_per_key_counts_the_omitted_ones() {
        let mut warnings = Warnings::default();
        let mut create = |seconds| warnings.take(["create", "jobs"], at(seconds));
        assert_eq!(
            [0, 1, 59, 60, 61].map(&mut create),
            [Some(0), None, None, Some(2), None]
        );
        assert_eq!(create(3_600), Some(1));
        assert_eq!(warnings.take(["delete", "jobs"], at(61)), Some(0));
    }

    #[test]
    fn new_errors_replace_the_oldest() {
        let mut warnings = Warnings::default();
        for n in 0..1_000 {
            assert_eq!(warnings.take(format!("error {n}"), at(n)), Some(0));
        }
        assert_eq!(warnings.0.len(), ERRORS_MAX);
        assert!(warnings.0.contains_key("error 999"));
    }

    #[test]
    fn refusals_are_counted_and_failures_are_not() {
        let log = FailureLog::default();
        log.refused(["watch", "jobs"], 403, "no", at(0));
        log.refused(["watch", "jobs"], 403, "no", at(1));
        log.refused(["watch", "jobs"], 401, "Unauthorized", at(1));
        log.note(["list", "leases"], None, "connection refused", at(1));
        assert_eq!(log.n_refused(), 3);
    }
}
