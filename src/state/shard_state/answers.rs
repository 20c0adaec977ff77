//! What follows from the answers to our own orders (B-10.4, B-12).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    decision::{after, back_off},
};
use crate::state::{
    cron_job::{LookUpProgress, Stage},
    effect::{Effect, EventReason, JobLookUp},
    ids::{ResourceVersion, Uid},
    index::{JobIndex, OwnerIndex},
    naming,
    outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome},
    record::{ActiveJob, JobRecord},
    tally::InstantOutcome,
};

/// A Job that is deleted so soon after its end is no lock until the next flush: its slot is stored at once.
const SHORT_TTL_SECS: i64 = 60;
/// An order that was turned away before it was sent is not the server's fault: it comes back soon.
const ABANDONED_RETRY: SignedDuration = SignedDuration::from_secs(1);

impl ShardState {
    pub(super) fn create_answered(&mut self, uid: &Uid, slot: Timestamp, answer: CreateOutcome, now: Timestamp) {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        let is_awaited = self
            .open_slot_mut(owner)
            .is_some_and(|open| open.slot == slot && open.stage == Stage::Ordered);
        debug_assert!(is_awaited, "an answer for a slot that was not ordered: {uid} {slot}");
        if !is_awaited {
            return;
        }
        match answer {
            CreateOutcome::Created {
                uid, resource_version, ..
            } => self.created(owner, slot, uid, resource_version),
            CreateOutcome::AlreadyExists { message } => self.exists(owner, slot, message),
            CreateOutcome::NamespaceTerminating => self.retry_later(owner, None, now),
            CreateOutcome::Refused { message } => {
                self.tell_failed_create(owner, &message);
                self.end_open(owner, InstantOutcome::Refused);
            }
            CreateOutcome::Failed { message, retry_after } => {
                self.tell_failed_create(owner, &message);
                self.retry_later(owner, retry_after, now);
            }
            CreateOutcome::Expired => self.retry_at(owner, now),
            CreateOutcome::Abandoned => self.retry_at(owner, after(now, ABANDONED_RETRY)),
        }
        self.evaluate(owner, now);
    }

