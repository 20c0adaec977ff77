//! Look-ups of single Jobs: the owner of the Job with the slot's name (B-12.3), and the state of a listed Job
//! (B-5.4).

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    active::look_up_of,
    answers::ABANDONED_RETRY,
    back_off::{BACK_OFF, requested_wait, wait_after},
};
use crate::{
    schedule::after,
    shard::{
        cron_job::{LookUpProgress, SlotStage},
        effect::{Effect, EventReason, JobLookUp},
        index::OwnerIndex,
        naming,
        outcome::LookUpOutcome,
        outcome_counts::InstantOutcome,
        record::ActiveJob,
    },
};

/// The number of consecutive refused look-ups after which an Event reports them. The waits between them add up to more
/// than six seconds, longer than an API server that has just started takes to read its roles.
const REFUSALS_BEFORE_EVENT: u32 = 7;

/// The wait that an answer requests.
fn retry_after_of(answer: &LookUpOutcome) -> SignedDuration {
    if let LookUpOutcome::Failed { retry_after, .. } = answer {
        requested_wait(*retry_after)
    } else {
        SignedDuration::ZERO
    }
}

impl ShardState {
    /// Looks up the Job of the slot's name. Nothing is decided until the answer arrives.
    pub(super) fn look_up_slot(&mut self, owner: OwnerIndex, slot: Timestamp, message: String) {
        let cron_job = self.index.cron_job_mut(owner);
        let cron_job_identity = cron_job.record.identity.clone();
        if let Some(open) = &mut cron_job.open {
            open.stage = SlotStage::LookingUp { message };
        }
        self.outbox.push_back(Effect::LookUpJob(JobLookUp {
            namespace: cron_job_identity.namespace.clone(),
            name: naming::job_name(&cron_job_identity.name, slot),
            cron_job: cron_job_identity,
            listed_uid: None,
        }));
    }

    pub(super) fn looked_up(&mut self, request: &JobLookUp, answer: LookUpOutcome, now: Timestamp) {
        let Some(owner) = self.index.find_cron_job(&request.cron_job.uid) else {
            return;
        };
        let answer = self.accept_found_job(owner, request, answer);
        if request.listed_uid.is_none() {
            self.answer_for_slot(owner, &request.name, &answer, now);
        } else {
            self.answer_for_active(owner, request, &answer, now);
        }
        self.evaluate(owner, now);
    }

    /// Schedules another look-up. While it is unknown whether the slot has its Job, nothing may be created.
    fn look_up_later(&mut self, owner: OwnerIndex, retry_after: SignedDuration, message: String, now: Timestamp) {
        let Some(open) = self.open_slot_mut(owner) else { return };
        open.n_failures = open.n_failures.saturating_add(1);
        let until = after(now, wait_after(BACK_OFF, open.n_failures, owner).max(retry_after));
        open.stage = SlotStage::LookingUpLater { message, until };
        self.wake_at(owner, until);
    }

    /// Counts look-ups of the slot's Job that are not permitted, and reports them once per slot.
    fn note_refusal(&mut self, owner: OwnerIndex, name: &str, answer: &LookUpOutcome) {
        let Some(open) = self.open_slot_mut(owner) else { return };
        let LookUpOutcome::NotPermitted { message } = answer else {
            // Only an answer of the server is evidence about permissions.
            if *answer != LookUpOutcome::Abandoned {
                open.n_look_up_refusals = 0;
            }
            return;
        };
        open.n_look_up_refusals = open.n_look_up_refusals.saturating_add(1);
        if open.n_look_up_refusals == REFUSALS_BEFORE_EVENT {
            self.report_failed_look_up(owner, name, message);
        }
    }

    fn report_failed_look_up(&mut self, owner: OwnerIndex, name: &str, message: &str) {
        let message = format!("Error looking up job {name}: {message}");
        self.emit_event(owner, EventReason::FailedLookUp, message);
    }

    /// Repeats the look-up when its wait is over.
    pub(super) fn retry_look_up(&mut self, owner: OwnerIndex, now: Timestamp) {
        let Some(open) = &self.index.cron_job(owner).open else {
            return;
        };
        let SlotStage::LookingUpLater { message, until } = &open.stage else {
            return;
        };
        let (slot, until) = (open.slot, *until);
        if now < until {
            self.wake_at(owner, until);
        } else {
            let message = message.clone();
            self.look_up_slot(owner, slot, message);
        }
    }

