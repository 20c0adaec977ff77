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
    /// The first of the last attempts, of which none was permitted.
    not_permitted_since: Option<Timestamp>,
}

/// How long nothing is decided while a look-up is not permitted, except under Allow. By then an unanswered create has
/// ended in the API server, and the watch has delivered its Job if there is one.
pub(crate) const LOOK_UP_PATIENCE: SignedDuration = SignedDuration::from_mins(2);

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
            not_permitted_since: None,
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

    /// Whether it has not been permitted for so long that it counts as never answered.
    pub(crate) fn is_hopeless(&self, now: Timestamp) -> bool {
        self.not_permitted_since
            .is_some_and(|since| now.duration_since(since) >= LOOK_UP_PATIENCE)
    }

    /// Whether a decision waits for its answer.
    pub(crate) fn is_awaited(&self, now: Timestamp) -> bool {
        self.progress != LookUpProgress::Kept && !self.is_hopeless(now)
    }

    /// Records a failed attempt, after which the next one waits.
    pub(crate) fn fail(&mut self, answer: &LookUpOutcome, wait: SignedDuration, now: Timestamp) {
        self.n_failures = self.n_failures.saturating_add(1);
        let is_permitted = !matches!(answer, LookUpOutcome::NotPermitted { .. });
        // A clock that was set back must not prolong the patience.
        let since = self.not_permitted_since.unwrap_or(now).min(now);
        self.not_permitted_since = (!is_permitted).then_some(since);
        self.progress = LookUpProgress::Failed {
            until: after(now, wait),
            is_permitted,
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
