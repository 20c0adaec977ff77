//! Runs that users ask for by the option `run-now` (O-10): once for each token, beside the slots.
//!
//! The token is stored as answered by the status write that follows the create. Until then the name of the Job, which
//! the token determines, protects against a second run, so neither history nor Replace deletes the Job.

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    answers::ABANDONED_RETRY,
    back_off::{CREATE_BACK_OFF, requested_wait, wait_after},
};
use crate::{
    schedule::after,
    shard::{
        ShardPhase,
        cron_job::{OpenRun, SlotStage},
        effect::{Effect, EventReason, JobCreate, JobLookUp},
        ids::{ResourceVersion, Uid},
        index::{JobIndex, OwnerIndex},
        naming,
        outcome::{CreateOutcome, LookUpOutcome},
        outcome_counts::{InstantOutcome, RunNowResult},
        record::{ConcurrencyPolicy, JobCreator, JobRecord},
    },
};

/// How long the create of a run is repeated. Whoever asked for it looks for its result within this time.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// How soon the Job of a run should exist; only the order of the creates depends on it.
const WANTED_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// How long a slot under Replace waits for a status write at a time.
const REPLACE_WAIT: SignedDuration = SignedDuration::from_secs(1);

impl ShardState {
    /// Starts the run that a CronJob is asked for, or goes on with it.
    pub(super) fn run_now(&mut self, owner: OwnerIndex, now: Timestamp) {
        let cron_job = self.index.cron_job(owner);
        // The usual case.
        if cron_job.run.is_none() && cron_job.asked_run().is_none() {
            return self.index.cron_job_mut(owner).remember_asked_run();
        }
        if let Some(token) = self.found_run(owner) {
            self.end_with_known_job(owner, &token);
            // A slot may have waited for the answer.
            return self.wake_at(owner, now);
        }
        let cron_job = self.index.cron_job_mut(owner);
        if let Some(run) = cron_job.run.as_mut().filter(|run| run.open.must_be_settled()) {
            if let Some(next) = run.open.look_up_mut().map(|look_up| look_up.retry(now)) {
                self.look_up_or_wait(owner, next);
            }
            return;
        }
        let Some(token) = cron_job.asked_run().map(Box::<str>::from) else {
            cron_job.run = None;
            return;
        };
        cron_job.run.take_if(|run| run.token != token);
        let back_off_end = cron_job.run.as_ref().and_then(|run| run.open.back_off_end());
        if let Some(until) = back_off_end.filter(|until| now < *until) {
            return self.wake_at(owner, until);
        }
        if self.job_of_run(owner, &token).is_some() {
            return self.end_with_known_job(owner, &token);
        }
        if self.may_run_now(owner, now) {
            self.begin_run(owner, token, now);
        }
    }

    /// The token of the run whose Job is looked up although it is known: the watch has delivered it.
    fn found_run(&self, owner: OwnerIndex) -> Option<Box<str>> {
        let run = self.index.cron_job(owner).run.as_ref()?;
        run.open.look_up()?;
        self.job_of_run(owner, &run.token).map(|_| run.token.clone())
    }

    /// The known Job of a run.
    fn job_of_run(&self, owner: OwnerIndex, token: &str) -> Option<JobIndex> {
        let name = self.index.cron_job(owner).record.run_job_name(token);
        let mut children = self.index.children_of(owner);
        children.find(|(_, job)| job.name == name).map(|(index, _)| index)
    }

    /// Whether nothing holds a run back but Jobs that run. What holds it back causes another evaluation at its end.
    fn may_run_now(&mut self, owner: OwnerIndex, now: Timestamp) -> bool {
        if let Some(until) = self
            .freeze_of(owner)
            .map(|freeze| freeze.until)
            .filter(|until| now < *until)
        {
            self.wake_at(owner, until);
            return false;
        }
        let cron_job = self.index.cron_job(owner);
        // As for a slot, it is not known whether an entry of the active list still runs.
        let is_looking_up = cron_job.lookups.values().any(|look_up| look_up.is_awaited(now));
        let is_allow = cron_job.record.concurrency_policy == ConcurrencyPolicy::Allow;
        // A closing shard leaves it to the next leader.
        self.phase_of(owner) == ShardPhase::Leading
            && !cron_job.record.is_deleting
            && !cron_job.run_awaits_slot()
            && (is_allow || !is_looking_up)
    }

