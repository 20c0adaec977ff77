//! Handles the answers to orders of this shard (B-10.4, B-12).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    back_off::{BACK_OFF, requested_wait, wait_after},
};
use crate::{
    schedule::after,
    shard::{
        cron_job::{DelayedAction, LookUpProgress, SlotStage},
        effect::{EventReason, JobDelete},
        ids::{ResourceVersion, Uid},
        index::{JobIndex, OwnerIndex},
        outcome::{CreateOutcome, DeleteOutcome, RefusalReason},
        outcome_counts::InstantOutcome,
        record::JobCreator,
        record::JobRecord,
        seconds::Seconds,
    },
};

/// Retry interval after an abandoned request, which is not the server's fault.
pub(super) const ABANDONED_RETRY: SignedDuration = SignedDuration::from_secs(1);

/// How long creates may be refused for lack of permission before an Event reports it (B-12.4). An API server that has
/// not read its roles yet permits nothing.
const PERMISSION_PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// The minimum wait after a failed history delete, which is not urgent.
const HISTORY_RETRY_MIN: SignedDuration = SignedDuration::from_secs(5);

impl ShardState {
    pub(super) fn create_answered(&mut self, uid: &Uid, slot: Timestamp, answer: CreateOutcome, now: Timestamp) {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        let is_awaited = self
            .open_slot_mut(owner)
            .is_some_and(|open| open.slot == slot && open.stage == SlotStage::Creating);
        if !is_awaited {
            return self.run_create_answered(owner, slot, answer, now);
        }
        if answer.is_answer() {
            self.note_create_answer(owner, &answer, now);
        }
        match answer {
            CreateOutcome::Created {
                uid, resource_version, ..
            } => self.created(owner, slot, uid, &resource_version, now),
            CreateOutcome::AlreadyExists { message } => self.exists(owner, slot, message),
            CreateOutcome::NamespaceTerminating => {
                self.retry_refused(owner, RefusalReason::NamespaceTerminating, None, now);
            }
            CreateOutcome::Invalid { message } => {
                self.report_failed_create(owner, &message);
                self.retry_refused(owner, RefusalReason::Invalid, None, now);
            }
            CreateOutcome::NotPermitted { message } if self.is_without_permission(owner, now) => {
                self.report_failed_create(owner, &message);
                self.retry_refused(owner, RefusalReason::NotPermitted, None, now);
            }
            CreateOutcome::NotPermitted { .. } => self.retry_later(owner, now),
            CreateOutcome::Failed {
                message,
                status,
                retry_after,
            } => {
                self.report_failed_create(owner, &message);
                self.retry_refused(owner, RefusalReason::Failed(status), retry_after, now);
            }
            CreateOutcome::Unanswered { message, .. } => self.look_up_slot(owner, slot, message),
            CreateOutcome::Withdrawn => self.retry_at(owner, now),
            CreateOutcome::Abandoned => self.retry_at(owner, after(now, ABANDONED_RETRY)),
        }
        self.evaluate(owner, now);
    }

    /// Records what an answer of the API server says about permissions and admission.
    fn note_create_answer(&mut self, owner: OwnerIndex, answer: &CreateOutcome, now: Timestamp) {
        self.note_permission(owner, answer, now);
        let cron_job = self.index.cron_job_mut(owner);
        if let Some(open) = &mut cron_job.open {
            open.is_refused_due_to_tenant = false;
        }
        if matches!(
            answer,
            CreateOutcome::Created { .. } | CreateOutcome::AlreadyExists { .. }
        ) {
            cron_job.refused = None;
        }
    }

    /// Records whether an answer to a create says that cronwheel has no permission.
    pub(super) fn note_permission(&mut self, owner: OwnerIndex, answer: &CreateOutcome, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        // A clock that was set back must not suppress the report.
        let since = cron_job.not_permitted_since().unwrap_or(now).min(now);
        let is_not_permitted = matches!(answer, CreateOutcome::NotPermitted { .. });
        if is_not_permitted || cron_job.not_permitted_since().is_some() {
            cron_job.rare_mut().not_permitted_since = Seconds::new(is_not_permitted.then_some(since));
        }
    }

