//! The fields of CronJobs and Jobs that the view needs.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    kube_api::objects::resumption::Resumption,
    schedule::{ConcurrencyPolicy, CronJobSchedule, options::NamespaceOptions},
    shard::{ReadCalendar, Uid},
};

/// A CronJob in its last observed form.
#[derive(Clone, Debug)]
pub struct CronJobFacts {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
    /// `spec.schedule` and `spec.timeZone`, parsed.
    pub schedule: CronJobSchedule,
    /// `spec.startingDeadlineSeconds`, never negative.
    pub starting_deadline_seconds: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// `spec.suspend`.
    pub is_suspended: bool,
    /// `spec.successfulJobsHistoryLimit`; 3 if absent.
    pub successful_jobs_history_limit: u32,
    /// `spec.failedJobsHistoryLimit`; 1 if absent.
    pub failed_jobs_history_limit: u32,
    /// Whether the Job template has `activeDeadlineSeconds`, of the Job or of its Pod.
    pub has_active_deadline: bool,
    /// `ttlSecondsAfterFinished` of the Job template: a Job is deleted this long after its end.
    pub ttl_seconds_after_finished: Option<i64>,
    /// `status.lastScheduleTime`: the latest slot for which the controller created a Job.
    pub last_schedule_time: Option<Timestamp>,
    /// `status.lastSuccessfulTime`.
    pub last_successful_time: Option<Timestamp>,
    /// The last change of the spec, as far as `metadata.managedFields` tells.
    pub spec_changed: Option<Timestamp>,
    /// What `metadata.managedFields` tells of the last resumption. `None` while it is suspended.
    pub resumption: Option<Resumption>,
}

/// The labels of an object by key, in as few bytes as they need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(other, _)| (**other).cmp(key)).ok()?;
        self.0.get(place).map(|(_, value)| &**value)
    }

    /// The labels by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl FromIterator<(Box<str>, Box<str>)> for Labels {
    /// Of several values of a key, the last one counts.
    fn from_iter<I: IntoIterator<Item = (Box<str>, Box<str>)>>(labels: I) -> Labels {
        let by_key: BTreeMap<_, _> = labels.into_iter().collect();
        Labels(by_key.into_iter().collect())
    }
}

/// A Job whose controller is a CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// `metadata.uid` of the Job.
    pub job_uid: Uid,
    /// `metadata.name` of the Job.
    pub job_name: Box<str>,
    /// The uid in its controller reference.
    pub cron_job: Uid,
    /// The slot, from the annotation `batch.kubernetes.io/cronjob-scheduled-timestamp`, otherwise from the minutes at the
    /// end of the Job's name. `None` for a Job that belongs to no slot, such as one of `kubectl create job --from`.
    pub slot: Option<Timestamp>,
    /// `metadata.creationTimestamp`, in whole seconds.
    pub created: Timestamp,
    /// `status.startTime`.
    pub started: Option<Timestamp>,
    /// `status.completionTime`, or the time of the condition `Failed`. For [`RunResult::Gone`], the last instant at which
    /// the Job is known to have run.
    pub finished: Option<Timestamp>,
    /// How the Job ended.
    pub result: RunResult,
    /// The client that created the Job.
    pub creator: Creator,
    /// Why the Job has not ended, if not because its Pods still work.
    pub hindrance: Option<Hindrance>,
}

/// The end of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunResult {
    /// The Job has not ended.
    Running,
    /// The condition `Complete`.
    Succeeded,
    /// The condition `Failed`, with its reason, such as `BackoffLimitExceeded`.
    Failed(Box<str>),
    /// The Job was deleted before it ended, for example by `Replace`.
    Deleted,
    /// The Job left the cluster while nothing watched. Whether it ended before that is not known.
    Gone,
}

/// Why a Job has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// `spec.suspend` of the Job is true.
    Suspended,
    /// The Job is being deleted and these finalizers hold it.
    HeldByFinalizers(Box<str>),
    /// The Job is being deleted.
    Terminating,
}

