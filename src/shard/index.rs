//! CronJobs by uid and Jobs by owner: two slabs, a table of uids for each, and one chain of Jobs per owner.
//!
//! An owner exists while its CronJob or one of its Jobs is known, so the two watches may deliver in any order. Memory
//! per Job is the slab element, the name, and five to ten bytes of table.

mod job;
mod jobs;
mod slab;

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use hashbrown::HashTable;

use super::{cron_job::CronJobState, ids::Uid};

pub(crate) use job::Job;
use slab::Slab;

/// The place of an owner. Small, because every timer carries one.
pub(crate) type OwnerIndex = u32;
/// The place of a Job.
pub(crate) type JobIndex = u32;

/// The end of a chain of Jobs.
const NONE: u32 = u32::MAX;

/// A CronJob, or a placeholder for a CronJob that is known only from its Jobs.
pub(crate) struct Owner {
    pub(crate) uid: Uid,
    pub(crate) cron_job: Option<Box<CronJobState>>,
    first_job: JobIndex,
    n_jobs: u32,
}

/// The two slabs and their tables.
pub(crate) struct Index {
    owners: Slab<Owner>,
    owners_by_uid: HashTable<OwnerIndex>,
    jobs: Slab<Job>,
    jobs_by_uid: HashTable<JobIndex>,
    /// The tokens of the Jobs that have one (O-10). Few Jobs do, so the others take no memory for it.
    run_tokens: BTreeMap<JobIndex, Box<str>>,
    /// The names of namespaces, each stored once.
    namespaces: HashTable<Arc<str>>,
}

/// A fixed hash is safe: tables are only looked up by key, never iterated, and uids are random.
fn hash<T: std::hash::Hash + ?Sized>(key: &T) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(key)
}

impl Index {
    /// Creates an empty index.
    pub(crate) fn new() -> Index {
        Index {
            owners: Slab::new(),
            owners_by_uid: HashTable::new(),
            jobs: Slab::new(),
            jobs_by_uid: HashTable::new(),
            run_tokens: BTreeMap::new(),
            namespaces: HashTable::new(),
        }
    }

    pub(crate) fn n_jobs(&self) -> usize {
        self.jobs_by_uid.len()
    }

    /// All places that may contain a CronJob, in the order in which they were first used.
    pub(crate) fn owner_indexes(&self) -> std::ops::Range<OwnerIndex> {
        self.owners.places()
    }

    pub(crate) fn find_cron_job(&self, uid: &Uid) -> Option<OwnerIndex> {
        self.find_owner(uid).filter(|&owner| self.get_cron_job(owner).is_some())
    }

    /// The CronJob in a place that may have none: a place of [`Index::owner_indexes`], or the owner of a Job.
    pub(crate) fn get_cron_job(&self, owner: OwnerIndex) -> Option<&CronJobState> {
        self.owners.get(owner)?.cron_job.as_deref()
    }

    pub(crate) fn get_cron_job_mut(&mut self, owner: OwnerIndex) -> Option<&mut CronJobState> {
        self.owners.get_mut(owner)?.cron_job.as_deref_mut()
    }

    /// The CronJob in a place that has one.
    pub(crate) fn cron_job(&self, owner: OwnerIndex) -> &CronJobState {
        let cron_job = self.get_cron_job(owner);
        cron_job.unwrap_or_else(|| panic!("place {owner} has no CronJob"))
    }

    pub(crate) fn cron_job_mut(&mut self, owner: OwnerIndex) -> &mut CronJobState {
        let cron_job = self.get_cron_job_mut(owner);
        cron_job.unwrap_or_else(|| panic!("place {owner} has no CronJob"))
    }

    /// Inserts a CronJob. Its Jobs may already be known.
    pub(crate) fn insert_cron_job(&mut self, uid: &Uid, cron_job: Box<CronJobState>) -> OwnerIndex {
        let owner = self.owner_or_insert(uid);
        self.owners.at_mut(owner).cron_job = Some(cron_job);
        owner
    }

    pub(crate) fn remove_cron_job(&mut self, owner: OwnerIndex) -> Option<Box<CronJobState>> {
        let removed = self.owners.get_mut(owner)?.cron_job.take()?;
        self.release_owner(owner);
        Some(removed)
    }

    /// The Jobs of a CronJob, newest first.
    pub(crate) fn jobs_of(&self, owner: OwnerIndex) -> impl Iterator<Item = (JobIndex, &Job)> {
        let first = self.owners.get(owner).map_or(NONE, |owner| owner.first_job);
        std::iter::successors(self.job_at(first), |(_, job)| self.job_at(job.next))
    }