    /// Whether creates have been refused for longer than an API server needs to start.
    pub(super) fn is_without_permission(&self, owner: OwnerIndex, now: Timestamp) -> bool {
        let since = self.index.cron_job(owner).not_permitted_since();
        since.is_some_and(|since| now.duration_since(since) >= PERMISSION_PATIENCE)
    }

    /// Handles a created Job (B-12.1). The Job is known from this point, before the watch delivers it.
    fn created(&mut self, owner: OwnerIndex, slot: Timestamp, uid: Uid, resource_version: &str, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        let identity = cron_job.record.identity.clone();
        let name = cron_job.record.job_name(slot);
        let was_seen_to_go = cron_job
            .open
            .as_ref()
            .is_some_and(|open| open.gone.as_deref() == Some(&uid));
        match self.index.find_job(&uid) {
            // The watch delivered it first. The Job belongs to this slot, regardless of its annotations (B-12.5).
            Some(index) if self.index.job(index).finish.is_none() => self.list_active(owner, index),
            Some(_) => {}
            None if was_seen_to_go => {}
            None => {
                let job = JobRecord {
                    uid,
                    namespace: identity.namespace.clone(),
                    name: name.clone(),
                    resource_version: ResourceVersion::read(resource_version),
                    controller: Some(identity.uid.clone()),
                    scheduled: Some(slot),
                    finish: None,
                    started: None,
                    completed: None,
                    creator: JobCreator::Cronwheel,
                    run_token: None,
                };
                let uid = job.uid.clone();
                self.index.apply_job(job, self.relists.mark);
                if let Some(index) = self.index.find_job(&uid) {
                    self.list_active(owner, index);
                }
            }
        }
        self.close_with_job_at(owner, slot, InstantOutcome::Created, Some(now));
        self.emit_event(owner, EventReason::SuccessfulCreate, format!("Created job {name}"));
    }

    /// Handles an existing Job of the slot's name (B-12.3): adopts a known child, else looks up the Job's owner.
    fn exists(&mut self, owner: OwnerIndex, slot: Timestamp, message: String) {
        let name = self.index.cron_job(owner).record.job_name(slot);
        let known = self
            .index
            .children_of(owner)
            .find(|(_, job)| job.name == name)
            .map(|(index, _)| index);
        if let Some(job) = known {
            self.adopt_existing(owner, slot, job);
            return;
        }
        self.look_up_slot(owner, slot, message);
    }

    pub(super) fn adopt_existing(&mut self, owner: OwnerIndex, slot: Timestamp, job: JobIndex) {
        self.list_active(owner, job);
        self.close_with_job(owner, slot, InstantOutcome::Adopted);
    }

    pub(super) fn list_active(&mut self, owner: OwnerIndex, job: JobIndex) {
        let active = self.active_entry(job);
        self.index.cron_job_mut(owner).add_active(active);
    }

    /// Ends a slot that has its Job: the cursor moves to the slot (B-12.5).
    pub(super) fn close_with_job(&mut self, owner: OwnerIndex, slot: Timestamp, outcome: InstantOutcome) {
        self.close_with_job_at(owner, slot, outcome, None);
    }

    /// [`ShardState::close_with_job`], for a Job that was created at this instant.
    fn close_with_job_at(
        &mut self,
        owner: OwnerIndex,
        slot: Timestamp,
        outcome: InstantOutcome,
        created: Option<Timestamp>,
    ) {
        let created = created.filter(|_| self.ended_runs.logs(outcome));
        let lateness = created.and_then(|created| Some(created.duration_since(self.late_from(owner)?)));
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.advance_cursor(slot);
        cron_job.note_short_life();
        cron_job.use_place();
        cron_job.refused = None;
        // Retained entries are looked up once per run (B-5.4).
        cron_job
            .lookups
            .retain(|_, look_up| look_up.progress != LookUpProgress::Kept);
        // The next of several due slots starts now.
        cron_job.must_decide |= cron_job.record.schedule.options().start_several();
        if cron_job.open.take().is_some() {
            self.outcome_counts.close(outcome);
            self.log_started(owner, slot, outcome, lateness);
        }
    }