    /// The Job was created (B-12.1). It is known from here on, before the watch shows it.
    fn created(&mut self, owner: OwnerIndex, slot: Timestamp, uid: Uid, resource_version: Box<str>) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let identity = cron_job.record.identity.clone();
        let name = naming::job_name(&identity.name, slot);
        let was_seen_to_go = cron_job
            .open
            .as_ref()
            .is_some_and(|open| open.gone.as_ref() == Some(&uid));
        let ttl_secs = cron_job.record.template.ttl_seconds_after_finished;
        cron_job.is_status_urgent |= ttl_secs.is_some_and(|secs| secs < SHORT_TTL_SECS);
        if self.index.find_job(&uid).is_none() && !was_seen_to_go {
            let version = resource_version.parse().map_or(ResourceVersion(0), ResourceVersion);
            let job = JobRecord {
                uid: uid.clone(),
                namespace: identity.namespace.clone(),
                name: name.clone(),
                resource_version: version,
                controller: Some(identity.uid.clone()),
                scheduled: Some(slot),
                finish: None,
                started: None,
                completed: None,
            };
            self.index.apply_job(job, self.relists.mark);
            let active = ActiveJob {
                name: name.clone(),
                namespace: identity.namespace.clone(),
                uid,
                resource_version,
            };
            if let Some(cron_job) = self.index.cron_job_mut(owner) {
                cron_job.add_active(active);
            }
        }
        self.settle(owner, slot, InstantOutcome::Created);
        self.emit_event(owner, EventReason::SuccessfulCreate, format!("Created job {name}"));
    }

    /// A Job of the slot's name exists (B-12.3): ours if we know it, else we ask whose it is.
    fn exists(&mut self, owner: OwnerIndex, slot: Timestamp, message: String) {
        let Some(cron_job) = self.index.cron_job(owner) else {
            return;
        };
        let identity = cron_job.record.identity.clone();
        let name = naming::job_name(&identity.name, slot);
        let known = self
            .index
            .jobs_of(owner)
            .find(|(_, job)| job.name == name)
            .map(|(index, _)| index);
        if let Some(job) = known {
            self.adopt_existing(owner, slot, job);
            return;
        }
        if let Some(open) = self.open_slot_mut(owner) {
            open.stage = Stage::LookingUp { message };
        }
        let namespace = identity.namespace.clone();
        self.outbox.push_back(Effect::LookUpJob(JobLookUp {
            cron_job: identity,
            namespace,
            name,
        }));
    }

    fn adopt_existing(&mut self, owner: OwnerIndex, slot: Timestamp, job: JobIndex) {
        if let Some(active) = self.active_entry(job)
            && let Some(cron_job) = self.index.cron_job_mut(owner)
        {
            cron_job.add_active(active);
        }
        self.settle(owner, slot, InstantOutcome::Adopted);
    }

    /// The slot has its Job: the cursor moves there (B-12.5).
    fn settle(&mut self, owner: OwnerIndex, slot: Timestamp, outcome: InstantOutcome) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        cron_job.advance_cursor(slot);
        if cron_job.open.take().is_some() {
            self.tally.close(outcome);
        }
    }

    fn tell_failed_create(&mut self, owner: OwnerIndex, message: &str) {
        self.emit_event(
            owner,
            EventReason::FailedCreate,
            format!("Error creating job: {message}"),
        );
    }

    fn retry_later(&mut self, owner: OwnerIndex, retry_after: Option<Duration>, now: Timestamp) {
        let Some(open) = self.open_slot_mut(owner) else { return };
        open.n_failures = open.n_failures.saturating_add(1);
        let wait = back_off(open.n_failures, owner);
        let asked = retry_after
            .and_then(|asked| SignedDuration::try_from(asked).ok())
            .unwrap_or_default();
        self.retry_at(owner, after(now, wait.max(asked)));
    }

    fn retry_at(&mut self, owner: OwnerIndex, until: Timestamp) {
        if let Some(open) = self.open_slot_mut(owner) {
            open.stage = Stage::BackingOff { until };
        }
    }

    pub(super) fn looked_up(&mut self, uid: &Uid, name: &str, answer: LookUpOutcome, now: Timestamp) {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        if let LookUpOutcome::Found(job) = &answer
            && job.controller.as_ref() == Some(uid)
            && self.index.find_job(&job.uid).is_none()
        {
            self.index.apply_job((**job).clone(), self.relists.mark);
        }
        self.answer_for_slot(owner, name, &answer, now);
        self.answer_for_active(owner, name, &answer, now);
        self.evaluate(owner, now);
    }

    /// The answer to "whose is the Job of the slot's name?" (B-12.3).
    fn answer_for_slot(&mut self, owner: OwnerIndex, name: &str, answer: &LookUpOutcome, now: Timestamp) {
        let Some(cron_job) = self.index.cron_job(owner) else {
            return;
        };
        let Some(open) = &cron_job.open else { return };
        let Stage::LookingUp { message } = &open.stage else {
            return;
        };
        let (slot, message) = (open.slot, message.clone());
        if !naming::is_job_name(name, &cron_job.record.identity.name, slot) {
            return;
        }
        match answer {
            LookUpOutcome::Found(job) => match self.index.find_job(&job.uid) {
                Some(index) if job.controller.as_ref() == Some(&cron_job.record.identity.uid) => {
                    self.adopt_existing(owner, slot, index);
                }
                Some(_) | None => {
                    self.tell_failed_create(owner, &message);
                    self.end_open(owner, InstantOutcome::ForeignJob);
                }
            },
            LookUpOutcome::Gone => self.retry_later(owner, None, now),
            LookUpOutcome::Failed { retry_after, .. } => self.retry_later(owner, *retry_after, now),
            LookUpOutcome::Abandoned => self.retry_at(owner, after(now, ABANDONED_RETRY)),
        }
    }

    /// The answer to "does this entry of the active list still run?" (B-5.4).
    fn answer_for_active(&mut self, owner: OwnerIndex, name: &str, answer: &LookUpOutcome, now: Timestamp) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let Some(position) = cron_job.lookups.iter().position(|look_up| &*look_up.name == name) else {
            return;
        };
        match answer {
            LookUpOutcome::Found(_) => cron_job.lookups[position].progress = LookUpProgress::Kept,
            LookUpOutcome::Gone => {
                cron_job.lookups.swap_remove(position);
                cron_job.view.active.retain(|active| &*active.name != name);
                self.emit_event(
                    owner,
                    EventReason::MissingJob,
                    format!("Active job went missing: {name}"),
                );
            }
            LookUpOutcome::Failed { .. } | LookUpOutcome::Abandoned => {
                let until = after(now, ABANDONED_RETRY);
                cron_job.lookups[position].progress = LookUpProgress::Failed { until };
            }
        }
    }

    pub(super) fn delete_answered(&mut self, uid: &Uid, job: &Uid, name: &str, answer: DeleteOutcome, now: Timestamp) {
        let is_gone = match &answer {
            DeleteOutcome::Deleted | DeleteOutcome::Gone => true,
            DeleteOutcome::Failed { .. } | DeleteOutcome::Abandoned => false,
        };
        if let Some(index) = self.index.find_job(job)
            && let Some(job) = self.index.job_mut(index)
        {
            job.is_delete_requested = is_gone;
        }
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        match answer {
            DeleteOutcome::Deleted => {
                self.emit_event(owner, EventReason::SuccessfulDelete, format!("Deleted job {name}"));
            }
            // Somebody else was faster: what we wanted gone is gone.
            DeleteOutcome::Gone => {}
            DeleteOutcome::Failed { message, retry_after } => {
                self.emit_event(owner, EventReason::FailedDelete, format!("Deleted job: {message}"));
                self.put_history_off(owner, retry_after, now);
            }
            DeleteOutcome::Abandoned => self.put_history_off(owner, None, now),
        }
        if is_gone && let Some(cron_job) = self.index.cron_job_mut(owner) {
            cron_job.remove_active(job);
        }
        self.replaced(owner, job, is_gone, now);
        self.evaluate(owner, now);
    }

    fn put_history_off(&mut self, owner: OwnerIndex, retry_after: Option<Duration>, now: Timestamp) {
        let asked = retry_after
            .and_then(|asked| SignedDuration::try_from(asked).ok())
            .unwrap_or_default();
        if let Some(cron_job) = self.index.cron_job_mut(owner) {
            cron_job.history_not_before = Some(after(now, asked.max(SignedDuration::from_secs(5))));
        }
    }

    /// One of the Jobs to be replaced was answered; the last one lets the create go, or the retry (B-10.4).
    fn replaced(&mut self, owner: OwnerIndex, job: &Uid, is_gone: bool, now: Timestamp) {
        let Some(cron_job) = self.index.cron_job_mut(owner) else {
            return;
        };
        let next = cron_job.armed;
        let Some(open) = &mut cron_job.open else { return };
        let Stage::Replacing { jobs, has_failed } = &mut open.stage else {
            return;
        };
        jobs.retain(|waiting| waiting != job);
        *has_failed |= !is_gone;
        let (is_last, has_failed) = (jobs.is_empty(), *has_failed);
        match (is_last, has_failed) {
            (false, _) => {}
            (true, false) => self.order(owner, next),
            (true, true) => self.retry_later(owner, None, now),
        }
    }
}