    fn begin_run(&mut self, owner: OwnerIndex, token: Box<str>, now: Timestamp) {
        let policy = self.index.cron_job(owner).record.concurrency_policy;
        let running = self.running(owner).next().map(|job| job.name.clone());
        match (policy, running) {
            (ConcurrencyPolicy::Forbid, Some(job)) => {
                let message = format!(
                    "Not starting the run of cronwheel.dev/run-now {token}: job {job} is running and concurrency policy is \
                     Forbid"
                );
                self.emit_event(owner, EventReason::RunNowRefused, message);
                self.end_run(owner, &token, RunNowResult::Refused);
            }
            // The answer of the write causes another evaluation.
            (ConcurrencyPolicy::Replace, Some(_))
                if self.is_slot_of_running_job_unstored(owner) || self.is_lock_of_run_running(owner) =>
            {
                self.index.cron_job_mut(owner).is_status_urgent = true;
            }
            (ConcurrencyPolicy::Replace, Some(_)) => {
                let jobs = self.order_replacement(owner);
                let run = self.open_run(owner, &token, now);
                run.open.stage = SlotStage::Replacing {
                    jobs,
                    has_failed: false,
                };
            }
            _ => self.order_run(owner, &token, now),
        }
    }

    /// Whether the Job of a slot runs that is not stored as the last one. Without that Job, the next leader after a crash
    /// would start the slot again.
    fn is_slot_of_running_job_unstored(&self, owner: OwnerIndex) -> bool {
        let cron_job = self.index.cron_job(owner);
        let stored = cron_job.record.status.last_schedule_time;
        let current = cron_job.current_status().last_schedule_time;
        self.running(owner)
            .any(|job| stored < job.scheduled() && job.scheduled() <= current)
    }

    /// The run of this token, which begins if it has not yet.
    fn open_run(&mut self, owner: OwnerIndex, token: &str, now: Timestamp) -> &mut OpenRun {
        let run = &mut self.index.cron_job_mut(owner).run;
        run.get_or_insert_with(|| Box::new(OpenRun::new(token, now)))
    }

    fn order_run(&mut self, owner: OwnerIndex, token: &str, now: Timestamp) {
        let instant = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let run = self.open_run(owner, token, now);
        run.open.slot = instant;
        run.open.stage = SlotStage::Creating;
        let n_attempts_before = run.open.n_failures;
        let record = &self.index.cron_job(owner).record;
        let zone = record.schedule.zone.as_ref().and_then(|zone| zone.as_ref().ok());
        let order = JobCreate {
            cron_job: record.identity.clone(),
            name: record.run_job_name(token),
            slot: instant,
            start: instant,
            scheduled_timestamp: naming::scheduled_timestamp(instant, zone),
            template: record.template.clone(),
            wanted_by: after(now, WANTED_WITHIN),
            expires_at: None,
            store_by: None,
            n_attempts_before,
            is_on_time: false,
            late_from: None,
            run_token: Some(token.into()),
        };
        self.outbox.push_back(Effect::CreateJob(order));
    }

