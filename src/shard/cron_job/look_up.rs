//! The look-up of one Job, repeated until it is answered.

use jiff::{SignedDuration, Timestamp};

use crate::{
    schedule::after,
    shard::{effect::JobLookUp, outcome::LookUpOutcome},
};

/// A look-up of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookUp {
    /// The look-up, sent or to be repeated.
    pub(crate) request: JobLookUp,
    pub(crate) progress: LookUpProgress,
    /// Failed attempts.
    pub(crate) n_failures: u32,
}

/// The progress of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUpProgress {
    /// Sent and not answered.
    InFlight,
    /// An object of that name exists: the entry stays (B-5.4).
    Kept,
    /// Failed, to be repeated at `until`.
    Failed { until: Timestamp, is_permitted: bool },
}

impl LookUp {
    /// A look-up that is sent.
    pub(crate) fn new(request: JobLookUp) -> LookUp {
        LookUp {
            request,
            progress: LookUpProgress::InFlight,
            n_failures: 0,
        }
    }

    /// Whether this look-up is in flight.
    pub(crate) fn is_in_flight(&self, request: &JobLookUp) -> bool {
        self.progress == LookUpProgress::InFlight && self.request == *request
    }

    /// Whether its last attempt was not permitted.
    pub(crate) fn is_not_permitted(&self) -> bool {
        matches!(
            self.progress,
            LookUpProgress::Failed {
                is_permitted: false,
                ..
            }
        )
    }

    /// Records a failed attempt, after which the next one waits.
    pub(crate) fn fail(&mut self, answer: &LookUpOutcome, wait: SignedDuration, now: Timestamp) {
        self.n_failures = self.n_failures.saturating_add(1);
        self.progress = LookUpProgress::Failed {
            until: after(now, wait),
            is_permitted: !matches!(answer, LookUpOutcome::NotPermitted { .. }),
        };
    }

    /// Begins the next attempt if the last one failed. Returns the request to send, or the end of the wait before it.
    pub(crate) fn retry(&mut self, now: Timestamp) -> Result<Option<JobLookUp>, Timestamp> {
        match self.progress {
            LookUpProgress::InFlight | LookUpProgress::Kept => Ok(None),
            LookUpProgress::Failed { until, .. } if now < until => Err(until),
            LookUpProgress::Failed { .. } => {
                self.progress = LookUpProgress::InFlight;
                Ok(Some(self.request.clone()))
            }
        }
    }

    /// Ends the wait, since its end was computed from a wrong clock.
    pub(crate) fn end_wait(&mut self, now: Timestamp) {
        if let LookUpProgress::Failed { until, .. } = &mut self.progress {
            *until = now.min(*until);
        }
    }
}
