//! A list of one shard beside watches that go on: what each of the two may still say.
//!
//! Versions settle most of it, as an older form of an object never takes the place of a newer. What versions cannot tell
//! is kept here: what a watch has shown gone is not brought back by the list, a list that a watch began before the shard
//! was held does not end it, and one that a watch begins meanwhile takes the place of ours. A watch that is opened anew
//! for a shard repeats the past, of CronJobs too that were gone when the list was made: these the list ends.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::shard::{
    ResourceVersions,
    ids::{CronJobIdentity, ResourceVersion, Uid},
    input::{Input, Scope},
    record::{CronJobRecord, JobRecord},
};

/// What a list of its own found.
#[derive(Clone, Debug)]
pub enum Listed {
    /// A CronJob.
    CronJob(Box<CronJobRecord>),
    /// A CronJob that cannot be understood.
    UndecodableCronJob(Uid),
    /// A Job that a CronJob controls.
    Job {
        /// Its controller.
        cron_job: Uid,
        /// The Job.
        job: Box<JobRecord>,
    },
}

impl Listed {
    /// The CronJob that it is, or belongs to.
    pub fn cron_job(&self) -> &Uid {
        match self {
            Listed::CronJob(record) => &record.identity.uid,
            Listed::UndecodableCronJob(uid) => uid,
            Listed::Job { cron_job, .. } => cron_job,
        }
    }

