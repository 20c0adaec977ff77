//! The facts that the model judges: the stored objects and the actions of users.

mod show;

use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
};

use cronwheel::{kube_api::latest_value::LatestSender, telemetry::metrics::ShardFigures};
use jiff::Timestamp;

use super::{cluster::NAMESPACE, scenario::Spec};

/// Jobs by the uid of the CronJob that they name as their controller.
#[derive(Default)]
pub(super) struct JobsByOwner<'a> {
    /// In the namespace of the CronJob.
    pub(super) owned: HashMap<&'a str, Vec<&'a Job>>,
    /// In another namespace.
    pub(super) strangers: HashMap<&'a str, Vec<&'a Job>>,
    /// Jobs without a controller reference.
    pub(super) free: Vec<&'a Job>,
}

/// All recorded facts of a simulation.
#[derive(Default)]
pub(super) struct World {
    /// Every CronJob that ever existed, in the order of creation. A recreated CronJob counts as a new one.
    pub(super) cron_jobs: Vec<CronJob>,
    /// The positions of CronJobs by uid. Never iterated.
    by_uid: HashMap<String, usize>,
    /// The positions of existing CronJobs by name. Never iterated.
    by_name: HashMap<String, usize>,
    /// Every Job that ever existed, in the order of creation.
    pub(super) jobs: Vec<Job>,
    /// The positions of Jobs by uid. Never iterated.
    job_by_uid: HashMap<String, usize>,
    /// The positions of existing Jobs by the uid of the CronJob that controls them. Never iterated.
    present: HashMap<String, BTreeSet<usize>>,
    /// The Jobs that users deleted, by uid.
    pub(super) deleted_by_users: BTreeSet<String>,
    /// The controllers in order.
    pub(super) lives: Vec<Life>,
    /// The freezes of the namespace of the CronJobs, in order.
    pub(super) freezes: Vec<Freeze>,
    /// The reports of missing Jobs in the Events that exist at the end.
    pub(super) missing_reports: Vec<MissingJobReport>,
}

/// A report in an Event that a Job went missing.
pub(super) struct MissingJobReport {
    pub(super) job: String,
    /// When the API server first stored the Event.
    pub(super) at: Timestamp,
}

/// A freeze of the namespace, as a user set it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freeze {
    pub(super) from: Timestamp,
    /// The value of the annotation.
    pub(super) until: Timestamp,
    /// When the annotation was removed or replaced.
    pub(super) removed: Option<Timestamp>,
}

/// A CronJob from its creation to its deletion.
pub(super) struct CronJob {
    pub(super) name: String,
    pub(super) uid: String,
    /// `metadata.creationTimestamp`, in whole seconds.
    pub(super) created: Timestamp,
    /// The specs with the times from which they apply. The first entry is the spec at the creation.
    pub(super) specs: Vec<(Timestamp, Spec)>,
    pub(super) deleted: Option<Timestamp>,
    /// The stored statuses, in the order of versions.
    pub(super) statuses: Vec<Status>,
}

/// A status as it was stored.
#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) version: u64,
    pub(super) at: Timestamp,
    pub(super) last_schedule_time: Option<Timestamp>,
    pub(super) last_successful_time: Option<Timestamp>,
    /// The last token of `run-now` that is answered.
    pub(super) answered: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Finish {
    Complete,
    Failed,
}

/// A Job from its creation to its deletion.
pub(super) struct Job {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The uid of the CronJob that controls it.
    pub(super) owner: Option<String>,
    /// Its slot. `None` for runs that are asked for, and for Jobs of users and strangers.
    pub(super) slot: Option<Timestamp>,
    /// The token of the run that was asked for.
    pub(super) token: Option<u32>,
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
    /// A user, or `ttlSecondsAfterFinished`.
    Others,
    /// The deletion of its CronJob.
    Garbage,
}

/// One controller from its start to its end.
pub(super) struct Life {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
    /// Whether it is terminated, and not killed.
    pub(super) is_graceful: bool,
    /// The published counts of due instants by outcome.
    pub(super) snapshot: LatestSender<ShardFigures>,
}

impl CronJob {
    pub(super) fn spec(&self) -> &Spec {
        &self.specs.last().expect("the spec at the creation").1
    }

