//! The state of one CronJob beyond its record: the pending status, the armed slot, the open slot.

mod delays;
mod look_up;
mod open_run;
mod open_slot;
mod rare;
mod reports;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    effect::StatusWrite,
    ids::Uid,
    index::Job,
    naming,
    outcome_counts::InstantOutcome,
    record::{ActiveJob, ConcurrencyPolicy, CronJobRecord, CronJobStatus},
    refused_creates::RefusedCreate,
    seconds::Seconds,
    template_memory::{KeptPart, Reservation, TemplateMemory},
    trouble::Activations,
};
use crate::schedule::{
    options::CatchUp,
    policy::{Decision, SkipReason},
};

pub(crate) use delays::{DelayedAction, Delays};
pub(crate) use look_up::{LOOK_UP_PATIENCE, LookUp, LookUpProgress};
pub(crate) use open_run::OpenRun;
pub(crate) use open_slot::{OpenSlot, SlotStage};
pub(crate) use rare::PacePlace;
use rare::Rare;
pub(crate) use reports::Reported;

/// Whether the installation manages a CronJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Management {
    /// Its namespace is managed.
    Managed,
    /// Its namespace was released, and a request was not answered then.
    Leaving,
    /// Its namespace is not managed.
    Unmanaged,
}

/// One CronJob of the shard.
pub(crate) struct CronJobState {
    /// The last observed form, or the result of this replica's last write.
    pub(crate) record: CronJobRecord,
    /// The memory for the template and the metadata of the record.
    reservation: Reservation,
    /// The relist that last contained the CronJob.
    pub(crate) mark: u32,
    /// Whether the installation manages it.
    pub(crate) management: Management,
    /// Why it starts nothing until another version of it is known.
    pub(crate) unusable: Option<Unusable>,
    /// Whether cronwheel panicked when it examined this version for trouble.
    pub(crate) is_unexamined: bool,
    /// The status with every unstored change applied, if there is one.
    unstored_status: Option<Box<CronJobStatus>>,
    /// The emitted status write that is not answered yet.
    pub(crate) emitted: Option<Box<StatusWrite>>,
    /// Failed status writes since the last success.
    pub(crate) n_status_failures: u32,
    /// The next write is urgent: history waits for the cursor, or the Job may be gone before a flush.
    pub(crate) is_status_urgent: bool,
    /// The first undecided activation; a timer is set for it.
    pub(crate) armed: Seconds,
    /// A fact relevant to the decision changed: evaluate even if the armed slot is in the future.
    pub(crate) must_decide: bool,
    /// This leader counts no slots up to this instant: it has counted them, or the CronJob was suspended at first.
    pub(crate) counted_until: Seconds,
    /// The due slot that has not ended.
    pub(crate) open: Option<OpenSlot>,
    /// The run that is asked for and not answered (O-10).
    pub(crate) run: Option<Box<OpenRun>>,
    /// The last slot that ended without a Job, and how.
    pub(crate) ended_slot: Option<(Seconds, InstantOutcome)>,
    /// The time of the last change of the schedule, if this process observed it.
    pub(crate) schedule_changed: Option<Timestamp>,
    /// The end of the last suspension, if this process observed it.
    pub(crate) resumed: Seconds,
    /// Look-ups of entries of `status.active` without a known Job, by uid (B-5.4).
    pub(crate) lookups: BTreeMap<Uid, LookUp>,
    /// The actions that wait.
    pub(crate) delays: Delays,
    /// The refusal of its last create, if it was refused.
    pub(crate) refused: Option<Box<RefusedCreate>>,
    /// Failed history deletes since the last success.
    pub(crate) n_history_failures: u32,
    /// Problems that were already reported.
    pub(crate) reported: Reported,
    /// What is known of few CronJobs.
    rare: Option<Box<Rare>>,
    /// The activations after the last start, when they were last needed.
    pub(crate) after_start: Activations,
    /// The activations after the last success, when they were last needed.
    pub(crate) after_success: Activations,
}

/// The reason why a CronJob starts nothing until another version of it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The current object cannot be decoded: its former form must not run, and its status cannot be stored.
    Undecodable,
    /// cronwheel panicked when it handled the CronJob.
    Panicked,
}

impl CronJobState {
    /// Creates the state of a CronJob that was not known. Its texts stay as far as there is memory for them.
    pub(crate) fn new(
        record: CronJobRecord,
        mark: u32,
        memory: &TemplateMemory,
        management: Management,
    ) -> CronJobState {
        let mut cron_job = CronJobState {
            unstored_status: None,
            reservation: memory.reservation(&record.identity.namespace),
            record,
            mark,
            management,
            unusable: None,
            is_unexamined: false,
            emitted: None,
            n_status_failures: 0,
            is_status_urgent: false,
            armed: Seconds::default(),
            must_decide: false,
            counted_until: Seconds::default(),
            open: None,
            run: None,
            ended_slot: None,
            schedule_changed: None,
            resumed: Seconds::default(),
            lookups: BTreeMap::new(),
            delays: Delays::default(),
            refused: None,
            n_history_failures: 0,
            reported: Reported::default(),
            rare: None,
            after_start: Activations::default(),
            after_success: Activations::default(),
        };
        cron_job.keep_within_memory();
        cron_job
    }

