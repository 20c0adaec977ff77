//! One shard: its CronJobs, their Jobs, its timers, its outbox.
//!
//! Facts and time enter, and effects leave, by four operations: [`ShardState::handle`] handles a fact,
//! [`ShardState::handle_timeout`] advances time, [`ShardState::poll_effect`] returns the next effect, and
//! [`ShardState::next_wakeup`] the next timer. `lead`, `close`, `seal`, `pause`, `resume` and `try_refused` change what
//! they may decide. Nothing is decided before the lists of CronJobs and Jobs are complete.
//!
//! At most one create of a CronJob is in flight. No other slot is decided until that create, the deletes before it, and
//! the look-up after it are answered. Exception: under Allow, a later slot does not wait for a look-up that is not
//! permitted. Deletes of the history do not delay a slot. Look-ups of the active list delay it, except under Allow.

mod active;
mod answers;
mod back_off;
mod changes;
mod decision;
mod evaluation_interval;
mod history_limits;
mod look_ups;
mod phase;
mod refusals;
mod relists;
mod schedule_problems;
mod status;
mod timers;
mod troubles;

use std::collections::{BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::{
    effect::{CronJobEvent, Effect, EventReason},
    ids::{ResourceVersion, Uid},
    index::{Index, OwnerIndex},
    input::{Input, Scope},
    outcome_counts::OutcomeCounts,
    record::JobRecord,
    refused_creates::RefusedCreates,
    template_memory::TemplateMemory,
};
use crate::{
    schedule::policy::Verdict,
    shard::{ResourceVersions, ShardCount, ShardId, ShardPhase},
};
use relists::Relists;
use timers::Timers;

/// Fixed configuration of a shard.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// The shard.
    pub shard: ShardId,
    /// The watched scopes. Nothing in a scope is decided before it has been listed.
    pub scopes: Vec<Scope>,
    /// The number of shards; watches then select Jobs by the label of their shard. `None` if this shard has all
    /// CronJobs.
    pub count: Option<ShardCount>,
    /// The maximum difference between the clocks of replicas (`--max-clock-skew`). A Job of a slot further in the
    /// future is not a run.
    pub clock_skew_max: SignedDuration,
}

impl ShardConfig {
    /// The label by which watches select Jobs, if any.
    fn label(&self) -> Option<(ShardCount, ShardId)> {
        self.count.map(|count| (count, self.shard))
    }
}

/// The sizes of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// CronJobs.
    pub cron_jobs: usize,
    /// Jobs that a CronJob controls.
    pub jobs: usize,
    /// Timers on all wheels.
    pub wheel_entries: usize,
}

/// One shard's state.
pub struct ShardState {
    config: ShardConfig,
    index: Index,
    timers: Timers,
    outbox: VecDeque<Effect>,
    outcome_counts: OutcomeCounts,
    relists: Relists,
    phase: ShardPhase,
    /// The instant through which the last leader fired, and counted, every slot; `None` if it crashed, or if there was
    /// none.
    pub(crate) fired_through: Option<Timestamp>,
    /// CronJobs that may still wait for an answer or a stored status, since the shard was closed or sealed.
    busy: Vec<OwnerIndex>,
    /// Whether the shard records facts without evaluating CronJobs.
    is_paused: bool,
    /// Recorded decisions, oldest first, for diagnosis; `None` in a run. The caller takes them, so that they do not
    /// accumulate.
    pub(crate) decisions: Option<Vec<Verdict>>,
    /// The memory for templates, which shards may share.
    pub(crate) template_memory: TemplateMemory,
    /// The refused creates, which shards may share.
    pub(crate) refused_creates: RefusedCreates,
}

impl ShardState {
    /// Creates an empty shard on standby.
    pub fn new(config: ShardConfig, now: Timestamp) -> ShardState {
        ShardState {
            index: Index::new(config.label()),
            timers: Timers::new(now),
            outbox: VecDeque::new(),
            outcome_counts: OutcomeCounts::default(),
            relists: Relists::new(config.scopes.len()),
            phase: ShardPhase::Standby,
            fired_through: None,
            busy: Vec::new(),
            is_paused: false,
            decisions: None,
            template_memory: TemplateMemory::default(),
            refused_creates: RefusedCreates::default(),
            config,
        }
    }

    /// Handles a fact.
    pub fn handle(&mut self, input: Input, now: Timestamp) {
        self.follow_clock(now);
        match input {
            Input::WatchUpdated(update) => self.follow_list(&update, now),
            Input::CronJobApplied(record) => self.apply_cron_job(*record, now),
            Input::CronJobUndecodable(uid) => self.hold_undecodable(&uid),
            Input::CronJobDeleted(uid) => self.delete_cron_job(&uid),
            Input::JobApplied(record) => self.apply_job(*record, now),
            Input::JobUndecodable(uid) => self.mark_job(&uid),
            Input::JobDeleted(uid) => self.delete_job(&uid, now),
            Input::JobUnselected(uid) => self.unselect_job(&uid, now),
            Input::JobCreateAnswered { cron_job, slot, answer } => self.create_answered(&cron_job, slot, answer, now),
            Input::JobDeleteAnswered { delete, answer } => self.delete_answered(&delete, answer, now),
            Input::JobLookedUp { look_up, answer } => self.looked_up(&look_up, answer, now),
            Input::StatusAnswered { cron_job, sent, answer } => self.status_answered(&cron_job, *sent, answer, now),
        }
    }