    /// Stores a Job of this CronJob that was found, but only while its look-up is outstanding and the watch has not
    /// delivered its deletion since: no later event would remove the Job again.
    fn accept_found_job(&mut self, owner: OwnerIndex, request: &JobLookUp, answer: LookUpOutcome) -> LookUpOutcome {
        let LookUpOutcome::Found(job) = answer else {
            return answer;
        };
        let cron_job = self.index.cron_job(owner);
        if cron_job
            .open
            .as_ref()
            .is_some_and(|open| open.gone.as_deref() == Some(&job.uid))
        {
            return LookUpOutcome::Gone;
        }
        let identity = &cron_job.record.identity;
        let is_for_slot = request.listed_uid.is_none()
            && cron_job.open.as_ref().is_some_and(|open| {
                matches!(open.stage, SlotStage::LookingUp { .. })
                    && naming::is_job_name(&request.name, &identity.name, open.slot)
            });
        let is_for_active = request.listed_uid.as_ref() == Some(&job.uid)
            && cron_job
                .lookups
                .get(&job.uid)
                .is_some_and(|look_up| look_up.is_pending(request));
        let is_ours = job.controller.as_ref() == Some(&identity.uid) && job.namespace == identity.namespace;
        if is_ours && (is_for_slot || is_for_active) && self.index.find_job(&job.uid).is_none() {
            self.index.apply_job((*job).clone(), self.relists.mark);
        }
        LookUpOutcome::Found(job)
    }

    /// Handles the owner of the Job of the slot's name (B-12.3).
    fn answer_for_slot(&mut self, owner: OwnerIndex, name: &str, answer: &LookUpOutcome, now: Timestamp) {
        let cron_job = self.index.cron_job(owner);
        let Some(open) = &cron_job.open else { return };
        let SlotStage::LookingUp { message } = &open.stage else {
            return;
        };
        let (slot, message) = (open.slot, message.clone());
        if !naming::is_job_name(name, &cron_job.record.identity.name, slot) {
            return;
        }
        self.note_refusal(owner, name, answer);
        let cron_job = self.index.cron_job(owner);
        let Some(open) = &cron_job.open else { return };
        match answer {
            LookUpOutcome::Found(job) => match self.index.find_job(&job.uid) {
                Some(index) if job.controller.as_ref() == Some(&cron_job.record.identity.uid) => {
                    self.adopt_existing(owner, slot, index);
                }
                Some(_) | None => {
                    self.report_failed_create(owner, &message);
                    self.end_open(owner, InstantOutcome::ForeignJob);
                }
            },
            // The watch delivered its creation and deletion: the slot had its Job.
            LookUpOutcome::Gone if open.gone.is_some() => self.end_with_job(owner, slot, InstantOutcome::Adopted),
            LookUpOutcome::Gone => {
                self.note_lost_create(owner, &message);
                self.retry_later(owner, now);
            }
            LookUpOutcome::NotPermitted { .. } | LookUpOutcome::Failed { .. } | LookUpOutcome::Abandoned => {
                self.look_up_later(owner, retry_after_of(answer), message, now);
            }
        }
    }

    /// Counts creates of the slot that were not answered and created nothing. Each is reported from the second on: an
    /// admission webhook may need more time than the API server allows a request.
    fn note_lost_create(&mut self, owner: OwnerIndex, message: &str) {
        let Some(open) = self.open_slot_mut(owner) else { return };
        open.n_lost_creates = open.n_lost_creates.saturating_add(1);
        if open.n_lost_creates > 1 {
            self.report_failed_create(owner, message);
        }
    }

    /// Handles the state of an entry of the active list (B-5.4).
    fn answer_for_active(&mut self, owner: OwnerIndex, request: &JobLookUp, answer: &LookUpOutcome, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        let look_up = request
            .listed_uid
            .as_ref()
            .and_then(|uid| cron_job.lookups.get_mut(uid));
        let Some(look_up) = look_up.filter(|look_up| look_up.is_pending(request)) else {
            return;
        };
        match answer {
            LookUpOutcome::Found(_) => look_up.progress = LookUpProgress::Kept,
            // The following evaluation drops the look-up with its entry.
            LookUpOutcome::Gone => {
                let identity = cron_job.record.identity.clone();
                let is_requested = |active: &ActiveJob| look_up_of(&identity, active) == *request;
                if cron_job.remove_active_if(is_requested) {
                    let message = format!("Active job went missing: {}", request.name);
                    self.emit_event(owner, EventReason::MissingJob, message);
                }
            }
            LookUpOutcome::NotPermitted { .. } | LookUpOutcome::Failed { .. } | LookUpOutcome::Abandoned => {
                look_up.n_failures = look_up.n_failures.saturating_add(1);
                let wait = wait_after(BACK_OFF, look_up.n_failures, owner).max(ABANDONED_RETRY);
                let until = after(now, wait.max(retry_after_of(answer)));
                look_up.progress = LookUpProgress::Failed { until };
                if let LookUpOutcome::NotPermitted { message } = answer
                    && look_up.n_failures == REFUSALS_BEFORE_EVENT
                {
                    self.report_failed_look_up(owner, &request.name, message);
                }
            }
        }
    }
}