    pub(super) fn into_input(self) -> Input {
        match self {
            Listed::CronJob(record) => Input::CronJobApplied(record),
            Listed::UndecodableCronJob(uid) => Input::CronJobSeen(uid),
            Listed::Job { job, .. } => Input::JobApplied(job),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    CronJobs,
    Jobs,
}

/// One kind in one scope.
struct Part {
    kind: Kind,
    scope: Scope,
    /// A watch began to list it: that list counts, and ours no more.
    is_left_to_watch: bool,
    /// The API server does not permit our list: a list of the watch completes it later.
    is_left_out: bool,
}

/// The form in which a watch has shown a CronJob last.
struct Sighting {
    version: ResourceVersion,
    identity: Arc<CronJobIdentity>,
}

/// See the module.
pub(super) struct Listing {
    parts: Vec<Part>,
    /// What a watch has shown gone since the list began.
    gone: BTreeSet<Uid>,
    /// The CronJobs that a watch has shown since.
    shown: BTreeMap<Uid, Sighting>,
    /// The CronJobs that the list found.
    found: BTreeSet<Uid>,
}

impl Listing {
    pub(super) fn new(scopes: &[Scope]) -> Listing {
        let part = |kind| {
            move |scope: &Scope| Part {
                kind,
                scope: scope.clone(),
                is_left_to_watch: false,
                is_left_out: false,
            }
        };
        Listing {
            parts: scopes
                .iter()
                .map(part(Kind::CronJobs))
                .chain(scopes.iter().map(part(Kind::Jobs)))
                .collect(),
            gone: BTreeSet::new(),
            shown: BTreeMap::new(),
            found: BTreeSet::new(),
        }
    }

    /// Up to where everything is known by it, of what no watch has listed in its place.
    pub(super) fn ours(&self, through: &ResourceVersions) -> ResourceVersions {
        let ours = |kind, version| {
            if self.is_ours(kind) {
                version
            } else {
                ResourceVersion(0)
            }
        };
        ResourceVersions {
            cron_jobs: ours(Kind::CronJobs, through.cron_jobs),
            jobs: ours(Kind::Jobs, through.jobs),
        }
    }

    /// Whether it is what is known of a kind, and not a watch's list in its place.
    fn is_ours(&self, kind: Kind) -> bool {
        let is_left = |part: &Part| part.kind == kind && part.is_left_to_watch;
        !self.parts.iter().any(is_left)
    }

    /// Takes in that our list leaves a scope out.
    pub(super) fn leave_out(&mut self, scope: &Scope) {
        for part in &mut self.parts {
            part.is_left_out |= part.scope == *scope;
        }
    }

    /// The scopes that our list left out.
    pub(super) fn left_out(&self) -> Vec<Scope> {
        let of_cron_jobs = self.parts.iter().filter(|part| part.kind == Kind::CronJobs);
        let left_out = of_cron_jobs.filter(|part| part.is_left_out);
        left_out.map(|part| part.scope.clone()).collect()
    }

    /// What the shard is told at the beginning.
    pub(super) fn begun(&self) -> impl Iterator<Item = Input> {
        self.parts.iter().map(|part| match part.kind {
            Kind::CronJobs => Input::CronJobRelistBegun(part.scope.clone()),
            Kind::Jobs => Input::JobRelistBegun(part.scope.clone()),
        })
    }

    /// What it is told at the end of a list at this version.
    pub(super) fn done(self, at: ResourceVersion) -> impl Iterator<Item = Input> {
        let is_ours = self.is_ours(Kind::CronJobs);
        let left_out = self.left_out();
        let Listing { shown, found, .. } = self;
        let is_past = move |(uid, last): &(Uid, Sighting)| {
            let is_left_out = || left_out.iter().any(|scope| scope.contains(&last.identity.namespace));
            is_ours && last.version <= at && !found.contains(uid) && !is_left_out()
        };
        let past = shown.into_iter().filter(is_past);
        let ours = self
            .parts
            .into_iter()
            .filter(|part| !part.is_left_to_watch && !part.is_left_out);
        let done = ours.map(|part| match part.kind {
            Kind::CronJobs => Input::CronJobRelistDone(part.scope),
            Kind::Jobs => Input::JobRelistDone(part.scope),
        });
        past.map(|(uid, _)| Input::CronJobDeleted(uid)).chain(done)
    }

    /// Whether what the list found is still to be believed.
    pub(super) fn takes(&mut self, listed: &Listed) -> bool {
        if let Listed::CronJob(_) | Listed::UndecodableCronJob(_) = listed {
            self.found.insert(listed.cron_job().clone());
        }
        let (kind, uid, namespace): (_, &Uid, &str) = match listed {
            Listed::CronJob(record) => (Kind::CronJobs, &record.identity.uid, &record.identity.namespace),
            // Nothing more is known of it; to take it for there when it is not does no harm.
            Listed::UndecodableCronJob(uid) => return !self.gone.contains(uid),
            Listed::Job { job, .. } => (Kind::Jobs, &job.uid, &job.namespace),
        };
        let is_left_to_watch =
            |part: &Part| part.kind == kind && part.is_left_to_watch && part.scope.contains(namespace);
        !self.gone.contains(uid) && !self.parts.iter().any(is_left_to_watch)
    }

    /// Takes note of what a watch says; whether it is for the shard.
    pub(super) fn observe(&mut self, input: &Input) -> bool {
        match input {
            Input::CronJobDeleted(uid) | Input::JobDeleted(uid) | Input::JobUnselected(uid) => {
                self.gone.insert(uid.clone());
                true
            }
            Input::CronJobRelistBegun(scope) => self.leave_to_watch(Kind::CronJobs, scope),
            Input::JobRelistBegun(scope) => self.leave_to_watch(Kind::Jobs, scope),
            Input::CronJobRelistDone(scope) => self.is_left_to_watch(Kind::CronJobs, scope),
            Input::JobRelistDone(scope) => self.is_left_to_watch(Kind::Jobs, scope),
            Input::CronJobApplied(record) => {
                let sighting = Sighting {
                    version: record.resource_version,
                    identity: Arc::clone(&record.identity),
                };
                self.shown.insert(record.identity.uid.clone(), sighting);
                true
            }
            Input::CronJobSeen(_)
            | Input::JobApplied(_)
            | Input::JobSeen(_)
            | Input::Selected(_)
            | Input::JobCreateAnswered { .. }
            | Input::JobDeleteAnswered { .. }
            | Input::JobLookedUp { .. }
            | Input::StatusAnswered { .. } => true,
        }
    }

    fn leave_to_watch(&mut self, kind: Kind, scope: &Scope) -> bool {
        for part in &mut self.parts {
            part.is_left_to_watch |= part.kind == kind && part.scope == *scope;
        }
        true
    }

    fn is_left_to_watch(&self, kind: Kind, scope: &Scope) -> bool {
        let is_it = |part: &&Part| part.kind == kind && part.scope == *scope;
        self.parts.iter().find(is_it).is_some_and(|part| part.is_left_to_watch)
    }
}
