//! How far the watches have come, by the versions that they showed.

use crate::state::{
    ids::ResourceVersion,
    input::{Input, Scope, Selected, SelectedKind, SelectionStage},
    outcome::{CreateOutcome, StatusOutcome},
    sharding::{ShardId, ShardSet, WrittenThrough},
};

/// See the module. A list shows its objects in no order of versions: it counts when it is complete.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    scopes: Vec<ScopeProgress>,
}

#[derive(Clone, Debug)]
struct ScopeProgress {
    scope: Scope,
    cron_jobs: KindProgress,
    jobs: KindProgress,
    /// The shards whose Jobs the watch shows; all where it shows all.
    shown: Option<ShardSet>,
}

impl ScopeProgress {
    /// The watch of Jobs shows what it was told to from some version on: nothing is known of what it did not show before.
    fn select(&mut self, selected: &Selected) {
        match (selected.kind, selected.stage) {
            (SelectedKind::CronJobs, SelectionStage::ListBegun) => self.cron_jobs.is_listing = true,
            (SelectedKind::CronJobs, SelectionStage::ListDone) => self.cron_jobs.end_list(),
            (SelectedKind::Jobs, SelectionStage::ListBegun) => self.jobs.is_listing = true,
            (SelectedKind::Jobs, SelectionStage::ListDone) => self.jobs.was_listed = true,
            (SelectedKind::Jobs, SelectionStage::Watching(version)) => {
                self.jobs.is_listing = false;
                self.jobs.highest = version;
                self.jobs.through = version;
            }
            // That watch shows all, and what is passed over is of nobody here.
            (SelectedKind::CronJobs, SelectionStage::Watching(_)) => {}
        }
        if selected.kind == SelectedKind::Jobs {
            self.shown = Some(selected.shards);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct KindProgress {
    is_listing: bool,
    was_listed: bool,
    highest: ResourceVersion,
    through: ResourceVersion,
}

impl KindProgress {
    fn show(&mut self, version: ResourceVersion) {
        self.highest = self.highest.max(version);
        if !self.is_listing {
            self.through = self.highest;
        }
    }

    fn end_list(&mut self) {
        self.is_listing = false;
        self.was_listed = true;
        self.through = self.highest;
    }
}

impl Progress {
    pub(super) fn new(scopes: &[Scope]) -> Progress {
        let begin = |scope: &Scope| ScopeProgress {
            scope: scope.clone(),
            cron_jobs: KindProgress::default(),
            jobs: KindProgress::default(),
            shown: None,
        };
        Progress {
            scopes: scopes.iter().map(begin).collect(),
        }
    }

    /// Takes note of what a watch says.
    pub(super) fn observe(&mut self, input: &Input) {
        match input {
            Input::CronJobRelistBegun(scope) => self.in_scope(scope, |watches| watches.cron_jobs.is_listing = true),
            Input::CronJobApplied(record) => self.around(&record.identity.namespace, |watches| {
                watches.cron_jobs.show(record.resource_version);
            }),
            Input::CronJobRelistDone(scope) => self.in_scope(scope, |watches| watches.cron_jobs.end_list()),
            Input::JobRelistBegun(scope) => self.in_scope(scope, |watches| watches.jobs.is_listing = true),
            Input::JobApplied(record) => self.around(&record.namespace, |watches| {
                watches.jobs.show(record.resource_version);
            }),
            Input::JobRelistDone(scope) => self.in_scope(scope, |watches| watches.jobs.end_list()),
            Input::Selected(selected) => self.in_scope(&selected.scope, |watches| watches.select(selected)),
            Input::CronJobSeen(_)
            | Input::CronJobDeleted(_)
            | Input::JobSeen(_)
            | Input::JobDeleted(_)
            | Input::JobCreateAnswered { .. }
            | Input::JobDeleteAnswered { .. }
            | Input::JobLookedUp { .. }
            | Input::StatusAnswered { .. } => {}
        }
    }

    /// Whether every watch has shown everything once.
    pub(super) fn is_listed(&self) -> bool {
        let is_listed = |watches: &ScopeProgress| watches.cron_jobs.was_listed && watches.jobs.was_listed;
        self.scopes.iter().all(is_listed)
    }

    /// Whether all of this has been seen. With several scopes it cannot be told, unless there is nothing: whose watch it
    /// was written in is not known.
    pub(super) fn has_seen(&self, shard: ShardId, written: &WrittenThrough) -> bool {
        let shows = |watches: &ScopeProgress| watches.shown.is_none_or(|shown| shown.contains(shard));
        let seen = match self.scopes.as_slice() {
            [watches] if shows(watches) && !watches.jobs.is_listing => WrittenThrough {
                cron_jobs: watches.cron_jobs.through,
                jobs: watches.jobs.through,
            },
            _ => WrittenThrough::default(),
        };
        written.is_within(&seen)
    }

    fn in_scope(&mut self, scope: &Scope, change: impl FnOnce(&mut ScopeProgress)) {
        if let Some(watches) = self.scopes.iter_mut().find(|watches| watches.scope == *scope) {
            change(watches);
        }
    }

    fn around(&mut self, namespace: &str, change: impl FnOnce(&mut ScopeProgress)) {
        if let Some(watches) = self.scopes.iter_mut().find(|watches| watches.scope.contains(namespace)) {
            change(watches);
        }
    }
}

/// Takes note of what an answer says that we wrote.
pub(super) fn note_written(written: &mut WrittenThrough, input: &Input) {
    match input {
        Input::JobCreateAnswered {
            answer: CreateOutcome::Created { resource_version, .. },
            ..
        } => written.note_job(resource_version.parse().map_or(ResourceVersion(0), ResourceVersion)),
        Input::StatusAnswered {
            answer: StatusOutcome::Stored { resource_version },
            ..
        } => written.note_status(*resource_version),
        Input::CronJobRelistBegun(_)
        | Input::CronJobApplied(_)
        | Input::CronJobSeen(_)
        | Input::CronJobDeleted(_)
        | Input::CronJobRelistDone(_)
        | Input::JobRelistBegun(_)
        | Input::JobApplied(_)
        | Input::JobSeen(_)
        | Input::JobDeleted(_)
        | Input::JobRelistDone(_)
        | Input::Selected(_)
        | Input::JobCreateAnswered { .. }
        | Input::JobDeleteAnswered { .. }
        | Input::JobLookedUp { .. }
        | Input::StatusAnswered { .. } => {}
    }
}
