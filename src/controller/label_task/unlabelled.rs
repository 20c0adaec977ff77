//! The Jobs of CronJobs that lack the label of their shard, as the watch delivers them, and the proof that there are none.
//!
//! A proof begins with a version that was read from the quorum of etcd. It is complete when the watch has reached that
//! version, and every Job of a CronJob that it delivered until then has its label or is gone. Jobs of no CronJob take
//! no memory.

use std::collections::BTreeSet;

use crate::{
    coordination::JobsLabelled,
    kube_api::WatchItem,
    shard::{
        Input, ResourceVersion, Uid,
        input::{WatchStage, WatchUpdate},
    },
};

/// Maximum number of known Jobs. Beyond it nothing is proved until the next list. With 36 characters each, they take
/// less than half a mebibyte.
const UNLABELLED_MAX: usize = 4096;

/// The Jobs of CronJobs without a label in one scope.
#[derive(Debug, Default)]
pub(super) struct UnlabelledJobs {
    uids: BTreeSet<Uid>,
    /// Whether there are Jobs that are not in `uids`.
    is_overflowed: bool,
    /// Whether the watch follows a complete list, or a proof.
    is_complete: bool,
    /// The version to reach for the next proof.
    target: Option<JobsLabelled>,
}

impl UnlabelledJobs {
    /// Sets the version to reach. A later one replaces it, so that a proof is as new as possible.
    pub(super) fn aim_at(&mut self, current: JobsLabelled) {
        self.target = Some(current);
    }

    /// Whether the watch follows a complete list, or a proof.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether only another list can show all Jobs without a label.
    pub(super) fn needs_list(&self) -> bool {
        self.is_complete && self.is_overflowed && self.uids.is_empty()
    }

