//! Inserts, updates, reassigns and removes Jobs.

use super::{Index, JobIndex, NONE, OwnerIndex, hash, job::Job};
use crate::shard::{record::JobRecord, seconds::Seconds};

impl Index {
    /// Inserts or updates a Job. Returns the CronJobs to evaluate: the former owner of the Job (B-2.1), and its owner.
    /// A Job that no CronJob controls is not stored. A version older than the stored one, from a list made elsewhere or
    /// from a watch that replays events, only proves that the Job exists.
    pub(crate) fn apply_job(&mut self, record: JobRecord, mark: u32) -> [Option<OwnerIndex>; 2] {
        let known = self.find_job(&record.uid);
        let former_owner = known.map(|index| self.job(index).owner);
        if let Some(job) = known.map(|index| self.job_mut(index))
            && record.resource_version.0 < job.resource_version
        {
            job.mark = mark;
            return [None, None];
        }
        let Some(controller) = &record.controller else {
            if let Some(index) = known {
                self.remove_job(index);
            }
            return [former_owner, None];
        };
        let owner = self.owner_or_insert(controller);
        match known {
            Some(index) if former_owner == Some(owner) => {
                let is_relevant = self.update_job(index, &record, mark);
                [None, is_relevant.then_some(owner)]
            }
            Some(index) => {
                self.unlink_job(index);
                self.link_job(index, owner);
                self.update_job(index, &record, mark);
                if let Some(former_owner) = former_owner {
                    self.release_owner(former_owner);
                }
                [former_owner, Some(owner)]
            }
            None => {
                self.insert_job(record, owner, mark);
                [None, Some(owner)]
            }
        }
    }

    /// Removes a Job and returns it.
    pub(crate) fn remove_job(&mut self, index: JobIndex) -> Job {
        self.unlink_job(index);
        self.run_tokens.remove(&index);
        let job = self.jobs.take(index);
        let job = job.unwrap_or_else(|| panic!("place {index} has no Job"));
        let found = self.jobs_by_uid.find_entry(hash(&job.uid), |&other| other == index);
        if let Ok(entry) = found {
            entry.remove();
        }
        self.release_owner(job.owner);
        job
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
            previous: NONE,
            mark,
            finish: record.finish,
            is_delete_requested: false,
            is_reported_unexpected: false,
        };
        let index = self.jobs.put(job);
        if let Some(token) = record.run_token {
            self.run_tokens.insert(index, token);
        }
        let jobs = &self.jobs;
        let rehash = |&index: &JobIndex| jobs.get(index).map_or(0, |job| hash(&job.uid));
        self.jobs_by_uid.insert_unique(key, index, rehash);
        self.link_job(index, owner);
    }

    /// Updates a Job. Returns whether a field that affects decisions changed.
    fn update_job(&mut self, index: JobIndex, record: &JobRecord, mark: u32) -> bool {
        let job = self.job_mut(index);
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
        if self.run_token(index) == record.run_token.as_deref() {
            return is_relevant;
        }
        match &record.run_token {
            Some(token) => self.run_tokens.insert(index, token.clone()),
            None => self.run_tokens.remove(&index),
        };
        true
    }

    fn link_job(&mut self, index: JobIndex, owner: OwnerIndex) {
        let owner_place = self.owners.at_mut(owner);
        let job = self.jobs.at_mut(index);
        let next = std::mem::replace(&mut owner_place.first_job, index);
        (job.owner, job.next, job.previous) = (owner, next, NONE);
        owner_place.n_jobs += 1;
        if let Some(next) = self.jobs.get_mut(next) {
            next.previous = index;
        }
    }

    fn unlink_job(&mut self, index: JobIndex) {
        let job = self.job(index);
        let (owner, next, previous) = (job.owner, job.next, job.previous);
        let owner_place = self.owners.at_mut(owner);
        owner_place.n_jobs -= 1;
        if previous == NONE {
            owner_place.first_job = next;
        }
        if let Some(previous) = self.jobs.get_mut(previous) {
            previous.next = next;
        }
        if let Some(next) = self.jobs.get_mut(next) {
            next.previous = previous;
        }
    }
}
