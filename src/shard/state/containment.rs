//! Contains a panic to the CronJob that was handled.
//!
//! A panic can leave the state of that CronJob half changed. What matters is then restored from facts: no timer is set, and
//! whether a request about the open slot is in flight is known, because a slot gets a stage that waits only together with
//! the order. The CronJob starts nothing until another version of it is known.

use super::ShardState;
#[cfg(test)]
use crate::shard::record::CronJobRecord;
use crate::shard::{
    ShardPhase,
    answer::OrderAnswer,
    cron_job::{Management, OpenSlot, SlotStage, Unusable},
    effect::EventReason,
    ids::{ResourceVersion, Uid},
    index::OwnerIndex,
    outcome_counts::InstantOutcome,
    panics::{ContainedPanic, contain},
};

/// What is lost with a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Nothing that matters to the open slot.
    Nothing,
    /// The answer for which the open slot waits. It does not come again.
    AnswerForSlot,
    /// The answer for which the run that is asked for waits.
    AnswerForRun,
}

/// The place in the handling of a CronJob at which a test makes cronwheel panic.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PanicAt {
    /// Before anything is evaluated.
    Evaluation,
    /// When a slot is open and nothing is ordered for it.
    Start,
    /// After an order, before the timer of the next slot is set.
    Ordered,
    /// When an answer arrives.
    Answered,
    /// In the examination for trouble.
    Examination,
    /// When its namespace is released.
    Release,
}

/// Whether the handling of a CronJob panics at a place.
#[cfg(test)]
pub(crate) type PanicsOn = fn(&CronJobRecord, PanicAt) -> bool;

impl ShardState {
    /// Handles something about the CronJob in a place.
    pub(super) fn contained_at(&mut self, owner: OwnerIndex, handle: impl FnOnce(&mut ShardState)) {
        if let Err(message) = contain(|| handle(self)) {
            self.stop_panicked(owner, Lost::Nothing, message);
        }
    }

    /// Handles something about the CronJob with this uid.
    pub(super) fn contained(&mut self, uid: &Uid, lost: Lost, handle: impl FnOnce(&mut ShardState)) {
        let Err(message) = contain(|| handle(self)) else { return };
        match self.index.find_cron_job(uid) {
            Some(owner) => self.stop_panicked(owner, lost, message),
            None => self.panics.add(ContainedPanic {
                cron_job: uid.to_string().into(),
                message,
            }),
        }
    }

    /// What is lost if cronwheel panics on an answer.
    pub(super) fn lost_with(&self, answer: &OrderAnswer) -> Lost {
        let cron_job = self.index.find_cron_job(answer.cron_job());
        let open = cron_job.and_then(|owner| self.index.cron_job(owner).open.as_ref());
        let run = cron_job.and_then(|owner| self.index.cron_job(owner).run.as_ref());
        let is_for = |open: Option<&OpenSlot>| {
            open.is_some_and(|open| match (answer, &open.stage) {
                (OrderAnswer::Create { slot, .. }, SlotStage::Creating) => *slot == open.slot,
                (OrderAnswer::LookUp { look_up: sent, .. }, SlotStage::LookingUp { look_up, .. }) => {
                    look_up.is_in_flight(sent)
                }
                (OrderAnswer::Delete { delete, .. }, SlotStage::Replacing { jobs, .. }) => jobs.contains(&delete.uid),
                _ => false,
            })
        };
        let is_for_slot = is_for(open);
        if is_for_slot {
            Lost::AnswerForSlot
        } else if is_for(run.map(|run| &run.open)) {
            Lost::AnswerForRun
        } else {
            Lost::Nothing
        }
    }

    /// Stops a CronJob on which cronwheel panicked. Without the answer for the open slot, it is unknown whether the slot has
    /// its Job, so this leader does not start the slot again.
    fn stop_panicked(&mut self, owner: OwnerIndex, lost: Lost, message: Box<str>) {
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.unusable = Some(Unusable::Panicked);
        // Their answers may be the ones that are lost.
        cron_job.emitted = None;
        cron_job.lookups.clear();
        self.add_panic(owner, message);
        if lost == Lost::AnswerForSlot {
            self.close_slot(owner, InstantOutcome::Unschedulable);
        }
        if lost == Lost::AnswerForRun {
            // Its name still protects it: the next attempt finds its Job.
            self.index.cron_job_mut(owner).run = None;
        }
        self.stop(owner);
        self.report_panicked(owner);
        if self.index.cron_job(owner).management == Management::Leaving {
            self.forget_if_idle(owner);
        }
    }

    /// Stops whatever is not in flight: the timers, the requests that wait, and the open slot.
    pub(super) fn stop(&mut self, owner: OwnerIndex) {
        self.arm(owner, None);
        self.cancel_wake(owner);
        self.withdraw(owner);
        self.close_unless_in_flight(owner, InstantOutcome::Unschedulable);
    }

    /// Notes that cronwheel panicked when it examined a CronJob for trouble. That decides nothing, so the CronJob goes on.
    pub(super) fn note_unexamined(&mut self, owner: OwnerIndex, message: Box<str>) {
        self.index.cron_job_mut(owner).is_unexamined = true;
        self.add_panic(owner, message);
        self.report_internal_error(
            owner,
            "cronwheel panicked when it examined this CronJob for trouble, which is a fault of cronwheel: its jobs start, \
             and it counts as invalid until it changes; the log of cronwheel has the cause",
        );
    }

    fn add_panic(&mut self, owner: OwnerIndex, message: Box<str>) {
        self.count_panicked(owner);
        let identity = &self.index.cron_job(owner).record.identity;
        self.panics.add(ContainedPanic {
            cron_job: format!("{}/{}", identity.namespace, identity.name).into(),
            message,
        });
    }

    /// Counts a managed CronJob if cronwheel panicked on this version of it.
    pub(super) fn count_panicked(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.cron_job_mut(owner);
        let has_panicked = cron_job.unusable == Some(Unusable::Panicked) || cron_job.is_unexamined;
        if has_panicked && cron_job.management == Management::Managed {
            cron_job.rare_mut().panicked = Some(self.panics.cron_job());
        }
    }

    /// Reports that the CronJob starts nothing because of a panic.
    pub(super) fn report_panicked(&mut self, owner: OwnerIndex) {
        self.report_internal_error(
            owner,
            "cronwheel panicked when it handled this CronJob, which is a fault of cronwheel: no job starts until the \
             CronJob changes; the log of cronwheel has the cause",
        );
    }

    /// Reports a panic, once for each version of the CronJob. The leader reports it, while it manages the namespace.
    fn report_internal_error(&mut self, owner: OwnerIndex, message: &str) {
        let is_managed = self.index.cron_job(owner).management == Management::Managed;
        if is_managed && self.phase != ShardPhase::Standby {
            self.report_once(owner, EventReason::InternalError, |_| message.to_owned());
        }
    }

    /// Whether cronwheel panicked on this version of the CronJob.
    pub(super) fn has_panicked_at(&self, owner: OwnerIndex, version: ResourceVersion) -> bool {
        let cron_job = self.index.cron_job(owner);
        cron_job.unusable == Some(Unusable::Panicked) && cron_job.record.resource_version == version
    }

    #[cfg(test)]
    pub(super) fn panic_if_told(&self, owner: OwnerIndex, at: PanicAt) {
        let cron_job = self.index.get_cron_job(owner);
        if let Some((cron_job, panics_on)) = cron_job.zip(self.panics_on) {
            assert!(!panics_on(&cron_job.record, at), "panics at {at:?}, as told");
        }
    }
}
