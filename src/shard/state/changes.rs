//! New versions of a CronJob, and its deletion: their immediate effects, and the requests that they withdraw.
//!
//! A request that waits to be sent was decided on a former version. When another version counts, the request is
//! withdrawn and the slot is decided again. A request that is sent is not affected.

use jiff::Timestamp;

use super::ShardState;
use crate::shard::{
    cron_job::{CronJobState, DelayedAction, Management, Reported, SlotStage},
    effect::{Effect, EventReason, Withdrawal},
    ids::Uid,
    index::OwnerIndex,
    outcome_counts::InstantOutcome,
    record::CronJobRecord,
    seconds::Seconds,
};

/// Whether a difference other than the schedule matters to the decisions of a shard.
fn differs_beyond_schedule(old: &CronJobRecord, new: &CronJobRecord) -> bool {
    let key = |record: &CronJobRecord| {
        (
            record.is_deleting,
            record.is_suspended,
            record.starting_deadline_seconds,
            record.concurrency_policy,
            record.successful_jobs_history_limit,
            record.failed_jobs_history_limit,
            record.created,
        )
    };
    key(old) != key(new) || differs_in_options(old, new) || !new.template.body.is_same(&old.template.body)
}

/// Whether slots are treated differently. A run that is asked for has no slot.
fn differs_in_options(old: &CronJobRecord, new: &CronJobRecord) -> bool {
    !new.schedule.options().treat_slots_like(old.schedule.options())
}

impl ShardState {
    pub(super) fn apply_cron_job(&mut self, mut record: CronJobRecord, now: Timestamp) {
        self.inherit_options(&mut record);
        let mark = self.relists.mark;
        let uid = record.identity.uid.clone();
        let Some(owner) = self.index.find_cron_job(&uid) else {
            let management = self.management_in(&record.identity.namespace);
            let cron_job = Box::new(CronJobState::new(record, mark, &self.template_memory, management));
            let owner = self.index.insert_cron_job(&uid, cron_job);
            self.n_managed += usize::from(management == Management::Managed);
            self.evaluate(owner, now);
            return;
        };
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.mark = mark;
        // An event older than the answer to this replica's own write contains no change.
        if record.resource_version < cron_job.record.resource_version
            || self.has_panicked_at(owner, record.resource_version)
        {
            return;
        }
        let cron_job = self.index.cron_job_mut(owner);
        let is_schedule_changed = record.schedule.differs_from(&cron_job.record.schedule);
        let is_changed = is_schedule_changed || differs_beyond_schedule(&cron_job.record, &record);
        let has_other_deadline = cron_job.record.starting_deadline_seconds != record.starting_deadline_seconds;
        let has_other_options = differs_in_options(&cron_job.record, &record);
        let asks_otherwise = cron_job.record.schedule.options() != record.schedule.options();
        let has_other_thresholds = cron_job.record.trouble_thresholds != record.trouble_thresholds;
        let is_same_version = record.resource_version == cron_job.record.resource_version;
        cron_job.is_unexamined &= is_same_version;
        let former = has_other_options.then(|| cron_job.record.schedule.clone());
        let is_status_news = cron_job.take_record(record, now);
        let was_unusable = cron_job.unusable.take().is_some();
        if !cron_job.is_unexamined {
            cron_job.forget_panic();
        }
        if has_other_options || has_other_deadline || was_unusable {
            cron_job.rare_mut().startable_since = Seconds::new(Some(now));
        }
        cron_job.reported.remove(EventReason::InternalError);
        cron_job.delays.end(DelayedAction::Status);
        if is_schedule_changed {
            self.schedule_changed(owner, now);
        }
        if let Some(former) = former {
            self.note_calendar_change(owner, &former, now);
            // The same slot may start at another time.
            self.arm(owner, None);
        }
        if asks_otherwise {
            let reported = &mut self.index.cron_job_mut(owner).reported;
            reported.remove(EventReason::InvalidOption);
            reported.remove(EventReason::IgnoredOption);
        }
        if !is_same_version && self.index.cron_job(owner).record.has_status_of_other {
            self.report_ignored_options(owner, "wrote the status", now);
        }
        if is_changed {
            self.withdraw(owner);
            self.forget_failures(owner);
        } else if asks_otherwise {
            self.withdraw_former_run(owner);
        }
        if is_changed || asks_otherwise || is_status_news || was_unusable || has_other_thresholds {
            self.index.cron_job_mut(owner).must_decide = true;
            self.evaluate(owner, now);
        } else {
            self.emit_status(owner, now);
        }
    }

