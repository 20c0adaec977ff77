//! The namespaces with CronJobs, and one that may no longer be read.

use std::collections::BTreeSet;

use super::{Fleet, cron_jobs::CronJobKey, is_in};
use crate::shard::Scope;

impl Fleet {
    /// The scopes of the watches. To be called before the history is loaded, of which other namespaces are left out.
    pub fn set_scopes(&mut self, scopes: &[Scope]) {
        self.observations.set_scopes(scopes);
        self.set_calendar_scopes(scopes);
    }

    /// The namespaces with CronJobs, by name.
    pub fn namespaces(&self) -> Vec<Box<str>> {
        let mut namespaces: Vec<&str> = self
            .cron_jobs
            .sorted()
            .map(|cron_job| &*cron_job.name.namespace)
            .collect();
        namespaces.dedup();
        namespaces.into_iter().map(Box::from).collect()
    }

    /// The account may no longer read a namespace: its CronJobs leave the view. The history gets no record, since nothing
    /// is known to have changed. What they added to the last 24 hours leaves too: the lists after the permission is back
    /// add it again.
    pub fn forget_namespace(&mut self, namespace: &str) {
        let here = self
            .cron_jobs
            .iter()
            .filter(|(_, cron_job)| is_in(cron_job, Some(namespace)));
        let keys: BTreeSet<CronJobKey> = here.map(|(key, _)| key).collect();
        for key in &keys {
            self.unsettled.remove(key);
            let Some(cron_job) = self.cron_jobs.remove(*key) else {
                continue;
            };
            if let Some(wakeup) = cron_job.wakeup {
                self.wakeups.remove(&(wakeup, *key));
            }
            self.cells.forget(cron_job.namespace_id);
            for slot in cron_job.slots.iter().filter(|slot| slot.has_job()) {
                self.creators.uncount(slot.creator, slot.created);
            }
        }
        self.jobs.retain(|_, of| !keys.contains(of));
        self.listed.remove(namespace);
        self.observations.lose(namespace);
        self.is_forecast_stale = true;
        self.version += 1;
    }
}
