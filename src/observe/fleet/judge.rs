//! What became of each slot of a CronJob, from its eras, its Jobs and the periods of observation.
//!
//! A slot with a Job speaks for itself. For one without, the CronJob may have asked for none; otherwise it is open until
//! its deadline or the next slot, and then lost. Where a Job may have existed unseen, nothing is claimed.

use super::{
    cron_job::CronJob,
    due_slots,
    era::Era,
    freezes::{Freezes, Frozen},
    holders,
    observations::Observations,
    proof::Proof,
    release::{Release, release},
    second::Second,
    slot_record::{Outcome, SlotRecord},
};
use crate::{
    kube_api::objects::resumption::Resumption,
    observe::slot::{LATE_AFTER, LossReason},
    schedule::{ConcurrencyPolicy, options::CatchUp},
};

/// Creation times have whole seconds, and the clocks of two machines differ: a deadline passes this much later.
const DEADLINE_SLACK_SECONDS: i64 = 2;

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

/// The instant at which a slot closes without a Job: the next slot, or what the options have instead, or the deadline.
pub(super) fn closes(cron_job: &CronJob, index: usize) -> Option<Second> {
    closes_by(cron_job, index, cron_job.options_at(index).missed_runs)
}

/// The same by a rule for the slots that start.
fn closes_by(cron_job: &CronJob, index: usize, rule: CatchUp) -> Option<Second> {
    let slot = cron_job.slots.get(index)?;
    let era = cron_job.eras.get(cron_job.eras.index_at(slot.at));
    let deadline = era.and_then(|era| deadline(cron_job.start_of(index)?, era));
    cron_job.superseded_at(index, rule).into_iter().chain(deadline).min()
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

    /// The end of the Job that Forbid waits for at a slot with this start; the highest instant while it runs.
    fn holder_end(&self, index: usize, start: Second) -> Option<Second> {
        let with_jobs = self.with_jobs_before(index);
        let (_, end) = holders::holder_among(self.cron_job, (index, start), with_jobs)?;
        Some(end.unwrap_or(Second::MAX))
    }

    fn unseen_holder_end(&self, index: usize, start: Second) -> Option<Second> {
        let with_jobs = self.with_jobs_before(index);
        holders::unseen_holder_end(self.cron_job, (index, start), with_jobs, self.observations)
    }

    /// The end of the suspension or freeze that held a slot back, if the slot can start then.
    fn release(&self, index: usize) -> Option<Release> {
        let frozen_at = |instant| self.frozen(index, instant);
        let release = release(&self.cron_job.eras, frozen_at, self.start_of(index), self.now)?;
        let rule = self.cron_job.options_at(index).on_resume();
        let closes = closes_by(self.cron_job, index, rule).unwrap_or(Second::MAX);
        (rule != CatchUp::Skip && release.at.plus_duration(LATE_AFTER) < closes).then_some(release)
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
        let release = self.release(index);
        let outcome = if era.is_deleting {
            Outcome::Deleting
        } else if self.cron_job.excluded_days(index).is_some() {
            Outcome::Excluded
        } else if release.is_none() && eras.is_suspended_at(start) {
            let is_skipped = self.cron_job.options_at(index).on_resume() == CatchUp::Skip;
            let is_over = eras.suspended_until(start).is_some();
            if is_skipped && is_over {
                Outcome::Resumed
            } else {
                Outcome::Suspended
            }
        } else if release.is_none() && matches!(self.frozen(index, start), Some(Frozen::Yes(_))) {
            Outcome::Frozen
        } else if self.shares_minute(index) {
            Outcome::SameMinute
        } else if let Some(outcome) = self.unseen_suspension(index, start).filter(|_| release.is_none()) {
            return Judgement {
                is_proven: true,
                ..judgement(slot, Some(outcome), None)
            };
        } else {
            return self.judge_wanted(index, (era, release), has_later_job);
        };
        judgement(slot, Some(outcome), None)
    }

    /// Judges a slot without a Job for which the CronJob asked one, from the end of what held it back.
    fn judge_wanted(&self, index: usize, (era, release): (&Era, Option<Release>), has_later_job: bool) -> Judgement {
        let slot = &self.cron_job.slots[index];
        let nominal = self.start_of(index);
        let start = release.map_or(nominal, |release| release.at);
        let options = self.cron_job.options_at(index);
        let rule = release.map_or(options.missed_runs, |_| options.on_resume());
        let closes = closes_by(self.cron_job, index, rule).unwrap_or(Second::MAX);
        let until = closes.min(self.now);
        let is_forbid = era.policy == ConcurrencyPolicy::Forbid;
        let held = is_forbid.then(|| self.holder_end(index, start)).flatten();
        // A Job that ends immediately before the next slot leaves no time to start this one.
        let is_held = held.is_some_and(|end| end == Second::MAX || end.plus_duration(LATE_AFTER) >= closes);
        let is_closed = closes <= self.now;
        let was_held = slot.outcome == Outcome::HeldByForbid && is_closed && self.may_lack_holders();
        if is_held || was_held {
            return judgement(slot, Some(Outcome::HeldByForbid), None);
        }
        let namespace = &self.cron_job.name.namespace;
        let since = release.map_or(slot.at, |release| release.held);
        let is_covered = self.observations.covers(namespace, since, until);
        let unseen_end = (is_forbid && !is_covered).then(|| self.unseen_holder_end(index, start));
        let unseen_end = unseen_end.flatten();
        if unseen_end.is_some_and(|end| end.plus_duration(LATE_AFTER) >= closes) {
            return judgement(slot, Some(Outcome::NotObserved), None);
        }
        // What was proven stays so when the spec changes later.
        let has_proof = || self.proof.as_ref().is_some_and(|proof| proof.covers(slot.at));
        let is_proven = slot.is_proven || !is_covered && self.are_fields_known(slot.at) && has_proof();
        let held_until = held.max(unseen_end).max(Some(start).filter(|start| *start > slot.at));
        // The option on-resume alone decides what was held back.
        let missed_at = self.cron_job.missed_at(index, held_until.unwrap_or(start));
        let missed_at = missed_at.filter(|_| release.is_none());
        let is_deadline = deadline(nominal, era) == Some(closes);
        let outcome = if !is_covered && !is_proven {
            Outcome::NotObserved
        } else if self.has_new_schedule(slot.at, (nominal, until)) {
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

    /// The outcome of a slot without a Job that nobody watched, if `on-resume` is `skip` and a suspension that ended after
    /// it is known or possible. What held it back is then no loss, whenever the suspension began (O-3).
    fn unseen_suspension(&self, index: usize, start: Second) -> Option<Outcome> {
        let slot = &self.cron_job.slots[index];
        let namespace = &self.cron_job.name.namespace;
        let is_skip = self.cron_job.options_at(index).on_resume() == CatchUp::Skip;
        if !is_skip || self.observations.covers(namespace, start, start) || self.cron_job.eras.is_suspended_at(start) {
            return None;
        }
        // Later changes hide the resumption.
        let known = matches!(slot.outcome, Outcome::Resumed | Outcome::SuspensionUnknown);
        if known && slot.is_proven {
            return Some(slot.outcome);
        }
        let resumption = self.cron_job.facts.as_deref()?.resumption?;
        let until = Second::floor(resumption.at());
        let has_proof = self.proof.as_ref().is_some_and(|proof| proof.covers(slot.at));
        if !has_proof || start > until || self.has_job_before(index, until) {
            return None;
        }
        Some(match resumption {
            Resumption::At(_) => Outcome::Resumed,
            Resumption::Perhaps(_) => Outcome::SuspensionUnknown,
        })
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
        let is_skip = self.cron_job.options_at(index).on_resume() == CatchUp::Skip;
        let is_withheld = outcome == Outcome::Open && (self.now < span.end() || is_skip);
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
        due_slots::is_later_in_minute(self.cron_job, at)
    }

    fn start_of(&self, index: usize) -> Second {
        let at = self.cron_job.slots[index].at;
        self.cron_job.start_of(index).unwrap_or(at)
    }

    /// Until when Forbid, a suspension, a freeze, `spread` or a change that nobody saw held a slot that has a Job.
    fn held_until(&self, index: usize, era: &Era) -> Option<Second> {
        let slot = &self.cron_job.slots[index];
        if slot.created <= slot.at.plus_duration(LATE_AFTER) {
            return None;
        }
        if slot.finished.is_some() && slot.is_counted() && self.may_lack_holders() {
            return slot.held_until;
        }
        let start = self.start_of(index);
        let is_forbid = era.policy == ConcurrencyPolicy::Forbid;
        let by_forbid = is_forbid.then(|| self.holder_end(index, start)).flatten();
        // A Job whose end nobody saw may have held the slot until its own Job was created.
        let by_unseen = is_forbid.then(|| self.unseen_holder_end(index, start)).flatten();
        let by_unseen = by_unseen.map(|end| end.min(slot.created));
        let thawed = self.frozen(index, start).map(|frozen| frozen.span().end());
        let resumed = self.cron_job.eras.suspended_until(start);
        let held = [resumed, by_forbid, by_unseen, thawed, self.unseen_change(slot)];
        let held = held.into_iter().flatten();
        // What outlived the creation held nothing.
        let held = held.filter(|until| *until <= slot.created.plus(1)).max();
        let held = held.max(Some(start).filter(|start| *start > slot.at));
        held.map(|until| until.min(slot.created))
    }

    /// The last change of the spec between a slot and the creation of its Job, if nobody watched what it changed: it may
    /// have ended a suspension, or have brought the schedule of the slot.
    fn unseen_change(&self, slot: &SlotRecord) -> Option<Second> {
        let last = self.cron_job.facts.as_deref().and_then(|facts| facts.spec_changed);
        let changes = self.cron_job.eras.spec_changes().chain(last.map(Second::floor));
        let between = changes.filter(|changed| slot.at < *changed && *changed <= slot.created.plus(1));
        let namespace = &self.cron_job.name.namespace;
        between
            .filter(|changed| !self.observations.covers(namespace, slot.at, *changed))
            .max()
    }

    /// Whether a Job that held a slot may be among those that are no longer kept.
    fn may_lack_holders(&self) -> bool {
        self.cron_job.dropped_until.is_some()
    }
}
