//! What we keep of a CronJob and of a Job: validated once when it is decoded, trusted afterwards.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use jiff::Timestamp;

use super::ids::{CronJobIdentity, ResourceVersion, Uid};
pub use crate::schedule::{ConcurrencyPolicy, CronJobSchedule};
use crate::shard::ShardLabels;

/// A CronJob as last seen.
#[derive(Clone, Debug)]
pub struct CronJobRecord {
    /// Who it is.
    pub identity: Arc<CronJobIdentity>,
    /// The version that was seen.
    pub resource_version: ResourceVersion,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
    /// `spec.schedule` and `spec.timeZone`.
    pub schedule: CronJobSchedule,
    /// `spec.startingDeadlineSeconds`, never negative.
    pub starting_deadline_seconds: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// `spec.suspend`.
    pub is_suspended: bool,
    /// `spec.successfulJobsHistoryLimit`; none keeps all (B-4.1).
    pub successful_jobs_history_limit: Option<u32>,
    /// `spec.failedJobsHistoryLimit`; none keeps all (B-4.1).
    pub failed_jobs_history_limit: Option<u32>,
    /// What its Jobs are made from.
    pub template: Arc<JobTemplate>,
    /// The metadata that a status write must send back unchanged (B-16.4).
    pub retained_metadata: Arc<RetainedMetadata>,
    /// `status`.
    pub status: CronJobStatus,
}

impl CronJobRecord {
    pub(crate) fn template_bytes(&self) -> usize {
        self.template.body.n_bytes()
    }

    pub(crate) fn metadata_bytes(&self) -> usize {
        self.retained_metadata.members.n_bytes()
    }

    /// Drops the text of the template.
    pub(crate) fn drop_template(&mut self) {
        self.template = Arc::new(JobTemplate {
            body: self.template.body.without_text(),
            splice_offsets: self.template.splice_offsets,
            ttl_seconds_after_finished: self.template.ttl_seconds_after_finished,
            had_reserved_annotations: self.template.had_reserved_annotations,
        });
    }

    /// Drops the text of the metadata.
    pub(crate) fn drop_metadata(&mut self) {
        self.retained_metadata = Arc::new(RetainedMetadata {
            members: self.retained_metadata.members.without_text(),
        });
    }
}

/// A Job body but for its name and its slot, ready to be spliced. The core passes it through unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTemplate {
    /// The request body without what differs from run to run; `cluster::encode` knows where that goes.
    pub body: KeptText,
    /// Byte offsets in `body`, ascending: where the Job's name, its `creationTimestamp` and its scheduled timestamp go.
    pub splice_offsets: [u32; 3],
    /// `spec.ttlSecondsAfterFinished` of the template: a Job may be gone so soon after its end.
    pub ttl_seconds_after_finished: Option<i64>,
    /// Annotations of the template were left out, since their prefix is reserved for ours.
    pub had_reserved_annotations: bool,
}

/// Labels, annotations, finalizers and owner references as raw JSON members, for the body of a status write.
#[derive(Debug, PartialEq, Eq)]
pub struct RetainedMetadata {
    /// JSON object members with a leading comma each, or empty: `,"labels":{..},"annotations":{..}`.
    pub members: KeptText,
}

/// A text of a CronJob that may be too large to be kept in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptText {
    /// The text.
    Kept(Box<str>),
    /// The text is not kept. It is read from the API server when it is needed.
    ReadAgain {
        /// Shows whether a text that is read is the one that was not kept.
        digest: u64,
    },
}

impl KeptText {
    /// The text, if it is kept.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            KeptText::Kept(text) => Some(text),
            KeptText::ReadAgain { .. } => None,
        }
    }

    /// Whether two are one text, kept or not.
    pub fn is_same(&self, other: &KeptText) -> bool {
        self.digest() == other.digest()
    }

    fn n_bytes(&self) -> usize {
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
    /// Members of `status` that this version does not know, as raw JSON with a leading comma each.
    pub unknown_members: Option<Box<str>>,
}

/// One entry of `status.active` (B-12.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveJob {
    /// The Job's name.
    pub name: Box<str>,
    /// The Job's namespace, where the entry has one.
    pub namespace: Box<str>,
    /// The Job's uid.
    pub uid: Uid,
    /// The resource version of the Job when it was entered, as written.
    pub resource_version: Box<str>,
}

/// A Job as last seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// The version that was seen.
    pub resource_version: ResourceVersion,
    /// The uid of its controller reference, where that is of kind `CronJob`.
    pub controller: Option<Uid>,
    /// The instant of its scheduled-timestamp annotation (B-11.3), where it has one that can be read.
    pub scheduled: Option<Timestamp>,
    /// How it ended, or none while it runs (B-4.2).
    pub finish: Option<Finish>,
    /// `status.startTime`.
    pub started: Option<Timestamp>,
    /// `status.completionTime`, of a Job with a condition `Complete` that is true (B-5.1).
    pub completed: Option<Timestamp>,
    /// Which shards its labels name.
    pub shard_labels: ShardLabels,
}

/// How a Job ended: its first condition of these types that is true (B-4.2).
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
