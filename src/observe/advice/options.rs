//! Options that cannot be read, and options that nobody follows.

use super::{CronJobAdviceInput, about};
use crate::{
    observe::{view::Advice, words::thousands},
    schedule::options::OptionName,
};

/// The sentence does not repeat the value, which may be any text.
pub(super) fn invalid(cron_jobs: &[CronJobAdviceInput<'_>]) -> Option<Advice> {
    let first = |input: &CronJobAdviceInput<'_>| input.facts.schedule.options().invalid.first().cloned();
    let is_meant = |input: &&CronJobAdviceInput<'_>| first(input).is_some();
    let meant: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_meant).collect();
    let first = first(meant.first()?)?;
    let (annotation, example) = (first.option.annotation(), first.recommended());
    let of = if first.is_of_namespace { " of its namespace" } else { "" };
    about(
        "InvalidOption",
        &meant,
        |name| {
            if first.option == OptionName::NotOn {
                return format!(
                    "{name} names a calendar in {annotation} that cannot be used, and runs as without it; its page says why."
                );
            }
            format!(
                "{name} has an annotation {annotation}{of} whose value cannot be used, and runs as without it; a valid \
                 value is {example:?}."
            )
        },
        |n| {
            format!(
                "{} CronJobs have options whose values cannot be used, and run as without them.",
                thousands(n as u64)
            )
        },
    )
}

/// The built-in controller does not read the options.
pub(super) fn ignored(cron_jobs: &[CronJobAdviceInput<'_>]) -> Option<Advice> {
    let is_meant = |input: &&CronJobAdviceInput<'_>| {
        let (facts, policy) = (input.facts, input.facts.concurrency_policy);
        input.ignores_options && !facts.schedule.options().sentences(policy).is_empty()
    };
    let meant: Vec<&CronJobAdviceInput<'_>> = cron_jobs.iter().filter(is_meant).collect();
    let rest = "that change nothing, because the built-in controller creates the Jobs and ignores them.";
    about(
        "IgnoredOption",
        &meant,
        |name| format!("{name} has options {rest}"),
        |n| format!("{} CronJobs have options {rest}", thousands(n as u64)),
    )
}
