//! Applies the verdict of [`policy::decide`]: the open slot, an order, Events and a timer (B-6, B-9, B-10).

use jiff::{SignedDuration, Timestamp};

use super::{ShardState, order};
use crate::{
    schedule::{
        after,
        policy::{self, Decision, Facts, SkipReason, Verdict},
        thaw::last_frozen,
    },
    shard::{
        ShardPhase,
        cron_job::{OpenSlot, SlotStage},
        effect::{Effect, EventReason},
        ids::Uid,
        index::{JobIndex, OwnerIndex},
        naming,
        outcome_counts::InstantOutcome,
        record::ConcurrencyPolicy,
        seconds::Seconds,
    },
};

impl ShardState {
    /// Decides a CronJob, unless the decision depends on an outstanding answer.
    pub(super) fn decide(&mut self, owner: OwnerIndex, now: Timestamp) {
        self.settle(owner, now);
        self.retry_look_up(owner, now);
        if let Some(until) = self.back_off_end(owner, now) {
            return self.wake_at(owner, until);
        }
        if !self.may_decide(owner, now) {
            return;
        }
        let verdict = self.verdict(owner, now);
        if let Some(decisions) = &mut self.decisions {
            decisions.push(verdict.clone());
        }
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.must_decide = false;
        let is_given_up = cron_job.has_given_up(&verdict.decision);
        self.report_schedule_problems(owner, &verdict.decision);
        match &verdict.decision {
            _ if is_given_up => {}
            Decision::Start { slot, replaces } => self.start(owner, *slot, *replaces, &verdict, now),
            Decision::Skip(reason) => self.skip(owner, reason, &verdict, now),
        }
        #[cfg(test)]
        self.panic_if_told(owner, super::PanicAt::Ordered);
        self.arm(owner, verdict.next);
    }

    /// The end of the back-off of the open slot, unless a new decision may be due before.
    fn back_off_end(&self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let cron_job = self.index.cron_job(owner);
        let until = cron_job.open.as_ref()?.back_off_end()?;
        // No slot is armed after the last one of a schedule with years.
        let is_later_due = cron_job.armed.get().is_some_and(|armed| cron_job.has_come(armed, now));
        (now < until && !cron_job.must_decide && !is_later_due).then_some(until)
    }

    fn may_decide(&self, owner: OwnerIndex, now: Timestamp) -> bool {
        let cron_job = self.index.cron_job(owner);
        if cron_job.awaits_answer(now) {
            return false;
        }
        // The usual case: nothing is due before the armed slot.
        if cron_job.open.is_none() && !cron_job.may_be_due(now) {
            return false;
        }
        // Except under Allow, the decision depends on whether an unknown entry of the active list still runs.
        let is_looking_up = cron_job.lookups.values().any(|look_up| look_up.is_awaited(now));
        !(is_looking_up && cron_job.record.concurrency_policy != ConcurrencyPolicy::Allow)
    }

    fn verdict(&self, owner: OwnerIndex, now: Timestamp) -> Verdict {
        let cron_job = self.index.cron_job(owner);
        let record = &cron_job.record;
        let excluded_through = self.calendar_notes.excluded_through(owner);
        let last_schedule_time = cron_job.decided_through().max(excluded_through);
        // A slot that the cursor has passed is not due, even if it was armed.
        let is_due = |armed: &Timestamp| cron_job.has_come(*armed, now) && last_schedule_time < Some(*armed);
        let armed_due = cron_job.armed.get().filter(is_due);
        let open = cron_job.open.as_ref();
        let is_retry = open.is_some_and(|open| open.back_off_end().is_some());
        let is_active_slot = |slot: Timestamp| {
            self.running(owner)
                .any(|job| naming::is_job_name(&job.name, &record.identity.name, slot))
        };
        let frozen_until = self.freeze_of(owner).map(|freeze| freeze.until);
        let thawed = frozen_until.filter(|until| *until <= now).map(last_frozen);
        let facts = Facts {
            schedule: &record.schedule,
            is_deleting: record.is_deleting,
            is_suspended: record.is_suspended,
            created: record.created,
            last_schedule_time,
            starting_deadline_seconds: record.starting_deadline_seconds,
            concurrency_policy: record.concurrency_policy,
            n_active_jobs: self.running(owner).count(),
            is_active_slot: &is_active_slot,
            schedule_changed: cron_job.schedule_changed,
            frozen_until,
            resumed: cron_job.resumed.get().max(thawed),
            busy_since: self.busy_since(owner, now),
            armed: armed_due.or(open.map(|open| open.slot)),
            was_awaited: armed_due.is_some() || is_retry,
        };
        policy::decide(&facts, now)
    }

