//! CronJobs that start nothing any more: why, and what corrects it.

use jiff::Timestamp;

use super::{advice::never_advice, explanation::Explanation, reason::Reason, world::Subject};
use crate::schedule::{CronJobSchedule, options::OptionName};

const SCHEDULE: &str = OptionName::Schedule.annotation();

/// Which schedule matches no instant at all, and the correction.
pub(super) fn nothing_matches(effective: &CronJobSchedule) -> String {
    if effective.options().has_schedules {
        format!("annotation {SCHEDULE}: correct its days of month or its months")
    } else {
        format!("spec.schedule: {}", never_advice(&effective.text))
    }
}

/// The limit of the search for an activation, at the end of a sentence. The option `schedule` has none, but for dates that a
/// calendar does not exclude.
pub fn search_limit(effective: &CronJobSchedule) -> &'static str {
    if effective.options().has_schedules && effective.exclusion().is_none() {
        ""
    } else {
        " within five years"
    }
}

/// Why nothing runs after an instant, and the correction.
pub fn why_never(effective: &CronJobSchedule, from: Timestamp) -> String {
    let options = effective.options();
    let schedule = effective.parsed.as_ref().ok();
    let is_due = schedule.is_some_and(|schedule| schedule.next_after(from, &effective.default_zone).is_some());
    match &options.not_on {
        Some(not_on) if is_due => format!(
            "the ConfigMap {} of the annotation {} excludes every run within five years; correct its dates",
            not_on.name,
            OptionName::NotOn.annotation()
        ),
        _ if options.has_schedules => {
            format!("the schedules of the annotation {SCHEDULE} match no later instant; correct them")
        }
        _ => format!(
            "schedule {:?} matches no instant within five years; {}",
            effective.text,
            never_advice(&effective.text)
        ),
    }
}

/// Why a CronJob that is not at fault otherwise starts nothing any more.
pub(super) fn why_over(subject: &Subject, explanation: &Explanation, now: Timestamp) -> Option<String> {
    let record = subject.record.as_ref().ok()?;
    let since = record.status.last_schedule_time.unwrap_or(record.created);
    let is_over = record.schedule.next_run(since, now).is_none() && !may_start(subject, explanation, now);
    is_over.then(|| format!("never: {}", why_never(&record.schedule, now)))
}

/// Whether a slot of the past may still start, or the CronJob ends otherwise.
fn may_start(subject: &Subject, explanation: &Explanation, now: Timestamp) -> bool {
    match explanation.reason {
        Reason::NotDue
        | Reason::DeadlineExceeded
        | Reason::ScheduleChanged
        | Reason::Missed
        | Reason::Resumed
        | Reason::Excluded => false,
        Reason::Suspended => {
            let resumed = explanation.resumed.as_deref();
            resumed.is_none_or(|resumed| may_start(subject, resumed, now))
        }
        Reason::Frozen => subject
            .frozen(now)
            .is_none_or(|frozen| frozen.thaw(now).n_held_back > 0),
        Reason::Created
        | Reason::Adopted
        | Reason::ForeignJob
        | Reason::CreateFailed
        | Reason::NotStarted
        | Reason::PerhapsResumed
        | Reason::LookUpFailed
        | Reason::Forbidden
        | Reason::AlreadyActive
        | Reason::Deleting
        | Reason::UnknownTimeZone
        | Reason::UnparseableSchedule
        | Reason::NeverRuns
        | Reason::Undecodable => true,
    }
}