/// The client that created a Job, from `metadata.managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Creator {
    /// kube-controller-manager.
    BuiltIn,
    /// cronwheel.
    Cronwheel,
    /// Another client; its field manager.
    Other(Box<str>),
}

/// The name of the creator of Jobs that `cronwheel backfill` started.
const BACKFILL: &str = "cronwheel backfill";

impl Creator {
    /// `cronwheel backfill`, by which a user starts slots again.
    pub fn backfill() -> Creator {
        Creator::Other(BACKFILL.into())
    }

    /// The name of the client.
    pub fn as_str(&self) -> &str {
        match self {
            Creator::BuiltIn => "kube-controller-manager",
            Creator::Cronwheel => "cronwheel",
            Creator::Other(manager) => manager,
        }
    }
}

/// A change of a CronJob that decides what its slots may do. The history keeps these, so that a slot without a Job can
/// be explained after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJobChange {
    /// When the change was observed.
    pub at: Timestamp,
    /// `metadata.uid`.
    pub cron_job: Uid,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.schedule`.
    pub schedule: Box<str>,
    /// `spec.timeZone`.
    pub time_zone: Option<Box<str>>,
    /// `spec.suspend`.
    pub is_suspended: bool,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// `spec.startingDeadlineSeconds`.
    pub starting_deadline_seconds: Option<i64>,
    /// Whether the CronJob was deleted.
    pub is_deleted: bool,
}

/// A period in which both watches were current, so that every Job was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The first instant.
    pub from: Timestamp,
    /// The last instant so far.
    pub to: Timestamp,
    /// The namespaces that were watched all the time, by name and with commas. `None`: all namespaces.
    pub namespaces: Option<Box<str>>,
}

impl Observation {
    /// Whether every Job of a namespace was seen.
    pub fn includes(&self, namespace: &str) -> bool {
        let names = self.namespaces.as_deref();
        names.is_none_or(|names| names.split(',').any(|name| name == namespace))
    }
}

/// A namespace, as far as its CronJobs get something from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// `metadata.uid`.
    pub uid: Uid,
    /// `metadata.name`.
    pub name: Box<str>,
    /// The options in its annotations; `None` without any.
    pub options: Option<Box<NamespaceOptions>>,
    /// The last time at which the client that owns the annotation of the freeze changed anything.
    pub freeze_changed: Option<Timestamp>,
}

/// A calendar of the option `not-on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarFacts {
    /// `metadata.uid` of the ConfigMap.
    pub uid: Uid,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// Its dates, or why they cannot be used.
    pub calendar: ReadCalendar,
}

/// A freeze of a namespace, as far as it was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreezeSpan {
    /// The namespace.
    pub namespace: Box<str>,
    /// It did not begin earlier.
    pub earliest_begin: Timestamp,
    /// It had begun by then.
    pub from: Timestamp,
    /// It still held until then.
    pub until: Timestamp,
    /// It did not end later.
    pub latest_end: Timestamp,
    /// Its reason; may be empty.
    pub reason: Box<str>,
}

/// The kinds that are read if the account may. Without them, the view knows less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::observe) enum OptionalKind {
    Namespace,
    Calendar,
}

/// The kinds that the view needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::observe) enum Kind {
    CronJob,
    Job,
}

impl Kind {
    pub(in crate::observe) const ALL: [Kind; 2] = [Kind::CronJob, Kind::Job];
}

/// What the history stores, in the order in which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A Job in a new form; replaces the former record of the same `job_uid`.
    Run {
        /// `metadata.namespace` of Job and CronJob.
        namespace: Box<str>,
        /// `metadata.name` of the CronJob.
        cron_job_name: Box<str>,
        /// The Job.
        run: Run,
    },
    /// A CronJob was created, changed or deleted.
    Change(CronJobChange),
    /// A freeze began, changed or ended; replaces the former record with the same `from`.
    Freeze(FreezeSpan),
    /// The end of the current period of observation moves; a new `from` begins a period.
    Observation(Observation),
}
