//! The answers to a shard's orders.

use jiff::Timestamp;

use super::{
    effect::{JobDelete, JobLookUp},
    ids::Uid,
    outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, StatusOutcome},
    record::CronJobStatus,
};

/// The answer to an [`Effect`](super::Effect).
#[derive(Clone, Debug)]
pub enum OrderAnswer {
    /// The answer to a `CreateJob`.
    Create {
        /// The order's CronJob.
        cron_job: Uid,
        /// The order's slot.
        slot: Timestamp,
        /// The outcome.
        answer: CreateOutcome,
    },
    /// The answer to a `DeleteJob`.
    Delete {
        /// The delete that was ordered.
        delete: JobDelete,
        /// The outcome.
        answer: DeleteOutcome,
    },
    /// The answer to a `LookUpJob`.
    LookUp {
        /// The look-up that was ordered.
        look_up: JobLookUp,
        /// The outcome.
        answer: LookUpOutcome,
    },
    /// The answer to a `WriteStatus`.
    Status {
        /// The CronJob.
        cron_job: Uid,
        /// The status that was sent: the result of the last merge.
        sent: Box<CronJobStatus>,
        /// The outcome.
        answer: StatusOutcome,
    },
}

impl OrderAnswer {
    /// The CronJob of the order.
    pub fn cron_job(&self) -> &Uid {
        match self {
            OrderAnswer::Create { cron_job, .. } | OrderAnswer::Status { cron_job, .. } => cron_job,
            OrderAnswer::Delete { delete, .. } => &delete.cron_job.uid,
            OrderAnswer::LookUp { look_up, .. } => &look_up.cron_job.uid,
        }
    }
}
