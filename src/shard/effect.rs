//! Everything that a shard can want done. Data: the shell performs it and answers with an [`Input`](super::Input).

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    ids::{CronJobIdentity, ResourceVersion, Uid},
    record::{CronJobStatus, JobTemplate, RetainedMetadata},
};

/// Something to be done.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Create a Job; answered once by `JobCreateAnswered`.
    CreateJob(JobOrder),
    /// Delete a Job; answered once by `JobDeleteAnswered`.
    DeleteJob(JobDelete),
    /// Look a Job up by namespace and name; answered once by `JobLookedUp`.
    LookUpJob(JobLookUp),
    /// Write a CronJob's status; a later one for the same CronJob takes the place of one not sent yet. Each one sent is answered by `StatusAnswered`.
    WriteStatus(StatusWrite),
    /// Emit an Event on the CronJob; not answered, may be dropped when there are too many.
    EmitEvent(CronJobEvent),
}

/// A Job that we decided to create.
#[derive(Clone, Debug)]
pub struct JobOrder {
    /// Whose Job.
    pub cron_job: Arc<CronJobIdentity>,
    /// Its name (B-11.1).
    pub name: Box<str>,
    /// The slot that it is for.
    pub slot: Timestamp,
    /// The slot in the CronJob's zone, as the annotation has it (B-11.3).
    pub scheduled_timestamp: Box<str>,
    /// What it is made from.
    pub template: Arc<JobTemplate>,
    /// The instant by which it should be created, which gives the order of sending: slot and starting deadline, else the next slot.
    pub deadline: Timestamp,
    /// Not to be sent at or after this instant: it would be superseded or too late (B-9.7 and its difference). Answer `Expired`.
    pub expires_at: Option<Timestamp>,
    /// How many times this slot's create was tried before.
    pub n_attempts_before: u32,
    /// Whether it came off the wheel at its instant; not when it was held back or is caught up on.
    pub is_on_time: bool,
}

/// A Job to delete, in the background, under its uid as precondition (B-4.4).
#[derive(Clone, Debug)]
pub struct JobDelete {
    /// Whose Job.
    pub cron_job: Arc<CronJobIdentity>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Uid,
    /// Whether a create waits for it: then it goes with the creates, else behind them.
    pub is_for_replace: bool,
}

/// A Job to look up. The answer carries the whole question: two of them may ask for one name and mean different Jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLookUp {
    /// On whose behalf.
    pub cron_job: Arc<CronJobIdentity>,
    /// The Job's namespace.
    pub namespace: Box<str>,
    /// The Job's name.
    pub name: Box<str>,
    /// The uid by which the active list has it (B-5.4); none where whatever bears the slot's name is asked for (B-12.3).
    pub listed_uid: Option<Uid>,
}

/// A status to write whole, on the object as last seen (B-13, B-16.4).
#[derive(Clone, Debug)]
pub struct StatusWrite {
    /// Whose status.
    pub cron_job: Arc<CronJobIdentity>,
    /// The version that it was built on.
    pub resource_version: ResourceVersion,
    /// What the write must leave as it is.
    pub retained_metadata: Arc<RetainedMetadata>,
    /// The status.
    pub status: CronJobStatus,
    /// Whether something waits for it (a delete, a short-lived Job): then it goes at once, else with the next flush.
    pub is_urgent: bool,
}

/// An Event on a CronJob (B-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJobEvent {
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// The version of the CronJob that it speaks of.
    pub resource_version: ResourceVersion,
    /// What happened; its type follows from it.
    pub reason: EventReason,
    /// The text.
    pub message: String,
}

/// The type of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// `Normal`.
    Normal,
    /// `Warning`.
    Warning,
}

impl EventType {
    /// As Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// The reason of an Event (B-14), as the built-in controller spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is one row of the table of B-14")]
pub enum EventReason {
    UnexpectedJob,
    SawCompletedJob,
    MissingJob,
    UnknownTimeZone,
    UnsupportedSchedule,
    UnparseableSchedule,
    UnParseableCronJobSchedule,
    InvalidSchedule,
    TooManyMissedTimes,
    MissSchedule,
    JobAlreadyActive,
    SuccessfulDelete,
    FailedDelete,
    SuccessfulCreate,
    FailedCreate,
    /// Ours: a Job may not be looked up.
    FailedLookUp,
    /// Ours: the object cannot be understood (a reading of the design, not of B-14).
    UndecodableCronJob,
    /// Ours: nothing is due before the stored cursor.
    LastScheduleTimeInFuture,
    /// Ours: annotations of the template were left out.
    ReservedAnnotations,
    /// Ours: the template is too large to be kept.
    TemplateNotKept,
    /// Ours: watches do not show a Job.
    ShardLabelMissing,
    /// Ours: status writes fail.
    FailedStatusUpdate,
}

impl EventReason {
    /// As the built-in controller spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            EventReason::UnexpectedJob => "UnexpectedJob",
            EventReason::SawCompletedJob => "SawCompletedJob",
            EventReason::MissingJob => "MissingJob",
            EventReason::UnknownTimeZone => "UnknownTimeZone",
            EventReason::UnsupportedSchedule => "UnsupportedSchedule",
            EventReason::UnparseableSchedule => "UnparseableSchedule",
            EventReason::UnParseableCronJobSchedule => "UnParseableCronJobSchedule",
            EventReason::InvalidSchedule => "InvalidSchedule",
            EventReason::TooManyMissedTimes => "TooManyMissedTimes",
            EventReason::MissSchedule => "MissSchedule",
            EventReason::JobAlreadyActive => "JobAlreadyActive",
            EventReason::SuccessfulDelete => "SuccessfulDelete",
            EventReason::FailedDelete => "FailedDelete",
            EventReason::SuccessfulCreate => "SuccessfulCreate",
            EventReason::FailedCreate => "FailedCreate",
            EventReason::FailedLookUp => "FailedLookUp",
            EventReason::UndecodableCronJob => "UndecodableCronJob",
            EventReason::LastScheduleTimeInFuture => "LastScheduleTimeInFuture",
            EventReason::ReservedAnnotations => "ReservedAnnotations",
            EventReason::TemplateNotKept => "TemplateNotKept",
            EventReason::ShardLabelMissing => "ShardLabelMissing",
            EventReason::FailedStatusUpdate => "FailedStatusUpdate",
        }
    }

    /// `Normal` or `Warning` (B-14).
    pub fn event_type(self) -> EventType {
        match self {
            EventReason::SawCompletedJob
            | EventReason::MissingJob
            | EventReason::JobAlreadyActive
            | EventReason::SuccessfulDelete
            | EventReason::SuccessfulCreate => EventType::Normal,
            EventReason::UnexpectedJob
            | EventReason::UnknownTimeZone
            | EventReason::UnsupportedSchedule
            | EventReason::UnparseableSchedule
            | EventReason::UnParseableCronJobSchedule
            | EventReason::InvalidSchedule
            | EventReason::TooManyMissedTimes
            | EventReason::MissSchedule
            | EventReason::FailedDelete
            | EventReason::FailedCreate
            | EventReason::FailedLookUp
            | EventReason::UndecodableCronJob
            | EventReason::LastScheduleTimeInFuture
            | EventReason::ReservedAnnotations
            | EventReason::TemplateNotKept
            | EventReason::ShardLabelMissing
            | EventReason::FailedStatusUpdate => EventType::Warning,
        }
    }
}
