//! A list of one shard while watches are open: which of its objects and of the watch events still apply.
//!
//! Versions resolve most conflicts, since an older version of an object never replaces a newer one. This module covers
//! the rest. The list does not restore an object whose deletion a watch has delivered. A watch's list that began before
//! the shard was held does not end this list. A list that a watch begins in the meantime replaces this list. A watch
//! that is reopened for a shard replays past events, including events of CronJobs that were gone when the list was
//! made; the list removes these CronJobs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::shard::{
    ResourceVersions,
    ids::{CronJobIdentity, ResourceVersion, Uid},
    input::{Input, Scope, WatchStage, WatchUpdate, WatchedResource},
};

/// One resource in one scope.
struct Part {
    resource: WatchedResource,
    scope: Scope,
    /// A watch began to list it; the watch's list counts instead of this one.
    is_left_to_watch: bool,
}

/// The last form of a CronJob that a watch delivered.
struct Sighting {
    version: ResourceVersion,
    identity: Arc<CronJobIdentity>,
}

/// A list of one shard, in progress.
pub(super) struct Listing {
    parts: Vec<Part>,
    /// Scopes that the API server does not permit to list. A later list by the watch completes them.
    pub(super) left_out: BTreeSet<Scope>,
    /// Objects whose deletion a watch has delivered since the list began.
    gone: BTreeSet<Uid>,
    /// CronJobs that a watch has delivered since the list began.
    delivered: BTreeMap<Uid, Sighting>,
    /// CronJobs that the list contained.
    found: BTreeSet<Uid>,
}

impl Listing {
    pub(super) fn new(scopes: &[Scope]) -> Listing {
        let part = |resource, scope: &Scope| Part {
            resource,
            scope: scope.clone(),
            is_left_to_watch: false,
        };
        let resources = [WatchedResource::CronJobs, WatchedResource::Jobs];
        let parts = resources.map(|resource| scopes.iter().map(move |scope| part(resource, scope)));
        Listing {
            parts: parts.into_iter().flatten().collect(),
            left_out: BTreeSet::new(),
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
        let is_left = |part: &Part| part.resource == resource && part.is_left_to_watch;
        !self.parts.iter().any(is_left)
    }

    /// The inputs for the shard at the start of the list.
    pub(super) fn begun(&self) -> impl Iterator<Item = Input> {
        self.parts
            .iter()
            .map(|part| Input::list_begun(part.resource, part.scope.clone()))
    }

    /// The inputs for the shard at the end of the list, whose version is `at`.
    pub(super) fn done(self, at: ResourceVersion) -> Vec<Input> {
        let is_ours = self.is_ours(WatchedResource::CronJobs);
        let Listing {
            parts,
            left_out,
            delivered,
            found,
            ..
        } = self;
        let mut ended = Vec::new();
        for (uid, last) in delivered {
            let is_left_out = left_out.iter().any(|scope| scope.contains(&last.identity.namespace));
            if is_ours && last.version <= at && !found.contains(&uid) && !is_left_out {
                ended.push(Input::CronJobDeleted(uid));
            }
        }
        let ours = parts
            .into_iter()
            .filter(|part| !part.is_left_to_watch && !left_out.contains(&part.scope));
        ended.extend(ours.map(|part| Input::list_done(part.resource, part.scope)));
        ended
    }

    /// Records an object that the list found. Returns whether the object still applies.
    pub(super) fn takes(&mut self, found: &Input) -> bool {
        let Some(cron_job) = found.cron_job() else { return false };
        let (resource, uid, namespace) = if let Input::JobApplied(job) = found {
            (WatchedResource::Jobs, &job.uid, Some(&job.namespace))
        } else {
            self.found.insert(cron_job.clone());
            // The namespace of an undecodable CronJob is unknown. Treating a deleted CronJob as existing is harmless.
            let namespace = if let Input::CronJobApplied(record) = found {
                Some(&record.identity.namespace)
            } else {
                None
            };
            (WatchedResource::CronJobs, cron_job, namespace)
        };
        let is_left_to_watch = |part: &Part| {
            let is_of_part = part.resource == resource && namespace.is_some_and(|name| part.scope.contains(name));
            is_of_part && part.is_left_to_watch
        };
        !self.gone.contains(uid) && !self.parts.iter().any(is_left_to_watch)
    }

    /// Records a watch event. Returns whether the shard should handle it.
    pub(super) fn observe(&mut self, input: &Input) -> bool {
        match input {
            Input::CronJobDeleted(uid) | Input::JobDeleted(uid) | Input::JobUnselected(uid) => {
                self.gone.insert(uid.clone());
                true
            }
            Input::WatchUpdated(update) => match update.stage {
                WatchStage::ListBegun => {
                    if let Some(part) = self.part(update) {
                        part.is_left_to_watch = true;
                    }
                    true
                }
                WatchStage::ListDone => self.part(update).is_some_and(|part| part.is_left_to_watch),
                WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted => true,
            },
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

    /// The part that a watch lists.
    fn part(&mut self, update: &WatchUpdate) -> Option<&mut Part> {
        let is_same = |part: &&mut Part| part.resource == update.resource && part.scope == update.scope;
        self.parts.iter_mut().find(is_same)
    }
}
