//! The facts that can reach a shard.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

use super::{
    effect::{JobDelete, JobLookUp},
    ids::{ResourceVersion, Uid},
    outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, StatusOutcome},
    record::{CronJobRecord, CronJobStatus, JobRecord},
};
use crate::shard::ShardSet;

/// The objects that one watch covers. Lists of different scopes do not overlap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All namespaces.
    Cluster,
    /// One namespace.
    Namespace(Arc<str>),
}

impl Scope {
    /// Whether the namespace is in the scope.
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Scope::Cluster => true,
            Scope::Namespace(name) => **name == *namespace,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Cluster => f.write_str("all namespaces"),
            Scope::Namespace(name) => write!(f, "namespace {name}"),
        }
    }
}

/// A step of a list or of a watch of the CronJobs or Jobs of some shards.
#[derive(Clone, Debug)]
pub struct WatchUpdate {
    /// The resource that is listed or watched.
    pub resource: WatchedResource,
    /// The scope of the list or watch.
    pub scope: Scope,
    /// The shards that are listed or watched.
    pub shards: ShardSet,
    /// The step that the list or the watch has reached.
    pub stage: WatchStage,
}

/// The resource of a list or watch. Arrays with an element for each resource have this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedResource {
    /// CronJobs.
    CronJobs,
    /// Jobs.
    Jobs,
}

/// The step of a list or watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStage {
    /// A list of these shards begins. An object of these shards that is not applied before the end of the list is
    /// gone.
    ListBegun,
    /// The list is complete.
    ListDone,
    /// The API server does not permit the list or watch, which is retried.
    NotPermitted,
    /// All events of these shards after this version follow, in order.
    Watching(ResourceVersion),
    /// The list or watch failed and is retried. Events are late until a watch is open again.
    Interrupted,
}

/// A fact. Inputs are handled in the order in which the process received them.
#[derive(Clone, Debug)]
pub enum Input {
    /// A step of a list or watch.
    WatchUpdated(Box<WatchUpdate>),
    /// A CronJob exists in this form.
    CronJobApplied(Box<CronJobRecord>),
    /// A CronJob exists but cannot be decoded. The state of its last decoded form remains, and the CronJob starts
    /// nothing until it can be decoded.
    CronJobUndecodable(Uid),
    /// A CronJob is gone.
    CronJobDeleted(Uid),
    /// A Job exists in this form.
    JobApplied(Box<JobRecord>),
    /// A Job exists but cannot be decoded. The state of its last decoded form remains.
    JobUndecodable(Uid),
    /// A Job is gone.
    JobDeleted(Uid),
    /// A watch by label no longer selects a Job: the Job is gone, or its label was removed.
    JobUnselected(Uid),
    /// The answer to a `CreateJob`.
    JobCreateAnswered {
        /// The order's CronJob.
        cron_job: Uid,
        /// The order's slot.
        slot: Timestamp,
        /// The outcome.
        answer: CreateOutcome,
    },
    /// The answer to a `DeleteJob`.
    JobDeleteAnswered {
        /// The delete that was ordered.
        delete: JobDelete,
        /// The outcome.
        answer: DeleteOutcome,
    },
    /// The answer to a `LookUpJob`.
    JobLookedUp {
        /// The look-up that was ordered.
        look_up: JobLookUp,
        /// The outcome.
        answer: LookUpOutcome,
    },
    /// The answer to a `WriteStatus`.
    StatusAnswered {
        /// The CronJob.
        cron_job: Uid,
        /// The status that was sent: the result of the last merge.
        sent: Box<CronJobStatus>,
        /// The outcome.
        answer: StatusOutcome,
    },
}

impl Input {
    /// The CronJob that the fact concerns; `None` if the fact does not name one.
    pub fn cron_job(&self) -> Option<&Uid> {
        match self {
            Input::CronJobApplied(record) => Some(&record.identity.uid),
            Input::CronJobUndecodable(uid) | Input::CronJobDeleted(uid) => Some(uid),
            Input::JobApplied(record) => record.controller.as_ref(),
            Input::JobCreateAnswered { cron_job, .. } | Input::StatusAnswered { cron_job, .. } => Some(cron_job),
            Input::JobDeleteAnswered { delete, .. } => Some(&delete.cron_job.uid),
            Input::JobLookedUp { look_up, .. } => Some(&look_up.cron_job.uid),
            Input::WatchUpdated(_) | Input::JobUndecodable(_) | Input::JobDeleted(_) | Input::JobUnselected(_) => None,
        }
    }

    /// A list of all shards begins.
    pub fn list_begun(resource: WatchedResource, scope: Scope) -> Input {
        Input::of_every_shard(resource, scope, WatchStage::ListBegun)
    }

    /// A list of all shards is complete.
    pub fn list_done(resource: WatchedResource, scope: Scope) -> Input {
        Input::of_every_shard(resource, scope, WatchStage::ListDone)
    }

    fn of_every_shard(resource: WatchedResource, scope: Scope, stage: WatchStage) -> Input {
        Input::WatchUpdated(Box::new(WatchUpdate {
            resource,
            scope,
            shards: ShardSet::EVERY,
            stage,
        }))
    }
}
