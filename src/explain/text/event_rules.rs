//! The rules of the built-in controller that Events come from.

use crate::shard::EventReason;

/// Returns the rule of an Event, and the difference from the built-in controller.
pub(super) fn rule_of(reason: EventReason) -> &'static str {
    match reason {
        EventReason::UnexpectedJob => "B-5.1; the built-in repeats it at every sync",
        EventReason::SawCompletedJob => "B-5.1",
        EventReason::MissingJob => "B-5.4",
        EventReason::UnknownTimeZone => "B-6.2; the built-in repeats it at every sync",
        EventReason::UnsupportedSchedule => "B-7.1; the built-in repeats it at every sync",
        EventReason::UnparseableSchedule => "B-6.4; the built-in repeats it at every sync",
        EventReason::UnParseableCronJobSchedule => "B-2.2",
        EventReason::InvalidSchedule => "B-6.5; the built-in repeats it at every sync",
        EventReason::TooManyMissedTimes => "B-9.4; it keeps no slot from starting",
        EventReason::MissSchedule => "B-10.1; the built-in never reports it",
        EventReason::JobAlreadyActive => "B-10.3; the built-in repeats it at every sync",
        EventReason::SuccessfulDelete | EventReason::FailedDelete => "B-4.4",
        EventReason::SuccessfulCreate => "B-12.1",
        EventReason::FailedCreate => "B-12.3, B-12.4",
        EventReason::FailedLookUp
        | EventReason::UndecodableCronJob
        | EventReason::InternalError
        | EventReason::TemplateNotKept
        | EventReason::InvalidAnnotation
        | EventReason::InvalidOption
        | EventReason::IgnoredOption
        | EventReason::RunNowRefused => "of cronwheel alone",
        EventReason::FailedStatusUpdate => "B-13.1; the built-in logs it alone",
        EventReason::ReservedAnnotations => "B-11.3; the built-in has no annotations of its own to protect",
        EventReason::LastScheduleTimeInFuture => "B-9.1; the built-in waits in silence",
    }
}