    /// Forgets what a leader of the shard has decided and requested, and keeps what was observed. Returns whether a slot
    /// was open.
    pub(crate) fn forget_leadership(&mut self) -> bool {
        self.unstored_status = None;
        self.emitted = None;
        self.n_status_failures = 0;
        self.is_status_urgent = false;
        self.armed = Seconds::default();
        self.must_decide = false;
        self.counted_until = Seconds::default();
        self.run = None;
        self.ended_slot = None;
        self.lookups = BTreeMap::new();
        self.delays = Delays::default();
        self.refused = None;
        self.n_history_failures = 0;
        self.reported = Reported::default();
        if let Some(rare) = &mut self.rare {
            rare.forget_leadership();
        }
        self.open.take().is_some()
    }

    /// Releases the template, or the template and the metadata, of the record if there is no memory for them.
    fn keep_within_memory(&mut self) {
        let record = &mut self.record;
        let (template, metadata) = (&record.template.body, &record.retained_metadata);
        let kept = self.reservation.renew(template.n_bytes(), metadata.n_bytes());
        if kept != KeptPart::All {
            record.drop_template();
        }
        if kept == KeptPart::Nothing {
            record.drop_metadata();
        }
    }

    /// Whether the slot of a decision has ended and is not opened again. A slot that was lost to its deadline is
    /// opened again if the deadline grows, as in a process that started after the change. A slot that was missed does
    /// not wait for a Job that began later. A slot that is `Unschedulable` may have a Job: a panic lost the answer.
    pub(crate) fn has_given_up(&self, decision: &Decision) -> bool {
        let skips_missed = self.record.schedule.options().missed_runs == CatchUp::Skip;
        self.ended_slot.is_some_and(|(slot, outcome)| {
            let is_missed = skips_missed && outcome == InstantOutcome::Missed;
            let is_still_skipped = matches!(
                decision,
                Decision::Skip(SkipReason::DeadlineExceeded(_) | SkipReason::Missed(_) | SkipReason::Resumed(_))
            );
            decision.slot() == slot.get() && (is_still_skipped || is_missed || outcome.is_over())
        })
    }

    /// The slot after which the next one is decided: the cursor, or a later slot that has ended without a Job and is
    /// not started again. Only where several due slots may start, that slot hides those after it.
    pub(crate) fn decided_through(&self) -> Option<Timestamp> {
        let cursor = self.current_status().last_schedule_time;
        let ended = self
            .ended_slot
            .filter(|(_, outcome)| outcome.is_over())
            .and_then(|(slot, _)| slot.get());
        if self.record.schedule.options().start_several() {
            cursor.max(ended)
        } else {
            cursor
        }
    }

    /// Whether a slot may start at `now`.
    pub(crate) fn has_come(&self, slot: Timestamp, now: Timestamp) -> bool {
        slot <= self.record.schedule.slots_until(now)
    }

    /// Whether a slot may be due, or a fact that is relevant to the decision has changed.
    pub(crate) fn may_be_due(&self, now: Timestamp) -> bool {
        self.must_decide || self.armed.get().is_none_or(|armed| self.has_come(armed, now))
    }

    /// Whether the decision waits for an answer about the open slot. Under Allow, a later due slot does not wait for a
    /// look-up that is not permitted, since no earlier Job could hold it back.
    pub(crate) fn awaits_answer(&self, now: Timestamp) -> bool {
        if self.awaits_run() {
            return true;
        }
        let Some(open) = &self.open else { return false };
        let is_look_up_refused = open.look_up().is_some_and(LookUp::is_not_permitted);
        let is_later_due = self
            .armed
            .get()
            .is_some_and(|armed| open.slot < armed && self.has_come(armed, now));
        let is_allow = self.record.concurrency_policy == ConcurrencyPolicy::Allow;
        open.must_be_settled() && !(is_look_up_refused && is_later_due && is_allow)
    }

    /// Whether the Job has the name of the open slot, and an answer about that slot is outstanding.
    pub(crate) fn awaits_job(&self, job: &Job) -> bool {
        let identity = &self.record.identity;
        let is_named = |open: &OpenSlot| naming::is_job_name(&job.name, &identity.name, open.slot);
        let open = self.open.as_ref().filter(|open| open.must_be_settled());
        job.is_in_namespace_of(identity) && open.is_some_and(is_named)
    }

    /// The status with every unstored change applied, on which decisions are based (B-5.3 and its difference).
    pub(crate) fn current_status(&self) -> &CronJobStatus {
        self.unstored_status.as_deref().unwrap_or(&self.record.status)
    }

    fn current_status_mut(&mut self) -> &mut CronJobStatus {
        self.unstored_status
            .get_or_insert_with(|| Box::new(self.record.status.clone()))
    }

