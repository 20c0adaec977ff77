//! Log of the requests that the API server does not permit, of all tasks.
//!
//! A missing permission can cause thousands of refusals a minute. The log has one warning per minute for each verb and
//! resource, with the number of suppressed refusals.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use super::remedy;
use crate::shard::BootInstant;

/// Minimum interval between two warnings about one verb and resource.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// A verb and a resource, as a Role names them.
pub type Right = [&'static str; 2];

/// The log of refused requests. Clones share one log.
#[derive(Clone, Debug, Default)]
pub struct RefusalLog(Arc<Mutex<Refusals>>);

#[derive(Debug, Default)]
struct Refusals {
    n_total: u64,
    warned: BTreeMap<Right, Warned>,
}

#[derive(Debug)]
struct Warned {
    at: BootInstant,
    n_suppressed: u64,
}

impl RefusalLog {
    /// Records a refused request: its HTTP status, 401 or 403, and the server's message.
    pub fn note(&self, right: Right, code: u16, error: &str, now: BootInstant) {
        let Some(n_suppressed) = self.take(right, now) else {
            return;
        };
        let [verb, resource] = right;
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

    /// Returns the number of refusals since the start of the process.
    pub fn n_total(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).n_total
    }

    /// Counts a refusal. If a warning is due, returns the number of suppressed refusals since the last one.
    fn take(&self, right: Right, now: BootInstant) -> Option<u64> {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.n_total += 1;
        match refusals.warned.get_mut(&right) {
            Some(warned) if now.since(warned.at) < WARNING_INTERVAL => {
                warned.n_suppressed += 1;
                None
            }
            Some(warned) => {
                warned.at = now;
                Some(std::mem::take(&mut warned.n_suppressed))
            }
            None => {
                let first = Warned {
                    at: now,
                    n_suppressed: 0,
                };
                refusals.warned.insert(right, first);
                Some(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_a_minute_for_each_verb_and_resource_counts_those_left_out() {
        let log = RefusalLog::default();
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let create = |seconds| log.take(["create", "jobs"], at(seconds));
        assert_eq!([0, 1, 59, 60, 61].map(create), [Some(0), None, None, Some(2), None]);
        assert_eq!(log.take(["delete", "jobs"], at(61)), Some(0));
        assert_eq!(create(3_600), Some(1));
        assert_eq!(log.n_total(), 7);
    }
}
