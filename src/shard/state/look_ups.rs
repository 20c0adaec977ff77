//! Look-ups of single Jobs: the owner of the Job with the slot's name (B-12.3), and the state of a listed Job
//! (B-5.4).

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    active::look_up_of,
    answers::ABANDONED_RETRY,
    back_off::{BACK_OFF, requested_wait, wait_after},
};
use crate::shard::{
    cron_job::{LOOK_UP_PATIENCE, LookUp, LookUpProgress, OpenSlot},
    effect::{Effect, EventReason, JobLookUp},
    index::OwnerIndex,
    outcome::LookUpOutcome,
    outcome_counts::InstantOutcome,
    record::ActiveJob,
};

/// The number of failed attempts at which an Event reports that a look-up is not permitted. The waits between them add up
/// to more than six seconds, longer than an API server that has just started takes to read its roles.
const FAILURES_BEFORE_EVENT: u32 = 7;

/// The wait after a failed attempt.
fn wait_after_attempt(look_up: &LookUp, answer: &LookUpOutcome, owner: OwnerIndex) -> SignedDuration {
    let least = match answer {
        LookUpOutcome::Failed { retry_after, .. } => requested_wait(*retry_after),
        LookUpOutcome::Abandoned => ABANDONED_RETRY,
        LookUpOutcome::Found(_) | LookUpOutcome::Gone | LookUpOutcome::NotPermitted { .. } => SignedDuration::ZERO,
    };
    wait_after(BACK_OFF, look_up.n_failures.saturating_add(1), owner).max(least)
}

impl ShardState {
    /// Looks up the Job of the slot's name. Nothing is decided until the answer arrives.
    pub(super) fn look_up_slot(&mut self, owner: OwnerIndex, slot: Timestamp, message: String) {
        self.note_error(owner, &message);
        let cron_job = self.index.cron_job_mut(owner);
        let name = cron_job.record.job_name(slot);
        if let Some(open) = &mut cron_job.open {
            let request = open.look_up_job(&cron_job.record.identity, name, message);
            self.outbox.push_back(Effect::LookUpJob(request));
        }
    }

    pub(super) fn looked_up(&mut self, request: &JobLookUp, answer: LookUpOutcome, now: Timestamp) {
        let Some(owner) = self.index.find_cron_job(&request.cron_job.uid) else {
            return;
        };
        let answer = self.accept_found_job(owner, request, answer);
        if request.listed_uid.is_none() {
            self.answer_for_slot(owner, request, &answer, now);
            self.answer_for_run(owner, request, &answer, now);
        } else {
            self.answer_for_active(owner, request, &answer, now);
        }
        self.evaluate(owner, now);
    }

    /// Handles a failed attempt. Several that are not permitted are reported once.
    pub(super) fn note_failed_look_up(
        &mut self,
        owner: OwnerIndex,
        request: &JobLookUp,
        answer: &LookUpOutcome,
        now: Timestamp,
    ) {
        let Some(look_up) = self.look_up_in_flight(owner, request) else {
            return;
        };
        look_up.fail(answer, wait_after_attempt(look_up, answer, owner), now);
        if let LookUpOutcome::NotPermitted { message } = answer
            && look_up.n_failures == FAILURES_BEFORE_EVENT
        {
            let message = format!("Error looking up job {}: {message}", request.name);
            self.emit_event(owner, EventReason::FailedLookUp, message);
        }
    }

    /// Why a look-up that is not permitted ends nothing well; `None` while there is hope. `what` is lost if there is no Job.
    pub(super) fn hopeless_text(
        &self,
        owner: OwnerIndex,
        request: &JobLookUp,
        answer: &LookUpOutcome,
        what: &str,
        now: Timestamp,
    ) -> Option<String> {
        let LookUpOutcome::NotPermitted { message } = answer else {
            return None;
        };
        let cron_job = self.index.cron_job(owner);
        let run = cron_job.run.as_ref().map(|run| &run.open);
        let mut look_ups = cron_job.open.iter().chain(run).filter_map(OpenSlot::look_up);
        let look_up = look_ups.find(|look_up| look_up.request == *request)?;
        look_up.is_hopeless(now).then(|| {
            format!(
                "Gave up looking up job {}, which has not been permitted for {} minutes: {what} is lost unless the job \
                 exists: {message}",
                request.name,
                LOOK_UP_PATIENCE.as_mins()
            )
        })
    }

    /// The look-up that was sent with this request and is not answered.
    fn look_up_in_flight(&mut self, owner: OwnerIndex, request: &JobLookUp) -> Option<&mut LookUp> {
        let cron_job = self.index.cron_job_mut(owner);
        let look_up = if let Some(uid) = &request.listed_uid {
            cron_job.lookups.get_mut(uid)
        } else {
            let run = cron_job.run.as_mut().map(|run| &mut run.open);
            let look_ups = cron_job.open.as_mut().into_iter().chain(run);
            let mut look_ups = look_ups.filter_map(OpenSlot::look_up_mut);
            look_ups.find(|look_up| look_up.is_in_flight(request))
        };
        look_up.filter(|look_up| look_up.is_in_flight(request))
    }

    /// Repeats the look-up of the open slot when its wait is over. While it is unknown whether the slot has its Job,
    /// nothing may be created.
    pub(super) fn retry_look_up(&mut self, owner: OwnerIndex, now: Timestamp) {
        if let Some(look_up) = self.open_slot_mut(owner).and_then(OpenSlot::look_up_mut) {
            let next = look_up.retry(now);
            self.look_up_or_wait(owner, next);
        }
    }

