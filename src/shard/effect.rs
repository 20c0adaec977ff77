//! The actions that a shard can order. They are data: the shell performs them and answers with an
//! [`OrderAnswer`].

use std::sync::Arc;

use jiff::Timestamp;

#[cfg(doc)]
use super::OrderAnswer;
use super::{
    ids::{CronJobIdentity, ResourceVersion, Uid},
    record::{CronJobStatus, JobTemplate, KeptText},
};

/// An action.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Create a Job; answered once by [`OrderAnswer::Create`].
    CreateJob(JobCreate),
    /// Delete a Job; answered once by [`OrderAnswer::Delete`].
    DeleteJob(JobDelete),
    /// Look up a Job by namespace and name; answered once by [`OrderAnswer::LookUp`].
    LookUpJob(JobLookUp),
    /// Withdraw a `CreateJob` or a `DeleteJob` that is not sent yet. It is answered by `Withdrawn` then. A request that
    /// is sent is answered as if it had not been withdrawn, but it is not sent a second time.
    Withdraw(Withdrawal),
    /// Write a CronJob's status. A later write for the same CronJob replaces one not sent yet. Each write that is sent
    /// is answered by [`OrderAnswer::Status`].
    WriteStatus(StatusWrite),
    /// Emit an Event on the CronJob. Not answered; may be dropped under load.
    EmitEvent(CronJobEvent),
}

/// A Job to create.
#[derive(Clone, Debug)]
pub struct JobCreate {
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// Its name (B-11.1).
    pub name: Box<str>,
    /// The slot.
    pub slot: Timestamp,
    /// The instant at which it should start: the slot, or later with the option `spread`. Lateness counts from here.
    pub start: Timestamp,
    /// The slot in the CronJob's zone, for the annotation (B-11.3).
    pub scheduled_timestamp: Box<str>,
    /// The template of the Job.
    pub template: Arc<JobTemplate>,
    /// The instant by which the Job should exist: start plus starting deadline, else the next slot. It only determines
    /// which create is sent first; after `expires_at` none is sent.
    pub wanted_by: Timestamp,
    /// The create is not sent at or after this instant, when it would be superseded or too late (B-9.7 and its
    /// difference). The answer is then `Withdrawn`.
    pub expires_at: Option<Timestamp>,
    /// The latest instant at which the API server may store the Job, even if another replica leads the shard by then.
    /// That replica decides the same slot, and its create fails because the name is taken: it decides a later slot
    /// only after this instant. `None` if the Job may be deleted before its slot is stored: its name would not
    /// protect the slot.
    pub store_by: Option<Timestamp>,
    /// The number of failed attempts to create this slot's Job.
    pub n_attempts_before: u32,
    /// Whether the slot is started at its instant, not after a delay and not as a catch-up.
    pub is_on_time: bool,
    /// The instant at which the Job should have started, from which its lateness counts. `None` if its tenant has delayed
    /// it: by a suspension, a freeze, `Forbid`, a Job that the API server refuses, or a change of the CronJob.
    pub late_from: Option<Timestamp>,
    /// The token of a run that is asked for (O-10). Its Job has no slot: `slot` is the instant of the order.
    pub run_token: Option<Box<str>>,
}

/// A Job to delete, with background propagation and its uid as precondition (B-4.4).
#[derive(Clone, Debug)]
pub struct JobDelete {
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Uid,
    /// Whether a create waits for the delete. Such a delete is sent with the creates, others after them.
    pub is_for_replace: bool,
}

/// A request to withdraw, since its CronJob has changed or is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// The Job whose delete for Replace is withdrawn; `None` for the CronJob's create.
    pub job: Option<Uid>,
}

/// A Job to look up. The answer repeats the whole request, since two requests for one name may mean different Jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLookUp {
    /// The CronJob on whose behalf the Job is looked up.
    pub cron_job: Arc<CronJobIdentity>,
    /// The Job's namespace.
    pub namespace: Box<str>,
    /// The Job's name.
    pub name: Box<str>,
    /// The uid of the Job in the active list (B-5.4); `None` when looking for any Job with the slot's name (B-12.3).
    pub listed_uid: Option<Uid>,
}

/// A complete status to write, based on the last observed object (B-13, B-16.4).
#[derive(Clone, Debug)]
pub struct StatusWrite {
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// The version that the status is based on.
    pub resource_version: ResourceVersion,
    /// Metadata that the write must not change.
    pub retained_metadata: Arc<KeptText>,
    /// The status.
    pub status: CronJobStatus,
    /// Whether a delete or a short-lived Job waits for it. An urgent write is sent at once, others with the next flush.
    pub is_urgent: bool,
}

/// An Event on a CronJob (B-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronJobEvent {
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// The version of the CronJob that the Event refers to.
    pub resource_version: ResourceVersion,
    /// The reason, which determines the type.
    pub reason: EventReason,
    /// The message.
    pub message: String,
}

macro_rules! event_reasons {
    ($($(#[$doc:meta])* $event_type:ident $reason:ident,)*) => {
        /// The reason of an Event (B-14), as the built-in controller spells it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is one row of the table of B-14")]
        pub enum EventReason {
            $($(#[$doc])* $reason,)*
        }

        impl EventReason {
            /// The reason as it appears in the Event.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(EventReason::$reason => stringify!($reason),)*
                }
            }

            /// The type of the Event (B-14), as Kubernetes spells it.
            pub fn event_type(self) -> &'static str {
                match self {
                    $(EventReason::$reason => stringify!($event_type),)*
                }
            }

            /// Whether the type of the Event is `Warning`.
            pub fn is_warning(self) -> bool {
                self.event_type() == "Warning"
            }
        }
    };
}

event_reasons! {
    Warning UnexpectedJob,
    Normal SawCompletedJob,
    Normal MissingJob,
    Warning UnknownTimeZone,
    Warning UnsupportedSchedule,
    Warning UnparseableSchedule,
    Warning UnParseableCronJobSchedule,
    Warning InvalidSchedule,
    Warning TooManyMissedTimes,
    Warning MissSchedule,
    Normal JobAlreadyActive,
    Normal SuccessfulDelete,
    Warning FailedDelete,
    Normal SuccessfulCreate,
    Warning FailedCreate,
    /// Added by cronwheel: a Job may not be looked up.
    Warning FailedLookUp,
    /// Added by cronwheel: the object cannot be decoded (a design decision, not part of B-14).
    Warning UndecodableCronJob,
    /// Added by cronwheel: it panicked when it handled the CronJob.
    Warning InternalError,
    /// Added by cronwheel: nothing is due before the stored cursor.
    Warning LastScheduleTimeInFuture,
    /// Added by cronwheel: annotations of the template were omitted.
    Warning ReservedAnnotations,
    /// Added by cronwheel: an annotation of the CronJob has an invalid value.
    Warning InvalidAnnotation,
    /// Added by cronwheel: an option of the CronJob has an invalid value.
    Warning InvalidOption,
    /// Added by cronwheel: another controller acts on the CronJob and does not follow its options.
    Warning IgnoredOption,
    /// Added by cronwheel: a run that was asked for is not started.
    Warning RunNowRefused,
    /// Added by cronwheel: the template is too large to be held in memory.
    Warning TemplateNotKept,
    /// Added by cronwheel: status writes fail.
    Warning FailedStatusUpdate,
}
