//! The explanation of one CronJob, before it is written as JSON or as text.

use jiff::Timestamp;
use serde_json::{Value, value::RawValue};

use super::{reason::Reason, world::Subject};
use crate::{
    kube_api::objects::decode::DecodeError,
    shard::{EventReason, JobDelete},
};

/// A CronJob and its explanation.
pub(super) type Explained = (Subject, Explanation);

/// The action of the controller for a CronJob, and the reason.
#[derive(Debug)]
pub(super) struct Explanation {
    pub(super) reason: Reason,
    /// The cause of the reason in this CronJob: a running Job, the age of a slot, an invalid value.
    pub(super) cause: Option<String>,
    /// Jobs of the active list that are in no file.
    pub(super) missing_jobs: Vec<String>,
    /// Whether a start depends on whether these Jobs still run.
    pub(super) is_conditional: bool,
    /// The explanation as if `spec.suspend` were false, for a suspended CronJob.
    pub(super) resumed: Option<Box<Explanation>>,
    pub(super) slot: Option<Timestamp>,
    pub(super) job: Option<SentJob>,
    pub(super) deletes: Vec<JobDelete>,
    pub(super) status: Option<StatusChange>,
    pub(super) events: Vec<EventLine>,
    pub(super) next_wakeup: Option<Timestamp>,
    /// Earlier due slots for which no Job is created.
    pub(super) n_passed: u64,
}

/// A Job whose create is sent.
#[derive(Debug)]
pub(super) struct SentJob {
    pub(super) name: String,
    /// The body of the request, without the annotations that name its creator.
    pub(super) body: Box<RawValue>,
}

/// A write of the status, as JSON before and after it.
#[derive(Debug)]
pub(super) struct StatusChange {
    pub(super) before: Value,
    pub(super) after: Value,
}

/// An Event to emit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EventLine {
    pub(super) reason: EventReason,
    pub(super) message: String,
}

impl Explanation {
    /// The explanation of a CronJob that cannot be decoded: the Event contains the reason. A refusal of the same field has
    /// plainer words.
    pub(super) fn undecodable(error: &DecodeError, refusals: &[String]) -> Explanation {
        let field = format!("{}: ", error.field);
        let refusal = refusals.iter().find(|refusal| refusal.starts_with(&field));
        Explanation {
            reason: Reason::Undecodable,
            cause: Some(refusal.cloned().unwrap_or_else(|| format!("{field}{}", error.problem))),
            missing_jobs: Vec::new(),
            is_conditional: false,
            resumed: None,
            slot: None,
            job: None,
            deletes: Vec::new(),
            status: None,
            events: vec![EventLine {
                reason: EventReason::UndecodableCronJob,
                message: error.to_string(),
            }],
            next_wakeup: None,
            n_passed: 0,
        }
    }

    /// The explanation of a slot that is due, and of which it is not known why it has not started.
    pub(super) fn without_start(self, reason: Reason, cause: String) -> Explanation {
        Explanation {
            reason,
            cause: Some(cause),
            job: None,
            deletes: Vec::new(),
            status: None,
            events: Vec::new(),
            ..self
        }
    }

    /// The reason, with its cause in parentheses, and the condition.
    pub(super) fn message(&self) -> String {
        let sentence = self.reason.meaning().sentence;
        let cause = self.cause.as_ref().map(|cause| format!(" ({cause})"));
        let missing_jobs = self.is_conditional.then(|| self.missing_jobs.join(", "));
        let condition = missing_jobs.map(|jobs| format!(", unless Job {jobs} still runs"));
        [sentence, &cause.unwrap_or_default(), &condition.unwrap_or_default()].concat()
    }
}
