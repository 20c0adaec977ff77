//! Relists, scope by scope. An object that a complete list does not contain is gone. Nothing in a scope is decided
//! before both of its lists were complete once. A namespace that may not be listed delays no other. An object that
//! cannot be decoded is not gone.

use jiff::Timestamp;

use super::ShardState;
use crate::shard::{
    ids::Uid,
    index::OwnerIndex,
    input::{Scope, WatchStage, WatchUpdate, WatchedResource},
    outcome_counts::InstantOutcome,
};

/// Completed lists, and the number of the latest relist.
pub(super) struct Relists {
    /// Incremented by each relist. Objects carry the number of the last relist that contained them.
    pub(super) mark: u32,
    cron_jobs: Vec<ScopeRelist>,
    jobs: Vec<ScopeRelist>,
    /// Whether both lists of a scope were complete once, for each scope.
    is_synced: Vec<bool>,
}

#[derive(Clone, Copy, Default)]
struct ScopeRelist {
    /// The mark of the relist in progress.
    begun: Option<u32>,
    was_done: bool,
}

impl Relists {
    pub(super) fn new(n_scopes: usize) -> Relists {
        let scopes = vec![ScopeRelist::default(); n_scopes];
        Relists {
            mark: 0,
            cron_jobs: scopes.clone(),
            jobs: scopes,
            is_synced: vec![false; n_scopes],
        }
    }

    /// For each scope, whether both of its lists were complete once.
    pub(super) fn synced(&self) -> impl Iterator<Item = bool> {
        self.is_synced.iter().copied()
    }

    pub(super) fn are_all_synced(&self) -> bool {
        self.is_synced.iter().all(|is_synced| *is_synced)
    }

    pub(super) fn is_any_synced(&self) -> bool {
        self.is_synced.contains(&true)
    }

    fn of(&mut self, resource: WatchedResource) -> &mut [ScopeRelist] {
        match resource {
            WatchedResource::CronJobs => &mut self.cron_jobs,
            WatchedResource::Jobs => &mut self.jobs,
        }
    }
}

impl ShardState {
    /// Whether everything in the CronJob's scope has been listed, so that the CronJob may be decided.
    pub(super) fn is_listed(&self, owner: OwnerIndex) -> bool {
        let Some(cron_job) = self.index.cron_job(owner) else {
            return false;
        };
        let namespace = &cron_job.record.identity.namespace;
        let mut scopes = self.config.scopes.iter().zip(&self.relists.is_synced);
        scopes.any(|(scope, is_synced)| *is_synced && scope.contains(namespace))
    }

    /// Handles the beginning or the end of a list that covers this shard.
    pub(super) fn follow_list(&mut self, update: &WatchUpdate, now: Timestamp) {
        let WatchUpdate {
            resource, scope, stage, ..
        } = update;
        let Some(position) = self.config.scopes.iter().position(|known| known == scope) else {
            return;
        };
        let next_mark = self.relists.mark + 1;
        let relist = &mut self.relists.of(*resource)[position];
        match stage {
            WatchStage::ListBegun => {
                relist.begun = Some(next_mark);
                self.relists.mark = next_mark;
            }
            WatchStage::ListDone => {
                relist.was_done = true;
                let begun = relist.begun.take();
                match (begun, resource) {
                    (Some(mark), WatchedResource::CronJobs) => self.remove_unlisted_cron_jobs(scope, mark),
                    (Some(mark), WatchedResource::Jobs) => self.lose_unlisted_jobs(scope, mark, now),
                    (None, _) => {}
                }
                self.sync(now);
            }
            WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted => {}
        }
    }

    /// Removes the CronJobs of a scope that were not observed since the relist of this mark began.
    fn remove_unlisted_cron_jobs(&mut self, scope: &Scope, mark: u32) {
        for owner in self.index.owner_indexes() {
            let is_gone = self
                .index
                .cron_job(owner)
                .is_some_and(|cron_job| cron_job.mark < mark && scope.contains(&cron_job.record.identity.namespace));
            if is_gone {
                self.remove_cron_job(owner);
            }
        }
    }

    fn lose_unlisted_jobs(&mut self, scope: &Scope, mark: u32, now: Timestamp) {
        for job in self.index.job_indexes() {
            let known = self.index.job(job);
            if known.is_some_and(|known| known.mark < mark && scope.contains(&known.namespace)) {
                self.lose_job(job, now);
            }
        }
    }

    /// Evaluates every CronJob of a scope once, when both lists of the scope have become complete.
    fn sync(&mut self, now: Timestamp) {
        let relists = &self.relists;
        let is_complete = |at: usize| relists.cron_jobs[at].was_done && relists.jobs[at].was_done;
        let newly_synced = (0..relists.is_synced.len()).filter(|at| !relists.is_synced[*at] && is_complete(*at));
        for at in newly_synced.collect::<Vec<_>>() {
            self.relists.is_synced[at] = true;
            for owner in self.index.owner_indexes() {
                let namespace = self.index.cron_job(owner).map(|it| &it.record.identity.namespace);
                if namespace.is_some_and(|namespace| self.config.scopes[at].contains(namespace)) {
                    self.evaluate(owner, now);
                }
            }
        }
    }

    /// Handles a CronJob that cannot be decoded. It starts nothing until it can be decoded: its last known form must
    /// not run, and its status could not be stored. Its last known state remains, for its Jobs and its cursor.
    pub(super) fn hold_undecodable(&mut self, uid: &Uid) {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        let mark = self.relists.mark;
        if let Some(cron_job) = self.index.cron_job_mut(owner) {
            cron_job.mark = mark;
            cron_job.is_undecodable = true;
        }
        self.disarm(owner);
        self.cancel_wake(owner);
        self.withdraw(owner);
        self.close_unless_in_flight(owner, InstantOutcome::Unschedulable);
    }

    /// Marks a Job as existing in any form, so that the relist in progress does not remove it.
    pub(super) fn mark_job(&mut self, uid: &Uid) {
        if let Some(index) = self.index.find_job(uid)
            && let Some(job) = self.index.job_mut(index)
        {
            job.mark = self.relists.mark;
        }
    }
}
