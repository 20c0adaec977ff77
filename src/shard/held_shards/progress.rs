//! The progress of the watches, by the resource versions that they delivered.

use crate::shard::{
    OrderAnswer, ResourceVersions,
    ids::ResourceVersion,
    input::{Input, Scope, WatchStage, WatchedResource},
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

    fn are_cron_jobs_interrupted(&self) -> bool {
        let failure = self.watches[WatchedResource::CronJobs as usize].failure;
        failure.is_some_and(WatchFailure::is_interruption)
    }

    fn is_not_permitted(&self) -> bool {
        let is_not_permitted = |watch: &WatchProgress| watch.failure == Some(WatchFailure::NotPermitted);
        self.watches.iter().any(is_not_permitted)
    }

    /// The versions up to which every event has been observed.
    fn reached(&self) -> ResourceVersions {
        let [cron_jobs, jobs] = self.watches.map(|watch| watch.reached());
        ResourceVersions { cron_jobs, jobs }
    }

    /// The watches that have not reached these versions.
    fn behind(&self, needed: &ResourceVersions) -> impl Iterator<Item = WatchedResource> {
        let reached = self.reached();
        let is_permitted = !self.is_not_permitted();
        let of_resources = [
            (WatchedResource::CronJobs, needed.cron_jobs, reached.cron_jobs),
            (WatchedResource::Jobs, needed.jobs, reached.jobs),
        ];
        let behind = of_resources
            .into_iter()
            .filter(move |(_, needed, reached)| is_permitted && needed > reached);
        behind.map(|(resource, ..)| resource)
    }
}

/// The reasons why a list or watch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchFailure {
    /// The API server does not permit it.
    NotPermitted,
    /// It is retried. Events are late.
    Interrupted,
    /// The API server refuses it, although it has permitted it before. A restarting API server refuses every request until
    /// it has read its RBAC rules, so such a refusal proves nothing at first.
    RefusedAfterList,
}

