//! Runs that take longer than the time to the next one.

use jiff::{SignedDuration, Timestamp};

use super::{CronJobAdviceInput, about, entry, full_name};
use crate::{
    observe::{
        facts::CronJobFacts,
        view::Advice,
        words::{duration_words, thousands},
    },
    schedule::ConcurrencyPolicy,
};

/// Maximum number of CronJobs with a sentence of their own.
const NAMED_MAX: usize = 5;

/// Jobs are named by the minute, so a CronJob starts no more than one in a minute.
const PERIOD_MIN: SignedDuration = SignedDuration::from_mins(1);

/// Number of future slots whose shortest distance counts as the period.
const SLOTS: usize = 10;

pub(super) fn advice(cron_jobs: &[CronJobAdviceInput<'_>], now: Timestamp) -> Vec<Advice> {
    let mut long: Vec<(&CronJobAdviceInput<'_>, SignedDuration)> = cron_jobs
        .iter()
        .filter(|input| !input.facts.is_suspended)
        .filter_map(|input| {
            let run_time = input
                .run_time_p95
                .or(input.run_time_p50)
                .filter(|run_time| *run_time > PERIOD_MIN)?;
            let period = shortest_period(input.facts, now).filter(|period| run_time > *period)?;
            Some((input, period))
        })
        .collect();
    // The longest in relation to its period first.
    long.sort_by(|(one, one_period), (other, other_period)| {
        ratio(other, *other_period).total_cmp(&ratio(one, *one_period))
    });
    let named = long.iter().take(NAMED_MAX);
    let mut advice: Vec<Advice> = named.filter_map(|(input, period)| of_one(input, *period)).collect();
    let rest: Vec<&CronJobAdviceInput<'_>> = long.iter().skip(NAMED_MAX).map(|(input, _)| *input).collect();
    advice.extend(about(
        KIND,
        &rest,
        |name| format!("{name} takes longer than the time to its next slot, too."),
        |n| {
            format!(
                "{} other CronJobs take longer than the time to their next slot.",
                thousands(n as u64)
            )
        },
    ));
    advice
}

const KIND: &str = "RunTimeAbovePeriod";

fn of_one(input: &CronJobAdviceInput<'_>, period: SignedDuration) -> Option<Advice> {
    let takes = match (input.run_time_p50, input.run_time_p95) {
        (Some(p50), _) if p50 > period => format!("takes {}", duration_words(p50)),
        (_, Some(p95)) => format!("takes {} or more in one run of twenty", duration_words(p95)),
        (_, None) => return None,
    };
    let so = match input.facts.concurrency_policy {
        ConcurrencyPolicy::Allow => "runs overlap",
        ConcurrencyPolicy::Forbid => "Forbid holds runs back",
        ConcurrencyPolicy::Replace => "Replace ends runs before they finish",
    };
    let sentence = format!(
        "{} {takes} and is due every {}, so {so}.",
        full_name(input.facts),
        every(period)
    );
    Some(entry(KIND, sentence, &[input]))
}

/// `minute`, `20 minutes`.
fn every(period: SignedDuration) -> String {
    let words = duration_words(period);
    match words.strip_prefix("1 ") {
        Some(unit) if !unit.contains(' ') => unit.to_owned(),
        _ => words,
    }
}

/// The shortest time between the next slots, and no less than [`PERIOD_MIN`].
fn shortest_period(facts: &CronJobFacts, now: Timestamp) -> Option<SignedDuration> {
    let anchor = facts.last_schedule_time.unwrap_or(facts.created);
    let first = facts.schedule.next_run(anchor, now);
    let next = |at: &Timestamp| facts.schedule.next_run(anchor, *at);
    let slots: Vec<Timestamp> = std::iter::successors(first, next).take(SLOTS).collect();
    let periods = slots.windows(2).map(|pair| pair[1].duration_since(pair[0]));
    periods.min().map(|period| period.max(PERIOD_MIN))
}

fn ratio(input: &CronJobAdviceInput<'_>, period: SignedDuration) -> f64 {
    let run_time = input.run_time_p95.or(input.run_time_p50).unwrap_or_default();
    run_time.as_secs_f64() / period.as_secs_f64().max(1.0)
}
