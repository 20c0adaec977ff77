//! All CronJobs, by uid and by name.

use std::collections::BTreeMap;

use super::{cron_job::CronJob, names::NameIds};
use crate::{observe::view::CronJobName, shard::Uid};

/// The place of a CronJob. It is used again after the CronJob is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CronJobKey(u32);

/// The CronJobs of a fleet.
#[derive(Debug, Default)]
pub(super) struct CronJobs {
    places: Vec<Option<Box<CronJob>>>,
    free: Vec<CronJobKey>,
    by_uid: BTreeMap<Uid, CronJobKey>,
    /// Those with facts. After a CronJob is deleted and created again, the new one has the name.
    by_name: BTreeMap<CronJobName, CronJobKey>,
}

impl CronJobs {
    pub(super) fn key(&self, uid: &Uid) -> Option<CronJobKey> {
        self.by_uid.get(uid).copied()
    }

    pub(super) fn get(&self, key: CronJobKey) -> Option<&CronJob> {
        self.places.get(key.0 as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, key: CronJobKey) -> Option<&mut CronJob> {
        self.places.get_mut(key.0 as usize)?.as_deref_mut()
    }

    pub(super) fn by_name(&self, name: &CronJobName) -> Option<&CronJob> {
        self.get(*self.by_name.get(name)?)
    }

    /// The CronJobs that the cluster has, by namespace and name.
    pub(super) fn sorted(&self) -> impl Iterator<Item = &CronJob> {
        self.by_name.values().filter_map(|key| self.get(*key))
    }

    /// The CronJobs that the cluster has in a namespace, by name.
    pub(super) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &CronJob> {
        let first = CronJobName {
            namespace: namespace.into(),
            name: Box::default(),
        };
        let later = self.by_name.range(first.clone()..);
        let here = later.take_while(move |(name, _)| name.namespace == first.namespace);
        here.filter_map(|(_, key)| self.get(*key))
    }

    /// Number of CronJobs that the cluster has.
    pub(super) fn n_named(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (CronJobKey, &CronJob)> {
        self.by_uid.values().filter_map(|key| Some((*key, self.get(*key)?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut CronJob> {
        self.places.iter_mut().filter_map(|place| place.as_deref_mut())
    }

    /// The place of a CronJob, which is added if it is not known.
    pub(super) fn insert(&mut self, uid: &Uid, namespace: &str, name: &str, ids: &mut NameIds) -> CronJobKey {
        if let Some(key) = self.by_uid.get(uid) {
            return *key;
        }
        let key = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            CronJobKey(u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX))
        });
        let name = CronJobName {
            namespace: namespace.into(),
            name: name.into(),
        };
        let cron_job = CronJob::new(uid.clone(), name, ids.namespace_id(namespace));
        if let Some(place) = self.places.get_mut(key.0 as usize) {
            *place = Some(Box::new(cron_job));
        }
        self.by_uid.insert(uid.clone(), key);
        key
    }

    /// The cluster has the CronJob: it is found by its name.
    pub(super) fn name(&mut self, key: CronJobKey) {
        if let Some(cron_job) = self.get(key) {
            self.by_name.insert(cron_job.name.clone(), key);
        }
    }

    pub(super) fn remove(&mut self, key: CronJobKey) -> Option<Box<CronJob>> {
        let cron_job = self.places.get_mut(key.0 as usize)?.take()?;
        self.free.push(key);
        self.by_uid.remove(&cron_job.uid);
        if self.by_name.get(&cron_job.name) == Some(&key) {
            self.by_name.remove(&cron_job.name);
        }
        Some(cron_job)
    }
}
