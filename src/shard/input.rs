//! Every fact that can reach a shard.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

use super::{
    effect::JobLookUp,
    ids::{ResourceVersion, Uid},
    outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, StatusOutcome},
    record::{CronJobRecord, CronJobStatus, JobRecord},
};
use crate::shard::ShardSet;

/// What one watch covers; lists of different scopes do not overlap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All namespaces.
    Cluster,
    /// One namespace.
    Namespace(Arc<str>),
}

impl Scope {
    /// Whether an object of this namespace is within.
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

/// How a watch of the CronJobs or Jobs of some shards goes on.
#[derive(Clone, Debug)]
pub struct Selected {
    /// What it is of.
    pub kind: SelectedKind,
    /// What it covers.
    pub scope: Scope,
    /// Of which shards it lists them, or shows them from here on.
    pub shards: ShardSet,
    /// What begins or ends.
    pub stage: SelectionStage,
}

/// See [`Selected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectedKind {
    /// CronJobs.
    CronJobs,
    /// Jobs.
    Jobs,
}

/// See [`Selected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectionStage {
    /// A list of these shards begins.
    ListBegun,
    /// It is complete.
    ListDone,
    /// The API server does not permit a list, or the watch that follows it. The next thing to come is another list.
    NotPermitted,
    /// All events of these shards after this version follow, in their order.
    Watching(ResourceVersion),
}

/// A fact, in the order in which it became known.
#[derive(Clone, Debug)]
pub enum Input {
    /// A new list of CronJobs of a scope begins: what is neither applied nor seen before its end is gone.
    CronJobRelistBegun(Scope),
    /// A CronJob exists in this form.
    CronJobApplied(Box<CronJobRecord>),
    /// A CronJob exists in a form that cannot be understood: what is known of it stays, and it starts nothing until it can be.
    CronJobSeen(Uid),
    /// A CronJob is gone.
    CronJobDeleted(Uid),
    /// The list of CronJobs of a scope is complete.
    CronJobRelistDone(Scope),
    /// A new list of Jobs of a scope begins: what is neither applied nor seen before its end is gone.
    JobRelistBegun(Scope),
    /// A Job exists in this form.
    JobApplied(Box<JobRecord>),
    /// A Job exists in a form that cannot be understood: what is known of it stays.
    JobSeen(Uid),
    /// A Job is gone.
    JobDeleted(Uid),
    /// A watch by labels shows a Job no more: it is gone, or somebody took the label from it.
    JobUnselected(Uid),
    /// The list of Jobs of a scope is complete.
    JobRelistDone(Scope),
    /// Where shards are shared with other replicas: how a watch goes on, in place of the relists.
    Selected(Box<Selected>),
    /// The answer to a `CreateJob`.
    JobCreateAnswered {
        /// The order's CronJob.
        cron_job: Uid,
        /// The order's slot.
        slot: Timestamp,
        /// What was said.
        answer: CreateOutcome,
    },
    /// The answer to a `DeleteJob`.
    JobDeleteAnswered {
        /// The CronJob that it belongs to.
        cron_job: Uid,
        /// The Job.
        job: Uid,
        /// The Job's name.
        name: Box<str>,
        /// What was said.
        answer: DeleteOutcome,
    },
    /// The answer to a `LookUpJob`.
    JobLookedUp {
        /// What was asked.
        look_up: JobLookUp,
        /// What was said.
        answer: LookUpOutcome,
    },
    /// The answer to a `WriteStatus`.
    StatusAnswered {
        /// The CronJob.
        cron_job: Uid,
        /// The status that was sent: the last one merged.
        sent: Box<CronJobStatus>,
        /// What was said.
        answer: StatusOutcome,
    },
}
