//! CronJobs by uid and Jobs by owner: two slabs, a table of uids over each, one chain of Jobs per owner.
//!
//! An owner is there as soon as its CronJob or one of its Jobs is, so the two watches may arrive in any order,
//! and goes when neither is left. Memory per Job is the slab element, the name, and five to ten bytes of table.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use hashbrown::HashTable;
use jiff::Timestamp;

use super::{
    cron_job::CronJobState,
    ids::Uid,
    record::{Finish, JobRecord},
};

/// Where an owner is kept. Small, because every timer carries one.
pub(crate) type OwnerIndex = u32;
/// Where a Job is kept.
pub(crate) type JobIndex = u32;

/// The end of a chain of Jobs, and a place in a slab that is free.
const NONE: u32 = u32::MAX;

/// A CronJob, or the place of one that only its Jobs speak of.
pub(crate) struct Owner {
    pub(crate) uid: Uid,
    pub(crate) cron_job: Option<Box<CronJobState>>,
    first_job: JobIndex,
    n_jobs: u32,
}

/// What we keep of a Job: times in whole seconds, which is all that the API has.
pub(crate) struct Job {
    pub(crate) uid: Uid,
    pub(crate) name: Box<str>,
    pub(crate) namespace: Arc<str>,
    pub(crate) resource_version: u64,
    scheduled: Seconds,
    started: Seconds,
    completed: Seconds,
    owner: OwnerIndex,
    next: JobIndex,
    /// The relist in which it was last seen.
    pub(crate) mark: u32,
    pub(crate) finish: Option<Finish>,
    /// A delete of ours was answered or is on its way: neither counted as running nor deleted again (B-4.5).
    pub(crate) is_delete_requested: bool,
    /// Its `UnexpectedJob` was told (B-5.1 and its difference).
    pub(crate) is_told_unexpected: bool,
}

/// An optional instant of whole seconds in eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seconds(i64);

impl Seconds {
    fn new(instant: Option<Timestamp>) -> Seconds {
        Seconds(instant.map_or(i64::MIN, Timestamp::as_second))
    }

    fn get(self) -> Option<Timestamp> {
        Timestamp::from_second(self.0).ok()
    }
}

impl Job {
    /// The slot that its annotation names (B-11.3).
    pub(crate) fn scheduled(&self) -> Option<Timestamp> {
        self.scheduled.get()
    }

    /// `status.startTime`.
    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.started.get()
    }

    /// `status.completionTime`.
    pub(crate) fn completed(&self) -> Option<Timestamp> {
        self.completed.get()
    }
}

/// The two slabs and their tables.
pub(crate) struct Index {
    owners: Vec<Option<Owner>>,
    free_owners: Vec<OwnerIndex>,
    owners_by_uid: HashTable<OwnerIndex>,
    jobs: Vec<Option<Job>>,
    free_jobs: Vec<JobIndex>,
    jobs_by_uid: HashTable<JobIndex>,
    /// Each namespace's name once.
    namespaces: HashTable<Arc<str>>,
    n_cron_jobs: usize,
}

/// Tables are only ever asked for a key, never walked, so that a fixed hash harms no order; uids are random.
fn hash<T: std::hash::Hash + ?Sized>(key: &T) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

/// What the arrival of a Job changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JobChange {
    /// Whose Job it is, if it has an owner.
    pub(crate) owner: Option<OwnerIndex>,
    /// Whose it was before, if that is another (B-2.1).
    pub(crate) former_owner: Option<OwnerIndex>,
    /// Whether anything that we keep is different.
    pub(crate) is_relevant: bool,
}

impl Index {
    pub(crate) fn new() -> Index {
        Index {
            owners: Vec::new(),
            free_owners: Vec::new(),
            owners_by_uid: HashTable::new(),
            jobs: Vec::new(),
            free_jobs: Vec::new(),
            jobs_by_uid: HashTable::new(),
            namespaces: HashTable::new(),
            n_cron_jobs: 0,
        }
    }

    pub(crate) fn n_cron_jobs(&self) -> usize {
        self.n_cron_jobs
    }

    pub(crate) fn n_jobs(&self) -> usize {
        self.jobs_by_uid.len()
    }

    /// All places that may hold a CronJob, in the order in which they were taken.
    pub(crate) fn owner_indexes(&self) -> std::ops::Range<OwnerIndex> {
        0..index_of(self.owners.len())
    }

    pub(crate) fn find_cron_job(&self, uid: &Uid) -> Option<OwnerIndex> {
        self.find_owner(uid).filter(|&owner| self.cron_job(owner).is_some())
    }

    pub(crate) fn cron_job(&self, owner: OwnerIndex) -> Option<&CronJobState> {
        self.owners.get(owner as usize)?.as_ref()?.cron_job.as_deref()
    }

