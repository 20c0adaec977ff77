//! Relists, scope by scope. An object that a complete list does not contain is gone. Nothing in a scope is decided
//! before both of its lists were complete once. A namespace that may not be listed delays no other. An object that
//! cannot be decoded is not gone.

use jiff::Timestamp;

use super::ShardState;
use crate::shard::{
    cron_job::{CronJobState, Unusable},
    ids::Uid,
    index::OwnerIndex,
    input::{Scope, WatchStage, WatchUpdate, WatchedResource},
};

/// Completed lists, and the number of the latest relist.
pub(super) struct Relists {
    /// Incremented by each relist. Objects carry the number of the last relist that contained them.
    pub(super) mark: u32,
    /// The lists of each scope, one for each [`WatchedResource`].
    scopes: Vec<[Relist; 2]>,
}

#[derive(Clone, Copy, Default)]
struct Relist {
    /// The mark of the relist in progress.
    begun: Option<u32>,
    was_done: bool,
}

/// Whether both lists of a scope were complete once.
fn is_synced(lists: &[Relist; 2]) -> bool {
    lists.iter().all(|list| list.was_done)
}

impl Relists {
    pub(super) fn new(n_scopes: usize) -> Relists {
        Relists {
            mark: 0,
            scopes: vec![[Relist::default(); 2]; n_scopes],
        }
    }

    /// For each scope, whether both of its lists were complete once.
    pub(super) fn synced(&self) -> impl Iterator<Item = bool> {
        self.scopes.iter().map(is_synced)
    }

    pub(super) fn is_any_synced(&self) -> bool {
        self.scopes.iter().any(is_synced)
    }
}

impl ShardState {
    /// Whether everything in the CronJob's scope has been listed, so that the CronJob may be decided.
    pub(super) fn is_listed(&self, owner: OwnerIndex) -> bool {
        let cron_job = self.index.cron_job(owner);
        let namespace = &cron_job.record.identity.namespace;
        let mut scopes = self.config.scopes.iter().zip(self.relists.synced());
        scopes.any(|(scope, is_synced)| is_synced && scope.contains(namespace))
    }

    /// Handles the beginning or the end of a list of a scope.
    pub(super) fn follow_list(&mut self, update: &WatchUpdate, now: Timestamp) {
        let WatchUpdate {
            resource, scope, stage, ..
        } = update;
        let Some(position) = self.config.scopes.iter().position(|known| known == scope) else {
            return;
        };
        let next_mark = self.relists.mark + 1;
        let relist = &mut self.relists.scopes[position][*resource as usize];
        match stage {
            WatchStage::ListBegun => {
                relist.begun = Some(next_mark);
                self.relists.mark = next_mark;
            }
            WatchStage::ListDone => {
                let begun = relist.begun.take();
                match (begun, resource) {
                    (Some(mark), WatchedResource::CronJobs) => self.remove_unlisted_cron_jobs(scope, mark),
                    (Some(mark), WatchedResource::Jobs) => self.remove_unlisted_jobs(scope, mark, now),
                    (None, _) => {}
                }
                self.end_list(position, *resource, now);
            }
            WatchStage::Watching(_)
            | WatchStage::Reached(_)
            | WatchStage::Unchanged { .. }
            | WatchStage::NotPermitted
            | WatchStage::Interrupted => {}
        }
    }

    /// Removes the CronJobs of a scope that were not observed since the relist of this mark began.
    fn remove_unlisted_cron_jobs(&mut self, scope: &Scope, mark: u32) {
        for owner in self.index.owner_indexes() {
            let cron_job = self.index.get_cron_job(owner);
            let is_gone =
                |cron_job: &CronJobState| cron_job.mark < mark && scope.contains(&cron_job.record.identity.namespace);
            if cron_job.is_some_and(is_gone) {
                self.remove_cron_job(owner);
            }
        }
    }

    fn remove_unlisted_jobs(&mut self, scope: &Scope, mark: u32, now: Timestamp) {
        for job in self.index.job_indexes() {
            let known = self.index.get_job(job);
            if known.is_some_and(|known| known.mark < mark && scope.contains(&known.namespace)) {
                self.remove_doubtful_job(job, now);
            }
        }
    }

    /// Records the end of a list. When both lists of its scope have become complete, evaluates every CronJob of the
    /// scope once.
    fn end_list(&mut self, position: usize, resource: WatchedResource, now: Timestamp) {
        let lists = &mut self.relists.scopes[position];
        let was_synced = is_synced(lists);
        lists[resource as usize].was_done = true;
        if was_synced || !is_synced(lists) {
            return;
        }
        for owner in self.index.owner_indexes() {
            let namespace = self.index.get_cron_job(owner).map(|it| &it.record.identity.namespace);
            if namespace.is_some_and(|namespace| self.config.scopes[position].contains(namespace)) {
                self.evaluate(owner, now);
            }
        }
    }

    /// Handles a CronJob that cannot be decoded. It starts nothing until it can be decoded: its last known form must
    /// not run, and its status could not be stored. Its last known state remains, for its Jobs and its cursor.
    pub(super) fn hold_undecodable(&mut self, uid: &Uid) {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.mark = self.relists.mark;
        cron_job.unusable = Some(Unusable::Undecodable);
        self.stop(owner);
    }

    /// Marks a Job as existing in any form, so that the relist in progress does not remove it.
    pub(super) fn mark_job(&mut self, uid: &Uid) {
        if let Some(index) = self.index.find_job(uid) {
            self.index.job_mut(index).mark = self.relists.mark;
        }
    }
}