    /// Handles a changed schedule: due slots of the old schedule end, and no earlier slot of the new schedule is
    /// started (B-2.2 and its difference).
    pub(super) fn schedule_changed(&mut self, owner: OwnerIndex, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.schedule_changed = Some(now);
        cron_job.reported = Reported::default();
        cron_job.ended_slot = None;
        (cron_job.after_start, cron_job.after_success) = Default::default();
        let is_unparseable = cron_job.record.schedule.parsed.is_err();
        let message = format!("unparseable schedule for cronjob: {}", cron_job.record.schedule.text);
        self.arm(owner, None);
        self.close_of_former_schedule(owner);
        if is_unparseable {
            self.emit_event(owner, EventReason::UnParseableCronJobSchedule, message);
        }
    }

    /// Ends the open slot if the schedule has changed since, unless an answer about it is outstanding.
    pub(super) fn close_of_former_schedule(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job(owner);
        let open = cron_job.open.as_ref();
        let changed = cron_job
            .schedule_changed
            .map(|changed| cron_job.record.schedule.slots_until(changed));
        if open.is_some_and(|open| Some(open.slot) < changed) {
            self.close_unless_in_flight(owner, InstantOutcome::ScheduleChanged);
        }
    }

    pub(super) fn delete_cron_job(&mut self, uid: &Uid) {
        if let Some(owner) = self.index.find_cron_job(uid) {
            self.remove_cron_job(owner);
        }
    }

    pub(super) fn remove_cron_job(&mut self, owner: OwnerIndex) {
        self.arm(owner, None);
        self.cancel_wake(owner);
        self.withdraw(owner);
        self.calendar_notes.remove(owner);
        let Some(cron_job) = self.index.remove_cron_job(owner) else {
            return;
        };
        self.n_managed -= usize::from(cron_job.management == Management::Managed);
        if cron_job.open.is_some() {
            self.outcome_counts.close(InstantOutcome::Deleted);
        }
    }

    /// Resets the back-offs, since the change may have removed the cause of the failures.
    fn forget_failures(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.refused = None;
        if let Some(open) = &mut cron_job.open {
            open.n_failures = 0;
        }
    }

    /// Withdraws the requests of all CronJobs that are not sent yet.
    pub fn withdraw_all(&mut self) {
        for owner in self.index.owner_indexes() {
            self.withdraw(owner);
        }
    }

    /// Withdraws the requests that the open slot and the run wait for and that are not sent yet: a create, or the deletes
    /// before it. They are decided again after the answer.
    pub(super) fn withdraw(&mut self, owner: OwnerIndex) {
        if let Some(cron_job) = self.index.get_cron_job(owner)
            && let Some(open) = &cron_job.open
        {
            self.outbox.extend(withdrawals(cron_job, &open.stage));
        }
        self.withdraw_run(owner);
    }

    /// [`ShardState::withdraw`], for a run that is not asked for any more.
    fn withdraw_former_run(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job(owner);
        let asked = cron_job.record.schedule.options().run_now.as_deref();
        if cron_job.run.as_ref().is_some_and(|run| asked != Some(&*run.token)) {
            self.withdraw_run(owner);
        }
    }

    fn withdraw_run(&mut self, owner: OwnerIndex) {
        if let Some(cron_job) = self.index.get_cron_job(owner)
            && let Some(run) = &cron_job.run
        {
            self.outbox.extend(withdrawals(cron_job, &run.open.stage));
        }
    }
}

/// The withdrawals of the requests that a slot or a run waits for in this stage.
fn withdrawals(cron_job: &CronJobState, stage: &SlotStage) -> Vec<Effect> {
    let withdrawal = |job| {
        Effect::Withdraw(Withdrawal {
            cron_job: cron_job.record.identity.clone(),
            job,
        })
    };
    match stage {
        SlotStage::Creating => vec![withdrawal(None)],
        SlotStage::Replacing { jobs, .. } => jobs.iter().map(|job| withdrawal(Some(job.clone()))).collect(),
        SlotStage::Suspended
        | SlotStage::Frozen
        | SlotStage::HeldByForbid
        | SlotStage::AlreadyActive
        | SlotStage::LookingUp { .. }
        | SlotStage::BackingOff { .. } => Vec::new(),
    }
}
