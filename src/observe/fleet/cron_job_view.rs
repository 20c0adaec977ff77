//! One CronJob for advice and report, and its slots in full.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::{
    Fleet, KEPT_SLOTS_MAX,
    cron_job::CronJob,
    due_slots,
    holders::{self, Holder},
    second::Second,
    shadow,
    slot_record::Outcome,
};
use crate::{
    observe::{
        facts::{CronJobFacts, RunResult},
        forecast::ForecastInput,
        slot::{Doubt, LATE_AFTER, SkipCause, Slot, SlotOutcome},
        view::CronJobName,
    },
    schedule::ConcurrencyPolicy,
};

/// A CronJob of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct CronJobView<'a> {
    /// Its facts.
    pub facts: &'a CronJobFacts,
    /// The median run time of the known runs.
    pub run_time_p50: Option<SignedDuration>,
    /// The 95th percentile of the run time.
    pub run_time_p95: Option<SignedDuration>,
    cron_job: &'a CronJob,
    fleet: &'a Fleet,
}

impl Fleet {
    /// The CronJobs of the cluster, by namespace and name.
    pub fn cron_jobs(&self) -> impl Iterator<Item = CronJobView<'_>> {
        self.cron_jobs.sorted().filter_map(|cron_job| self.view(cron_job))
    }

    /// One CronJob. `None` if the cluster does not have it.
    pub fn cron_job(&self, name: &CronJobName) -> Option<CronJobView<'_>> {
        self.view(self.cron_jobs.by_name(name)?)
    }

    fn view<'a>(&'a self, cron_job: &'a CronJob) -> Option<CronJobView<'a>> {
        let times = RunTimes::of(cron_job);
        Some(CronJobView {
            facts: cron_job.facts.as_deref()?,
            run_time_p50: times.percentile(50),
            run_time_p95: times.percentile(95),
            cron_job,
            fleet: self,
        })
    }

    /// The last slots of a CronJob.
    pub(super) fn last_slots(&self, cron_job: &CronJob) -> Vec<Slot> {
        let first = cron_job.slots.len().saturating_sub(self.config.n_slots_max);
        let unknown = unknown_cursor(cron_job).map(|at| unobserved(cron_job, at));
        let known = self.slots_from(cron_job, first);
        unknown.into_iter().chain(known).collect()
    }

    /// The slots of a CronJob from a place on.
    fn slots_from(&self, cron_job: &CronJob, first: usize) -> Vec<Slot> {
        let places = first..cron_job.slots.len();
        places.map(|place| self.slot(cron_job, place)).collect()
    }

    fn slot(&self, cron_job: &CronJob, place: usize) -> Slot {
        let record = &cron_job.slots[place];
        let of_record = || {
            record.slot_outcome(
                &self.ids,
                || cron_job.job_name(record),
                || holder_name(cron_job, place).unwrap_or_default(),
                || successor_name(cron_job, place),
            )
        };
        let known = (&self.observations, &self.inherited.freezes);
        Slot {
            at: record.at.timestamp(),
            held_until: record.held_until.map(Second::timestamp),
            outcome: self.inherited_outcome(cron_job, place).unwrap_or_else(of_record),
            other_jobs: cron_job.other_jobs(record).map(|run| run.job_name.clone()).collect(),
            with_cronwheel: shadow::with_cronwheel(cron_job, known, place),
        }
    }

    /// The outcome of a slot that follows from what its namespace says.
    fn inherited_outcome(&self, cron_job: &CronJob, place: usize) -> Option<SlotOutcome> {
        let record = cron_job.slots.get(place).filter(|record| !record.has_job())?;
        let calendar = || cron_job.calendar_at(place).unwrap_or_default().into();
        let freeze = || {
            let start = cron_job.start_of(place)?;
            let freeze = self.inherited.freezes.at(&cron_job.name.namespace, start)?;
            Some(freeze.span())
        };
        Some(match record.outcome {
            Outcome::Frozen => SlotOutcome::Skipped(SkipCause::Frozen {
                until: freeze()?.end_timestamp(),
                reason: freeze()?.reason.clone(),
            }),
            Outcome::Excluded => SlotOutcome::Skipped(SkipCause::Excluded {
                calendar: calendar(),
                note: cron_job.excluded_days(place)?.note.clone(),
            }),
            Outcome::CalendarUnread => SlotOutcome::Undecided(Doubt::Calendar(calendar())),
            Outcome::FreezeUnknown => SlotOutcome::Undecided(Doubt::Freeze(freeze()?.end_timestamp())),
            Outcome::SuspensionUnknown => {
                let changed = cron_job.facts.as_deref()?.resumption?.at();
                SlotOutcome::Undecided(Doubt::Suspension(changed))
            }
            Outcome::NotObserved
            | Outcome::Open
            | Outcome::Running
            | Outcome::Succeeded
            | Outcome::Failed
            | Outcome::Deleted
            | Outcome::Gone
            | Outcome::Lost(_)
            | Outcome::Suspended
            | Outcome::HeldByForbid
            | Outcome::ScheduleChanged
            | Outcome::Deleting
            | Outcome::SameMinute
            | Outcome::Missed
            | Outcome::Resumed => return None,
        })
    }
}

