//! The stored form of a CronJob and of a Job: validated once on decoding, trusted afterwards.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;

use super::{
    ids::{CronJobIdentity, ResourceVersion, Uid},
    naming,
};
pub use crate::schedule::{ConcurrencyPolicy, CronJobSchedule};
use crate::{
    schedule::options::{tokens_of, with_token_done},
    shard::TroubleThresholds,
};

/// The owner of a CronJob, as one of its labels names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner(pub Box<str>);

/// A CronJob in its last observed form.
#[derive(Clone, Debug)]
pub struct CronJobRecord {
    /// Namespace, name and uid.
    pub identity: Arc<CronJobIdentity>,
    /// The observed version.
    pub resource_version: ResourceVersion,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
    /// Whether another controller than cronwheel wrote this version, and in it the status.
    pub has_status_of_other: bool,
    /// `spec.schedule` and `spec.timeZone`.
    pub schedule: CronJobSchedule,
    /// `spec.startingDeadlineSeconds`, never negative.
    pub starting_deadline_seconds: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// `spec.suspend`.
    pub is_suspended: bool,
    /// `spec.successfulJobsHistoryLimit`; `None` means no limit (B-4.1).
    pub successful_jobs_history_limit: Option<u32>,
    /// `spec.failedJobsHistoryLimit`; `None` means no limit (B-4.1).
    pub failed_jobs_history_limit: Option<u32>,
    /// The template of its Jobs.
    pub template: Arc<JobTemplate>,
    /// The metadata that a status write must send back unchanged (B-16.4): labels, annotations, finalizers and owner
    /// references as raw JSON members with a leading comma each, or empty: `,"labels":{..},"annotations":{..}`.
    pub retained_metadata: Arc<KeptText>,
    /// The thresholds in its annotations.
    pub trouble_thresholds: TroubleThresholds,
    /// The value of its label that names its owner (`--trouble-label`).
    pub owner: Option<Box<Owner>>,
    /// `status`.
    pub status: CronJobStatus,
}

/// A Job with a shorter `ttlSecondsAfterFinished` may be deleted before its slot is stored.
const SHORT_TTL_SECONDS: i64 = 60;

impl CronJobRecord {
    /// The name of a slot's Job (B-11.1, O-5.5).
    pub fn job_name(&self, slot: Timestamp) -> Box<str> {
        naming::slot_job_name(&self.identity.name, slot, self.schedule.has_seconds())
    }

    /// The name of the Job of a run that is asked for (O-10).
    pub fn run_job_name(&self, token: &str) -> Box<str> {
        naming::run_job_name(&self.identity.name, &self.identity.uid, token)
    }

    /// Whether a Job may be deleted soon after its end by `ttlSecondsAfterFinished`.
    pub(crate) fn has_short_ttl(&self) -> bool {
        let ttl_seconds = self.template.ttl_seconds_after_finished;
        ttl_seconds.is_some_and(|seconds| seconds < SHORT_TTL_SECONDS)
    }

    /// Whether a Job may be deleted before its slot is stored in the status.
    pub(crate) fn has_short_lived_jobs(&self) -> bool {
        let limits = [self.successful_jobs_history_limit, self.failed_jobs_history_limit];
        self.has_short_ttl() || limits.contains(&Some(0))
    }

    /// Drops the text of the template.
    pub(crate) fn drop_template(&mut self) {
        self.template = Arc::new(JobTemplate {
            body: self.template.body.without_text(),
            ..*self.template
        });
    }

    /// Drops the text of the metadata.
    pub(crate) fn drop_metadata(&mut self) {
        self.retained_metadata = Arc::new(self.retained_metadata.without_text());
    }
}

/// The body of a Job without its name and slot, prepared for splicing. The core does not read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTemplate {
    /// The request body without the parts that differ between runs, which `kube_api::objects::encode` inserts.
    pub body: KeptText,
    /// Byte offsets in `body`, ascending, of the Job's name, its `creationTimestamp` and its scheduled timestamp.
    pub splice_offsets: [u32; 3],
    /// The byte offset in `body`, after the others, of the scheduled timestamp in the Pod template, with the option
    /// `pass-scheduled-time`.
    pub pod_splice_offset: Option<u32>,
    /// `spec.ttlSecondsAfterFinished` of the template: the Job may be deleted this long after its end.
    pub ttl_seconds_after_finished: Option<i64>,
    /// Whether annotations of the template were omitted because cronwheel reserves their prefix.
    pub had_reserved_annotations: bool,
}

/// A text of a CronJob that may be too large to be held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptText {
    /// The text is in memory.
    Kept(Box<str>),
    /// The text is not in memory; it is read from the API server when needed.
    ReadAgain {
        /// Identifies the text, so that a text read later can be compared with it.
        digest: u64,
    },
}

