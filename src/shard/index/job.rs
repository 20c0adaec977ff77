//! One Job as the index keeps it, as small as it can be: a cluster has several for each CronJob.

use std::sync::Arc;

use jiff::Timestamp;

use super::{JobIndex, OwnerIndex};
use crate::shard::{
    ids::{CronJobIdentity, Uid},
    record::Finish,
};

/// What we keep of a Job: times in whole seconds, which is all that the API has.
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
    /// The relist in which it was last seen.
    pub(crate) mark: u32,
    pub(crate) finish: Option<Finish>,
    /// A delete of ours was answered or is on its way: neither counted as running nor deleted again (B-4.5).
    pub(crate) is_delete_requested: bool,
    /// Whether watches show it, by the label of the shard where there are several.
    pub(crate) is_shown: bool,
    /// Its `UnexpectedJob` was told (B-5.1 and its difference).
    pub(crate) is_told_unexpected: bool,
}

/// An optional instant of whole seconds in eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seconds(i64);

impl Seconds {
    pub(super) fn new(instant: Option<Timestamp>) -> Seconds {
        Seconds(instant.map_or(i64::MIN, Timestamp::as_second))
    }

    fn get(self) -> Option<Timestamp> {
        Timestamp::from_second(self.0).ok()
    }
}

impl Job {
    /// Whether it is in the CronJob's namespace: a controller reference from another namespace names nothing there.
    pub(crate) fn is_in_namespace_of(&self, cron_job: &CronJobIdentity) -> bool {
        *self.namespace == *cron_job.namespace
    }

    /// Whether its annotation names a slot after `latest`: it stands for no run yet.
    pub(crate) fn is_scheduled_after(&self, latest: Timestamp) -> bool {
        self.scheduled().is_some_and(|slot| slot > latest)
    }

    /// The slot that its annotation names (B-11.3).
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
