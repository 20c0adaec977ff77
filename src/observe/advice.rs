//! What could be better: one sentence for each finding, from the CronJobs, their known runs and the forecast.
//!
//! The sentences name the CronJob if there is one, and otherwise their number; [`Advice::cron_jobs`] names them then.

mod clock_changes;
mod deadlines;
mod options;
mod peaks;
mod results;
mod run_times;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    facts::{CronJobFacts, RunResult},
    fleet::{CronJobView, Fleet},
    forecast::{Forecast, ForecastInput},
    slot::{Slot, SlotOutcome},
    view::{Advice, CronJobName},
};

/// A CronJob with what is known of its runs.
#[derive(Clone, Copy, Debug)]
pub struct CronJobAdviceInput<'a> {
    /// The CronJob.
    pub facts: &'a CronJobFacts,
    /// The median run time of the known runs.
    pub run_time_p50: Option<SignedDuration>,
    /// The 95th percentile of the run time.
    pub run_time_p95: Option<SignedDuration>,
    /// Number of known runs that succeeded.
    pub n_succeeded: u64,
    /// Number of known runs that failed.
    pub n_failed: u64,
    /// Whether the built-in controller runs it, which ignores its options.
    pub ignores_options: bool,
    /// The end of the last freeze of its namespace.
    pub frozen_until: Option<Timestamp>,
}

impl<'a> From<&CronJobAdviceInput<'a>> for ForecastInput<'a> {
    fn from(input: &CronJobAdviceInput<'a>) -> ForecastInput<'a> {
        ForecastInput {
            facts: input.facts,
            ignores_options: input.ignores_options,
            frozen_until: input.frozen_until,
        }
    }
}

impl<'a> From<&CronJobView<'a>> for CronJobAdviceInput<'a> {
    /// Reads the slots, which costs more than the rest, only of a CronJob that may never have succeeded.
    fn from(view: &CronJobView<'a>) -> CronJobAdviceInput<'a> {
        let (n_succeeded, n_failed) = match view.last_success() {
            Some(_) => (0, 0),
            None => n_results(&view.slots()),
        };
        CronJobAdviceInput {
            facts: view.facts,
            run_time_p50: view.run_time_p50,
            run_time_p95: view.run_time_p95,
            n_succeeded,
            n_failed,
            ignores_options: view.ignores_options(),
            frozen_until: ForecastInput::from(*view).frozen_until,
        }
    }
}

/// What the advice needs of a fleet, so that the fleet is not locked while the advice is computed.
#[derive(Clone, Debug)]
pub struct AdviceInputs {
    cron_jobs: Vec<OwnInput>,
    forecast: Forecast,
}

/// A [`CronJobAdviceInput`] that borrows nothing.
#[derive(Clone, Debug)]
struct OwnInput {
    facts: Arc<CronJobFacts>,
    run_time_p50: Option<SignedDuration>,
    run_time_p95: Option<SignedDuration>,
    n_succeeded: u64,
    n_failed: u64,
    ignores_options: bool,
    frozen_until: Option<Timestamp>,
}

impl AdviceInputs {
    /// Reads a fleet.
    pub fn of(fleet: &Fleet) -> AdviceInputs {
        let cron_jobs = fleet.cron_jobs().filter_map(|view| OwnInput::of(&view));
        AdviceInputs {
            cron_jobs: cron_jobs.collect(),
            forecast: fleet.forecast().clone(),
        }
    }

    /// Returns all [`advice`].
    pub fn advice(&self, now: Timestamp) -> Vec<Advice> {
        advice(self.cron_jobs.iter().map(OwnInput::borrowed), &self.forecast, now)
    }
}

impl OwnInput {
    fn of(view: &CronJobView<'_>) -> Option<OwnInput> {
        let facts = view.shared_facts()?;
        let CronJobAdviceInput {
            facts: _,
            run_time_p50,
            run_time_p95,
            n_succeeded,
            n_failed,
            ignores_options,
            frozen_until,
        } = CronJobAdviceInput::from(view);
        Some(OwnInput {
            facts,
            run_time_p50,
            run_time_p95,
            n_succeeded,
            n_failed,
            ignores_options,
            frozen_until,
        })
    }

    fn borrowed(&self) -> CronJobAdviceInput<'_> {
        CronJobAdviceInput {
            facts: &self.facts,
            run_time_p50: self.run_time_p50,
            run_time_p95: self.run_time_p95,
            n_succeeded: self.n_succeeded,
            n_failed: self.n_failed,
            ignores_options: self.ignores_options,
            frozen_until: self.frozen_until,
        }
    }
}

/// Numbers of slots whose runs succeeded and failed.
pub(super) fn n_results(slots: &[Slot]) -> (u64, u64) {
    let (mut n_succeeded, mut n_failed) = (0, 0);
    for slot in slots {
        let SlotOutcome::Started { result, .. } = &slot.outcome else {
            continue;
        };
        match result {
            RunResult::Succeeded => n_succeeded += 1,
            RunResult::Failed(_) => n_failed += 1,
            RunResult::Running | RunResult::Deleted | RunResult::Gone => {}
        }
    }
    (n_succeeded, n_failed)
}

/// Returns all advice, that which needs somebody soonest first. The cost grows with the number of CronJobs and, for the
/// clock changes, of distinct schedules: callers keep the result for a minute or so.
pub fn advice<'a>(
    cron_jobs: impl Iterator<Item = CronJobAdviceInput<'a>>,
    forecast: &Forecast,
    now: Timestamp,
) -> Vec<Advice> {
    let mut cron_jobs: Vec<CronJobAdviceInput<'a>> = cron_jobs.filter(|input| !input.facts.is_deleting).collect();
    cron_jobs.sort_by_key(|input| (&input.facts.namespace, &input.facts.name));
    let mut all = Vec::new();
    all.extend(peaks::advice(&cron_jobs, forecast));
    all.extend(run_times::advice(&cron_jobs, now));
    all.extend(clock_changes::advice(&cron_jobs, now));
    all.extend(options::invalid(&cron_jobs));
    all.extend(options::ignored(&cron_jobs));
    all.extend(results::never_succeeded(&cron_jobs));
    all.extend(deadlines::forbid_without_deadline(&cron_jobs));
    all.extend(deadlines::no_active_deadline(&cron_jobs));
    all.extend(results::suspended_for_long(&cron_jobs, now));
    all
}

/// Advice that concerns several CronJobs: its sentence is `of_one` of the name of a single one, and `of_many` of their
/// number. `None` without any.
fn about(
    kind: &'static str,
    cron_jobs: &[&CronJobAdviceInput<'_>],
    of_one: impl FnOnce(&str) -> String,
    of_many: impl FnOnce(usize) -> String,
) -> Option<Advice> {
    let sentence = match cron_jobs {
        [] => return None,
        [one] => of_one(&full_name(one.facts)),
        many => of_many(many.len()),
    };
    Some(entry(kind, sentence, cron_jobs))
}

fn entry(kind: &'static str, sentence: String, cron_jobs: &[&CronJobAdviceInput<'_>]) -> Advice {
    let named = cron_jobs.iter().take(Advice::NAMES_MAX);
    Advice {
        kind,
        sentence,
        cron_jobs: named.map(|input| name(input.facts)).collect(),
        n_cron_jobs: cron_jobs.len(),
    }
}

fn name(facts: &CronJobFacts) -> CronJobName {
    CronJobName {
        namespace: facts.namespace.clone(),
        name: facts.name.clone(),
    }
}

fn full_name(facts: &CronJobFacts) -> String {
    format!("{}/{}", facts.namespace, facts.name)
}

#[cfg(test)]
mod tests;
