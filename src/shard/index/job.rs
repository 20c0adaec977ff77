//! A Job in the index, as small as possible: a cluster has several Jobs per CronJob.

use std::sync::Arc;

use jiff::Timestamp;

use super::{JobIndex, OwnerIndex};
use crate::shard::{
    ids::{CronJobIdentity, Uid},
    record::Finish,
    seconds::Seconds,
};

/// The stored fields of a Job. Times are whole seconds, the resolution of the API.
pub(crate) struct Job {
    pub(crate) uid: Uid,
    pub(crate) name: Box<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) resource_version: u64,
    pub(super) scheduled: Seconds,
    pub(super) started: Seconds,
    pub(super) completed: Seconds,
    pub(crate) owner: OwnerIndex,
    pub(super) next: JobIndex,
    pub(super) previous: JobIndex,
    /// The relist that last contained the Job.
    pub(crate) mark: u32,
    pub(crate) finish: Option<Finish>,
    /// A delete by this process is in flight or has succeeded: the Job is neither counted as running nor deleted again
    /// (B-4.5).
    pub(crate) is_delete_requested: bool,
    /// Whether `UnexpectedJob` was reported for the Job (B-5.1 and its difference).
    pub(crate) is_reported_unexpected: bool,
}

impl Job {
    /// Whether the Job is in the CronJob's namespace. A controller reference does not reach another namespace.
    pub(crate) fn is_in_namespace_of(&self, cron_job: &CronJobIdentity) -> bool {
        *self.namespace == *cron_job.namespace
    }

    /// Whether the Job's annotation names a slot after `latest`. Such a Job stands for no run yet.
    pub(crate) fn is_scheduled_after(&self, latest: Timestamp) -> bool {
        self.scheduled().is_some_and(|slot| slot > latest)
    }

    /// The slot named by the Job's annotation (B-11.3).
    pub(crate) fn scheduled(&self) -> Option<Timestamp> {
        self.scheduled.get()
    }

    /// `status.startTime`.
    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.started.get()
    }

    /// `status.completionTime`.
    pub(crate) fn completed(&self) -> Option<Timestamp> {
        self.completed.get()
    }
}
