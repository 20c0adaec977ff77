//! Deadlines that are not set.

use super::{CronJobAdviceInput, about};
use crate::{
    observe::{view::Advice, words::thousands},
    schedule::ConcurrencyPolicy,
};

/// A run that Forbid holds back starts when the earlier Job ends, however late that is, unless a deadline ends the wait.
pub(super) fn forbid_without_deadline(cron_jobs: &[CronJobAdviceInput<'_>]) -> Option<Advice> {
    let is_meant =
        |input: &&CronJobAdviceInput<'_>| is_forbid(input) && input.facts.starting_deadline_seconds.is_none();
    let meant: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_meant).collect();
    let rest = "Forbid without startingDeadlineSeconds, so a run that is held back may start hours after its slot.";
    about(
        "ForbidWithoutDeadline",
        &meant,
        |name| format!("{name} uses {rest}"),
        |n| format!("{} CronJobs use {rest}", thousands(n as u64)),
    )
}

/// Those with Forbid come first: there a Job that hangs holds back everything.
pub(super) fn no_active_deadline(cron_jobs: &[CronJobAdviceInput<'_>]) -> Option<Advice> {
    let is_meant = |input: &&CronJobAdviceInput<'_>| !input.facts.has_active_deadline && !input.facts.is_suspended;
    let mut meant: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_meant).collect();
    meant.sort_by_key(|input| !is_forbid(input));
    let n_forbid = meant.iter().filter(|input| is_forbid(input)).count();
    let rest = "no activeDeadlineSeconds, so a Job that hangs never ends";
    about(
        "NoActiveDeadline",
        &meant,
        |name| match n_forbid {
            0 => format!("{name} has {rest}."),
            _ => format!("{name} has {rest}, and Forbid then holds back every later run."),
        },
        |n| {
            let forbid = match n_forbid {
                0 => String::new(),
                n_forbid => format!(
                    "; in {} of them Forbid then holds back every later run",
                    thousands(n_forbid as u64)
                ),
            };
            format!("{} CronJobs have {rest}{forbid}.", thousands(n as u64))
        },
    )
}

fn is_forbid(input: &CronJobAdviceInput<'_>) -> bool {
    input.facts.concurrency_policy == ConcurrencyPolicy::Forbid
}
