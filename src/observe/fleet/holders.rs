//! The Jobs that Forbid waits for at a slot.

use super::{cron_job::CronJob, observations::Observations, second::Second, slot_record::Outcome};
use crate::observe::{facts::RunResult, slot::LATE_AFTER};

/// Number of Jobs of earlier slots that are looked at for one that holds a slot.
const HOLDERS_EXAMINED_MAX: usize = 64;

/// A Job that Forbid waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The Job of the slot with this place.
    Slot(usize),
    /// One of the other Jobs.
    Other(usize),
}

/// The Job that Forbid waits for at a slot, and its end: the one that ends last. `None` if no Job ran then.
pub(super) fn holder(cron_job: &CronJob, index: usize) -> Option<(Holder, Option<Second>)> {
    holder_at(cron_job, index, cron_job.start_of(index)?)
}

/// The same for a slot that can start at `start`, and not before.
pub(super) fn holder_at(cron_job: &CronJob, index: usize, start: Second) -> Option<(Holder, Option<Second>)> {
    let with_jobs = (0..index).rev().filter(|place| cron_job.slots[*place].has_job());
    holder_among(cron_job, (index, start), with_jobs)
}

/// The same as [`holder_at`]. `with_jobs` are the places of earlier slots with Jobs, the latest first.
pub(super) fn holder_among(
    cron_job: &CronJob,
    (index, start): (usize, Second),
    with_jobs: impl Iterator<Item = usize>,
) -> Option<(Holder, Option<Second>)> {
    let at = cron_job.slots.get(index)?.at;
    let latest_creation = start.plus_duration(LATE_AFTER);
    let with_jobs = with_jobs.take(HOLDERS_EXAMINED_MAX);
    let with_jobs = with_jobs.map(|place| (place, &cron_job.slots[place]));
    let slots = with_jobs.filter(|(_, slot)| slot.created <= latest_creation);
    let slots = slots.map(|(place, slot)| (Holder::Slot(place), slot.job_end()));
    let counts_manual_jobs = cron_job.options_at(index).counts_manual_jobs;
    let others = cron_job.other_runs.iter().enumerate();
    let others = others.filter(|(_, other)| {
        other.is_active_before(at, counts_manual_jobs) && Second::floor(other.run.created) <= latest_creation
    });
    let others = others.map(|(place, other)| {
        let end = other.run.finished.unwrap_or(other.run.created);
        let is_running = other.run.result == RunResult::Running;
        (Holder::Other(place), (!is_running).then(|| Second::floor(end)))
    });
    let held = slots.chain(others).filter(|(_, end)| end.is_none_or(|end| end > start));
    held.max_by_key(|(_, end)| end.unwrap_or(Second::MAX))
}

/// Until when Jobs whose end nobody saw may have held a slot, if they may have. `with_jobs` are the places of earlier slots
/// with Jobs, the latest first.
pub(super) fn unseen_holder_end(
    cron_job: &CronJob,
    (index, start): (usize, Second),
    with_jobs: impl Iterator<Item = usize>,
    observations: &Observations,
) -> Option<Second> {
    let at = cron_job.slots.get(index)?.at;
    let latest_creation = start.plus_duration(LATE_AFTER);
    let with_jobs = with_jobs.take(HOLDERS_EXAMINED_MAX);
    let gone = with_jobs
        .map(|place| &cron_job.slots[place])
        .filter(|slot| slot.outcome == Outcome::Gone);
    let slots = gone.map(|slot| (slot.created, slot.finished));
    let counts_manual_jobs = cron_job.options_at(index).counts_manual_jobs;
    let others = cron_job.other_runs.iter();
    let others = others
        .filter(|other| other.run.result == RunResult::Gone && other.is_active_before(at, counts_manual_jobs))
        .map(|other| &other.run);
    let others = others.map(|run| (Second::floor(run.created), run.finished.map(Second::floor)));
    let created_before = slots.chain(others).filter(|(created, _)| *created <= latest_creation);
    // The first list after it did not have the Job.
    let ends = created_before.map(|(created, last_seen)| {
        let last_seen = last_seen.unwrap_or(created);
        observations.begin_after(last_seen).unwrap_or(Second::MAX)
    });
    ends.filter(|end| *end > start).max()
}