    /// Handles the answer to the create of a run.
    pub(super) fn run_create_answered(
        &mut self,
        owner: OwnerIndex,
        slot: Timestamp,
        answer: CreateOutcome,
        now: Timestamp,
    ) {
        let run = self.index.cron_job(owner).run.as_deref();
        let is_awaited = |run: &&OpenRun| run.open.slot == slot && run.open.stage == SlotStage::Creating;
        let Some(token) = run.filter(is_awaited).map(|run| run.token.clone()) else {
            return;
        };
        if answer.is_answer() {
            self.note_permission(owner, &answer, now);
        }
        match answer {
            CreateOutcome::Created {
                uid, resource_version, ..
            } => self.run_created(owner, &token, uid, &resource_version),
            // Whoever asked for it corrects the CronJob and asks again.
            CreateOutcome::Invalid { message } => {
                self.report_failed_run(owner, &message);
                self.end_run(owner, &token, RunNowResult::Failed);
            }
            CreateOutcome::NotPermitted { message } => {
                if self.is_without_permission(owner, now) {
                    self.report_failed_run(owner, &message);
                }
                self.retry_run(owner, &message, SignedDuration::ZERO, now);
            }
            CreateOutcome::NamespaceTerminating => {
                self.retry_run(owner, "the namespace is being deleted", SignedDuration::ZERO, now);
            }
            CreateOutcome::Failed {
                message, retry_after, ..
            } => {
                self.report_failed_run(owner, &message);
                self.retry_run(owner, &message, requested_wait(retry_after), now);
            }
            CreateOutcome::AlreadyExists { message } | CreateOutcome::Unanswered { message, .. } => {
                self.look_up_run(owner, &token, message);
            }
            CreateOutcome::Withdrawn => self.put_off_run(owner, now),
            CreateOutcome::Abandoned => self.put_off_run(owner, after(now, ABANDONED_RETRY)),
        }
        self.evaluate(owner, now);
    }

    /// Handles the created Job of a run. The Job is known from this point, before the watch delivers it.
    fn run_created(&mut self, owner: OwnerIndex, token: &str, uid: Uid, resource_version: &str) {
        let cron_job = self.index.cron_job(owner);
        let identity = &cron_job.record.identity;
        let name = cron_job.record.run_job_name(token);
        let gone = cron_job.run.as_ref().and_then(|run| run.open.gone.as_deref());
        let is_known = gone == Some(&uid) || self.index.find_job(&uid).is_some();
        let job = JobRecord {
            uid: uid.clone(),
            namespace: identity.namespace.clone(),
            name: name.clone(),
            resource_version: ResourceVersion::read(resource_version),
            controller: Some(identity.uid.clone()),
            scheduled: None,
            finish: None,
            started: None,
            completed: None,
            creator: JobCreator::Cronwheel,
            run_token: Some(token.into()),
        };
        if !is_known {
            self.index.apply_job(job, self.relists.mark);
        }
        if let Some(job) = self.index.find_job(&uid)
            && self.index.job(job).finish.is_none()
        {
            self.list_active(owner, job);
        }
        self.emit_event(owner, EventReason::SuccessfulCreate, format!("Created job {name}"));
        self.end_run(owner, token, RunNowResult::Created);
        self.log_asked(owner, token, InstantOutcome::Created);
    }

    /// Looks up the Job of a run, which may exist and may be another's.
    fn look_up_run(&mut self, owner: OwnerIndex, token: &str, message: String) {
        // A known child is recognized by the evaluation that follows.
        if self.job_of_run(owner, token).is_some() {
            self.index.cron_job_mut(owner).run = None;
            return;
        }
        let cron_job = self.index.cron_job_mut(owner);
        let name = cron_job.record.run_job_name(token);
        if let Some(run) = &mut cron_job.run {
            let request = run.open.look_up_job(&cron_job.record.identity, name, message);
            self.outbox.push_back(Effect::LookUpJob(request));
        }
    }

    /// Handles the owner of the Job of the run's name.
    pub(super) fn answer_for_run(
        &mut self,
        owner: OwnerIndex,
        request: &JobLookUp,
        answer: &LookUpOutcome,
        now: Timestamp,
    ) {
        let Some(run) = &self.index.cron_job(owner).run else {
            return;
        };
        let Some(message) = run.open.error_looked_up_by(request) else {
            return;
        };
        let (token, message, had_job) = (run.token.clone(), message.to_owned(), run.open.gone.is_some());
        match answer {
            LookUpOutcome::Found(_) if self.job_of_run(owner, &token).is_some() => {
                self.end_with_known_job(owner, &token);
            }
            LookUpOutcome::Found(_) => {
                self.report_failed_run(owner, &message);
                self.end_run(owner, &token, RunNowResult::Failed);
            }
            // The watch delivered its creation and deletion.
            LookUpOutcome::Gone if had_job => self.end_with_known_job(owner, &token),
            LookUpOutcome::Gone => self.retry_run(owner, &message, SignedDuration::ZERO, now),
            LookUpOutcome::NotPermitted { .. } | LookUpOutcome::Failed { .. } | LookUpOutcome::Abandoned => {
                self.note_failed_look_up(owner, request, answer, now);
                if let Some(message) = self.hopeless_text(owner, request, answer, "the run", now) {
                    self.emit_event(owner, EventReason::RunNowRefused, message);
                    self.end_run(owner, &token, RunNowResult::Failed);
                }
            }
        }
    }