    /// Begins to create the Job of a slot.
    fn start(&mut self, owner: OwnerIndex, slot: Timestamp, replaces: bool, verdict: &Verdict, now: Timestamp) {
        self.open_without_order(owner, slot, verdict);
        if !replaces && self.has_ended_job(owner, slot) {
            self.close_with_job(owner, slot, InstantOutcome::Adopted);
            // An evaluation emits the status.
            return self.wake_at(owner, now);
        }
        if let Some(until) = self
            .put_off_refused(owner, now)
            .or_else(|| self.pace_missed(owner, now))
            .or_else(|| self.put_off_replace(owner, replaces, now))
        {
            self.retry_at(owner, until);
            return self.wake_at(owner, until);
        }
        if self.phase == ShardPhase::Closing {
            self.busy.push(owner);
        }
        if replaces {
            self.replace(owner);
        } else {
            self.order(owner, verdict.next, now);
        }
    }

    fn skip(&mut self, owner: OwnerIndex, reason: &SkipReason, verdict: &Verdict, now: Timestamp) {
        match *reason {
            SkipReason::NotDue => {}
            SkipReason::Excluded(slot) => {
                // They are counted as excluded, also if the calendar changes.
                let cron_job = self.index.cron_job_mut(owner);
                cron_job.counted_until = Seconds::new(cron_job.counted_until.get().max(Some(slot)));
            }
            SkipReason::Deleting => self.close_unless_in_flight(owner, InstantOutcome::Deleted),
            SkipReason::UnknownTimeZone(_) | SkipReason::Unparseable(_) | SkipReason::NeverRuns(_) => {
                self.close_unless_in_flight(owner, InstantOutcome::Unschedulable);
            }
            SkipReason::Suspended => self.hold_all(owner, SlotStage::Suspended, verdict, now),
            SkipReason::Frozen(until) => {
                self.hold_all(owner, SlotStage::Frozen, verdict, now);
                // A slot from before this leadership may be due at the end, although it is not open.
                self.index.cron_job_mut(owner).must_decide = true;
                self.wake_at(owner, until);
            }
            SkipReason::ScheduleChanged(_) => self.close_unless_in_flight(owner, InstantOutcome::ScheduleChanged),
            SkipReason::DeadlineExceeded(slot) if self.record_ended(owner, now) >= Some(slot) => {
                self.open_without_order(owner, slot, verdict);
                self.close_with_job(owner, slot, InstantOutcome::Adopted);
            }
            SkipReason::DeadlineExceeded(slot) => self.lose_to_deadline(owner, slot, verdict),
            SkipReason::Missed(slot) => self.skip_slots(owner, slot, InstantOutcome::Missed, verdict, now),
            SkipReason::Resumed(slot) => {
                let outcome = self.outcome_of_release(owner, slot);
                self.skip_slots(owner, slot, outcome, verdict, now);
            }
            SkipReason::AlreadyActive(slot) => {
                self.hold_back(owner, slot, SlotStage::AlreadyActive, verdict, now);
            }
            SkipReason::HeldByForbid(slot) => {
                let is_new = self.hold_back(owner, slot, SlotStage::HeldByForbid, verdict, now);
                if is_new {
                    let message =
                        "Not starting job because prior execution is running and concurrency policy is Forbid";
                    self.emit_event(owner, EventReason::JobAlreadyActive, message.to_owned());
                }
            }
        }
    }