    pub(super) fn report_failed_create(&mut self, owner: OwnerIndex, message: &str) {
        self.note_error(owner, message);
        self.emit_event(
            owner,
            EventReason::FailedCreate,
            format!("Error creating job: {message}"),
        );
    }

    pub(super) fn retry_later(&mut self, owner: OwnerIndex, now: Timestamp) {
        let Some(open) = self.open_slot_mut(owner) else { return };
        open.n_failures = open.n_failures.saturating_add(1);
        let wait = wait_after(BACK_OFF, open.n_failures, owner);
        self.retry_at(owner, after(now, wait));
    }

    pub(super) fn retry_at(&mut self, owner: OwnerIndex, until: Timestamp) {
        if let Some(open) = self.open_slot_mut(owner) {
            open.stage = SlotStage::BackingOff { until };
        }
    }

    pub(super) fn delete_answered(&mut self, delete: &JobDelete, answer: DeleteOutcome, now: Timestamp) {
        let JobDelete { name, uid: job, .. } = delete;
        let is_gone = match &answer {
            DeleteOutcome::Deleted | DeleteOutcome::Gone => true,
            DeleteOutcome::Failed { .. } | DeleteOutcome::Withdrawn | DeleteOutcome::Abandoned => false,
        };
        if let Some(index) = self.index.find_job(job) {
            self.index.job_mut(index).is_delete_requested = is_gone;
        }
        let Some(owner) = self.index.find_cron_job(&delete.cron_job.uid) else {
            return;
        };
        let has_failed = matches!(answer, DeleteOutcome::Failed { .. } | DeleteOutcome::Abandoned);
        match answer {
            DeleteOutcome::Deleted => {
                self.emit_event(owner, EventReason::SuccessfulDelete, format!("Deleted job {name}"));
            }
            // Another client deleted the Job first; the goal is reached.
            DeleteOutcome::Gone | DeleteOutcome::Withdrawn => {}
            DeleteOutcome::Failed { message, retry_after } => {
                self.emit_event(owner, EventReason::FailedDelete, format!("Deleted job: {message}"));
                self.put_history_off(owner, retry_after, now);
            }
            DeleteOutcome::Abandoned => self.put_history_off(owner, None, now),
        }
        if is_gone {
            let cron_job = self.index.cron_job_mut(owner);
            cron_job.n_history_failures = 0;
            cron_job.remove_active(job);
        }
        self.replaced(owner, job, has_failed, now);
        self.replaced_for_run(owner, job, has_failed, now);
        self.evaluate_jobs(owner, now);
    }

    fn put_history_off(&mut self, owner: OwnerIndex, retry_after: Option<Duration>, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.n_history_failures = cron_job.n_history_failures.saturating_add(1);
        let wait = wait_after(BACK_OFF, cron_job.n_history_failures, owner)
            .max(HISTORY_RETRY_MIN)
            .max(requested_wait(retry_after));
        cron_job.delays.set(DelayedAction::History, after(now, wait));
    }

    /// Handles the answer for one of the Jobs to replace. After the last one, the slot is decided again (B-10.4).
    fn replaced(&mut self, owner: OwnerIndex, job: &Uid, is_failed: bool, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        let Some(open) = &mut cron_job.open else { return };
        let SlotStage::Replacing { jobs, has_failed } = &mut open.stage else {
            return;
        };
        if !jobs.contains(job) {
            return;
        }
        jobs.retain(|waiting| waiting != job);
        *has_failed |= is_failed;
        let (is_last, has_failed) = (jobs.is_empty(), *has_failed);
        match (is_last, has_failed) {
            (false, _) => {}
            // Decide again: a later slot may be due, or the CronJob may have changed.
            (true, false) => self.retry_at(owner, now),
            (true, true) => self.retry_later(owner, now),
        }
    }
}
