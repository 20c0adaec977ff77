//! What became of each slot of a CronJob, from its eras, its Jobs and the periods of observation.
//!
//! A slot with a Job speaks for itself. For one without, the CronJob may have asked for none; otherwise it is open until
//! its deadline or the next slot, and then lost. Where a Job may have existed unseen, nothing is claimed.

use super::{
    cron_job::CronJob,
    due_slots,
    era::Era,
    freezes::{Freezes, Frozen},
    observations::Observations,
    proof::Proof,
    second::Second,
    slot_record::{Outcome, SlotRecord},
};
use crate::{
    observe::{
        facts::RunResult,
        slot::{LATE_AFTER, LossReason},
    },
    schedule::{ConcurrencyPolicy, options::CatchUp},
};

/// Creation times have whole seconds, and the clocks of two machines differ: a deadline passes this much later.
const DEADLINE_SLACK_SECONDS: i64 = 2;

/// Number of Jobs of earlier slots that are looked at for one that holds a slot.
const HOLDERS_EXAMINED_MAX: usize = 64;

/// The part of a slot that is not the Job's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judgement {
    /// `None` if the slot has a Job.
    outcome: Option<Outcome>,
    held_until: Option<Second>,
    is_proven: bool,
}

impl Judgement {
    /// Returns whether the slot changed.
    pub(super) fn apply(self, slot: &mut SlotRecord) -> bool {
        let before = (slot.outcome, slot.held_until);
        slot.outcome = self.outcome.unwrap_or(slot.outcome);
        slot.held_until = self.held_until;
        slot.is_proven = self.is_proven;
        before != (slot.outcome, slot.held_until)
    }
}

/// A Job that Forbid waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The Job of the slot with this place.
    Slot(usize),
    /// One of the other Jobs.
    Other(usize),
}

/// Judges all slots.
pub(super) fn judge(
    cron_job: &CronJob,
    (observations, freezes): (&Observations, &Freezes),
    now: Second,
) -> Vec<Judgement> {
    let with_jobs = cron_job.slots.iter().enumerate().filter(|(_, slot)| slot.has_job());
    let court = Court {
        cron_job,
        observations,
        freezes,
        now,
        with_jobs: with_jobs.map(|(place, _)| place).collect(),
        proof: Proof::new(cron_job, observations),
    };
    let mut has_later_job = false;
    let mut judgements: Vec<Judgement> = (0..cron_job.slots.len())
        .rev()
        .map(|index| {
            let judgement = court.judge(index, has_later_job);
            has_later_job |= cron_job.slots[index].has_job();
            judgement
        })
        .collect();
    judgements.reverse();
    judgements
}

/// The instant from which the starting deadline has passed of a slot that starts at `start`.
pub(super) fn deadline(start: Second, era: &Era) -> Option<Second> {
    let seconds = era.deadline_seconds?.saturating_add(DEADLINE_SLACK_SECONDS);
    Some(start.plus(seconds))
}

/// The Job that Forbid waits for at a slot, and its end: the one that ends last. `None` if no Job ran then.
pub(super) fn holder(cron_job: &CronJob, index: usize) -> Option<(Holder, Option<Second>)> {
    let with_jobs = (0..index).rev().filter(|place| cron_job.slots[*place].has_job());
    holder_among(cron_job, index, with_jobs)
}