    /// Opens a slot that cannot start yet, or keeps it open, until the Job in its way ends or its deadline passes.
    /// Returns whether the slot or its stage is new.
    fn hold_back(
        &mut self,
        owner: OwnerIndex,
        slot: Timestamp,
        stage: SlotStage,
        verdict: &Verdict,
        now: Timestamp,
    ) -> bool {
        let is_new_slot = self.open(owner, slot, stage.clone(), verdict);
        let former = self.open_slot_mut(owner).map(|open| {
            let former = open.stage.clone();
            open.hold(stage.clone());
            former
        });
        let record = &self.index.cron_job(owner).record;
        if let Some(secs) = record.starting_deadline_seconds {
            let lost = after(
                record.schedule.start_of(slot),
                SignedDuration::from_secs(secs).saturating_add(SignedDuration::from_millis(1)),
            );
            self.wake_at(owner, lost.max(now));
        }
        is_new_slot || former != Some(stage)
    }

    /// Opens a slot for which nothing is ordered yet. Its stage changes together with an order, so that a slot that waits
    /// for an answer gets one.
    fn open_without_order(&mut self, owner: OwnerIndex, slot: Timestamp, verdict: &Verdict) {
        self.open(owner, slot, SlotStage::BackingOff { until: slot }, verdict);
    }

    /// Makes a slot the open one and ends the previous one. Returns whether the slot was not open before.
    pub(super) fn open(&mut self, owner: OwnerIndex, slot: Timestamp, stage: SlotStage, verdict: &Verdict) -> bool {
        let passed = match stage {
            SlotStage::Suspended => InstantOutcome::Suspended,
            SlotStage::Frozen => InstantOutcome::Frozen,
            SlotStage::HeldByForbid if self.has_held_back_all(owner) => InstantOutcome::HeldByForbid,
            SlotStage::HeldByForbid
            | SlotStage::AlreadyActive
            | SlotStage::Replacing { .. }
            | SlotStage::Creating
            | SlotStage::LookingUp { .. }
            | SlotStage::BackingOff { .. } => self.outcome_of_hold(owner).unwrap_or(InstantOutcome::Superseded),
        };
        self.open_after(owner, slot, stage, passed, verdict)
    }

    /// Whether a running Job began before the first slot that is not counted, so that Forbid held back all slots since.
    /// A Job that nobody has started yet, such as a suspended one, counts as old.
    fn has_held_back_all(&self, owner: OwnerIndex) -> bool {
        let cron_job = self.index.cron_job(owner);
        let schedule = &cron_job.record.schedule;
        let counted_through = order::counted_through(cron_job, self.fired_through);
        let first = || schedule.next_wanted(counted_through);
        self.running(owner).any(|job| {
            let started = || job.started().map(|started| schedule.slots_until(started));
            let began = job.scheduled().or_else(started);
            began.is_none_or(|began| began <= counted_through || first().is_some_and(|first| began <= first))
        })
    }

