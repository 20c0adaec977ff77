//! Every fact that can reach a shard.

use jiff::Timestamp;

use super::{
    ids::Uid,
    outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, StatusOutcome},
    record::{CronJobRecord, JobRecord},
};

/// A fact, in the order in which it became known.
#[derive(Clone, Debug)]
pub enum Input {
    /// A new list of CronJobs begins: what is not applied before its end is gone.
    CronJobRelistBegun,
    /// A CronJob exists in this form.
    CronJobApplied(Box<CronJobRecord>),
    /// A CronJob is gone, or can no longer be understood.
    CronJobDeleted(Uid),
    /// The list of CronJobs is complete.
    CronJobRelistDone,
    /// A new list of Jobs begins: what is not applied before its end is gone.
    JobRelistBegun,
    /// A Job exists in this form.
    JobApplied(Box<JobRecord>),
    /// A Job is gone.
    JobDeleted(Uid),
    /// The list of Jobs is complete.
    JobRelistDone,
    /// The answer to a `CreateJob`.
    JobCreateAnswered {
        /// The order's CronJob.
        cron_job: Uid,
        /// The order's slot.
        slot: Timestamp,
        /// What was said.
        answer: CreateOutcome,
    },
    /// The answer to a `DeleteJob`.
    JobDeleteAnswered {
        /// The CronJob that it belongs to.
        cron_job: Uid,
        /// The Job.
        job: Uid,
        /// What was said.
        answer: DeleteOutcome,
    },
    /// The answer to a `LookUpJob`.
    JobLookedUp {
        /// The CronJob on whose behalf it was looked up.
        cron_job: Uid,
        /// The name that was looked up.
        name: Box<str>,
        /// What was said.
        answer: LookUpOutcome,
    },
    /// The answer to a `WriteStatus`.
    StatusAnswered {
        /// The CronJob.
        cron_job: Uid,
        /// The status that was sent: the last one merged.
        sent: Box<super::record::CronJobStatus>,
        /// What was said.
        answer: StatusOutcome,
    },
}
