//! The order of Events.

use super::Trial;
use crate::{
    explain::explanation::EventLine,
    shard::{EventReason, JobDelete},
};

/// The stage of an Event in one sync of the built-in controller (B-14, "order inside one sync"). `run` reports a delete
/// when it is answered, which is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SyncStage {
    History,
    ActiveList,
    Schedule,
    Missed,
    Decision,
    /// An Event about a Job that the create found: in the next sync.
    Later,
}

impl Trial<'_> {
    pub(super) fn stage_of(&self, event: &EventLine) -> SyncStage {
        match event.reason {
            EventReason::SuccessfulDelete | EventReason::FailedDelete => {
                let name = event.message.rsplit(' ').next().unwrap_or_default();
                let is_for_replace = |delete: &JobDelete| delete.is_for_replace && *delete.name == *name;
                if self.seen.deletes.iter().any(is_for_replace) {
                    SyncStage::Decision
                } else {
                    SyncStage::History
                }
            }
            EventReason::SawCompletedJob if self.seen.order.is_some() => SyncStage::Later,
            EventReason::UnexpectedJob | EventReason::SawCompletedJob | EventReason::MissingJob => {
                SyncStage::ActiveList
            }
            EventReason::UnknownTimeZone
            | EventReason::UnsupportedSchedule
            | EventReason::UnparseableSchedule
            | EventReason::UnParseableCronJobSchedule
            | EventReason::UndecodableCronJob
            | EventReason::InternalError
            | EventReason::ReservedAnnotations
            | EventReason::InvalidAnnotation
            | EventReason::InvalidOption
            | EventReason::IgnoredOption
            | EventReason::TemplateNotKept
            | EventReason::LastScheduleTimeInFuture => SyncStage::Schedule,
            EventReason::FailedStatusUpdate => SyncStage::Later,
            EventReason::InvalidSchedule | EventReason::TooManyMissedTimes => SyncStage::Missed,
            EventReason::MissSchedule
            | EventReason::JobAlreadyActive
            | EventReason::SuccessfulCreate
            | EventReason::FailedCreate
            | EventReason::FailedLookUp
            | EventReason::RunNowRefused => SyncStage::Decision,
        }
    }
}