    /// Makes a slot the open one, ends the previous one, and counts the slots between with this outcome. Returns whether
    /// the slot was not open before.
    fn open_after(
        &mut self,
        owner: OwnerIndex,
        slot: Timestamp,
        stage: SlotStage,
        passed: InstantOutcome,
        verdict: &Verdict,
    ) -> bool {
        let cron_job = self.index.cron_job_mut(owner);
        if cron_job.open.as_ref().is_some_and(|open| open.slot == slot) {
            return false;
        }
        let n_passed = order::n_passed(cron_job, slot, self.fired_through);
        if let Some(open) = cron_job.open.take() {
            let outcome = open.outcome_when_passed();
            self.outcome_counts.close(outcome);
            self.log_lost(owner, open.slot, outcome, Some(slot));
        }
        self.log_passed(owner, n_passed, slot, passed);
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.take_error();
        cron_job.counted_until = Seconds::new(cron_job.counted_until.get().max(Some(slot)));
        let open = OpenSlot {
            slot,
            is_delayed_by_tenant: stage.is_held_by_tenant(),
            stage,
            n_failures: 0,
            n_creates_without_job: 0,
            is_refused_due_to_tenant: false,
            gone: None,
        };
        self.outcome_counts.open();
        self.outcome_counts.pass(n_passed, passed);
        cron_job.open = Some(open);
        #[cfg(test)]
        self.panic_if_told(owner, super::PanicAt::Start);
        if verdict.is_many_missed {
            let message =
                "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew";
            self.emit_event(owner, EventReason::TooManyMissedTimes, message.to_owned());
        }
        true
    }

    fn lose_to_deadline(&mut self, owner: OwnerIndex, slot: Timestamp, verdict: &Verdict) {
        let held = self.outcome_of_hold(owner);
        self.open_without_order(owner, slot, verdict);
        let outcome = self
            .open_slot_mut(owner)
            .map_or(InstantOutcome::DeadlineExceeded, |open| open.outcome_at_deadline());
        let outcome = held.unwrap_or(outcome);
        self.close_slot_before(owner, outcome, verdict.next);
        let message = format!("Missed scheduled time to start a job: {}", naming::rfc1123(slot));
        self.emit_event(owner, EventReason::MissSchedule, message);
    }

    /// Ends the slots that an option does not start, unless the latest one has its Job.
    fn skip_slots(
        &mut self,
        owner: OwnerIndex,
        slot: Timestamp,
        outcome: InstantOutcome,
        verdict: &Verdict,
        now: Timestamp,
    ) {
        let has_job = self.record_ended(owner, now) >= Some(slot);
        let outcome = self.frozen_or(owner, outcome);
        self.open_after(owner, slot, SlotStage::BackingOff { until: slot }, outcome, verdict);
        if has_job {
            self.close_with_job(owner, slot, InstantOutcome::Adopted);
        } else {
            let outcome = self
                .open_slot_mut(owner)
                .map_or(outcome, |open| open.outcome_when_skipped(outcome));
            self.close_slot_before(owner, outcome, verdict.next);
        }
    }

    pub(super) fn open_slot_mut(&mut self, owner: OwnerIndex) -> Option<&mut OpenSlot> {
        self.index.cron_job_mut(owner).open.as_mut()
    }

    /// Deletes the running Jobs, in the order of the active list (B-10.4). The create follows when all are answered.
    fn replace(&mut self, owner: OwnerIndex) {
        let jobs = self.order_replacement(owner);
        if let Some(open) = self.open_slot_mut(owner) {
            open.stage = SlotStage::Replacing {
                jobs,
                has_failed: false,
            };
        }
    }

    /// Orders the deletes of the running Jobs, in the order of the active list. The caller waits for their answers.
    pub(super) fn order_replacement(&mut self, owner: OwnerIndex) -> Vec<Uid> {
        let listed = &self.index.cron_job(owner).current_status().active;
        let mut jobs: Vec<Uid> = self.running(owner).map(|job| job.uid.clone()).collect();
        jobs.sort_by_cached_key(|uid| listed.iter().position(|active| active.uid == *uid));
        let indexes: Vec<JobIndex> = jobs.iter().filter_map(|uid| self.index.find_job(uid)).collect();
        let deletes: Vec<_> = indexes.iter().map(|job| self.delete_of(owner, *job)).collect();
        self.outbox.extend(deletes.into_iter().map(Effect::DeleteJob));
        for job in indexes {
            self.index.job_mut(job).is_delete_requested = true;
        }
        jobs
    }
}