    pub(crate) fn cron_job_mut(&mut self, owner: OwnerIndex) -> Option<&mut CronJobState> {
        self.owners.get_mut(owner as usize)?.as_mut()?.cron_job.as_deref_mut()
    }

    /// Takes a CronJob in; its Jobs may be there already.
    pub(crate) fn insert_cron_job(&mut self, uid: &Uid, cron_job: Box<CronJobState>) -> OwnerIndex {
        let owner = self.owner_or_insert(uid);
        let place = self.owners[owner as usize].as_mut().map(|owner| &mut owner.cron_job);
        if let Some(place) = place
            && place.replace(cron_job).is_none()
        {
            self.n_cron_jobs += 1;
        }
        owner
    }

    pub(crate) fn remove_cron_job(&mut self, owner: OwnerIndex) -> Option<Box<CronJobState>> {
        let removed = self.owners.get_mut(owner as usize)?.as_mut()?.cron_job.take()?;
        self.n_cron_jobs -= 1;
        self.release_owner(owner);
        Some(removed)
    }

    /// A CronJob's Jobs, newest first.
    pub(crate) fn jobs_of(&self, owner: OwnerIndex) -> impl Iterator<Item = (JobIndex, &Job)> {
        let first = self
            .owners
            .get(owner as usize)
            .and_then(Option::as_ref)
            .map_or(NONE, |owner| owner.first_job);
        std::iter::successors(self.job_at(first), |(_, job)| self.job_at(job.next))
    }

    pub(crate) fn n_jobs_of(&self, owner: OwnerIndex) -> u32 {
        self.owners
            .get(owner as usize)
            .and_then(Option::as_ref)
            .map_or(0, |owner| owner.n_jobs)
    }

    pub(crate) fn job(&self, job: JobIndex) -> Option<&Job> {
        self.jobs.get(job as usize)?.as_ref()
    }

    pub(crate) fn job_mut(&mut self, job: JobIndex) -> Option<&mut Job> {
        self.jobs.get_mut(job as usize)?.as_mut()
    }

    pub(crate) fn find_job(&self, uid: &Uid) -> Option<JobIndex> {
        let is_it = |&index: &JobIndex| self.job(index).is_some_and(|job| job.uid == *uid);
        self.jobs_by_uid.find(hash(uid), is_it).copied()
    }

    /// Takes in what is known of a Job; one that no CronJob controls is not kept.
    pub(crate) fn apply_job(&mut self, record: JobRecord, mark: u32) -> JobChange {
        let known = self.find_job(&record.uid);
        let former_owner = known.and_then(|index| self.job(index)).map(|job| job.owner);
        let Some(controller) = &record.controller else {
            if let Some(index) = known {
                self.remove_job(index);
            }
            return JobChange {
                owner: None,
                former_owner,
                is_relevant: former_owner.is_some(),
            };
        };
        let owner = self.owner_or_insert(controller);
        match known {
            Some(index) if former_owner == Some(owner) => {
                let is_relevant = self.update_job(index, &record, mark);
                JobChange {
                    owner: Some(owner),
                    former_owner: None,
                    is_relevant,
                }
            }
            Some(index) => {
                self.unlink_job(index);
                self.link_job(index, owner);
                self.update_job(index, &record, mark);
                if let Some(former_owner) = former_owner {
                    self.release_owner(former_owner);
                }
                JobChange {
                    owner: Some(owner),
                    former_owner,
                    is_relevant: true,
                }
            }
            None => {
                self.insert_job(record, owner, mark);
                JobChange {
                    owner: Some(owner),
                    former_owner: None,
                    is_relevant: true,
                }
            }
        }
    }

    /// Removes a Job and says whose it was.
    pub(crate) fn remove_job(&mut self, index: JobIndex) -> Option<(OwnerIndex, Job)> {
        self.job(index)?;
        self.unlink_job(index);
        let job = self.jobs[index as usize].take()?;
        let found = self.jobs_by_uid.find_entry(hash(&job.uid), |&other| other == index);
        if let Ok(entry) = found {
            entry.remove();
        }
        self.free_jobs.push(index);
        self.release_owner(job.owner);
        Some((job.owner, job))
    }

    /// All places that may hold a Job.
    pub(crate) fn job_indexes(&self) -> std::ops::Range<JobIndex> {
        0..index_of(self.jobs.len())
    }

    fn job_at(&self, index: JobIndex) -> Option<(JobIndex, &Job)> {
        Some((index, self.job(index)?))
    }

    fn find_owner(&self, uid: &Uid) -> Option<OwnerIndex> {
        let is_it = |&index: &OwnerIndex| {
            self.owners[index as usize]
                .as_ref()
                .is_some_and(|owner| owner.uid == *uid)
        };
        self.owners_by_uid.find(hash(uid), is_it).copied()
    }

