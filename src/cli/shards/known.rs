//! The Leases and CronJobs of an installation that were read.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::cron_job::CronJobName;
use crate::{
    cli::plan::Plan,
    coordination::{Installation, LeaseKey, LeaseRecord},
    kube_api::other_controllers::OtherControllers,
    shard::{Bucket, CronJobIdentity, ShardId, Uid},
};

/// The data of a listing.
pub(super) struct Known {
    pub(super) namespace: Box<str>,
    pub(super) installation: Installation,
    pub(super) leases: BTreeMap<LeaseKey, LeaseRecord>,
    /// The evidence of other controllers in the CronJobs.
    pub(super) other_controllers: OtherControllers,
    /// The CronJobs, without a plan if they cannot be decoded.
    cron_jobs: BTreeMap<Uid, Option<Plan>>,
    /// CronJobs of a list that is not complete yet.
    relisted: Option<BTreeSet<Uid>>,
}

impl Known {
    pub(super) fn new(namespace: &str, installation: Installation) -> Known {
        Known {
            namespace: namespace.into(),
            installation,
            leases: BTreeMap::new(),
            other_controllers: OtherControllers::default(),
            cron_jobs: BTreeMap::new(),
            relisted: None,
        }
    }

    pub(super) fn list_leases(&mut self, leases: Vec<LeaseRecord>) {
        self.leases = leases.into_iter().map(|record| (record.key.clone(), record)).collect();
    }

    /// Adds a CronJob; without a plan if it cannot be decoded.
    pub(super) fn put_cron_job(&mut self, uid: &Uid, plan: Option<Plan>) {
        if let Some(relisted) = &mut self.relisted {
            relisted.insert(uid.clone());
        }
        self.cron_jobs.insert(uid.clone(), plan);
    }

    pub(super) fn remove_cron_job(&mut self, uid: &Uid) {
        self.cron_jobs.remove(uid);
    }

    /// Begins a list; CronJobs that are not in it are removed.
    pub(super) fn begin_relist(&mut self) {
        self.relisted = Some(BTreeSet::new());
    }

    pub(super) fn end_relist(&mut self) {
        if let Some(relisted) = self.relisted.take() {
            self.cron_jobs.retain(|uid, _| relisted.contains(uid));
        }
    }

    fn shard_of(&self, uid: &Uid) -> ShardId {
        Bucket::of(uid).shard(self.installation.shard_count)
    }

    /// Returns the shard and the plan of a CronJob; `None` if it is not known.
    pub(super) fn place_of(&self, wanted: &CronJobName) -> Option<(ShardId, &Plan)> {
        self.cron_jobs.iter().find_map(|(uid, plan)| {
            let plan = plan.as_ref()?;
            let CronJobIdentity { namespace, name, .. } = &*plan.identity;
            let is_wanted = **namespace == *wanted.namespace && **name == *wanted.name;
            is_wanted.then(|| (self.shard_of(uid), plan))
        })
    }

    /// Returns the number of CronJobs by shard.
    pub(super) fn n_cron_jobs(&self) -> BTreeMap<ShardId, usize> {
        let mut counts = BTreeMap::new();
        for uid in self.cron_jobs.keys() {
            *counts.entry(self.shard_of(uid)).or_default() += 1;
        }
        counts
    }

    /// Returns the next activation by shard.
    pub(super) fn next_runs(&self, now: Timestamp) -> BTreeMap<ShardId, Timestamp> {
        let mut next = BTreeMap::new();
        for (uid, plan) in &self.cron_jobs {
            if let Some(at) = plan.as_ref().and_then(|plan| plan.next_run(now)) {
                let earliest = next.entry(self.shard_of(uid)).or_insert(at);
                *earliest = at.min(*earliest);
            }
        }
        next
    }
}
