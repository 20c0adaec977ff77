//! The figures of the screen of `dev`, computed from two watches. It uses what any client of the API can see.
//!
//! Invariant: an update costs what has changed since the last one, not what is stored.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    schedule::due,
    shard::{CronJobRecord, CronJobSchedule, Finish, Input, JobRecord, SelectedKind, Uid, input::SelectionStage},
};

/// Period over which fires are counted.
pub(super) const WINDOW: SignedDuration = SignedDuration::from_mins(1);

/// Number of the latest fires that are stored by name: enough for a large screen.
const LATEST_MAX: usize = 50;

/// Maximum number of counted fires: a burst of all CronJobs of the largest clusters. Beyond it the count stays.
const FIRES_MAX: usize = 1_000_000;

/// The known state of the cluster.
pub(super) struct Board {
    cron_jobs: HashMap<Uid, Listed>,
    /// Each CronJob that will fire, by its next activation. Names alone do not distinguish a CronJob from its successor
    /// in a list.
    agenda: BTreeSet<Planned>,
    n_suspended: usize,
    jobs: HashMap<Uid, Run>,
    n_running: usize,
    n_complete: u64,
    n_failed: u64,
    /// The instant at which the Job of each slot was first seen, oldest first.
    fires: VecDeque<Timestamp>,
    latest: VecDeque<Fire>,
    lists: Lists,
}

type Planned = (Timestamp, Arc<str>, Uid);

struct Listed {
    /// Namespace and name.
    name: Arc<str>,
    schedule: CronJobSchedule,
    is_suspended: bool,
    /// The start of the chain of `@every`.
    anchor: Timestamp,
    next: Option<Timestamp>,
    list: u64,
}

struct Run {
    finish: Option<Finish>,
    list: u64,
}

struct Fire {
    uid: Uid,
    name: Box<str>,
    slot: Timestamp,
    finish: Option<Finish>,
    is_gone: bool,
}

/// The numbers of the current lists. An entry with an older number is removed when a list is complete.
#[derive(Default)]
struct Lists {
    cron_jobs: u64,
    jobs: u64,
}

/// The figures to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) n_cron_jobs: usize,
    pub(super) n_suspended: usize,
    /// Within [`WINDOW`].
    pub(super) n_fires: usize,
    pub(super) n_running: usize,
    /// Since the start, like the next field.
    pub(super) n_complete: u64,
    pub(super) n_failed: u64,
    /// In the order of their instants.
    pub(super) next_fires: Vec<NextFire>,
    /// The newest first.
    pub(super) latest_fires: Vec<LatestFire>,
}

/// A CronJob that will fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NextFire {
    pub(super) name: String,
    pub(super) schedule: String,
    pub(super) at: Timestamp,
}

/// A Job that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LatestFire {
    pub(super) name: String,
    pub(super) slot: Timestamp,
    pub(super) state: &'static str,
}

impl Board {
    pub(super) fn new() -> Board {
        Board {
            cron_jobs: HashMap::new(),
            agenda: BTreeSet::new(),
            n_suspended: 0,
            jobs: HashMap::new(),
            n_running: 0,
            n_complete: 0,
            n_failed: 0,
            fires: VecDeque::new(),
            latest: VecDeque::new(),
            lists: Lists::default(),
        }
    }