    /// Emits the next attempt of a look-up, or sets a timer for it.
    pub(super) fn look_up_or_wait(&mut self, owner: OwnerIndex, next: Result<Option<JobLookUp>, Timestamp>) {
        match next {
            Ok(Some(request)) => self.outbox.push_back(Effect::LookUpJob(request)),
            Ok(None) => {}
            Err(until) => self.wake_at(owner, until),
        }
    }

    /// Stores a Job of this CronJob that was found, but only while its look-up is outstanding and the watch has not
    /// delivered its deletion since: no later event would remove the Job again.
    fn accept_found_job(&mut self, owner: OwnerIndex, request: &JobLookUp, answer: LookUpOutcome) -> LookUpOutcome {
        let LookUpOutcome::Found(job) = answer else {
            return answer;
        };
        let cron_job = self.index.cron_job(owner);
        let run = cron_job.run.as_ref().map(|run| &run.open);
        let mut opened = cron_job.open.iter().chain(run);
        if opened.any(|open| open.gone.as_deref() == Some(&job.uid)) {
            return LookUpOutcome::Gone;
        }
        let identity = &cron_job.record.identity;
        let is_ours = job.controller.as_ref() == Some(&identity.uid) && job.namespace == identity.namespace;
        let is_asked_for = request.listed_uid.as_ref().is_none_or(|uid| *uid == job.uid);
        let is_in_flight = self.look_up_in_flight(owner, request).is_some();
        if is_ours && is_asked_for && is_in_flight && self.index.find_job(&job.uid).is_none() {
            self.index.apply_job((*job).clone(), self.relists.mark);
        }
        LookUpOutcome::Found(job)
    }

    /// Handles the owner of the Job of the slot's name (B-12.3).
    fn answer_for_slot(&mut self, owner: OwnerIndex, request: &JobLookUp, answer: &LookUpOutcome, now: Timestamp) {
        let cron_job = self.index.cron_job(owner);
        let Some(open) = &cron_job.open else { return };
        let Some(message) = open.error_looked_up_by(request) else {
            return;
        };
        let (slot, message) = (open.slot, message.to_owned());
        match answer {
            LookUpOutcome::Found(job) => match self.index.find_job(&job.uid) {
                Some(index) if job.controller.as_ref() == Some(&cron_job.record.identity.uid) => {
                    self.adopt_existing(owner, slot, index);
                }
                Some(_) | None => {
                    self.report_failed_create(owner, &message);
                    self.close_slot(owner, InstantOutcome::ForeignJob);
                }
            },
            // The watch delivered its creation and deletion: the slot had its Job.
            LookUpOutcome::Gone if open.gone.is_some() => self.close_with_job(owner, slot, InstantOutcome::Adopted),
            LookUpOutcome::Gone => {
                self.note_create_without_job(owner, &message);
                self.retry_later(owner, now);
            }
            LookUpOutcome::NotPermitted { .. } | LookUpOutcome::Failed { .. } | LookUpOutcome::Abandoned => {
                self.note_failed_look_up(owner, request, answer, now);
                self.give_up_slot(owner, request, answer, now);
            }
        }
    }

    /// Ends the slot if its look-up has not been permitted for too long, so that later slots start. It is not started
    /// again: it may have its Job.
    fn give_up_slot(&mut self, owner: OwnerIndex, request: &JobLookUp, answer: &LookUpOutcome, now: Timestamp) {
        if let Some(message) = self.hopeless_text(owner, request, answer, "the slot", now) {
            self.emit_event(owner, EventReason::FailedLookUp, message);
            self.close_slot(owner, InstantOutcome::LookUpRefused);
        }
    }

    /// Counts creates of the slot that were not answered and created nothing. Each is reported from the second on: an
    /// admission webhook may need more time than the API server allows a request.
    fn note_create_without_job(&mut self, owner: OwnerIndex, message: &str) {
        let Some(open) = self.open_slot_mut(owner) else { return };
        open.n_creates_without_job = open.n_creates_without_job.saturating_add(1);
        if open.n_creates_without_job > 1 {
            self.report_failed_create(owner, message);
        }
    }

    /// Handles the state of an entry of the active list (B-5.4).
    fn answer_for_active(&mut self, owner: OwnerIndex, request: &JobLookUp, answer: &LookUpOutcome, now: Timestamp) {
        let Some(look_up) = self.look_up_in_flight(owner, request) else {
            return;
        };
        match answer {
            LookUpOutcome::Found(_) => look_up.progress = LookUpProgress::Kept,
            // The following evaluation drops the look-up with its entry.
            LookUpOutcome::Gone => {
                let cron_job = self.index.cron_job_mut(owner);
                let identity = cron_job.record.identity.clone();
                let is_requested = |active: &ActiveJob| look_up_of(&identity, active) == *request;
                if cron_job.remove_active_if(is_requested) {
                    let message = format!("Active job went missing: {}", request.name);
                    self.emit_event(owner, EventReason::MissingJob, message);
                }
            }
            LookUpOutcome::NotPermitted { .. } | LookUpOutcome::Failed { .. } | LookUpOutcome::Abandoned => {
                self.note_failed_look_up(owner, request, answer, now);
            }
        }
    }
}
