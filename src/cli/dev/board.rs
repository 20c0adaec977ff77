//! The figures of the screen of `dev`, computed from two watches. It uses only data that any client of the API can
//! read.
//!
//! Invariant: the cost of an update depends on the changes since the last one and on the due slots that wait, not on
//! the number of objects.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    audit::Audit,
    figures::{Figures, Row, Subject},
    text::{local_time, time_until},
};
use crate::{
    cli::{calendar::zone_of, plan::Plan},
    schedule::Zone,
    shard::{CronJobRecord, Finish, Input, JobRecord, Uid, WatchedResource, input::WatchStage},
};

/// Period over which started Jobs are counted.
pub(super) const WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// Number of the latest Jobs that are stored by name: enough for a large screen.
const LATEST_MAX: usize = 100;

/// Maximum number of counted starts: a burst of all CronJobs of the largest clusters. Beyond it the count stays.
const STARTS_MAX: usize = 1_000_000;

/// The known state of the cluster.
#[derive(Default)]
pub(super) struct Board {
    cron_jobs: HashMap<Uid, Listed>,
    /// Each CronJob with a next run, by its instant. Names alone do not distinguish a CronJob from its successor in a
    /// list.
    agenda: BTreeSet<Planned>,
    /// Each CronJob without a next run.
    idle: BTreeSet<(Arc<str>, Uid)>,
    n_suspended: usize,
    jobs: HashMap<Uid, Run>,
    n_running: usize,
    n_complete: u64,
    n_failed: u64,
    /// The instant at which the Job of each slot was first observed, oldest first.
    starts: VecDeque<Timestamp>,
    latest: VecDeque<Latest>,
    lists: Lists,
    audit: Audit,
    /// The CronJob that the hints name.
    subject: Option<Uid>,
    has_manual_job: bool,
}

type Planned = (Timestamp, Arc<str>, Uid);

struct Listed {
    plan: Plan,
    /// Namespace and name.
    name: Arc<str>,
    next: Option<Timestamp>,
    list: u64,
}

struct Run {
    controller: Uid,
    finish: Option<Finish>,
    list: u64,
}