    fn owner_or_insert(&mut self, uid: &Uid) -> OwnerIndex {
        if let Some(owner) = self.find_owner(uid) {
            return owner;
        }
        let owner = Owner {
            uid: uid.clone(),
            cron_job: None,
            first_job: NONE,
            n_jobs: 0,
        };
        let index = put(&mut self.owners, &mut self.free_owners, owner);
        let owners = &self.owners;
        let rehash = |&index: &OwnerIndex| owners[index as usize].as_ref().map_or(0, |owner| hash(&owner.uid));
        self.owners_by_uid.insert_unique(hash(uid), index, rehash);
        index
    }

    /// Gives an owner's place up when neither its CronJob nor a Job is left.
    fn release_owner(&mut self, index: OwnerIndex) {
        let is_empty = self.owners[index as usize]
            .as_ref()
            .is_some_and(|owner| owner.cron_job.is_none() && owner.first_job == NONE);
        if !is_empty {
            return;
        }
        if let Some(owner) = self.owners[index as usize].take() {
            if let Ok(entry) = self.owners_by_uid.find_entry(hash(&owner.uid), |&other| other == index) {
                entry.remove();
            }
            self.free_owners.push(index);
        }
    }

    fn insert_job(&mut self, record: JobRecord, owner: OwnerIndex, mark: u32) {
        let namespace = self.intern(&record.namespace);
        let key = hash(&record.uid);
        let job = Job {
            namespace,
            resource_version: record.resource_version.0,
            scheduled: Seconds::new(record.scheduled),
            started: Seconds::new(record.started),
            completed: Seconds::new(record.completed),
            uid: record.uid,
            name: record.name,
            owner,
            next: NONE,
            mark,
            finish: record.finish,
            is_delete_requested: false,
            is_told_unexpected: false,
        };
        let index = put(&mut self.jobs, &mut self.free_jobs, job);
        let jobs = &self.jobs;
        let rehash = |&index: &JobIndex| jobs[index as usize].as_ref().map_or(0, |job| hash(&job.uid));
        self.jobs_by_uid.insert_unique(key, index, rehash);
        self.link_job(index, owner);
    }

    /// Brings a Job up to date and says whether anything that bears on a decision changed.
    fn update_job(&mut self, index: JobIndex, record: &JobRecord, mark: u32) -> bool {
        let Some(job) = self.jobs[index as usize].as_mut() else {
            return false;
        };
        let new = (
            record.finish,
            Seconds::new(record.scheduled),
            Seconds::new(record.started),
            Seconds::new(record.completed),
        );
        let is_relevant = (job.finish, job.scheduled, job.started, job.completed) != new;
        (job.finish, job.scheduled, job.started, job.completed) = new;
        job.resource_version = record.resource_version.0;
        job.mark = mark;
        is_relevant
    }

    fn link_job(&mut self, index: JobIndex, owner: OwnerIndex) {
        let Some(owner_place) = self.owners[owner as usize].as_mut() else {
            return;
        };
        if let Some(job) = self.jobs[index as usize].as_mut() {
            job.owner = owner;
            job.next = std::mem::replace(&mut owner_place.first_job, index);
            owner_place.n_jobs += 1;
        }
    }

    fn unlink_job(&mut self, index: JobIndex) {
        let Some(job) = self.job(index) else { return };
        let (owner, next) = (job.owner, job.next);
        let Some(owner_place) = self.owners[owner as usize].as_mut() else {
            return;
        };
        owner_place.n_jobs -= 1;
        if owner_place.first_job == index {
            owner_place.first_job = next;
            return;
        }
        let mut at = owner_place.first_job;
        while let Some(job) = self.jobs.get_mut(at as usize).and_then(Option::as_mut) {
            if job.next == index {
                job.next = next;
                return;
            }
            at = job.next;
        }
    }

    fn intern(&mut self, namespace: &str) -> Arc<str> {
        let key = hash(namespace);
        if let Some(known) = self.namespaces.find(key, |known| **known == *namespace) {
            return known.clone();
        }
        if self.namespaces.len() == self.namespaces.capacity() {
            // Before the table grows: names that no Job bears any more need not stay.
            self.namespaces.retain(|known| Arc::strong_count(known) > 1);
        }
        let namespace: Arc<str> = namespace.into();
        self.namespaces
            .insert_unique(key, namespace.clone(), |known| hash(&**known));
        namespace
    }
}

fn put<T>(slab: &mut Vec<Option<T>>, free: &mut Vec<u32>, value: T) -> u32 {
    if let Some(index) = free.pop() {
        slab[index as usize] = Some(value);
        return index;
    }
    slab.push(Some(value));
    index_of(slab.len() - 1)
}

fn index_of(position: usize) -> u32 {
    // Four thousand million objects do not fit into a process before they fail to fit into this number.
    u32::try_from(position).unwrap_or(NONE)
}

#[cfg(test)]
mod tests;