    /// The Jobs of a CronJob in its own namespace. A CronJob cannot own Jobs in other namespaces; the garbage
    /// collector deletes these.
    pub(crate) fn children_of(&self, owner: OwnerIndex) -> impl Iterator<Item = (JobIndex, &Job)> {
        let identity = &self.cron_job(owner).record.identity;
        self.jobs_of(owner)
            .filter(move |(_, job)| job.is_in_namespace_of(identity))
    }

    pub(crate) fn n_jobs_of(&self, owner: OwnerIndex) -> u32 {
        self.owners.get(owner).map_or(0, |owner| owner.n_jobs)
    }

    /// The Job in a place that may have none: a place of [`Index::job_indexes`].
    pub(crate) fn get_job(&self, job: JobIndex) -> Option<&Job> {
        self.jobs.get(job)
    }

    /// The Job in a place that has one.
    pub(crate) fn job(&self, job: JobIndex) -> &Job {
        self.jobs.at(job)
    }

    pub(crate) fn job_mut(&mut self, job: JobIndex) -> &mut Job {
        self.jobs.at_mut(job)
    }

    /// Forgets what a leader of the shard has done about the Job in a place that may have none.
    pub(crate) fn forget_leadership_of(&mut self, job: JobIndex) {
        if let Some(job) = self.jobs.get_mut(job) {
            job.is_delete_requested = false;
            job.is_reported_unexpected = false;
        }
    }

    /// The same for every Job of a CronJob.
    pub(crate) fn forget_leadership_of_jobs(&mut self, owner: OwnerIndex) {
        let jobs: Vec<JobIndex> = self.jobs_of(owner).map(|(job, _)| job).collect();
        for job in jobs {
            self.forget_leadership_of(job);
        }
    }

    pub(crate) fn find_job(&self, uid: &Uid) -> Option<JobIndex> {
        let has_uid = |&index: &JobIndex| self.job(index).uid == *uid;
        self.jobs_by_uid.find(hash(uid), has_uid).copied()
    }

    /// The uid of the CronJob that controls a known Job.
    pub(crate) fn controller_of(&self, uid: &Uid) -> Option<&Uid> {
        let job = self.find_job(uid)?;
        Some(&self.owners.get(self.job(job).owner)?.uid)
    }

    /// Whether a Job with this uid is known, belongs to the CronJob and is in its namespace.
    pub(crate) fn is_child_of(&self, owner: OwnerIndex, uid: &Uid) -> bool {
        let job = self.find_job(uid).map(|job| self.job(job));
        let identity = &self.cron_job(owner).record.identity;
        job.is_some_and(|job| job.owner == owner && job.is_in_namespace_of(identity))
    }

    /// The token that a Job carries (O-10).
    pub(crate) fn run_token(&self, job: JobIndex) -> Option<&str> {
        self.run_tokens.get(&job).map(|token| &**token)
    }

    /// Whether any Job carries a token.
    pub(crate) fn has_run_tokens(&self) -> bool {
        !self.run_tokens.is_empty()
    }

    /// All places that may contain a Job.
    pub(crate) fn job_indexes(&self) -> std::ops::Range<JobIndex> {
        self.jobs.places()
    }

    fn job_at(&self, index: JobIndex) -> Option<(JobIndex, &Job)> {
        Some((index, self.get_job(index)?))
    }

    fn find_owner(&self, uid: &Uid) -> Option<OwnerIndex> {
        let has_uid = |&index: &OwnerIndex| self.owners.get(index).is_some_and(|owner| owner.uid == *uid);
        self.owners_by_uid.find(hash(uid), has_uid).copied()
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
        let index = self.owners.put(owner);
        let owners = &self.owners;
        let rehash = |&index: &OwnerIndex| owners.get(index).map_or(0, |owner| hash(&owner.uid));
        self.owners_by_uid.insert_unique(hash(uid), index, rehash);
        index
    }

    /// Frees an owner's place if it has neither a CronJob nor a Job.
    fn release_owner(&mut self, index: OwnerIndex) {
        let is_empty = self
            .owners
            .get(index)
            .is_some_and(|owner| owner.cron_job.is_none() && owner.first_job == NONE);
        if !is_empty {
            return;
        }
        if let Some(owner) = self.owners.take(index)
            && let Ok(entry) = self.owners_by_uid.find_entry(hash(&owner.uid), |&other| other == index)
        {
            entry.remove();
        }
    }

    fn intern(&mut self, namespace: &str) -> Arc<str> {
        let key = hash(namespace);
        if let Some(known) = self.namespaces.find(key, |known| **known == *namespace) {
            return known.clone();
        }
        if self.namespaces.len() == self.namespaces.capacity() {
            // Before the table grows, drop the names that no Job uses.
            self.namespaces.retain(|known| Arc::strong_count(known) > 1);
        }
        let namespace: Arc<str> = namespace.into();
        self.namespaces
            .insert_unique(key, namespace.clone(), |known| hash(&**known));
        namespace
    }
}

#[cfg(test)]
mod tests;
