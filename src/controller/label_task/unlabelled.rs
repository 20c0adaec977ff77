//! The Jobs of CronJobs that lack the label of their shard, as the watch delivers them: the next attempt to label each of
//! them, and the proof that there are none.
//!
//! A Job stays here until the watch reports that it has its label or is gone. A Job whose label is refused is tried again
//! later, so that it delays no other Job.
//!
//! A proof begins with a version that was read from the quorum of etcd. It is complete when the watch has reached that
//! version, and every Job of a CronJob that it delivered until then has its label or is gone. Jobs of no CronJob take
//! no memory.

use std::{collections::BTreeMap, time::Duration};

use prometheus::IntCounter;

use crate::{
    coordination::JobsLabelled,
    kube_api::WatchItem,
    shard::{
        BootInstant, Input, JobRecord, ResourceVersion, Uid,
        back_off::BackOff,
        input::{WatchStage, WatchUpdate},
    },
};

/// Maximum number of known Jobs. A Job beyond it gets one attempt, and another one from the next list. Until that list
/// nothing is proved. With names of maximum length, the known Jobs take about 2 MiB.
const UNLABELLED_MAX: usize = 4096;

/// Pause after the first failed attempt. Each further one doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(250);

/// Maximum pause: a policy that always refuses costs one request per Job in this time. After the same time, Jobs beyond
/// [`UNLABELLED_MAX`] are listed again.
const PAUSE_MAX: Duration = Duration::from_mins(5);

const PAUSES: BackOff = BackOff {
    first: PAUSE_MIN,
    longest: PAUSE_MAX,
};

/// The Jobs of CronJobs without a label in one scope.
#[derive(Debug)]
pub(super) struct UnlabelledJobs {
    jobs: BTreeMap<Uid, UnlabelledJob>,
    /// Whether there are Jobs that are not in `jobs`.
    is_overflowed: bool,
    /// Counts the deliveries of Jobs beyond [`UNLABELLED_MAX`].
    overflows: IntCounter,
    /// Whether the watch follows a complete list, or a proof.
    is_complete: bool,
    /// The version to reach for the next proof.
    target: Option<JobsLabelled>,
    /// The instant from which Jobs that are not in `jobs` do not wait for those that are.
    list_again_at: BootInstant,
}

#[derive(Debug)]
struct UnlabelledJob {
    job: JobRecord,
    n_failures: u32,
    /// The instant of the next attempt; `None` during one.
    next_attempt: Option<BootInstant>,
}

impl UnlabelledJobs {
    pub(super) fn new(overflows: IntCounter, now: BootInstant) -> UnlabelledJobs {
        UnlabelledJobs {
            jobs: BTreeMap::new(),
            is_overflowed: false,
            overflows,
            is_complete: false,
            target: None,
            list_again_at: now + PAUSE_MAX,
        }
    }

    /// Sets the version to reach. A later one replaces it, so that a proof is as new as possible.
    pub(super) fn aim_at(&mut self, current: JobsLabelled) {
        self.target = Some(current);
    }

    /// Whether the watch follows a complete list, or a proof.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether Jobs that are not known need another list: once no known Job waits, and at the latest after [`PAUSE_MAX`].
    pub(super) fn needs_list(&self, now: BootInstant) -> bool {
        self.is_complete && self.is_overflowed && (self.jobs.is_empty() || now >= self.list_again_at)
    }

    /// Records a Job of a CronJob that the watch delivers. Returns whether its first attempt begins.
    pub(super) fn deliver(&mut self, job: &JobRecord) -> bool {
        if let Some(known) = self.jobs.get_mut(&job.uid) {
            known.job = job.clone();
            return false;
        }
        if self.jobs.len() < UNLABELLED_MAX {
            let new = UnlabelledJob {
                job: job.clone(),
                n_failures: 0,
                next_attempt: None,
            };
            self.jobs.insert(job.uid.clone(), new);
        } else {
            self.is_overflowed = true;
            self.overflows.inc();
        }
        true
    }

    /// Records an attempt that ended. A Job that has its label now waits as well, until the watch reports that.
    pub(super) fn note_attempt(&mut self, uid: &Uid, is_labelled: bool, now: BootInstant) {
        if let Some(known) = self.jobs.get_mut(uid) {
            known.n_failures = if is_labelled {
                0
            } else {
                known.n_failures.saturating_add(1)
            };
            let pause = if is_labelled {
                PAUSE_MAX
            } else {
                PAUSES.after(known.n_failures)
            };
            known.next_attempt = Some(now + pause);
        }
    }

    /// Returns the number of Jobs whose label was refused.
    pub(super) fn n_refused(&self) -> usize {
        self.jobs.values().filter(|known| known.n_failures > 0).count()
    }

    /// Returns the instant of the next attempt.
    pub(super) fn next_attempt(&self) -> Option<BootInstant> {
        self.jobs.values().filter_map(|known| known.next_attempt).min()
    }

    /// Begins the attempt that has been due for the longest time.
    pub(super) fn begin_attempt(&mut self, now: BootInstant) -> Option<JobRecord> {
        let waiting = self.jobs.values_mut().filter(|known| known.next_attempt.is_some());
        let first = waiting.min_by_key(|known| known.next_attempt)?;
        first.next_attempt.take_if(|at| *at <= now)?;
        Some(first.job.clone())
    }

    /// Records an item of the watch, except Jobs that it delivers. Returns the proof if this item completes one.
    pub(super) fn observe(&mut self, item: &WatchItem) -> Option<JobsLabelled> {
        match item {
            WatchItem::Input(Input::JobUnselected(uid)) => {
                self.jobs.remove(uid);
            }
            WatchItem::Input(Input::JobApplied(job)) if job.controller.is_none() => {
                self.jobs.remove(&job.uid);
            }
            WatchItem::Input(Input::WatchUpdated(update)) => return self.follow(update),
            WatchItem::Input(_)
            | WatchItem::Undecodable { .. }
            | WatchItem::Listed(_)
            | WatchItem::PassedOver
            | WatchItem::CacheFull
            | WatchItem::HistoryWentBack { .. }
            | WatchItem::Error { .. } => {}
        }
        None
    }

    fn follow(&mut self, update: &WatchUpdate) -> Option<JobsLabelled> {
        match update.stage {
            WatchStage::ListBegun => {
                self.jobs.clear();
                self.is_overflowed = false;
                self.is_complete = false;
                None
            }
            WatchStage::Watching(version) => {
                self.is_complete = true;
                self.prove(version)
            }
            WatchStage::ListDone | WatchStage::NotPermitted | WatchStage::Interrupted => None,
        }
    }

    /// Returns the proof if the watch, which has reached `through`, has reached the target and no Job lacks its label.
    fn prove(&mut self, through: ResourceVersion) -> Option<JobsLabelled> {
        let is_none_left = self.jobs.is_empty() && !self.is_overflowed;
        let target = self
            .target
            .take_if(|target| is_none_left && target.version <= through)?;
        Some(JobsLabelled {
            at: target.at,
            version: through,
        })
    }
}

#[cfg(test)]
mod tests;
