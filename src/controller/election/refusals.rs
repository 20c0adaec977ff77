//! Logs the failures of requests for Leases.
//!
//! Without the permissions for Leases, a replica never takes a shard. The permission task names them in `/readyz`.

use crate::{
    controller::{
        clock::Clock,
        permissions::{FailureLog, Right},
    },
    kube_api::{leases::LeaseError, objects::classify::cause_text},
    telemetry::metrics::ApiMetrics,
};

/// The log of refused requests.
#[derive(Clone)]
pub(super) struct Refusals {
    log: FailureLog,
    clock: Clock,
}

impl Refusals {
    pub(super) fn new(metrics: &ApiMetrics, clock: &Clock) -> Refusals {
        Refusals {
            log: metrics.failures.clone(),
            clock: clock.clone(),
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
            LeaseError::Refused { .. } | LeaseError::Unanswered { .. } | LeaseError::Unreadable { .. } => {
                (None, cause_text(error))
            }
        };
        self.note(right, code, &text);
        code.is_some()
    }

    /// Records a request that failed: the HTTP status of its answer, if any, and the error.
    pub(super) fn note(&self, right: Right, code: Option<u16>, error: &str) {
        self.log.note(right, code, error, self.clock.boot());
    }
}
