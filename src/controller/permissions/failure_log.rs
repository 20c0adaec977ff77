//! Log of the requests that fail or that the API server does not permit, of all tasks.
//!
//! A missing permission or an API server that is away can cause thousands of failures a minute. The log has one warning
//! per minute for each verb and resource that is refused and for each error, with the number of suppressed warnings. The
//! texts of one error may differ in addresses, ports and ids, so words with a digit are not compared. If there are too many
//! different errors, further ones share one warning.

use std::{
    collections::{BTreeMap, BTreeSet},
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

/// Maximum number of different errors per interval that have a warning each: far more than there are causes at a time.
const ERRORS_MAX: usize = 64;

/// The log of failed and refused requests. Clones share one log.
#[derive(Clone, Debug, Default)]
pub struct FailureLog(Arc<Mutex<Failures>>);

#[derive(Debug, Default)]
struct Failures {
    /// The refused rights that were not taken yet: at most one for each kind of request.
    refusals: BTreeSet<Right>,
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
            let key = if code == 401 {
                CREDENTIALS
            } else {
                failures.refusals.insert(right);
                right
            };
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
        let due = self.lock().failed.take(without_ids(error), now);
        if let Some(n_suppressed) = due {
            let request = format!("{verb} {resource}");
            tracing::warn!(request, error, n_suppressed, "a request failed and is repeated");
        }
    }

    /// Returns the rights of the requests that were refused for lack of a permission since the last call.
    pub fn take_refusals(&self) -> BTreeSet<Right> {
        std::mem::take(&mut self.lock().refusals)
    }

    /// Whether a request failed with this error.
    #[cfg(test)]
    pub(in crate::controller) fn has_failed(&self, error: &str) -> bool {
        self.lock().failed.0.contains_key(&without_ids(error))
    }

    /// Locked for one record, not while the log is written: every lane waits for this lock.
    fn lock(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// At most one warning per interval for each key: the instant of the last one, and the number of suppressed ones since.
/// Keys beyond [`ERRORS_MAX`] share the default key.
#[derive(Debug, Default)]
struct Warnings<K>(BTreeMap<K, (BootInstant, u64)>);

impl<K: Ord + Default> Warnings<K> {
    /// Returns the number of suppressed warnings since the last one if a warning is due.
    fn take(&mut self, mut key: K, now: BootInstant) -> Option<u64> {
        let is_recent = |at: BootInstant| now.since(at) < WARNING_INTERVAL;
        if self.0.len() >= ERRORS_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, (at, _)| is_recent(*at));
            if self.0.len() >= ERRORS_MAX {
                key = K::default();
            }
        }
        match self.0.get_mut(&key) {
            Some((at, n_suppressed)) if is_recent(*at) => {
                *n_suppressed += 1;
                None
            }
            Some(warned) => Some(std::mem::replace(warned, (now, 0)).1),
            None => {
                self.0.insert(key, (now, 0));
                Some(0)
            }
        }
    }
}

/// Returns the words of an error that have no digit.
fn without_ids(error: &str) -> String {
    let has_digit = |word: &str| word.contains(|letter: char| letter.is_ascii_digit());
    let words = error.split_inclusive(' ').filter(|word| !has_digit(word));
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::tests::captured_log::CapturedLog;

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
    fn different_errors_are_bounded() {
        let mut warnings = Warnings::default();
        for begin in [0, 60] {
            let due = (1..=1_000).map(|n| warnings.take(begin * 1_000 + n, at(begin)));
            assert_eq!(due.flatten().count(), ERRORS_MAX + 1, "further ones share a warning");
        }
        assert_eq!(warnings.take(0, at(120)), Some(1_000 - 1 - ERRORS_MAX as u64));
    }

    #[test]
    fn errors_that_differ_in_an_address_share_a_warning() {
        let log = CapturedLog::begin();
        let failures = FailureLog::default();
        let webhook = "failed calling webhook \"leases\": write tcp";
        for error in [
            format!("{webhook} 10.0.0.1:40312->10.0.0.9:443: write: broken pipe"),
            format!("{webhook} 10.0.0.1:40313->10.0.0.9:443: write: broken pipe"),
            format!("{webhook} [fd00::1a]:5000->[fd00::b2]:443: write: broken pipe"),
            format!("{webhook} 10.0.0.1:40312->10.0.0.9:443: write: connection reset by peer"),
        ] {
            failures.note(["patch", "leases"], Some(500), &error, at(1));
        }
        let log = log.take();
        assert_eq!(log.matches("broken pipe").count(), 1, "{log}");
        assert_eq!(log.matches("connection reset").count(), 1, "{log}");
    }

    #[test]
    fn only_a_lack_of_permission_is_a_refusal() {
        let log = FailureLog::default();
        log.refused(["list", "jobs"], 403, "forbidden", at(0));
        log.refused(["watch", "jobs"], 401, "Unauthorized", at(1));
        log.note(["list", "leases"], None, "connection refused", at(1));
        assert_eq!(log.take_refusals().into_iter().collect::<Vec<_>>(), [["list", "jobs"]]);
        assert_eq!(log.take_refusals().len(), 0, "they were taken");
    }
}