impl<'a> From<CronJobView<'a>> for ForecastInput<'a> {
    fn from(view: CronJobView<'a>) -> ForecastInput<'a> {
        let input = view.cron_job.forecast_input(&view.fleet.inherited.freezes);
        ForecastInput {
            facts: view.facts,
            ignores_options: view.ignores_options(),
            frozen_until: input.and_then(|input| input.frozen_until),
        }
    }
}

impl CronJobView<'_> {
    /// Namespace and name.
    pub fn name(&self) -> &CronJobName {
        &self.cron_job.name
    }

    /// Its facts, for those who do not keep the fleet locked.
    pub fn shared_facts(&self) -> Option<Arc<CronJobFacts>> {
        self.cron_job.facts.clone()
    }

    /// The slots that are known, the oldest first.
    pub fn slots(&self) -> Vec<Slot> {
        self.fleet.slots_from(self.cron_job, 0)
    }

    /// The slots between two instants, both included, the oldest first. Those that are due and not known are
    /// [`NotObserved`](crate::observe::slot::SlotOutcome::NotObserved). `None` if there are more than `n_max`.
    pub fn slots_between(&self, from: Timestamp, to: Timestamp, n_max: usize) -> Option<Vec<Slot>> {
        let (before, last) = (self.begin(from), Second::floor(to));
        let known = &self.cron_job.slots;
        let range = known.partition_point(|slot| slot.at <= before)..known.partition_point(|slot| slot.at <= last);
        let mut places = range.into_iter().peekable();
        let mut slots = Vec::new();
        let mut due = due_slots::next_after(self.cron_job, before).filter(|at| *at <= last);
        while due.is_some() || places.peek().is_some() {
            if slots.len() == n_max {
                return None;
            }
            let place = places.next_if(|place| due.is_none_or(|due| known[*place].at <= due));
            let at = place.map_or(due, |place| Some(known[place].at))?;
            slots.push(place.map_or_else(
                || unobserved(self.cron_job, at),
                |place| self.fleet.slot(self.cron_job, place),
            ));
            if due == Some(at) {
                due = due_slots::next_after(self.cron_job, at).filter(|at| *at <= last);
            }
        }
        Some(slots)
    }

    /// The known slots, and those from an instant on that were due before them and of which nothing is known, the oldest
    /// first. The latter are not more than there is room for beside the known ones in [`KEPT_SLOTS_MAX`].
    pub fn slots_since(&self, since: Timestamp) -> Vec<Slot> {
        let unknown = self.unknown_since(since).into_iter();
        let unknown = unknown.map(|at| unobserved(self.cron_job, at));
        unknown.chain(self.slots()).collect()
    }

    /// Number of the slots from an instant on that [`CronJobView::slots_since`] adds because nothing is known of them.
    pub fn n_unknown_since(&self, since: Timestamp) -> u64 {
        let slots = self.unknown_since(since).into_iter();
        let slots = slots.map(|at| unobserved(self.cron_job, at));
        let n_unknown = slots.filter(|slot| slot.outcome == SlotOutcome::NotObserved).count();
        n_unknown.try_into().unwrap_or(u64::MAX)
    }

    /// The due slots from an instant on before the known ones.
    fn unknown_since(&self, since: Timestamp) -> Vec<Second> {
        let known = &self.cron_job.slots;
        let begin = self
            .begin(since)
            .max(self.cron_job.dropped_until.unwrap_or(Second::MIN));
        let last = known
            .first()
            .map(|first| first.at.plus(-1))
            .or(self.cron_job.enumerated);
        let n_max = KEPT_SLOTS_MAX.saturating_sub(known.len());
        match last.filter(|last| begin < *last && n_max > 0) {
            Some(last) => due_slots::last_between(self.cron_job, (begin, last), n_max),
            None => Vec::new(),
        }
    }

    /// The instant after which slots from another one on can be due.
    fn begin(&self, since: Timestamp) -> Second {
        let before = Second::ceil(since).plus(-1);
        before.max(Second::floor(self.facts.created))
    }

    /// The names of the Jobs that run.
    pub fn running_jobs(&self) -> Vec<Box<str>> {
        let others = self.cron_job.other_runs.iter();
        let others = others.filter(|other| other.run.result == RunResult::Running);
        let slots = self.cron_job.slots.iter().filter(|slot| slot.is_running());
        let names = others.map(|other| other.run.job_name.clone());
        names.chain(slots.map(|slot| self.cron_job.job_name(slot))).collect()
    }

    /// Whether [`CronJobView::slots_since`] leaves slots out, because there are too many.
    pub fn is_cut_after(&self, since: Timestamp) -> bool {
        let unknown = self.unknown_since(since);
        let n_slots = unknown.len() + self.cron_job.slots.len();
        let first = unknown.first().copied();
        let first = first.or_else(|| Some(self.cron_job.slots.first()?.at));
        n_slots >= KEPT_SLOTS_MAX && due_slots::next_after(self.cron_job, self.begin(since)) < first
    }

    /// Whether the built-in controller runs it, which ignores its options.
    pub fn ignores_options(&self) -> bool {
        self.cron_job.ignores_options()
    }

    /// The end of the last successful Job, of any time.
    pub fn last_success(&self) -> Option<Timestamp> {
        last_success(self.cron_job)
    }
}