impl KeptText {
    /// The text, if it is in memory.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            KeptText::Kept(text) => Some(text),
            KeptText::ReadAgain { .. } => None,
        }
    }

    /// Whether two texts are equal, in memory or not.
    pub fn is_same(&self, other: &KeptText) -> bool {
        match (self, other) {
            (KeptText::Kept(text), KeptText::Kept(other)) => text == other,
            (KeptText::Kept(_), KeptText::ReadAgain { .. }) | (KeptText::ReadAgain { .. }, _) => {
                self.digest() == other.digest()
            }
        }
    }

    /// The memory that the text takes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.as_str().map_or(0, str::len)
    }

    fn without_text(&self) -> KeptText {
        KeptText::ReadAgain { digest: self.digest() }
    }

    fn digest(&self) -> u64 {
        match self {
            KeptText::Kept(text) => {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                hasher.finish()
            }
            KeptText::ReadAgain { digest } => *digest,
        }
    }
}

impl<T: Into<Box<str>>> From<T> for KeptText {
    fn from(text: T) -> KeptText {
        KeptText::Kept(text.into())
    }
}

/// `status` of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CronJobStatus {
    /// `status.active`, in its order.
    pub active: Vec<ActiveJob>,
    /// `status.lastScheduleTime`: the cursor.
    pub last_schedule_time: Option<Timestamp>,
    /// `status.lastSuccessfulTime`.
    pub last_successful_time: Option<Timestamp>,
    /// Members of `status` that this version of cronwheel does not know, as raw JSON with a leading comma each.
    pub unknown_members: Option<Box<str>>,
    /// The tokens of the last runs that were asked for and are answered (O-10): an annotation, which a status write sets.
    pub runs_done: Option<Box<RunTokens>>,
}

/// The tokens of runs that were asked for (O-10), in the form of the annotation. Few CronJobs have any, so the others hold
/// no more than their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTokens(pub Box<str>);

impl CronJobStatus {
    /// The answered tokens, in the form of the annotation.
    pub fn runs_done(&self) -> Option<&str> {
        Some(&self.runs_done.as_ref()?.0)
    }

    /// The answered tokens, the newest first.
    pub fn tokens_done(&self) -> impl Iterator<Item = &str> {
        tokens_of(self.runs_done().unwrap_or_default())
    }

    /// Whether the run of this token is answered.
    pub fn is_run_done(&self, token: &str) -> bool {
        self.tokens_done().any(|done| done == token)
    }

    /// Notes that the run of this token is answered.
    pub fn set_run_done(&mut self, token: &str) {
        let done = with_token_done(self.runs_done().unwrap_or_default(), token);
        self.runs_done = Some(Box::new(RunTokens(done.into())));
    }
}

/// One entry of `status.active` (B-12.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveJob {
    /// The Job's name.
    pub name: Box<str>,
    /// The Job's namespace; empty if the entry has none.
    pub namespace: Box<str>,
    /// The Job's uid.
    pub uid: Uid,
    /// The resource version of the Job when the entry was added, as written.
    pub resource_version: Box<str>,
}

/// The creator of a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JobCreator {
    /// Not known: no annotation names it.
    #[default]
    Unknown,
    /// cronwheel, of an installation that is not known.
    Cronwheel,
    /// This installation of cronwheel: the namespace of its Leases, and its name.
    Installation(Box<str>),
}

/// A Job in its last observed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The observed version.
    pub resource_version: ResourceVersion,
    /// The uid of its controller reference, if that is of kind `CronJob`.
    pub controller: Option<Uid>,
    /// The instant of its scheduled-timestamp annotation (B-11.3), if present and valid.
    pub scheduled: Option<Timestamp>,
    /// The kind of its end; `None` while it runs (B-4.2).
    pub finish: Option<Finish>,
    /// `status.startTime`.
    pub started: Option<Timestamp>,
    /// `status.completionTime`, of a Job with a condition `Complete` that is true (B-5.1).
    pub completed: Option<Timestamp>,
    /// Its creator, as annotations say, which replicas that share CronJobs write.
    pub creator: JobCreator,
    /// The token of the run that was asked for and that it says to be (O-10). Any user may have written it.
    pub run_token: Option<Box<str>>,
}

/// The end of a Job: the first of its conditions with status true and one of these types (B-4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// `Complete`.
    Complete,
    /// `Failed`.
    Failed,
}

impl Finish {
    /// The condition's type, as Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Finish::Complete => "Complete",
            Finish::Failed => "Failed",
        }
    }
}