    /// The spec at an instant.
    pub(super) fn spec_at(&self, instant: Timestamp) -> &Spec {
        let n_since = self.specs.partition_point(|(since, _)| *since <= instant);
        &self.specs[n_since.max(1) - 1].1
    }

    /// The cursor of its status before a version.
    pub(super) fn cursor_before(&self, version: u64) -> Option<Timestamp> {
        self.status_before(version)?.last_schedule_time
    }

    /// Its status before a version.
    pub(super) fn status_before(&self, version: u64) -> Option<&Status> {
        let n_before = self.statuses.partition_point(|status| status.version < version);
        self.statuses[..n_before].last()
    }
}

impl Status {
    /// Whether it differs only in its version.
    pub(super) fn is_same(&self, other: &Status) -> bool {
        let key = |status: &Status| (status.last_schedule_time, status.last_successful_time, status.answered);
        key(self) == key(other)
    }
}

impl Job {
    /// Whether a controller created it, for a slot or for a token.
    pub(super) fn is_run(&self) -> bool {
        self.slot.is_some() || self.token.is_some()
    }

    /// Whether it is in another namespace than the CronJobs.
    fn is_strangers(&self) -> bool {
        self.namespace != NAMESPACE
    }

    /// The end of its run, if it has ended.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        let finished = self.finished.map(|(at, _)| at);
        let deleted = self.deleted.map(|deletion| deletion.at);
        [finished, deleted].into_iter().flatten().min()
    }
}

impl World {
    /// The number of Jobs that controllers created.
    pub(super) fn n_runs(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_run()).count()
    }

    /// One line per Job.
    pub(super) fn history(&self) -> String {
        let mut lines = String::new();
        for job in &self.jobs {
            let _ = writeln!(
                lines,
                "{} {} {:?} {} {:?} {:?}",
                job.uid, job.name, job.slot, job.created, job.finished, job.deleted
            );
        }
        lines
    }

    /// The existing CronJob with this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn find_by_uid(&self, uid: &str) -> Option<usize> {
        self.by_uid.get(uid).copied()
    }

    /// The existing Jobs of a CronJob.
    pub(super) fn jobs_of(&self, cron_job: &str) -> Vec<&Job> {
        let present = self.present.get(cron_job).into_iter().flatten();
        present.map(|index| &self.jobs[*index]).collect()
    }

    pub(super) fn find_job(&self, uid: &str) -> Option<usize> {
        self.job_by_uid.get(uid).copied()
    }

    /// Records a new Job. Returns its position.
    pub(super) fn begin_job(&mut self, job: Job) -> usize {
        let index = self.jobs.len();
        self.job_by_uid.insert(job.uid.clone(), index);
        if let Some(owner) = &job.owner {
            self.present.entry(owner.clone()).or_default().insert(index);
        }
        self.jobs.push(job);
        index
    }

    /// Records the deletion of a Job.
    pub(super) fn end_job(&mut self, index: usize, deletion: Deletion) {
        let job = &mut self.jobs[index];
        job.deleted = Some(deletion);
        let present = job.owner.as_ref().and_then(|owner| self.present.get_mut(owner));
        if let Some(present) = present {
            present.remove(&index);
        }
    }

    /// All Jobs that ever existed.
    pub(super) fn jobs_by_owner(&self) -> JobsByOwner<'_> {
        let mut jobs = JobsByOwner::default();
        for job in &self.jobs {
            match &job.owner {
                Some(owner) if job.is_strangers() => jobs.strangers.entry(owner).or_default().push(job),
                Some(owner) => jobs.owned.entry(owner).or_default().push(job),
                None => jobs.free.push(job),
            }
        }
        jobs
    }

    /// Records a new CronJob.
    pub(super) fn begin(&mut self, cron_job: CronJob) {
        let index = self.cron_jobs.len();
        self.by_uid.insert(cron_job.uid.clone(), index);
        self.by_name.insert(cron_job.name.clone(), index);
        self.cron_jobs.push(cron_job);
    }

    /// Records the deletion of a CronJob.
    pub(super) fn end(&mut self, index: usize, at: Timestamp) {
        let cron_job = &mut self.cron_jobs[index];
        cron_job.deleted = Some(at);
        self.by_name.remove(&cron_job.name);
    }
}
