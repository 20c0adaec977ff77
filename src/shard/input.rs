//! The facts that watches and lists tell a shard.

use std::{fmt, sync::Arc};

use super::{
    calendars::CalendarUpdate,
    ids::{ResourceVersion, Uid},
    namespaces::NamespaceUpdate,
    record::{CronJobRecord, JobRecord},
};

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

/// A step of a list or of a watch of the CronJobs or Jobs of a scope.
#[derive(Clone, Debug)]
pub struct WatchUpdate {
    /// The resource that is listed or watched.
    pub resource: WatchedResource,
    /// The scope of the list or watch.
    pub scope: Scope,
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
    /// A list begins. An object that is not applied before the end of the list is gone.
    ListBegun,
    /// The list is complete.
    ListDone,
    /// The API server does not permit the list or watch, which is retried.
    NotPermitted,
    /// All events after this version follow, in order.
    Watching(ResourceVersion),
    /// The watch has delivered everything up to this version. The event or bookmark of this version concerns no CronJob.
    Reached(ResourceVersion),
    /// Another watch shows that nothing has changed after `since` and up to `through`.
    Unchanged {
        /// A version that the watch had reached before.
        since: ResourceVersion,
        /// The version that the watch has reached, in effect.
        through: ResourceVersion,
    },
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
    /// A Job of a CronJob exists in this form.
    JobApplied(Box<JobRecord>),
    /// A Job that existed before has changed to this form, in which a CronJob controls it. Another CronJob may have
    /// controlled it before.
    JobModified(Box<JobRecord>),
    /// A Job that existed before has changed, and no CronJob controls it. One may have controlled it before.
    JobReleased(Uid),
    /// A Job exists but cannot be decoded. The state of its last decoded form remains.
    JobUndecodable(Uid),
    /// A Job is gone.
    JobDeleted {
        /// Its uid.
        job: Uid,
        /// The CronJob that controlled it.
        cron_job: Uid,
    },
    /// A step of the list or watch of the managed namespaces.
    NamespaceUpdated(NamespaceUpdate),
    /// A step of the list or watch of the calendars.
    CalendarUpdated(Box<CalendarUpdate>),
}

impl Input {
    /// The CronJob that the fact concerns; `None` if the fact does not name one.
    pub fn cron_job(&self) -> Option<&Uid> {
        match self {
            Input::CronJobApplied(record) => Some(&record.identity.uid),
            Input::CronJobUndecodable(uid) | Input::CronJobDeleted(uid) => Some(uid),
            Input::JobApplied(record) | Input::JobModified(record) => record.controller.as_ref(),
            Input::JobDeleted { cron_job, .. } => Some(cron_job),
            Input::WatchUpdated(_)
            | Input::JobUndecodable(_)
            | Input::JobReleased(_)
            | Input::NamespaceUpdated(_)
            | Input::CalendarUpdated(_) => None,
        }
    }

    /// A list begins.
    pub fn list_begun(resource: WatchedResource, scope: Scope) -> Input {
        Input::watch_updated(resource, scope, WatchStage::ListBegun)
    }

    /// A list is complete.
    pub fn list_done(resource: WatchedResource, scope: Scope) -> Input {
        Input::watch_updated(resource, scope, WatchStage::ListDone)
    }

    /// A list or watch has reached this step.
    pub fn watch_updated(resource: WatchedResource, scope: Scope, stage: WatchStage) -> Input {
        Input::WatchUpdated(Box::new(WatchUpdate { resource, scope, stage }))
    }
}
