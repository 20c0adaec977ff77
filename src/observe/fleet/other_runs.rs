//! Jobs without a slot of their own: started by hand, second ones of a slot, and those that outlived their slot.

use super::{
    cron_job::{CronJob, RunUpdate},
    second::Second,
    slot_record::SlotRecord,
};
use crate::observe::facts::{Creator, Run, RunResult};

/// Maximum number of Jobs of one CronJob that run and have no kept slot.
const RUNNING_MAX: usize = 1_000;

/// Maximum number of finished Jobs of one CronJob without a slot of their own.
const OTHER_RUNS_MAX: usize = 20;

/// A Job without a slot of its own.
#[derive(Clone, Debug)]
pub(super) struct OtherRun {
    pub(super) run: Run,
    pub(super) is_kept: bool,
    /// Whether its slot was dropped while it ran. It leaves when it ends.
    pub(super) had_slot: bool,
}

impl OtherRun {
    /// Whether Forbid waits for the Job at a slot while it runs: it is that of an earlier slot, or one that `run-now` asked
    /// for, or any if the CronJob counts Jobs that others create.
    pub(super) fn is_active_before(&self, slot: Second, counts_manual_jobs: bool) -> bool {
        match self.run.slot {
            Some(of_run) => Second::floor(of_run) < slot,
            None => counts_manual_jobs || self.run.creator == Creator::Cronwheel,
        }
    }
}

impl CronJob {
    /// The Jobs of a slot beside its first one.
    pub(super) fn other_jobs(&self, slot: &SlotRecord) -> impl Iterator<Item = &Run> {
        let at = Some(slot.at).filter(|_| slot.has_job());
        let others = self.other_runs.iter().map(|other| &other.run);
        others.filter(move |run| at.is_some() && run.slot.map(Second::floor) == at)
    }

    /// The Jobs that belong to none of the slots that are kept.
    pub(super) fn jobs_without_slot(&self) -> impl Iterator<Item = &Run> {
        let runs = self.other_runs.iter().map(|other| &other.run);
        runs.filter(|run| {
            let at = run.slot.map(Second::floor);
            let place = at.and_then(|at| self.slots.binary_search_by_key(&at, |slot| slot.at).ok());
            place.is_none_or(|place| !self.slots[place].has_job())
        })
    }

    /// Adds a Job without a slot of its own, or its new form.
    pub(super) fn put_other(&mut self, run: &Run, is_kept: bool) -> RunUpdate {
        let place = self
            .other_runs
            .iter()
            .position(|other| other.run.job_uid == run.job_uid);
        if let Some(place) = place {
            let other = &mut self.other_runs[place];
            let is_changed = other.run != *run;
            (other.run, other.is_kept) = (run.clone(), is_kept);
            let has_ended = other.had_slot && run.result != RunResult::Running;
            if has_ended {
                self.other_runs.remove(place);
            }
            let has_failed = has_ended && matches!(run.result, RunResult::Failed(_));
            return RunUpdate {
                is_changed,
                failed_slot: run.slot.filter(|_| has_failed).map(Second::floor),
                ..RunUpdate::default()
            };
        }
        let slot = run.slot.map(Second::floor);
        let is_dropped = slot.is_some() && slot <= self.dropped_until;
        if is_dropped && run.result != RunResult::Running {
            return RunUpdate::default();
        }
        self.add_other(OtherRun {
            run: run.clone(),
            is_kept,
            had_slot: is_dropped,
        });
        RunUpdate {
            is_changed: true,
            ..RunUpdate::default()
        }
    }

    pub(super) fn add_other(&mut self, other: OtherRun) {
        let created = other.run.created;
        let place = self.other_runs.partition_point(|other| other.run.created <= created);
        self.other_runs.insert(place, other);
        self.bound_other_runs();
    }

    pub(super) fn bound_other_runs(&mut self) {
        let is_running = |other: &OtherRun| other.run.result == RunResult::Running;
        let n_running = self.other_runs.iter().filter(|other| is_running(other)).count();
        let mut n_finished_excess = (self.other_runs.len() - n_running).saturating_sub(OTHER_RUNS_MAX);
        let mut n_running_excess = n_running.saturating_sub(RUNNING_MAX);
        self.other_runs.retain(|other| {
            let n_excess = if is_running(other) {
                &mut n_running_excess
            } else {
                &mut n_finished_excess
            };
            let is_excess = *n_excess > 0;
            *n_excess = n_excess.saturating_sub(1);
            !is_excess
        });
    }
}