/// A slot of which nothing is known beside what the schedule says.
fn unobserved(cron_job: &CronJob, at: Second) -> Slot {
    let outcome = match cron_job.excluded_at(at) {
        Some((calendar, note)) => SlotOutcome::Skipped(SkipCause::Excluded { calendar, note }),
        None if due_slots::shares_minute(cron_job, at) => SlotOutcome::Skipped(SkipCause::SameMinute),
        None => SlotOutcome::NotObserved,
    };
    Slot {
        at: at.timestamp(),
        held_until: None,
        outcome,
        other_jobs: Vec::new(),
        with_cronwheel: None,
    }
}

/// The slot of the cursor, if nothing is known of any. It had a Job, but nobody knows what became of it.
pub(super) fn unknown_cursor(cron_job: &CronJob) -> Option<Second> {
    let facts = cron_job.facts.as_deref().filter(|_| cron_job.slots.is_empty())?;
    facts.last_schedule_time.map(Second::floor)
}

/// The end of the last successful Job: in the status, or later.
pub(super) fn last_success(cron_job: &CronJob) -> Option<Timestamp> {
    let facts = cron_job.facts.as_deref()?;
    facts
        .last_successful_time
        .max(cron_job.last.succeeded.map(Second::timestamp))
}

/// The Job that holds a slot back.
pub(super) fn holder_name(cron_job: &CronJob, place: usize) -> Option<Box<str>> {
    let (holder, _) = holders::holder(cron_job, place)?;
    Some(match holder {
        Holder::Slot(place) => cron_job.job_name(&cron_job.slots[place]),
        Holder::Other(place) => cron_job.other_runs[place].run.job_name.clone(),
    })
}

/// The Job that replaced that of a slot: the next one, if the policy was Replace and it was created when this one was
/// deleted.
fn successor_name(cron_job: &CronJob, place: usize) -> Option<Box<str>> {
    let deleted = cron_job
        .slots
        .get(place)
        .filter(|slot| slot.outcome == Outcome::Deleted)?;
    let successor = cron_job.slots[place + 1..].iter().find(|slot| slot.has_job())?;
    let era = cron_job.eras.get(cron_job.eras.index_at(successor.at))?;
    let latest_creation = deleted.finished?.plus_duration(LATE_AFTER);
    let is_replaced = era.policy == ConcurrencyPolicy::Replace && successor.created <= latest_creation;
    is_replaced.then(|| cron_job.job_name(successor))
}

/// The run times of the Jobs that ended by themselves, in seconds, ascending.
pub(super) struct RunTimes(Vec<u32>);

impl RunTimes {
    pub(super) fn of(cron_job: &CronJob) -> RunTimes {
        let ended = cron_job.slots.iter();
        let ended = ended.filter(|slot| matches!(slot.outcome, Outcome::Succeeded | Outcome::Failed));
        let times = ended.filter_map(|slot| Some(slot.finished?.since(slot.created)));
        let mut times: Vec<u32> = times.collect();
        times.sort_unstable();
        RunTimes(times)
    }

    /// The smallest time that at least so many percent of the runs do not exceed.
    pub(super) fn percentile(&self, percent: usize) -> Option<SignedDuration> {
        let place = (self.0.len() * percent).div_ceil(100).checked_sub(1)?;
        let seconds = self.0.get(place).copied()?;
        Some(SignedDuration::from_secs(seconds.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_of_runs() {
        let times = RunTimes((1..=20).collect());
        let seconds = |percent| times.percentile(percent).map(|time| time.as_secs());
        assert_eq!((seconds(50), seconds(95), seconds(100)), (Some(10), Some(19), Some(20)));
        assert_eq!(RunTimes(vec![7]).percentile(50), Some(SignedDuration::from_secs(7)));
        assert_eq!(RunTimes(Vec::new()).percentile(50), None);
    }
}