    /// Advances time to `now` and decides everything due. Early or repeated calls are harmless.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if !self.may_decide_at_all() {
            return;
        }
        self.follow_clock(now);
        let mut due = self.timers.take_buffers();
        self.timers.advance(now, &mut due);
        self.outbox.reserve(due.slots.len());
        for &owner in &due.slots {
            self.decide(owner, now);
        }
        for &owner in &due.wakes {
            self.evaluate(owner, now);
        }
        self.timers.return_buffers(due);
    }

    /// The next effect to perform, oldest first.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.outbox.pop_front()
    }

    /// The time of the next call of [`ShardState::handle_timeout`]; may be early, never late.
    pub fn next_wakeup(&mut self) -> Option<Timestamp> {
        if self.may_decide_at_all() {
            self.timers.next_wakeup()
        } else {
            None
        }
    }

    /// Whether every scope except these has been listed.
    pub fn is_synced_but_for(&self, scopes: &BTreeSet<Scope>) -> bool {
        let mut listed = self.config.scopes.iter().zip(self.relists.synced());
        listed.all(|(scope, is_synced)| is_synced || scopes.contains(scope))
    }

    /// The counts of due instants.
    pub fn outcome_counts(&self) -> &OutcomeCounts {
        &self.outcome_counts
    }

    /// Whether a CronJob is known.
    pub fn has_cron_job(&self, uid: &Uid) -> bool {
        self.index.find_cron_job(uid).is_some()
    }

    /// The highest known versions of the CronJobs and the Jobs.
    pub fn latest_versions(&self) -> ResourceVersions {
        let cron_jobs = self.index.owner_indexes();
        let cron_jobs = cron_jobs.filter_map(|owner| Some(self.index.get_cron_job(owner)?.record.resource_version));
        let jobs = self.index.job_indexes();
        let jobs = jobs.filter_map(|job| Some(ResourceVersion(self.index.get_job(job)?.resource_version)));
        ResourceVersions {
            cron_jobs: cron_jobs.max().unwrap_or_default(),
            jobs: jobs.max().unwrap_or_default(),
        }
    }

    /// The current sizes.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            cron_jobs: self.index.n_cron_jobs(),
            jobs: self.index.n_jobs(),
            wheel_entries: self.timers.len(),
        }
    }

    /// Evaluates a CronJob, in the order of B-3.1. Idempotent: repeated with the same facts it does nothing.
    fn evaluate(&mut self, owner: OwnerIndex, now: Timestamp) {
        let cron_job = self.index.get_cron_job(owner);
        let is_decodable = cron_job.is_some_and(|cron_job| !cron_job.is_undecodable);
        if !is_decodable || !self.is_listed(owner) || self.is_paused {
            return;
        }
        match self.phase {
            ShardPhase::Standby => return,
            ShardPhase::Leading | ShardPhase::Closing => {}
            ShardPhase::Sealed => return self.flush_status(owner, now),
        }
        self.report_reserved_annotations(owner);
        self.report_future_cursor(owner, now);
        self.report_invalid_threshold(owner);
        self.report_template_not_kept(owner);
        self.clean_history(owner, now);
        self.reconcile_active(owner, now);
        self.decide(owner, now);
        if self.phase == ShardPhase::Leading {
            self.emit_status(owner, now);
        } else {
            self.flush_status(owner, now);
        }
    }

    fn apply_job(&mut self, record: JobRecord, now: Timestamp) {
        let changed = self.index.apply_job(record, self.relists.mark);
        for owner in changed.into_iter().flatten() {
            self.evaluate_jobs(owner, now);
        }
    }

    /// Handles a Job that a watch no longer selects. A running Job is looked up first: only its label may be gone.
    fn unselect_job(&mut self, uid: &Uid, now: Timestamp) {
        let Some(index) = self.index.find_job(uid) else { return };
        let job = self.index.job(index);
        let is_running = job.finish.is_none() && !job.is_delete_requested;
        // While its create is in flight, `forget_job` must record that the Job was created and deleted.
        let owner = self.index.get_cron_job(job.owner);
        let is_awaited = owner.is_some_and(|cron_job| cron_job.awaits_job(job));
        if is_running && !is_awaited {
            self.remove_doubtful_job(index, now);
        } else {
            self.forget_job(index, now);
        }
    }

    fn delete_job(&mut self, uid: &Uid, now: Timestamp) {
        let Some(job) = self.index.find_job(uid) else { return };
        self.forget_job(job, now);
    }

    fn emit_event(&mut self, owner: OwnerIndex, reason: EventReason, message: String) {
        let cron_job = self.index.cron_job(owner);
        // The leader emits the Event.
        if self.phase == ShardPhase::Standby {
            return;
        }
        self.outbox.push_back(Effect::EmitEvent(CronJobEvent {
            cron_job: cron_job.record.identity.clone(),
            resource_version: cron_job.record.resource_version,
            reason,
            message,
        }));
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use tests::test_record;
