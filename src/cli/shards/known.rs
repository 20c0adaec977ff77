//! The Leases and CronJobs of an installation that were read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::cron_job::CronJobName;
use crate::{
    coordination::{Installation, LeaseKey, LeaseRecord},
    kube_api::other_controllers::OtherControllers,
    shard::{Bucket, CronJobIdentity, CronJobRecord, CronJobSchedule, ShardId, Uid},
};

/// The data of a listing.
pub(super) struct Known {
    pub(super) namespace: Box<str>,
    pub(super) installation: Installation,
    pub(super) leases: BTreeMap<LeaseKey, LeaseRecord>,
    /// The evidence of other controllers in the CronJobs.
    pub(super) other_controllers: OtherControllers,
    cron_jobs: BTreeMap<Uid, Listed>,
    /// CronJobs of a list that is not complete yet.
    relisted: Option<BTreeSet<Uid>>,
}

/// The listed part of a CronJob; without a plan it starts nothing.
struct Listed {
    shard: ShardId,
    /// Unknown if it cannot be decoded.
    identity: Option<Arc<CronJobIdentity>>,
    plan: Option<Plan>,
}

/// The shard of a CronJob, and when it runs next.
pub(super) struct Place<'a> {
    pub(super) shard: ShardId,
    pub(super) schedule: Option<&'a CronJobSchedule>,
    pub(super) next_run: Option<Timestamp>,
}

struct Plan {
    schedule: CronJobSchedule,
    /// The start of the chain of activations.
    anchor: Timestamp,
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

    pub(super) fn put_cron_job(&mut self, record: &CronJobRecord) {
        let is_at_rest = record.is_suspended || record.is_deleting;
        let plan = (!is_at_rest).then(|| Plan {
            schedule: record.schedule.clone(),
            anchor: record.status.last_schedule_time.unwrap_or(record.created),
        });
        self.put(&record.identity.uid, Some(record.identity.clone()), plan);
    }

    /// Adds a CronJob that cannot be decoded.
    pub(super) fn put_cron_job_without_plan(&mut self, uid: &Uid) {
        self.put(uid, None, None);
    }

    fn put(&mut self, uid: &Uid, identity: Option<Arc<CronJobIdentity>>, plan: Option<Plan>) {
        if let Some(relisted) = &mut self.relisted {
            relisted.insert(uid.clone());
        }
        let shard = Bucket::of(uid).shard(self.installation.shard_count);
        let listed = Listed { shard, identity, plan };
        self.cron_jobs.insert(uid.clone(), listed);
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

    /// Returns the shard of a CronJob and its next run; `None` if it is not known.
    pub(super) fn place_of(&self, wanted: &CronJobName, now: Timestamp) -> Option<Place<'_>> {
        let is_wanted = |identity: &Arc<CronJobIdentity>| {
            *identity.namespace == *wanted.namespace && *identity.name == *wanted.name
        };
        let mut all = self.cron_jobs.values();
        let listed = all.find(|listed| listed.identity.as_ref().is_some_and(is_wanted))?;
        let plan = listed.plan.as_ref();
        Some(Place {
            shard: listed.shard,
            schedule: plan.map(|plan| &plan.schedule),
            next_run: plan.and_then(|plan| plan.next_run(now)),
        })
    }

    /// Returns the number of CronJobs by shard.
    pub(super) fn n_cron_jobs(&self) -> BTreeMap<ShardId, usize> {
        let mut counts = BTreeMap::new();
        for listed in self.cron_jobs.values() {
            *counts.entry(listed.shard).or_default() += 1;
        }
        counts
    }

    /// Returns the next activation by shard.
    pub(super) fn next_runs(&self, now: Timestamp) -> BTreeMap<ShardId, Timestamp> {
        let mut next = BTreeMap::new();
        for listed in self.cron_jobs.values() {
            if let Some(at) = listed.plan.as_ref().and_then(|plan| plan.next_run(now)) {
                let earliest = next.entry(listed.shard).or_insert(at);
                *earliest = at.min(*earliest);
            }
        }
        next
    }
}

impl Plan {
    fn next_run(&self, now: Timestamp) -> Option<Timestamp> {
        self.schedule.next_run(self.anchor, now)
    }
}
