//! What was so and what happened, as the API server and the users know it: the facts that the model judges.

mod show;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use cronwheel::runtime::metrics::ShardBoard;
use jiff::Timestamp;

use super::scenario::Spec;

/// Everything that is known about a simulated stretch.
#[derive(Default)]
pub(super) struct World {
    /// Every CronJob that there ever was, in the order of creation; another one of the same name is another one.
    pub(super) cron_jobs: Vec<CronJob>,
    /// Where they are, by uid. Never walked over.
    by_uid: HashMap<String, usize>,
    /// Where those are that are there now, by name. Never walked over.
    by_name: HashMap<String, usize>,
    /// Every Job that there ever was, by uid, which come from the seed.
    pub(super) jobs: BTreeMap<String, Job>,
    /// Those that are there, by uid, by the uid of the CronJob that controls them. Never walked over.
    present: HashMap<String, BTreeSet<String>>,
    /// The Jobs that users deleted, by uid.
    pub(super) deleted_by_users: BTreeSet<String>,
    /// The controllers, one after the other.
    pub(super) lives: Vec<Life>,
    /// What Events say, those that are there at the end.
    pub(super) told_missing: Vec<Told>,
}

/// An Event says that a Job went missing.
pub(super) struct Told {
    pub(super) job: String,
    /// When the API server had it, at first.
    pub(super) at: Timestamp,
}

/// A CronJob from its creation to its deletion.
pub(super) struct CronJob {
    pub(super) name: String,
    pub(super) uid: String,
    /// `metadata.creationTimestamp`, in whole seconds.
    pub(super) created: Timestamp,
    /// What it asked for since when; the first entry is that of its creation.
    pub(super) specs: Vec<(Timestamp, Spec)>,
    pub(super) deleted: Option<Timestamp>,
    /// What its status became, in the order of versions.
    pub(super) statuses: Vec<Status>,
}

/// A status as it was stored.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) version: u64,
    pub(super) at: Timestamp,
    pub(super) last_schedule_time: Option<Timestamp>,
    pub(super) last_successful_time: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finish {
    Complete,
    Failed,
}

/// A Job from its creation to its deletion.
pub(super) struct Job {
    pub(super) name: String,
    /// The uid of the CronJob that controls it.
    pub(super) owner: Option<String>,
    /// Its slot; a Job that a user made has none.
    pub(super) slot: Option<Timestamp>,
    pub(super) created: Timestamp,
    pub(super) finished: Option<(Timestamp, Finish)>,
    /// `status.completionTime`.
    pub(super) completed: Option<Timestamp>,
    pub(super) deleted: Option<Deletion>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion {
    pub(super) at: Timestamp,
    pub(super) version: u64,
    pub(super) by: Deleter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deleter {
    Controller,
    /// A user, or its `ttlSecondsAfterFinished`.
    Others,
    /// It went with its CronJob.
    Garbage,
}

/// One controller from its start to its end.
pub(super) struct Life {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    /// Where it published what became of the instants that were due.
    pub(super) board: ShardBoard,
}

impl CronJob {
    pub(super) fn spec(&self) -> &Spec {
        &self.specs.last().expect("that of its creation").1
    }

    /// When its status had reached a slot at the latest version before another.
    pub(super) fn cursor_before(&self, version: u64) -> Option<Timestamp> {
        let n_before = self.statuses.partition_point(|status| status.version < version);
        self.statuses[..n_before].last()?.last_schedule_time
    }
}

impl Status {
    pub(super) fn says_the_same(&self, other: &Status) -> bool {
        (self.last_schedule_time, self.last_successful_time) == (other.last_schedule_time, other.last_successful_time)
    }
}

impl Job {
    /// When it ceased to run, if it did.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        let finished = self.finished.map(|(at, _)| at);
        let deleted = self.deleted.map(|deletion| deletion.at);
        [finished, deleted].into_iter().flatten().min()
    }
}

impl World {
    /// The Jobs that controllers started.
    pub(super) fn n_runs(&self) -> usize {
        self.jobs.values().filter(|job| job.slot.is_some()).count()
    }

    /// One line for each Job.
    pub(super) fn history(&self) -> String {
        let mut lines = String::new();
        for (uid, job) in &self.jobs {
            let _ = writeln!(
                lines,
                "{uid} {} {:?} {} {:?} {:?}",
                job.name, job.slot, job.created, job.finished, job.deleted
            );
        }
        lines
    }

    /// The CronJob that bears a name now.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn find_by_uid(&self, uid: &str) -> Option<usize> {
        self.by_uid.get(uid).copied()
    }

    /// The Jobs of a CronJob that are there, by uid.
    pub(super) fn jobs_of(&self, cron_job: &str) -> &BTreeSet<String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        self.present.get(cron_job).unwrap_or(&NONE)
    }

    /// The Jobs that there ever were by the uid of the CronJob that controls them, and those that none does; by uid.
    pub(super) fn jobs_by_owner(&self) -> (HashMap<&str, Vec<&Job>>, Vec<&Job>) {
        let (mut by_owner, mut free): (HashMap<&str, Vec<&Job>>, _) = (HashMap::new(), Vec::new());
        for job in self.jobs.values() {
            match &job.owner {
                Some(owner) => by_owner.entry(owner).or_default().push(job),
                None => free.push(job),
            }
        }
        (by_owner, free)
    }

    /// Takes note of whether a Job of a CronJob is there.
    pub(super) fn note_present(&mut self, cron_job: &str, uid: &str, is_present: bool) {
        if !self.present.contains_key(cron_job) {
            self.present.insert(cron_job.to_owned(), BTreeSet::new());
        }
        let Some(jobs) = self.present.get_mut(cron_job) else {
            return;
        };
        if !is_present {
            jobs.remove(uid);
        } else if !jobs.contains(uid) {
            jobs.insert(uid.to_owned());
        }
    }

    /// Takes note of a new CronJob.
    pub(super) fn begin(&mut self, cron_job: CronJob) {
        let index = self.cron_jobs.len();
        self.by_uid.insert(cron_job.uid.clone(), index);
        self.by_name.insert(cron_job.name.clone(), index);
        self.cron_jobs.push(cron_job);
    }

    /// Takes note that a CronJob is deleted.
    pub(super) fn end(&mut self, index: usize, at: Timestamp) {
        let cron_job = &mut self.cron_jobs[index];
        cron_job.deleted = Some(at);
        self.by_name.remove(&cron_job.name);
    }
}
