//! The figures of `dev`, computed from watches. It uses only data that any client of the API can read.
//!
//! Invariant: the cost of an update depends on the changes since the last one and on the due slots that wait, not on
//! the number of objects. Only a change of a namespace or of a calendar visits all CronJobs.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use super::{
    audit::{Audit, DueSlot},
    figures::Figures,
    last_minute::LastMinute,
};
use crate::{
    cli::plan::Plan,
    shard::{
        Calendars, CronJobRecord, Input, JobRecord, ManagedNamespaces, Scope, Uid, WatchedResource, hash::spread_hash,
        input::WatchStage,
    },
};

/// The known state of the cluster.
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
    /// The options of the namespaces.
    namespaces: ManagedNamespaces,
    calendars: Calendars,
}

impl Default for Board {
    fn default() -> Board {
        Board {
            cron_jobs: HashMap::new(),
            agenda: BTreeSet::new(),
            jobs: HashMap::new(),
            n_running: 0,
            due: LastMinute::default(),
            starts: LastMinute::default(),
            lists: Lists::default(),
            audit: Audit::default(),
            namespaces: ManagedNamespaces::selected(),
            calendars: Calendars::of_scopes(&[Scope::Cluster]),
        }
    }
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
            Input::NamespaceUpdated(update) => {
                let changed = self.namespaces.apply(update, now);
                self.resolve_again(|plan| changed.contains(&plan.identity.namespace), now);
            }
            Input::CalendarUpdated(update) => {
                let change = self.calendars.apply(*update);
                let is_concerned = |plan: &Plan| {
                    let not_on = plan.schedule.options().not_on.as_ref();
                    not_on.is_some_and(|not_on| change.concerns(&plan.identity.namespace, &not_on.name))
                };
                self.resolve_again(is_concerned, now);
            }
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
                self.open(&uid, slot);
            }
        }
        self.audit.pass_time(now);
    }

    fn open(&mut self, uid: &Uid, slot: Timestamp) {
        let Some(listed) = self.cron_jobs.get(uid) else {
            return;
        };
        let start = listed.plan.schedule.start_of(slot);
        let due = DueSlot {
            slot,
            start,
            next: listed.next,
            is_frozen: self.is_frozen(&listed.plan, start),
        };
        self.audit.open(uid, due);
    }

    fn is_frozen(&self, plan: &Plan, at: Timestamp) -> bool {
        let options = self.namespaces.options(&plan.identity.namespace);
        options.is_some_and(|options| options.freeze.as_ref().is_some_and(|freeze| freeze.holds_at(at)))
    }

    /// Adds the options of the namespace to those of a CronJob, and the calendar that it names.
    fn resolve(&self, plan: &mut Plan) {
        let identity = &plan.identity;
        let options = self.namespaces.options(&identity.namespace);
        plan.schedule.inherit(options.as_deref(), spread_hash(&identity.uid));
        self.calendars.resolve(&identity.namespace, &mut plan.schedule);
    }

    /// Follows a change of namespaces or calendars.
    fn resolve_again(&mut self, is_concerned: impl Fn(&Plan) -> bool, now: Timestamp) {
        let concerned = self.cron_jobs.iter().filter(|(_, listed)| is_concerned(&listed.plan));
        let concerned: Vec<Uid> = concerned.map(|(uid, _)| uid.clone()).collect();
        for uid in &concerned {
            let Some(mut listed) = self.unlist(uid) else { continue };
            let former = listed.plan.schedule.clone();
            self.resolve(&mut listed.plan);
            if listed.plan.schedule.differs_from(&former) {
                self.audit.change_schedule(uid);
            } else if self.is_frozen(&listed.plan, now) {
                self.audit.freeze(uid);
            }
            self.cron_jobs.insert(uid.clone(), listed);
            self.plan(uid, now);
        }
    }

    fn apply_cron_job(&mut self, record: &CronJobRecord, now: Timestamp) {
        let uid = &record.identity.uid;
        let mut plan = Plan::of(record);
        self.resolve(&mut plan);
        let former = self.unlist(uid);
        let is_schedule_changed = former.is_some_and(|former| former.plan.schedule.differs_from(&plan.schedule));
        self.audit.apply(record, is_schedule_changed);
        let listed = Listed {
            plan,
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

    fn unlist(&mut self, uid: &Uid) -> Option<Listed> {
        let listed = self.cron_jobs.remove(uid)?;
        if let Some(next) = listed.next {
            self.agenda.remove(&(next, uid.clone()));
        }
        Some(listed)
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
