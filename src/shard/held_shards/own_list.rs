//! A shard's own list, made while watches are open: which of its objects and of the watch events still apply.
//!
//! Versions resolve most conflicts, since an older version of an object never replaces a newer one. The others:
//!
//! - Deletion: an object is not restored if a watch has delivered its deletion since the list began.
//! - Older list of a watch: if it began before this list, its end does not end this list.
//! - Newer list of a watch: if it begins during this list, it replaces this list for its resource and scope.
//! - Replay: a reopened watch repeats past events. A CronJob whose event is not newer than this list, and which this
//!   list does not contain, is removed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::shard::{
    ResourceVersions,
    ids::{CronJobIdentity, ResourceVersion, Uid},
    input::{Input, Scope, WatchStage, WatchedResource},
};

/// The last form of a CronJob that a watch delivered.
struct Sighting {
    version: ResourceVersion,
    identity: Arc<CronJobIdentity>,
}

/// The shard's own list, in progress.
pub(super) struct OwnList {
    scopes: Vec<Scope>,
    /// The resources and scopes that a watch began to list. The watch's list counts instead of this one.
    left_to_watch: BTreeSet<(WatchedResource, Scope)>,
    /// Scopes that the API server does not permit to list. A later list by the watch completes them.
    pub(super) skipped_scopes: BTreeSet<Scope>,
    /// Objects whose deletion a watch has delivered since the list began.
    gone: BTreeSet<Uid>,
    /// CronJobs that a watch has delivered since the list began.
    delivered: BTreeMap<Uid, Sighting>,
    /// CronJobs that the list contained.
    found: BTreeSet<Uid>,
}

impl OwnList {
    pub(super) fn new(scopes: &[Scope]) -> OwnList {
        OwnList {
            scopes: scopes.to_vec(),
            left_to_watch: BTreeSet::new(),
            skipped_scopes: BTreeSet::new(),
            gone: BTreeSet::new(),
            delivered: BTreeMap::new(),
            found: BTreeSet::new(),
        }
    }

    /// The versions covered by this list; zero for a resource that a watch has begun to list instead.
    pub(super) fn ours(&self, through: &ResourceVersions) -> ResourceVersions {
        let ours = |resource, version| {
            if self.is_ours(resource) {
                version
            } else {
                ResourceVersion(0)
            }
        };
        ResourceVersions {
            cron_jobs: ours(WatchedResource::CronJobs, through.cron_jobs),
            jobs: ours(WatchedResource::Jobs, through.jobs),
        }
    }

    /// Whether this list counts for a resource, rather than a watch's list.
    fn is_ours(&self, resource: WatchedResource) -> bool {
        !self.left_to_watch.iter().any(|(other, _)| *other == resource)
    }

    /// Each resource in each scope.
    fn parts(&self) -> impl Iterator<Item = (WatchedResource, &Scope)> {
        let resources = [WatchedResource::CronJobs, WatchedResource::Jobs];
        let of_scopes = |resource| self.scopes.iter().map(move |scope| (resource, scope));
        resources.into_iter().flat_map(of_scopes)
    }

    /// The inputs for the shard at the start of the list.
    pub(super) fn begun(&self) -> impl Iterator<Item = Input> {
        self.parts()
            .map(|(resource, scope)| Input::list_begun(resource, scope.clone()))
    }

    /// The inputs for the shard at the end of the list, whose version is `at`.
    pub(super) fn done(&self, at: ResourceVersion) -> Vec<Input> {
        let gone = self.delivered.iter().filter(|(uid, last)| self.is_gone(uid, last, at));
        let gone = gone.map(|(uid, _)| Input::CronJobDeleted(uid.clone()));
        let listed = self.parts().filter(|(resource, scope)| {
            let part = (*resource, Scope::clone(scope));
            !self.left_to_watch.contains(&part) && !self.skipped_scopes.contains(*scope)
        });
        let listed = listed.map(|(resource, scope)| Input::list_done(resource, scope.clone()));
        gone.chain(listed).collect()
    }

    /// Whether this list, whose version is `at`, shows that a CronJob that a watch delivered is gone.
    fn is_gone(&self, uid: &Uid, last: &Sighting, at: ResourceVersion) -> bool {
        let is_skipped = |scope: &Scope| scope.contains(&last.identity.namespace);
        self.is_ours(WatchedResource::CronJobs)
            && last.version <= at
            && !self.found.contains(uid)
            && !self.skipped_scopes.iter().any(is_skipped)
    }

    /// Records an object that the list found. Returns whether the object still applies.
    pub(super) fn record_found(&mut self, found: &Input) -> bool {
        if let Input::JobApplied(job) = found {
            return !self.gone.contains(&job.uid) && !self.is_left_to_watch(WatchedResource::Jobs, &job.namespace);
        }
        let Some(cron_job) = found.cron_job() else { return false };
        self.found.insert(cron_job.clone());
        let is_left_to_watch = if let Input::CronJobApplied(record) = found {
            self.is_left_to_watch(WatchedResource::CronJobs, &record.identity.namespace)
        } else {
            // The namespace of an undecodable CronJob is unknown. Treating a deleted CronJob as existing is harmless.
            false
        };
        !self.gone.contains(cron_job) && !is_left_to_watch
    }

    /// Whether a watch began to list a resource of a namespace.
    fn is_left_to_watch(&self, resource: WatchedResource, namespace: &str) -> bool {
        let mut left = self.left_to_watch.iter();
        left.any(|(other, scope)| *other == resource && scope.contains(namespace))
    }

    /// Records a watch event. Returns whether the shard should handle it.
    pub(super) fn observe(&mut self, input: &Input) -> bool {
        match input {
            Input::CronJobDeleted(uid) | Input::JobDeleted(uid) | Input::JobUnselected(uid) => {
                self.gone.insert(uid.clone());
                true
            }
            Input::WatchUpdated(update) => {
                let part = (update.resource, update.scope.clone());
                match update.stage {
                    WatchStage::ListBegun => {
                        self.left_to_watch.insert(part);
                        true
                    }
                    WatchStage::ListDone => self.left_to_watch.contains(&part),
                    WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted => true,
                }
            }
            Input::CronJobApplied(record) => {
                let sighting = Sighting {
                    version: record.resource_version,
                    identity: Arc::clone(&record.identity),
                };
                self.delivered.insert(record.identity.uid.clone(), sighting);
                true
            }
            Input::CronJobUndecodable(_)
            | Input::JobApplied(_)
            | Input::JobUndecodable(_)
            | Input::JobCreateAnswered { .. }
            | Input::JobDeleteAnswered { .. }
            | Input::JobLookedUp { .. }
            | Input::StatusAnswered { .. } => true,
        }
    }
}