    /// Records an item of the watch. Returns the proof if this item completes one.
    pub(super) fn observe(&mut self, item: &WatchItem) -> Option<JobsLabelled> {
        match item {
            WatchItem::Input(Input::JobApplied(job)) if job.controller.is_some() => self.insert(&job.uid),
            WatchItem::Input(Input::JobUnselected(uid)) => {
                self.uids.remove(uid);
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

    fn insert(&mut self, uid: &Uid) {
        if self.uids.len() < UNLABELLED_MAX || self.uids.contains(uid) {
            self.uids.insert(uid.clone());
        } else {
            self.is_overflowed = true;
        }
    }

    fn follow(&mut self, update: &WatchUpdate) -> Option<JobsLabelled> {
        match update.stage {
            WatchStage::ListBegun => {
                *self = UnlabelledJobs {
                    target: self.target,
                    ..UnlabelledJobs::default()
                };
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
        let is_none_left = self.uids.is_empty() && !self.is_overflowed;
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
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::shard::{JobRecord, Scope, ShardLabels, ShardSet, WatchedResource};

    const AT: &str = "2026-05-05T12:00:00Z";

    fn at() -> Timestamp {
        AT.parse().unwrap()
    }

    fn target(version: u64) -> JobsLabelled {
        let version = ResourceVersion(version);
        JobsLabelled { at: at(), version }
    }

    fn stage(stage: WatchStage) -> WatchItem {
        WatchItem::Input(Input::WatchUpdated(Box::new(WatchUpdate {
            resource: WatchedResource::Jobs,
            scope: Scope::Cluster,
            shards: ShardSet::EVERY,
            stage,
        })))
    }

    fn reached(version: u64) -> WatchItem {
        stage(WatchStage::Watching(ResourceVersion(version)))
    }

    fn job(name: &str, cron_job: Option<&str>) -> WatchItem {
        WatchItem::Input(Input::JobApplied(Box::new(JobRecord {
            uid: Uid::new(name),
            namespace: "default".into(),
            name: name.into(),
            resource_version: ResourceVersion(1),
            controller: cron_job.map(Uid::new),
            scheduled: None,
            finish: None,
            started: None,
            completed: None,
            shard_labels: ShardLabels::default(),
        })))
    }

    fn left(name: &str) -> WatchItem {
        WatchItem::Input(Input::JobUnselected(Uid::new(name)))
    }

    /// Observes items. Returns the version of the proof that the last one completes; none before it may.
    fn observe_all(jobs: &mut UnlabelledJobs, items: Vec<WatchItem>) -> Option<u64> {
        let mut proofs = items.iter().map(|item| jobs.observe(item)).collect::<Vec<_>>();
        let last = proofs.pop().flatten();
        assert!(proofs.iter().all(Option::is_none), "{proofs:?}");
        last.map(|proof| {
            assert_eq!(proof.at, at());
            proof.version.0
        })
    }

    #[test]
    fn a_proof_has_the_version_that_the_watch_has_reached() {
        let mut jobs = UnlabelledJobs::default();
        assert_eq!(observe_all(&mut jobs, vec![reached(10)]), None, "nothing to reach");
        jobs.aim_at(target(20));
        assert_eq!(observe_all(&mut jobs, vec![reached(19)]), None);
        assert_eq!(observe_all(&mut jobs, vec![reached(25)]), Some(25));
        assert_eq!(observe_all(&mut jobs, vec![reached(26)]), None, "once for a target");
        jobs.aim_at(target(26));
        assert_eq!(observe_all(&mut jobs, vec![reached(26)]), Some(26));
    }

    #[test]
    fn nothing_is_proved_before_the_list_is_complete() {
        let mut jobs = UnlabelledJobs::default();
        jobs.aim_at(target(5));
        let begun = stage(WatchStage::ListBegun);
        let done = stage(WatchStage::ListDone);
        assert_eq!(observe_all(&mut jobs, vec![begun, job("foreign", None), done]), None);
        assert_eq!(observe_all(&mut jobs, vec![reached(9)]), Some(9));
    }

    #[test]
    fn an_unlabelled_job_prevents_the_proof_until_it_is_gone() {
        let mut jobs = UnlabelledJobs::default();
        jobs.aim_at(target(5));
        let items = vec![job("hello-1", Some("hello")), reached(9), reached(10), left("hello-1")];
        assert_eq!(observe_all(&mut jobs, items), None);
        assert_eq!(observe_all(&mut jobs, vec![reached(11)]), Some(11));
        jobs.aim_at(target(12));
        let again = vec![
            stage(WatchStage::ListBegun),
            job("hello-2", Some("hello")),
            stage(WatchStage::ListDone),
            reached(20),
        ];
        assert_eq!(observe_all(&mut jobs, again), None, "a list is as good as an event");
        let relisted = vec![stage(WatchStage::ListBegun), stage(WatchStage::ListDone), reached(30)];
        assert_eq!(observe_all(&mut jobs, relisted), Some(30), "it is gone");
    }

    #[test]
    fn jobs_without_a_cron_job_are_ignored() {
        let mut jobs = UnlabelledJobs::default();
        for number in 0..2 * UNLABELLED_MAX {
            assert_eq!(jobs.observe(&job(&number.to_string(), None)), None);
        }
        assert_eq!(jobs.uids.len(), 0);
        jobs.aim_at(target(5));
        assert_eq!(observe_all(&mut jobs, vec![reached(5)]), Some(5));
    }

    #[test]
    fn an_overflow_of_unlabelled_jobs_prevents_proofs_until_a_relist() {
        let mut jobs = UnlabelledJobs::default();
        jobs.aim_at(target(5));
        for number in 0..=UNLABELLED_MAX {
            jobs.observe(&job(&number.to_string(), Some("hello")));
        }
        assert_eq!(jobs.uids.len(), UNLABELLED_MAX);
        jobs.observe(&job("0", Some("hello")));
        assert_eq!(observe_all(&mut jobs, vec![reached(6)]), None);
        assert!(!jobs.needs_list(), "they are being labelled");
        for number in 0..=UNLABELLED_MAX {
            jobs.observe(&left(&number.to_string()));
        }
        assert_eq!(observe_all(&mut jobs, vec![reached(7)]), None);
        assert!(jobs.needs_list());
        jobs.observe(&stage(WatchStage::ListBegun));
        assert!(!jobs.needs_list());
        assert_eq!(observe_all(&mut jobs, vec![reached(8)]), Some(8));
    }
}