    /// Whether the stored status is up to date.
    pub(crate) fn is_status_stored(&self) -> bool {
        self.unstored_status
            .as_deref()
            .is_none_or(|unstored| *unstored == self.record.status)
    }

    /// Handles the API server's answer that it stored a status, which need not be the current one.
    pub(crate) fn note_stored(&mut self, status: CronJobStatus) {
        self.current_status_mut();
        self.record.status = status;
        self.drop_stored_status();
    }

    /// Releases the memory of the current status if it is the stored one.
    pub(crate) fn drop_stored_status(&mut self) {
        if self.is_status_stored() {
            self.unstored_status = None;
        }
    }

    /// The uids of the active list, which may be long.
    pub(crate) fn listed(&self) -> BTreeSet<&Uid> {
        self.current_status().active.iter().map(|active| &active.uid).collect()
    }

    pub(crate) fn is_listed_active(&self, uid: &Uid) -> bool {
        self.current_status().active.iter().any(|active| active.uid == *uid)
    }

    /// Removes a Job from the active list. Returns whether it was listed.
    pub(crate) fn remove_active(&mut self, uid: &Uid) -> bool {
        self.remove_active_if(|active| active.uid == *uid)
    }

    /// Removes entries from the active list. Returns whether there were any.
    pub(crate) fn remove_active_if(&mut self, is_removed: impl Fn(&ActiveJob) -> bool) -> bool {
        let is_any = self.current_status().active.iter().any(&is_removed);
        if is_any {
            self.current_status_mut().active.retain(|active| !is_removed(active));
        }
        is_any
    }

    /// Adds a Job to the active list (B-12.5).
    pub(crate) fn add_active(&mut self, active: ActiveJob) {
        if !self.is_listed_active(&active.uid) {
            self.current_status_mut().active.push(active);
        }
    }

    /// Moves `lastSuccessfulTime` forward, never back (B-5.1).
    pub(crate) fn note_success(&mut self, completed: Timestamp) {
        if self.current_status().last_successful_time < Some(completed) {
            self.current_status_mut().last_successful_time = Some(completed);
        }
    }

    /// Notes that the run of this token is answered. That is stored at once, since it protects against a second run.
    pub(crate) fn note_run_done(&mut self, token: &str) {
        self.current_status_mut().set_run_done(token);
        self.is_status_urgent = true;
    }

    /// Marks the status urgent if the Job may be deleted before the next flush and then no longer lock its slot
    /// (B-13.1).
    pub(crate) fn note_short_life(&mut self) {
        self.is_status_urgent |= self.record.has_short_ttl();
    }

    /// Ends every wait, since its end was computed from a wrong clock.
    pub(crate) fn end_waits(&mut self, now: Timestamp) {
        self.delays = Delays::default();
        self.give_place_up();
        if let Some(refused) = &mut self.refused {
            refused.not_before = now.min(refused.not_before);
        }
        if let Some(OpenSlot {
            stage: SlotStage::BackingOff { until },
            ..
        }) = &mut self.open
        {
            *until = now.min(*until);
        }
        let of_run = self.run.as_mut().and_then(|run| run.end_wait(now));
        let of_slot = self.open.as_mut().and_then(OpenSlot::look_up_mut);
        for look_up in self.lookups.values_mut().chain(of_slot).chain(of_run) {
            look_up.end_wait(now);
        }
    }

    /// Moves the cursor forward, never back (B-12.5). Returns whether it moved.
    pub(crate) fn advance_cursor(&mut self, slot: Timestamp) -> bool {
        let is_later = self.current_status().last_schedule_time < Some(slot);
        if is_later {
            self.current_status_mut().last_schedule_time = Some(slot);
        }
        is_later
    }

    /// Takes an observed form. Returns whether its status contains a change other than this replica's own write.
    /// Without an unstored change the observed status is authoritative, even if it moves the cursor back (B-16.4).
    /// Otherwise the unstored change is applied on top.
    pub(crate) fn take_record(&mut self, record: CronJobRecord, now: Timestamp) -> bool {
        self.drop_stored_status();
        if self.record.is_suspended && !record.is_suspended {
            self.resumed = Seconds::new(Some(now));
        }
        let (seen, former) = (&record.status, &self.record.status);
        let is_news = match &mut self.unstored_status {
            None => seen != former,
            Some(current) => {
                let is_cursor_news = seen.last_schedule_time > current.last_schedule_time;
                current.last_schedule_time = current.last_schedule_time.max(seen.last_schedule_time);
                current.last_successful_time = current.last_successful_time.max(seen.last_successful_time);
                current.unknown_members.clone_from(&seen.unknown_members);
                if current.runs_done == former.runs_done {
                    current.runs_done.clone_from(&seen.runs_done);
                }
                is_cursor_news
            }
        };
        self.record = record;
        self.keep_within_memory();
        is_news
    }
}

#[cfg(test)]
mod tests;
