//! The figures of `dev`, computed from two watches. It uses only data that any client of the API can read.
//!
//! Invariant: the cost of an update depends on the changes since the last one and on the due slots that wait, not on
//! the number of objects.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::{audit::Audit, figures::Figures, last_minute::LastMinute};
use crate::{
    cli::plan::Plan,
    shard::{CronJobRecord, Input, JobRecord, Uid, WatchedResource, input::WatchStage},
};

/// The known state of the cluster.
#[derive(Default)]
pub(super) struct Board {
    cron_jobs: HashMap<Uid, Listed>,
    /// Each CronJob with a next slot, by its instant.
    agenda: BTreeSet<(Timestamp, Uid)>,
    jobs: HashMap<Uid, Run>,
    n_running: usize,
    due: LastMinute,
    starts: LastMinute,
    lists: Lists,
    audit: Audit,
}

struct Listed {
    plan: Plan,
    next: Option<Timestamp>,
    list: u64,
}

struct Run {
    controller: Uid,
    is_running: bool,
    list: u64,
}

/// The numbers of the current lists. An entry with an older number is removed when a list is complete.
#[derive(Default)]
struct Lists {
    cron_jobs: u64,
    jobs: u64,
}

impl Board {
    /// Applies an item of a watch.
    pub(super) fn take(&mut self, input: Input, now: Timestamp) {
        // Slots are judged by the terms at their instant.
        self.pass_time(now);
        match input {
            Input::CronJobApplied(record) => self.apply_cron_job(&record, now),
            Input::CronJobDeleted(uid) => self.remove_cron_job(&uid),
            Input::WatchUpdated(update) => self.follow_list(update.resource, update.stage),
            Input::CronJobUndecodable(uid) => {
                if let Some(listed) = self.cron_jobs.get_mut(&uid) {
                    listed.list = self.lists.cron_jobs;
                }
            }
            Input::JobApplied(record) | Input::JobModified(record) => self.apply_job(&record, now),
            Input::JobDeleted { job, .. } | Input::JobReleased(job) => self.remove_job(&job),
            Input::JobUndecodable(uid) => {
                if let Some(run) = self.jobs.get_mut(&uid) {
                    run.list = self.lists.jobs;
                }
            }
            // dev manages all namespaces and watches none.
            Input::NamespaceUpdated(_) | Input::CalendarUpdated(_) => {}
        }
    }

    fn follow_list(&mut self, resource: WatchedResource, stage: WatchStage) {
        match (resource, stage) {
            (WatchedResource::CronJobs, WatchStage::ListBegun) => self.lists.cron_jobs += 1,
            (WatchedResource::CronJobs, WatchStage::ListDone) => self.retire_cron_jobs(),
            (WatchedResource::Jobs, WatchStage::ListBegun) => self.lists.jobs += 1,
            (WatchedResource::Jobs, WatchStage::ListDone) => self.retire_jobs(),
            (
                _,
                WatchStage::Watching(_)
                | WatchStage::Reached(_)
                | WatchStage::Unchanged { .. }
                | WatchStage::NotPermitted
                | WatchStage::Interrupted,
            ) => {}
        }
    }

    /// Returns the figures.
    pub(super) fn figures(&mut self, now: Timestamp) -> Figures {
        self.pass_time(now);
        Figures {
            n_due: self.due.count(now),
            n_started: self.starts.count(now),
            n_running: self.n_running,
            runs: self.audit.counts(),
            findings: self.audit.findings(),
        }
    }

    fn pass_time(&mut self, now: Timestamp) {
        while self.agenda.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((slot, uid)) = self.agenda.pop_first() {
                self.due.add(slot);
                self.plan(&uid, now);
                let next = self.cron_jobs.get(&uid).and_then(|listed| listed.next);
                self.audit.open(&uid, slot, next);
            }
        }
        self.audit.pass_time(now);
    }

    fn apply_cron_job(&mut self, record: &CronJobRecord, now: Timestamp) {
        let uid = &record.identity.uid;
        self.unlist(uid);
        self.audit.apply(record);
        let listed = Listed {
            plan: Plan::of(record),
            next: None,
            list: self.lists.cron_jobs,
        };
        self.cron_jobs.insert(uid.clone(), listed);
        self.plan(uid, now);
    }

    /// Adds a CronJob to the agenda if it has a next slot.
    fn plan(&mut self, uid: &Uid, now: Timestamp) {
        let Some(listed) = self.cron_jobs.get_mut(uid) else {
            return;
        };
        listed.next = listed.plan.next_run(now);
        self.agenda.extend(listed.next.map(|next| (next, uid.clone())));
    }

    fn unlist(&mut self, uid: &Uid) {
        if let Some(Listed { next: Some(next), .. }) = self.cron_jobs.remove(uid) {
            self.agenda.remove(&(next, uid.clone()));
        }
    }

    fn remove_cron_job(&mut self, uid: &Uid) {
        self.unlist(uid);
        self.audit.remove(uid);
    }

    fn retire_cron_jobs(&mut self) {
        let current = self.lists.cron_jobs;
        let gone = self.cron_jobs.iter().filter(|(_, listed)| listed.list != current);
        let gone: Vec<Uid> = gone.map(|(uid, _)| uid.clone()).collect();
        for uid in &gone {
            self.remove_cron_job(uid);
        }
    }

    /// Records a Job of a CronJob; other Jobs do not count.
    fn apply_job(&mut self, record: &JobRecord, now: Timestamp) {
        let Some(controller) = record.controller.clone() else {
            return;
        };
        let is_running = record.finish.is_none();
        let run = Run {
            controller: controller.clone(),
            is_running,
            list: self.lists.jobs,
        };
        let former = self.jobs.insert(record.uid.clone(), run);
        match (&former, record.scheduled) {
            (Some(former), _) => self.n_running -= usize::from(former.is_running),
            (None, Some(slot)) => {
                self.audit.start(&controller, slot);
                self.starts.add(now);
            }
            (None, None) => {}
        }
        self.n_running += usize::from(is_running);
        if record.scheduled.is_some() {
            self.audit.set_running(&controller, &record.uid, is_running);
        }
    }

    fn remove_job(&mut self, uid: &Uid) {
        if let Some(run) = self.jobs.remove(uid) {
            self.n_running -= usize::from(run.is_running);
            self.audit.set_running(&run.controller, uid, false);
        }
    }

    fn retire_jobs(&mut self) {
        let current = self.lists.jobs;
        let gone = self.jobs.iter().filter(|(_, run)| run.list != current);
        let gone: Vec<Uid> = gone.map(|(uid, _)| uid.clone()).collect();
        for uid in &gone {
            self.remove_job(uid);
        }
    }
}

#[cfg(test)]
mod tests;