struct Latest {
    uid: Uid,
    name: Box<str>,
    slot: Timestamp,
    zone: Zone,
    finish: Option<Finish>,
    is_gone: bool,
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
            Input::JobApplied(record) => self.apply_job(&record, now),
            Input::JobDeleted(uid) | Input::JobUnselected(uid) => self.remove_job(&uid),
            Input::JobUndecodable(uid) => {
                if let Some(run) = self.jobs.get_mut(&uid) {
                    run.list = self.lists.jobs;
                }
            }
            // Relevant for shards only.
            Input::JobCreateAnswered { .. }
            | Input::JobDeleteAnswered { .. }
            | Input::JobLookedUp { .. }
            | Input::StatusAnswered { .. } => {}
        }
    }

    fn follow_list(&mut self, resource: WatchedResource, stage: WatchStage) {
        match (resource, stage) {
            (WatchedResource::CronJobs, WatchStage::ListBegun) => self.lists.cron_jobs += 1,
            (WatchedResource::CronJobs, WatchStage::ListDone) => self.retire_cron_jobs(),
            (WatchedResource::Jobs, WatchStage::ListBegun) => self.lists.jobs += 1,
            (WatchedResource::Jobs, WatchStage::ListDone) => self.retire_jobs(),
            (_, WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted) => {}
        }
    }

    /// Returns the figures, with at most this number of entries in each list.
    pub(super) fn figures(&mut self, now: Timestamp, n_listed: usize) -> Figures {
        self.pass_time(now);
        let subject = self.subject();
        let row = |uid: &Uid| self.cron_jobs.get(uid).map(|listed| self.row(uid, listed, now));
        let planned = self.agenda.iter().map(|(_, _, uid)| uid);
        let idle = self.idle.iter().map(|(_, uid)| uid);
        let latest = self.latest.iter().take(n_listed);
        Figures {
            n_cron_jobs: self.cron_jobs.len(),
            n_suspended: self.n_suspended,
            n_blocked: self.audit.n_blocked(),
            n_never: self.idle.len() - self.n_suspended,
            n_starts: self.starts.len(),
            n_running: self.n_running,
            n_complete: self.n_complete,
            n_failed: self.n_failed,
            runs: self.audit.counts(),
            next_runs: planned.chain(idle).take(n_listed).filter_map(row).collect(),
            latest_jobs: latest.map(|job| job.row(now)).collect(),
            subject,
        }
    }

    fn row(&self, uid: &Uid, listed: &Listed, now: Timestamp) -> Row {
        let plan = &listed.plan;
        let next_run = match (self.audit.blocking_job(uid), listed.next) {
            _ if plan.is_deleting => "being deleted".to_owned(),
            _ if plan.is_suspended => "suspended".to_owned(),
            (Some(job), _) => format!("Forbid: {job} runs"),
            (None, Some(at)) => {
                let local = local_time(at, now, zone_of(&plan.schedule));
                format!("in {}, {local}", time_until(at, now))
            }
            (None, None) => "never".to_owned(),
        };
        let schedule_text = match &plan.schedule.time_zone {
            Some(zone) => format!("{} {zone}", plan.schedule.text),
            None => plan.schedule.text.to_string(),
        };
        [listed.name.to_string(), schedule_text, next_run]
    }

    /// The first CronJob that was created, or another one after its deletion.
    fn subject(&mut self) -> Option<Subject> {
        if self.subject.is_none() {
            let planned = self.agenda.first().map(|(_, _, uid)| uid);
            self.subject = planned.or(self.idle.first().map(|(_, uid)| uid)).cloned();
        }
        let uid = self.subject.as_ref()?;
        let plan = &self.cron_jobs.get(uid)?.plan;
        Some(Subject {
            namespace: plan.identity.namespace.to_string(),
            name: plan.identity.name.to_string(),
            is_suspended: plan.is_suspended,
            has_run: self.audit.has_started(uid),
            has_manual_job: self.has_manual_job,
        })
    }

    fn pass_time(&mut self, now: Timestamp) {
        while self.agenda.first().is_some_and(|(at, ..)| *at <= now) {
            if let Some((slot, _, uid)) = self.agenda.pop_first() {
                self.plan(&uid, now);
                let next = self.cron_jobs.get(&uid).and_then(|listed| listed.next);
                self.audit.open(&uid, slot, next);
            }
        }
        self.audit.pass_time(now);
        while self
            .starts
            .front()
            .is_some_and(|seen| now.duration_since(*seen) >= WINDOW)
        {
            self.starts.pop_front();
        }
    }

    fn apply_cron_job(&mut self, record: &CronJobRecord, now: Timestamp) {
        let uid = &record.identity.uid;
        self.unlist(uid);
        self.audit.apply(record);
        let listed = Listed {
            plan: Plan::of(record),
            name: format!("{}/{}", record.identity.namespace, record.identity.name).into(),
            next: None,
            list: self.lists.cron_jobs,
        };
        self.n_suspended += usize::from(listed.plan.is_at_rest());
        self.cron_jobs.insert(uid.clone(), listed);
        self.subject.get_or_insert_with(|| uid.clone());
        self.plan(uid, now);
    }

    /// Adds a CronJob to the agenda if it has a next run.
    fn plan(&mut self, uid: &Uid, now: Timestamp) {
        let Some(listed) = self.cron_jobs.get_mut(uid) else {
            return;
        };
        listed.next = listed.plan.next_run(now);
        let name = Arc::clone(&listed.name);
        match listed.next {
            Some(next) => self.agenda.insert((next, name, uid.clone())),
            None => self.idle.insert((name, uid.clone())),
        };
    }

    fn unlist(&mut self, uid: &Uid) {
        let Some(listed) = self.cron_jobs.remove(uid) else {
            return;
        };
        self.n_suspended -= usize::from(listed.plan.is_at_rest());
        match listed.next {
            Some(next) => self.agenda.remove(&(next, listed.name, uid.clone())),
            None => self.idle.remove(&(listed.name, uid.clone())),
        };
    }

    fn remove_cron_job(&mut self, uid: &Uid) {
        self.unlist(uid);
        self.audit.remove(uid);
        self.subject.take_if(|subject| subject == uid);
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
        let finish = record.finish;
        let run = Run {
            controller: controller.clone(),
            finish,
            list: self.lists.jobs,
        };
        let former = self.jobs.insert(record.uid.clone(), run);
        match (&former, record.scheduled) {
            (Some(former), _) => self.n_running -= usize::from(former.finish.is_none()),
            (None, Some(slot)) => self.note_start(record, &controller, slot, now),
            (None, None) => self.has_manual_job = true,
        }
        self.n_running += usize::from(finish.is_none());
        if record.scheduled.is_some() {
            let name = finish.is_none().then_some(&*record.name);
            self.audit.set_running(&controller, &record.uid, name);
        }
        if former.is_none_or(|former| former.finish.is_none()) {
            match finish {
                Some(Finish::Complete) => self.n_complete += 1,
                Some(Finish::Failed) => self.n_failed += 1,
                None => return,
            }
            self.update_latest(&record.uid, |job| job.finish = finish);
        }
    }

    fn note_start(&mut self, record: &JobRecord, controller: &Uid, slot: Timestamp, now: Timestamp) {
        self.audit.start(controller, slot);
        if self.starts.len() < STARTS_MAX {
            self.starts.push_back(now);
        }
        let cron_job = self.cron_jobs.get(controller);
        self.latest.truncate(LATEST_MAX - 1);
        self.latest.push_front(Latest {
            uid: record.uid.clone(),
            name: format!("{}/{}", record.namespace, record.name).into(),
            slot,
            zone: cron_job.map_or_else(Zone::utc, |listed| zone_of(&listed.plan.schedule).clone()),
            finish: record.finish,
            is_gone: false,
        });
    }

    fn update_latest(&mut self, uid: &Uid, change: impl FnOnce(&mut Latest)) {
        if let Some(job) = self.latest.iter_mut().find(|job| job.uid == *uid) {
            change(job);
        }
    }

    fn remove_job(&mut self, uid: &Uid) {
        if let Some(run) = self.jobs.remove(uid) {
            self.n_running -= usize::from(run.finish.is_none());
            self.audit.set_running(&run.controller, uid, None);
            self.update_latest(uid, |job| job.is_gone = true);
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

impl Latest {
    fn row(&self, now: Timestamp) -> Row {
        let state = match (self.finish, self.is_gone) {
            (Some(finish), _) => finish.as_str(),
            (None, false) => "Running",
            (None, true) => "Deleted",
        };
        let slot = local_time(self.slot, now, &self.zone);
        [self.name.to_string(), slot, state.to_owned()]
    }
}

#[cfg(test)]
mod tests;
