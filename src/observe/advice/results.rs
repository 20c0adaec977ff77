//! CronJobs that never succeeded, and those that have been suspended for long.

use jiff::{SignedDuration, Timestamp};

use super::{CronJobAdviceInput, about};
use crate::observe::{view::Advice, words::thousands};

const MONTH: SignedDuration = SignedDuration::from_hours(30 * 24);

pub(super) fn never_succeeded(cron_jobs: &[CronJobAdviceInput<'_>]) -> Option<Advice> {
    // A CronJob without a failed run may just be in its first run.
    let is_meant = |input: &&CronJobAdviceInput<'_>| {
        input.facts.last_successful_time.is_none() && input.n_succeeded == 0 && input.n_failed > 0
    };
    let meant: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_meant).collect();
    let n_failed: u64 = meant.iter().map(|input| input.n_failed).sum();
    let failed = match n_failed {
        1 => "1 known run failed".to_owned(),
        n_failed => format!("{} known runs failed", thousands(n_failed)),
    };
    about(
        "NeverSucceeded",
        &meant,
        |name| format!("{name} never succeeded: {failed}."),
        |n| format!("{} CronJobs never succeeded: {failed}.", thousands(n as u64)),
    )
}

/// The last change of the spec is the earliest time at which the CronJob may have been suspended.
pub(super) fn suspended_for_long(cron_jobs: &[CronJobAdviceInput<'_>], now: Timestamp) -> Option<Advice> {
    let is_meant = |input: &&CronJobAdviceInput<'_>| {
        let since = input.facts.spec_changed.map(|changed| now.duration_since(changed));
        input.facts.is_suspended && since > Some(MONTH)
    };
    let meant: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_meant).collect();
    about(
        "SuspendedForMonth",
        &meant,
        |name| format!("{name} has been suspended for more than a month."),
        |n| {
            format!(
                "{} CronJobs have been suspended for more than a month.",
                thousands(n as u64)
            )
        },
    )
}