/// The same as [`holder`]. `with_jobs` are the places of earlier slots with Jobs, the latest first.
fn holder_among(
    cron_job: &CronJob,
    index: usize,
    with_jobs: impl Iterator<Item = usize>,
) -> Option<(Holder, Option<Second>)> {
    let (at, start) = (cron_job.slots.get(index)?.at, cron_job.start_of(index)?);
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
fn unseen_holder_end(
    cron_job: &CronJob,
    index: usize,
    with_jobs: impl Iterator<Item = usize>,
    observations: &Observations,
) -> Option<Second> {
    let (at, start) = (cron_job.slots.get(index)?.at, cron_job.start_of(index)?);
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

/// The instant at which a slot closes without a Job: the next slot, or what the options have instead, or the deadline.
pub(super) fn closes(cron_job: &CronJob, index: usize) -> Option<Second> {
    let slot = cron_job.slots.get(index)?;
    let era = cron_job.eras.get(cron_job.eras.index_at(slot.at));
    let deadline = era.and_then(|era| deadline(cron_job.start_of(index)?, era));
    cron_job.superseded_at(index).into_iter().chain(deadline).min()
}

fn judgement(slot: &SlotRecord, outcome: Option<Outcome>, held_until: Option<Second>) -> Judgement {
    Judgement {
        outcome,
        held_until,
        is_proven: slot.is_proven,
    }
}

struct Court<'a> {
    cron_job: &'a CronJob,
    observations: &'a Observations,
    freezes: &'a Freezes,
    now: Second,
    /// The places of the slots with Jobs. A new list adds a day of slots, most of them without a Job.
    with_jobs: Vec<usize>,
    proof: Option<Proof>,
}

impl Court<'_> {
    /// The places of the slots with Jobs before another, the latest first.
    fn with_jobs_before(&self, index: usize) -> impl Iterator<Item = usize> {
        let n_before = self.with_jobs.partition_point(|place| *place < index);
        self.with_jobs[..n_before].iter().rev().copied()
    }

    fn holder(&self, index: usize) -> Option<(Holder, Option<Second>)> {
        holder_among(self.cron_job, index, self.with_jobs_before(index))
    }

    fn unseen_holder_end(&self, index: usize) -> Option<Second> {
        unseen_holder_end(self.cron_job, index, self.with_jobs_before(index), self.observations)
    }

    fn judge(&self, index: usize, has_later_job: bool) -> Judgement {
        let slot = &self.cron_job.slots[index];
        let eras = &self.cron_job.eras;
        let Some(era) = eras.get(eras.index_at(slot.at)) else {
            return judgement(slot, None, None);
        };
        if slot.has_job() {
            return judgement(slot, None, self.held_until(index, era));
        }
        let start = self.start_of(index);
        let outcome = if era.is_deleting {
            Outcome::Deleting
        } else if self.cron_job.excluded_days(index).is_some() {
            Outcome::Excluded
        } else if eras.is_suspended_at(start) {
            let is_skipped = self.cron_job.options_at(index).on_resume() == CatchUp::Skip;
            let is_over = eras.suspended_until(start).is_some();
            if is_skipped && is_over {
                Outcome::Resumed
            } else {
                Outcome::Suspended
            }
        } else if matches!(self.frozen(index, start), Some(Frozen::Yes(_))) {
            Outcome::Frozen
        } else if self.shares_minute(index) {
            Outcome::SameMinute
        } else {
            return self.judge_wanted(index, era, has_later_job);
        };
        judgement(slot, Some(outcome), None)
    }

    /// Judges a slot without a Job for which the CronJob asked one.
    fn judge_wanted(&self, index: usize, era: &Era, has_later_job: bool) -> Judgement {
        let slot = &self.cron_job.slots[index];
        let closes = closes(self.cron_job, index).unwrap_or(Second::MAX);
        let until = closes.min(self.now);
        let held = (era.policy == ConcurrencyPolicy::Forbid)
            .then(|| self.holder(index))
            .flatten();
        // A Job that ends immediately before the next slot leaves no time to start this one.
        let is_held = held.is_some_and(|(_, end)| end.is_none_or(|end| end.plus_duration(LATE_AFTER) >= closes));
        let is_closed = closes <= self.now;
        let was_held = slot.outcome == Outcome::HeldByForbid && is_closed && self.may_lack_holders();
        if is_held || was_held {
            return judgement(slot, Some(Outcome::HeldByForbid), None);
        }
        let namespace = &self.cron_job.name.namespace;
        let is_covered = self.observations.covers(namespace, slot.at, until);
        let unseen_end = (era.policy == ConcurrencyPolicy::Forbid && !is_covered)
            .then(|| self.unseen_holder_end(index))
            .flatten();
        if unseen_end.is_some_and(|end| end.plus_duration(LATE_AFTER) >= closes) {
            return judgement(slot, Some(Outcome::NotObserved), None);
        }
        // What was proven stays so when the spec changes later.
        let has_proof = || self.proof.as_ref().is_some_and(|proof| proof.covers(slot.at));
        let is_proven = slot.is_proven || !is_covered && self.are_fields_known(slot.at) && has_proof();
        let start = self.start_of(index);
        let held_until = held.and_then(|(_, end)| end).max(unseen_end);
        let held_until = held_until.max(Some(start).filter(|start| *start > slot.at));
        let missed_at = self.cron_job.missed_at(index, held_until.unwrap_or(start));
        let is_deadline = deadline(start, era) == Some(closes);
        let outcome = if !is_covered && !is_proven {
            Outcome::NotObserved
        } else if self.has_new_schedule(slot.at, (start, until)) {
            Outcome::ScheduleChanged
        } else if missed_at.is_some_and(|missed_at| missed_at <= self.now || is_closed && !is_deadline) {
            Outcome::Missed
        } else if !is_closed {
            Outcome::Open
        } else if is_deadline {
            Outcome::Lost(LossReason::DeadlineExceeded)
        } else if has_later_job {
            Outcome::Lost(LossReason::Superseded)
        } else {
            Outcome::Lost(LossReason::NotStarted)
        };
        Judgement {
            outcome: Some(self.with_doubt(outcome, (index, start), has_later_job)),
            held_until,
            is_proven,
        }
    }

    /// The outcome of a slot without a Job, or what may have been instead.
    fn with_doubt(&self, outcome: Outcome, (index, start): (usize, Second), has_later_job: bool) -> Outcome {
        let is_lost = matches!(outcome, Outcome::Lost(_) | Outcome::Missed);
        if (is_lost || outcome == Outcome::Open) && self.cron_job.lacks_calendar_at(index) {
            return Outcome::CalendarUnread;
        }
        let Some(Frozen::Perhaps(span)) = self.frozen(index, start) else {
            return outcome;
        };
        // A freeze that still holds lets no slot start, whenever it began.
        let is_withheld = outcome == Outcome::Open && self.now < span.end();
        let is_ruled_out = has_later_job && self.has_job_before(index, span.end());
        if (is_lost || is_withheld) && !is_ruled_out {
            Outcome::FreezeUnknown
        } else {
            outcome
        }
    }

    /// Whether a later slot got its Job before an instant, so that the namespace was not frozen between the two.
    fn has_job_before(&self, index: usize, instant: Second) -> bool {
        let n_before = self.with_jobs.partition_point(|place| *place <= index);
        let later = self.with_jobs[n_before..]
            .iter()
            .map(|place| &self.cron_job.slots[*place]);
        let mut by_controller = later.filter(|slot| !slot.is_backfilled());
        by_controller.any(|slot| slot.created < instant)
    }

    /// What is known of a freeze at the start of a slot. The built-in controller ignores it.
    fn frozen(&self, index: usize, start: Second) -> Option<Frozen<'_>> {
        let frozen = self.freezes.at(&self.cron_job.name.namespace, start)?;
        self.cron_job.follows_cronwheel_at(index).then_some(frozen)
    }

    /// Whether the spec of a slot that nobody watched is the present one. What a later change replaced is not known: it
    /// may have been a suspension that came and went.
    fn are_fields_known(&self, slot: Second) -> bool {
        let facts = self.cron_job.facts.as_deref();
        let changed = facts.and_then(|facts| facts.spec_changed);
        let eras = &self.cron_job.eras;
        changed.is_none_or(|changed| Second::floor(changed) <= slot) && eras.get(eras.index_at(slot) + 1).is_none()
    }

    /// Whether the schedule changed while a slot was open. A change does not end a slot that waits for its start.
    fn has_new_schedule(&self, slot: Second, (start, until): (Second, Second)) -> bool {
        let Some(facts) = self.cron_job.facts.as_deref() else {
            return false;
        };
        let eras = &self.cron_job.eras;
        let next = eras.next_schedule(eras.index_at(slot), facts);
        next.is_some_and(|next| start < next.from && next.from <= until)
    }

    /// Jobs are named by the minute, so only the first slot of a minute has one (B-11.1), unless the schedule has seconds.
    fn shares_minute(&self, index: usize) -> bool {
        if self.cron_job.has_seconds_at(index) {
            return false;
        }
        let at = self.cron_job.slots[index].at;
        if let Some(before) = index.checked_sub(1) {
            return self.cron_job.slots[before].at.minute() == at.minute();
        }
        // The slot before the oldest one is not kept.
        !at.is_whole_minute() && {
            let before = at.start_of_minute().plus(-1);
            due_slots::next_after(self.cron_job, before).is_some_and(|first| first < at)
        }
    }

    fn start_of(&self, index: usize) -> Second {
        let at = self.cron_job.slots[index].at;
        self.cron_job.start_of(index).unwrap_or(at)
    }

    /// Until when Forbid, a suspension, a freeze or `spread` held a slot that has a Job.
    fn held_until(&self, index: usize, era: &Era) -> Option<Second> {
        let slot = &self.cron_job.slots[index];
        if slot.created <= slot.at.plus_duration(LATE_AFTER) {
            return None;
        }
        if slot.finished.is_some() && slot.is_counted() && self.may_lack_holders() {
            return slot.held_until;
        }
        let by_forbid = (era.policy == ConcurrencyPolicy::Forbid)
            .then(|| self.holder(index))
            .flatten();
        let by_forbid = by_forbid.and_then(|(_, end)| end);
        // A Job whose end nobody saw may have held the slot until its own Job was created.
        let by_unseen = (era.policy == ConcurrencyPolicy::Forbid)
            .then(|| self.unseen_holder_end(index))
            .flatten();
        let by_forbid = by_forbid.max(by_unseen.map(|end| end.min(slot.created)));
        let start = self.start_of(index);
        let frozen = self.frozen(index, start);
        let thawed = frozen.map(|frozen| frozen.span().end());
        let held = self.cron_job.eras.suspended_until(start).into_iter();
        let held = held.chain(by_forbid).chain(thawed);
        // A Job that outlived the creation held nothing.
        let held = held.filter(|until| *until <= slot.created.plus(1)).max();
        let held = held.max(Some(start).filter(|start| *start > slot.at));
        held.map(|until| until.min(slot.created))
    }

    /// Whether a Job that held a slot may be among those that are no longer kept.
    fn may_lack_holders(&self) -> bool {
        self.cron_job.dropped_until.is_some()
    }
}