impl WatchFailure {
    fn is_interruption(self) -> bool {
        match self {
            WatchFailure::NotPermitted => false,
            WatchFailure::Interrupted | WatchFailure::RefusedAfterList => true,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WatchProgress {
    is_listing: bool,
    was_listed: bool,
    /// The reason why the list or watch fails at present.
    failure: Option<WatchFailure>,
    highest: ResourceVersion,
    through: ResourceVersion,
}

impl WatchProgress {
    fn observe(&mut self, version: ResourceVersion) {
        self.highest = self.highest.max(version);
        if !self.is_listing {
            self.through = self.highest;
        }
    }

    /// Follows the steps of a list and watch.
    fn apply(&mut self, stage: WatchStage) {
        match stage {
            WatchStage::NotPermitted => {
                let is_doubted = self.was_listed && self.failure != Some(WatchFailure::NotPermitted);
                self.failure = Some(if is_doubted {
                    WatchFailure::RefusedAfterList
                } else {
                    WatchFailure::NotPermitted
                });
            }
            WatchStage::Interrupted => {
                self.failure.get_or_insert(WatchFailure::Interrupted);
            }
            WatchStage::ListBegun => {
                self.is_listing = true;
                // The watch could not resume, so the known objects are outdated.
                if self.was_listed {
                    self.failure.get_or_insert(WatchFailure::Interrupted);
                }
            }
            WatchStage::ListDone => {
                self.was_listed = true;
                self.failure = None;
            }
            WatchStage::Watching(version) => {
                self.is_listing = false;
                self.failure = None;
                self.highest = version;
                self.through = version;
            }
            WatchStage::Reached(version) => self.observe(version),
            WatchStage::Unchanged { since, through } if self.reached() >= since => self.observe(through),
            WatchStage::Unchanged { .. } => {}
        }
    }

    /// The version up to which every event has been observed.
    fn reached(&self) -> ResourceVersion {
        if self.is_listing {
            ResourceVersion::default()
        } else {
            self.through
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
                    watch.apply(update.stage);
                }
            }
            Input::CronJobApplied(record) => {
                let namespace = &record.identity.namespace;
                self.observe_version(WatchedResource::CronJobs, namespace, record.resource_version);
            }
            Input::JobApplied(job) | Input::JobModified(job) => {
                self.observe_version(WatchedResource::Jobs, &job.namespace, job.resource_version);
            }
            // The watch announces the versions of the other events by themselves.
            Input::CronJobUndecodable(_)
            | Input::CronJobDeleted(_)
            | Input::JobUndecodable(_)
            | Input::JobReleased(_)
            | Input::JobDeleted { .. }
            | Input::NamespaceUpdated(_)
            | Input::CalendarUpdated(_) => {}
        }
    }

    /// Whether every watch has delivered a complete list.
    /// Whether every watch that the API server permits has delivered a complete list. False if it permits none.
    pub(super) fn is_listed_as_permitted(&self) -> bool {
        let is_done = |watches: &ScopeProgress| watches.is_listed() || watches.is_not_permitted();
        self.scopes.iter().any(ScopeProgress::is_listed) && self.scopes.iter().all(is_done)
    }

    /// Whether a list or watch of CronJobs was interrupted, or CronJobs are listed again, and neither has succeeded since.
    pub(super) fn are_cron_jobs_interrupted(&self) -> bool {
        self.scopes.iter().any(ScopeProgress::are_cron_jobs_interrupted)
    }

    /// The same for the scope of a namespace.
    pub(super) fn are_cron_jobs_interrupted_in(&self, namespace: &str) -> bool {
        let mut scopes = self.scopes.iter().filter(|watches| watches.scope.contains(namespace));
        scopes.any(ScopeProgress::are_cron_jobs_interrupted)
    }

    /// Takes refusals after a list for lasting ones. The API server has had the time to read its RBAC rules.
    pub(super) fn believe_refusals(&mut self) {
        for watch in self.scopes.iter_mut().flat_map(|scope| &mut scope.watches) {
            if watch.failure == Some(WatchFailure::RefusedAfterList) {
                watch.failure = Some(WatchFailure::NotPermitted);
            }
        }
    }

    /// Each scope with the versions up to which every event has been observed; zero if the API server does not permit it.
    pub(super) fn reached(&self) -> Vec<(Scope, ResourceVersions)> {
        let reached = |scope: &ScopeProgress| {
            let versions = if scope.is_not_permitted() {
                ResourceVersions::default()
            } else {
                scope.reached()
            };
            (scope.scope.clone(), versions)
        };
        self.scopes.iter().map(reached).collect()
    }

    /// Whether every watch that the API server permits has reached these versions, one pair for each scope.
    pub(super) fn has_reached<'a>(&self, needed: impl Iterator<Item = &'a ResourceVersions>) -> bool {
        let mut scopes = self.scopes.iter().zip(needed);
        scopes.all(|(scope, needed)| scope.behind(needed).next().is_none())
    }

    /// The watches that have not reached these versions and do not list at present.
    pub(super) fn behind(&self, needed: &[ResourceVersions]) -> Vec<(Scope, WatchedResource)> {
        let mut behind = Vec::new();
        for (scope, needed) in self.scopes.iter().zip(needed) {
            let is_listing = |resource: &WatchedResource| scope.watches[*resource as usize].is_listing;
            let of_scope = scope.behind(needed).filter(|resource| !is_listing(resource));
            behind.extend(of_scope.map(|resource| (scope.scope.clone(), resource)));
        }
        behind
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
pub(super) fn note_written(written: &mut ResourceVersions, answer: &OrderAnswer) {
    if let OrderAnswer::Create {
        answer: CreateOutcome::Created { resource_version, .. },
        ..
    } = answer
    {
        written.jobs = written.jobs.max(ResourceVersion::read(resource_version));
    }
    if let OrderAnswer::Status {
        answer: StatusOutcome::Stored { resource_version },
        ..
    } = answer
    {
        written.cron_jobs = written.cron_jobs.max(*resource_version);
    }
}