    /// Reports the error of a run. It is not that of the open slot.
    fn report_failed_run(&mut self, owner: OwnerIndex, message: &str) {
        let message = format!("Error creating job: {message}");
        self.emit_event(owner, EventReason::FailedCreate, message);
    }

    /// Repeats the create of a run later, or gives the run up.
    fn retry_run(&mut self, owner: OwnerIndex, message: &str, least: SignedDuration, now: Timestamp) {
        let Some(run) = &mut self.index.cron_job_mut(owner).run else {
            return;
        };
        run.open.n_failures = run.open.n_failures.saturating_add(1);
        let until = after(now, wait_after(CREATE_BACK_OFF, run.open.n_failures, owner).max(least));
        if until <= after(run.begun, PATIENCE) {
            return run.retry_at(until);
        }
        let token = run.token.clone();
        let minutes = PATIENCE.as_mins();
        let message = format!("Gave up the run of cronwheel.dev/run-now {token} after {minutes} minutes: {message}");
        self.emit_event(owner, EventReason::RunNowRefused, message);
        self.end_run(owner, &token, RunNowResult::Failed);
    }

    fn put_off_run(&mut self, owner: OwnerIndex, until: Timestamp) {
        if let Some(run) = &mut self.index.cron_job_mut(owner).run {
            run.retry_at(until);
        }
    }

    /// Handles the answer for one of the Jobs that the run replaces.
    pub(super) fn replaced_for_run(&mut self, owner: OwnerIndex, job: &Uid, is_failed: bool, now: Timestamp) {
        let Some(run) = &mut self.index.cron_job_mut(owner).run else {
            return;
        };
        let SlotStage::Replacing { jobs, has_failed } = &mut run.open.stage else {
            return;
        };
        if !jobs.contains(job) {
            return;
        }
        jobs.retain(|waiting| waiting != job);
        *has_failed |= is_failed;
        match (jobs.is_empty(), *has_failed) {
            (false, _) => {}
            (true, false) => run.retry_at(now),
            (true, true) => self.retry_run(owner, "a running job could not be deleted", SignedDuration::ZERO, now),
        }
    }

    /// Ends a run whose Job was found.
    fn end_with_known_job(&mut self, owner: OwnerIndex, token: &str) {
        self.end_run(owner, token, RunNowResult::Created);
        self.log_asked(owner, token, InstantOutcome::Adopted);
    }

    /// Ends a run: its token is answered, and is stored as such at once.
    fn end_run(&mut self, owner: OwnerIndex, token: &str, result: RunNowResult) {
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.run = None;
        cron_job.note_run_done(token);
        self.outcome_counts.runs_asked_for[result as usize] += 1;
    }

    /// The instant until which a slot under Replace waits, so that it does not delete the Job of a run whose token is not
    /// stored: after a crash, the next leader would start the run again. It does not wait for writes that fail.
    pub(super) fn put_off_replace(&mut self, owner: OwnerIndex, replaces: bool, now: Timestamp) -> Option<Timestamp> {
        (replaces && self.is_lock_of_run_running(owner)).then(|| after(now, REPLACE_WAIT))
    }

    /// Whether a Job runs whose token is not stored, and the writes that store it do not fail.
    fn is_lock_of_run_running(&self, owner: OwnerIndex) -> bool {
        let cron_job = self.index.cron_job(owner);
        cron_job.n_status_failures == 0 && self.running(owner).any(|job| cron_job.is_lock_of_run(job))
    }
}
