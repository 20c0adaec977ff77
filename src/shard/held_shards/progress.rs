//! The progress of the watches, by the resource versions that they delivered.

use crate::shard::{
    ResourceVersions, ShardId, ShardSet,
    ids::ResourceVersion,
    input::{Input, Scope, WatchStage, WatchUpdate, WatchedResource},
    outcome::{CreateOutcome, StatusOutcome},
};

/// The progress of all watches. A list is not ordered by version, so its versions count when it is complete.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    scopes: Vec<ScopeProgress>,
}

#[derive(Clone, Debug)]
struct ScopeProgress {
    scope: Scope,
    /// The progress of each [`WatchedResource`].
    watches: [WatchProgress; 2],
}

impl ScopeProgress {
    fn is_listed(&self) -> bool {
        self.watches.iter().all(|watch| watch.was_listed)
    }

    fn is_not_permitted(&self) -> bool {
        let is_not_permitted = |watch: &WatchProgress| watch.failure == Some(WatchFailure::NotPermitted);
        self.watches.iter().any(is_not_permitted)
    }
}

/// The reasons why a list or watch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchFailure {
    /// The API server does not permit it.
    NotPermitted,
    /// It is retried. Events are late.
    Interrupted,
}

#[derive(Clone, Copy, Debug, Default)]
struct WatchProgress {
    is_listing: bool,
    was_listed: bool,
    /// The reason why the list or watch fails at present.
    failure: Option<WatchFailure>,
    highest: ResourceVersion,
    through: ResourceVersion,
    /// The shards that the watch selects.
    selected: ShardSet,
}

impl WatchProgress {
    fn observe(&mut self, version: ResourceVersion) {
        self.highest = self.highest.max(version);
        if !self.is_listing {
            self.through = self.highest;
        }
    }

    /// Follows a list and watch of some shards.
    fn apply(&mut self, update: &WatchUpdate) {
        match update.stage {
            // A restarting API server refuses every request until it has read its RBAC rules, so a refusal during an
            // outage proves nothing.
            WatchStage::NotPermitted if self.was_listed && self.failure == Some(WatchFailure::Interrupted) => {}
            WatchStage::NotPermitted => self.failure = Some(WatchFailure::NotPermitted),
            WatchStage::Interrupted => {
                self.failure.get_or_insert(WatchFailure::Interrupted);
            }
            WatchStage::ListBegun => {
                self.selected = update.shards;
                self.is_listing = true;
                // The watch could not resume, so the known objects are outdated.
                if self.was_listed {
                    self.failure.get_or_insert(WatchFailure::Interrupted);
                }
            }
            WatchStage::ListDone => {
                self.selected = update.shards;
                self.was_listed = true;
                self.failure = None;
            }
            WatchStage::Watching(version) => {
                self.selected = update.shards;
                self.is_listing = false;
                self.failure = None;
                self.highest = version;
                self.through = version;
            }
        }
    }

    /// The version up to which every event of a shard has been observed.
    fn observed_through(&self, shard: ShardId) -> ResourceVersion {
        if self.selected.contains(shard) && !self.is_listing {
            self.through
        } else {
            ResourceVersion::default()
        }
    }
}

impl Progress {
    pub(super) fn new(scopes: &[Scope]) -> Progress {
        let begin = |scope: &Scope| ScopeProgress {
            scope: scope.clone(),
            watches: [WatchProgress::default(); 2],
        };
        Progress {
            scopes: scopes.iter().map(begin).collect(),
        }
    }

    /// Updates the progress from a watch event.
    pub(super) fn observe(&mut self, input: &Input) {
        match input {
            Input::WatchUpdated(update) => {
                if let Some(watch) = self.watch(update.resource, |scope| *scope == update.scope) {
                    watch.apply(update);
                }
            }
            Input::CronJobApplied(record) => {
                let namespace = &record.identity.namespace;
                self.observe_version(WatchedResource::CronJobs, namespace, record.resource_version);
            }
            Input::JobApplied(job) => self.observe_version(WatchedResource::Jobs, &job.namespace, job.resource_version),
            Input::CronJobUndecodable(_)
            | Input::CronJobDeleted(_)
            | Input::JobUndecodable(_)
            | Input::JobDeleted(_)
            | Input::JobUnselected(_)
            | Input::JobCreateAnswered { .. }
            | Input::JobDeleteAnswered { .. }
            | Input::JobLookedUp { .. }
            | Input::StatusAnswered { .. } => {}
        }
    }

    /// Whether every watch has delivered a complete list.
    pub(super) fn is_listed(&self) -> bool {
        self.scopes.iter().all(ScopeProgress::is_listed)
    }

    /// Whether every watch that the API server permits has delivered a complete list. False if it permits none.
    pub(super) fn is_listed_as_permitted(&self) -> bool {
        let is_done = |watches: &ScopeProgress| watches.is_listed() || watches.is_not_permitted();
        self.scopes.iter().any(ScopeProgress::is_listed) && self.scopes.iter().all(is_done)
    }

    /// Whether a list or watch of CronJobs was interrupted, or CronJobs are listed again, and neither has succeeded since.
    pub(super) fn are_cron_jobs_interrupted(&self) -> bool {
        let is_interrupted = |scope: &ScopeProgress| {
            let watch = &scope.watches[WatchedResource::CronJobs as usize];
            watch.failure == Some(WatchFailure::Interrupted)
        };
        self.scopes.iter().any(is_interrupted)
    }

    /// The versions up to which every event of a shard has been observed. Zero with several scopes, since the scope of
    /// a version is not known.
    pub(super) fn observed_through(&self, shard: ShardId) -> ResourceVersions {
        match self.scopes.as_slice() {
            [one] => {
                let [cron_jobs, jobs] = one.watches.map(|watch| watch.observed_through(shard));
                ResourceVersions { cron_jobs, jobs }
            }
            _ => ResourceVersions::default(),
        }
    }

    fn observe_version(&mut self, resource: WatchedResource, namespace: &str, version: ResourceVersion) {
        if let Some(watch) = self.watch(resource, |scope| scope.contains(namespace)) {
            watch.observe(version);
        }
    }

    fn watch(&mut self, resource: WatchedResource, is_scope: impl Fn(&Scope) -> bool) -> Option<&mut WatchProgress> {
        let scope = self.scopes.iter_mut().find(|watches| is_scope(&watches.scope))?;
        Some(&mut scope.watches[resource as usize])
    }
}

/// Records the version of a write from its answer.
pub(super) fn note_written(written: &mut ResourceVersions, input: &Input) {
    if let Input::JobCreateAnswered {
        answer: CreateOutcome::Created { resource_version, .. },
        ..
    } = input
    {
        written.jobs = written.jobs.max(ResourceVersion::read(resource_version));
    }
    if let Input::StatusAnswered {
        answer: StatusOutcome::Stored { resource_version },
        ..
    } = input
    {
        written.cron_jobs = written.cron_jobs.max(*resource_version);
    }
}