    /// Applies an item of a watch.
    pub(super) fn take(&mut self, input: Input, now: Timestamp) {
        match input {
            Input::CronJobApplied(record) => self.apply_cron_job(&record, now),
            Input::CronJobDeleted(uid) => self.remove_cron_job(&uid),
            Input::Selected(selected) => self.follow_list(selected.kind, selected.stage),
            Input::CronJobSeen(uid) => {
                if let Some(listed) = self.cron_jobs.get_mut(&uid) {
                    listed.list = self.lists.cron_jobs;
                }
            }
            Input::JobApplied(record) => self.apply_job(*record, now),
            Input::JobDeleted(uid) | Input::JobUnselected(uid) => self.remove_job(&uid),
            Input::JobSeen(uid) => {
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

    fn follow_list(&mut self, kind: SelectedKind, stage: SelectionStage) {
        match (kind, stage) {
            (SelectedKind::CronJobs, SelectionStage::ListBegun) => self.lists.cron_jobs += 1,
            (SelectedKind::CronJobs, SelectionStage::ListDone) => self.retire_cron_jobs(),
            (SelectedKind::Jobs, SelectionStage::ListBegun) => self.lists.jobs += 1,
            (SelectedKind::Jobs, SelectionStage::ListDone) => self.retire_jobs(),
            (_, SelectionStage::Watching(_) | SelectionStage::NotPermitted) => {}
        }
    }

    /// Returns the figures, with at most this number of fires of each kind.
    pub(super) fn figures(&mut self, now: Timestamp, n_listed: usize) -> Figures {
        self.pass_time(now);
        let next_fire = |(at, name, uid): &Planned| NextFire {
            name: name.to_string(),
            schedule: self.cron_jobs.get(uid).map(Listed::schedule_text).unwrap_or_default(),
            at: *at,
        };
        Figures {
            n_cron_jobs: self.cron_jobs.len(),
            n_suspended: self.n_suspended,
            n_fires: self.fires.len(),
            n_running: self.n_running,
            n_complete: self.n_complete,
            n_failed: self.n_failed,
            next_fires: self.agenda.iter().take(n_listed).map(next_fire).collect(),
            latest_fires: self.latest.iter().take(n_listed).map(Fire::latest_fire).collect(),
        }
    }

    fn pass_time(&mut self, now: Timestamp) {
        while self.agenda.first().is_some_and(|(at, ..)| *at <= now) {
            if let Some((_, _, uid)) = self.agenda.pop_first() {
                self.plan(&uid, now);
            }
        }
        while self
            .fires
            .front()
            .is_some_and(|seen| now.duration_since(*seen) >= WINDOW)
        {
            self.fires.pop_front();
        }
    }

    fn apply_cron_job(&mut self, record: &CronJobRecord, now: Timestamp) {
        let identity = &record.identity;
        self.remove_cron_job(&identity.uid);
        let is_suspended = record.is_suspended || record.is_deleting;
        self.n_suspended += usize::from(is_suspended);
        let listed = Listed {
            name: format!("{}/{}", identity.namespace, identity.name).into(),
            schedule: record.schedule.clone(),
            is_suspended,
            anchor: record.status.last_schedule_time.unwrap_or(record.created),
            next: None,
            list: self.lists.cron_jobs,
        };
        self.cron_jobs.insert(identity.uid.clone(), listed);
        self.plan(&identity.uid, now);
    }

    /// Adds a CronJob to the agenda if it will fire and is not there.
    fn plan(&mut self, uid: &Uid, now: Timestamp) {
        let Some(listed) = self.cron_jobs.get_mut(uid) else {
            return;
        };
        listed.next = listed.next_after(now);
        if let Some(next) = listed.next {
            self.agenda.insert((next, Arc::clone(&listed.name), uid.clone()));
        }
    }

    fn remove_cron_job(&mut self, uid: &Uid) {
        let Some(listed) = self.cron_jobs.remove(uid) else {
            return;
        };
        self.n_suspended -= usize::from(listed.is_suspended);
        if let Some(next) = listed.next {
            self.agenda.remove(&(next, listed.name, uid.clone()));
        }
    }

    fn retire_cron_jobs(&mut self) {
        let current = self.lists.cron_jobs;
        let gone = self.cron_jobs.iter().filter(|(_, listed)| listed.list != current);
        let gone: Vec<Uid> = gone.map(|(uid, _)| uid.clone()).collect();
        for uid in &gone {
            self.remove_cron_job(uid);
        }
    }

    /// Records a Job of a CronJob; other Jobs are not fires.
    fn apply_job(&mut self, record: JobRecord, now: Timestamp) {
        if record.controller.is_none() {
            return;
        }
        let list = self.lists.jobs;
        let finish = record.finish;
        let former = self.jobs.insert(record.uid.clone(), Run { finish, list });
        match &former {
            Some(former) => self.n_running -= usize::from(former.finish.is_none()),
            None => self.note_fire(&record, now),
        }
        self.n_running += usize::from(finish.is_none());
        if former.is_none_or(|former| former.finish.is_none()) {
            match finish {
                Some(Finish::Complete) => self.n_complete += 1,
                Some(Finish::Failed) => self.n_failed += 1,
                None => return,
            }
            self.update_latest(&record.uid, |fire| fire.finish = finish);
        }
    }

    fn note_fire(&mut self, record: &JobRecord, now: Timestamp) {
        let Some(slot) = record.scheduled else { return };
        if self.fires.len() < FIRES_MAX {
            self.fires.push_back(now);
        }
        self.latest.truncate(LATEST_MAX - 1);
        self.latest.push_front(Fire {
            uid: record.uid.clone(),
            name: format!("{}/{}", record.namespace, record.name).into(),
            slot,
            finish: record.finish,
            is_gone: false,
        });
    }

    fn update_latest(&mut self, uid: &Uid, change: impl FnOnce(&mut Fire)) {
        if let Some(fire) = self.latest.iter_mut().find(|fire| fire.uid == *uid) {
            change(fire);
        }
    }

    fn remove_job(&mut self, uid: &Uid) {
        if let Some(run) = self.jobs.remove(uid) {
            self.n_running -= usize::from(run.finish.is_none());
            self.update_latest(uid, |fire| fire.is_gone = true);
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

impl Listed {
    fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let CronJobSchedule {
            parsed, default_zone, ..
        } = &self.schedule;
        let is_good = !self.is_suspended && !matches!(self.schedule.zone, Some(Err(_)));
        let schedule = parsed.as_ref().ok().filter(|_| is_good)?;
        if schedule.is_every() {
            due::next_in_chain(schedule, default_zone, self.anchor, now)
        } else {
            schedule.next_after(now, default_zone)
        }
    }

    fn schedule_text(&self) -> String {
        match &self.schedule.time_zone {
            Some(zone) => format!("{} {zone}", self.schedule.text),
            None => self.schedule.text.to_string(),
        }
    }
}

impl Fire {
    fn latest_fire(&self) -> LatestFire {
        LatestFire {
            name: self.name.to_string(),
            slot: self.slot,
            state: match (self.finish, self.is_gone) {
                (Some(finish), _) => finish.as_str(),
                (None, false) => "Running",
                (None, true) => "Deleted",
            },
        }
    }
}

#[cfg(test)]
mod tests;
