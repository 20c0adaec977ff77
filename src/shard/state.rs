//! One shard: its CronJobs, their Jobs, its timers, its outbox.
//!
//! Facts, answers and time enter, and effects leave, by five operations: [`ShardState::handle`] handles a fact,
//! [`ShardState::handle_answer`] an answer, [`ShardState::handle_timeout`] advances time, [`ShardState::poll_effect`]
//! returns the next effect, and [`ShardState::next_wakeup`] the next timer. `lead`, `close`, `seal`, `stand_by`, `pause`
//! and `resume` change what they may decide. Nothing is decided before the lists of CronJobs and Jobs are
//! complete.
//!
//! At most one create of a CronJob is in flight. No other slot is decided until that create, the deletes before it, and
//! the look-up after it are answered. Exception: under Allow, a later slot does not wait for a look-up that is not
//! permitted, and otherwise it waits two minutes. Deletes of the history do not delay a slot. Look-ups of the active list delay it, except under Allow.

mod active;
mod answers;
mod back_off;
mod calendars;
mod changes;
mod containment;
mod decision;
mod evaluation_interval;
mod freezes;
mod history_limits;
mod holds;
mod ignored_options;
mod jobs;
mod look_ups;
mod management;
mod order;
mod phase;
mod refusals;
mod relists;
mod run_ends;
mod run_now;
mod run_tokens;
mod schedule_problems;
mod status;
mod timers;
mod troubles;

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::{
    answer::OrderAnswer,
    calendars::Calendars,
    catch_up_pace::CatchUpPace,
    cron_job::{Management, Unusable},
    effect::{CronJobEvent, Effect, EventReason},
    ids::{ResourceVersion, Uid},
    index::{Index, OwnerIndex},
    input::{Input, Scope},
    namespaces::ManagedNamespaces,
    outcome_counts::OutcomeCounts,
    panics::Panics,
    refused_creates::RefusedCreates,
    run_log::EndedRuns,
    template_memory::TemplateMemory,
};
use crate::{
    schedule::policy::Verdict,
    shard::{FiredThrough, ResourceVersions, ShardPhase, ShardTerm},
};
use calendars::CalendarNotes;
use containment::Lost;
#[cfg(test)]
pub(crate) use containment::{PanicAt, PanicsOn};
use freezes::Freezes;
use relists::Relists;
use timers::Timers;

/// Fixed configuration of a shard.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// The watched scopes. Nothing in a scope is decided before it has been listed.
    pub scopes: Vec<Scope>,
    /// The maximum difference between the clocks of replicas (`--max-clock-skew`). A Job of a slot further in the
    /// future is not a run.
    pub clock_skew_max: SignedDuration,
}

/// The sizes of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// CronJobs of managed namespaces.
    pub cron_jobs: usize,
    /// Jobs that a CronJob controls, in all namespaces.
    pub jobs: usize,
    /// Timers on all wheels.
    pub wheel_entries: usize,
}

impl Sizes {
    /// Replaces a part of a sum.
    pub(crate) fn replace(&mut self, former: Sizes, current: Sizes) {
        self.cron_jobs = self.cron_jobs + current.cron_jobs - former.cron_jobs;
        self.jobs = self.jobs + current.jobs - former.jobs;
        self.wheel_entries = self.wheel_entries + current.wheel_entries - former.wheel_entries;
    }
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
    /// How far the last leader fired, and counted, the slots; `None` if there was none, or if that is not known.
    pub(crate) fired_through: Option<FiredThrough>,
    /// The shard and the term of this leadership, as the election gave them.
    pub(crate) shard_term: Option<ShardTerm>,
    /// The beginning of this leadership, if the shard never had another leader.
    pub(crate) first_led: Option<Timestamp>,
    /// CronJobs that may still wait for an answer or a stored status, since the shard was closed or sealed.
    busy: Vec<OwnerIndex>,
    /// Whether the shard records facts without evaluating CronJobs.
    is_paused: bool,
    /// CronJobs of managed namespaces.
    n_managed: usize,
    /// Recorded decisions, oldest first, for diagnosis; `None` in a run. The caller takes them, so that they do not
    /// accumulate.
    pub(crate) decisions: Option<Vec<Verdict>>,
    /// The memory for templates, which shards may share.
    pub(crate) template_memory: TemplateMemory,
    /// The refused creates, which shards may share.
    pub(crate) refused_creates: RefusedCreates,
    /// The pace of missed runs, which shards may share.
    pub(crate) catch_up_pace: CatchUpPace,
    /// The contained panics, which shards may share.
    pub(crate) panics: Panics,
    /// The runs to be logged, which shards may share.
    pub(crate) ended_runs: EndedRuns,
    #[cfg(test)]
    pub(crate) panics_on: Option<PanicsOn>,
    /// The managed namespaces, which shards may share.
    pub(crate) namespaces: ManagedNamespaces,
    freezes: Freezes,
    /// The calendars that CronJobs name, which shards may share.
    pub(crate) calendars: Calendars,
    calendar_notes: CalendarNotes,
}

impl ShardState {
    /// Creates an empty shard on standby.
    pub fn new(config: ShardConfig, now: Timestamp) -> ShardState {
        ShardState {
            index: Index::new(),
            timers: Timers::new(now),
            outbox: VecDeque::new(),
            outcome_counts: OutcomeCounts::default(),
            relists: Relists::new(config.scopes.len()),
            phase: ShardPhase::Standby,
            fired_through: None,
            shard_term: None,
            first_led: None,
            busy: Vec::new(),
            is_paused: false,
            n_managed: 0,
            decisions: None,
            template_memory: TemplateMemory::default(),
            refused_creates: RefusedCreates::default(),
            catch_up_pace: CatchUpPace::new(1),
            panics: Panics::default(),
            ended_runs: EndedRuns::default(),
            #[cfg(test)]
            panics_on: None,
            namespaces: ManagedNamespaces::default(),
            freezes: Freezes::default(),
            calendars: Calendars::default(),
            calendar_notes: CalendarNotes::default(),
            config,
        }
    }

    /// Handles a fact.
    pub fn handle(&mut self, input: Input, now: Timestamp) {
        self.follow_clock(now);
        if let Input::WatchUpdated(update) = &input {
            return self.follow_list(update, now);
        }
        // A fact about a Job that no CronJob controls and none has controlled has no effect.
        if let Some(cron_job) = self.cron_job_of(&input) {
            self.contained(&cron_job, Lost::Nothing, |shard| shard.handle_fact(input, now));
        }
    }

    /// The CronJob that a fact concerns.
    fn cron_job_of(&self, input: &Input) -> Option<Uid> {
        let job = match input {
            Input::JobReleased(job) | Input::JobUndecodable(job) => Some(job),
            Input::JobApplied(record) | Input::JobModified(record) => Some(&record.uid),
            Input::WatchUpdated(_)
            | Input::NamespaceUpdated(_)
            | Input::CalendarUpdated(_)
            | Input::CronJobApplied(_)
            | Input::CronJobUndecodable(_)
            | Input::CronJobDeleted(_)
            | Input::JobDeleted { .. } => None,
        };
        let controller = || self.index.controller_of(job?);
        input.cron_job().or_else(controller).cloned()
    }

    fn handle_fact(&mut self, input: Input, now: Timestamp) {
        match input {
            // The shards follow a list, and a change of namespaces or calendars, together.
            Input::WatchUpdated(_) | Input::NamespaceUpdated(_) | Input::CalendarUpdated(_) => {}
            Input::CronJobApplied(record) => self.apply_cron_job(*record, now),
            Input::CronJobUndecodable(uid) => self.hold_undecodable(&uid),
            Input::CronJobDeleted(uid) => self.delete_cron_job(&uid),
            Input::JobApplied(record) | Input::JobModified(record) => self.apply_job(*record, now),
            Input::JobReleased(uid) => self.release_job(&uid, now),
            Input::JobUndecodable(uid) => self.mark_job(&uid),
            Input::JobDeleted { job, .. } => self.delete_job(&job, now),
        }
    }

    /// Handles the answer to an effect of this shard. An answer about a CronJob that is not managed any more does not
    /// count.
    pub fn handle_answer(&mut self, answer: OrderAnswer, now: Timestamp) {
        self.follow_clock(now);
        let cron_job = answer.cron_job().clone();
        let lost = self.lost_with(&answer);
        self.contained(&cron_job, lost, |shard| shard.take_answer(answer, now));
    }

    fn take_answer(&mut self, answer: OrderAnswer, now: Timestamp) {
        let owner = self.index.find_cron_job(answer.cron_job());
        let management = owner.map(|owner| self.index.cron_job(owner).management);
        if management == Some(Management::Unmanaged) {
            return;
        }
        #[cfg(test)]
        if let Some(owner) = owner {
            self.panic_if_told(owner, PanicAt::Answered);
        }
        match answer {
            OrderAnswer::Create { cron_job, slot, answer } => self.create_answered(&cron_job, slot, answer, now),
            OrderAnswer::Delete { delete, answer } => self.delete_answered(&delete, answer, now),
            OrderAnswer::LookUp { look_up, answer } => self.looked_up(&look_up, answer, now),
            OrderAnswer::Status { cron_job, sent, answer } => self.status_answered(&cron_job, *sent, answer, now),
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
            self.contained_at(owner, |shard| shard.decide(owner, now));
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

    /// The counts of due instants.
    pub fn outcome_counts(&self) -> &OutcomeCounts {
        &self.outcome_counts
    }

    /// Whether a Job is known, with a CronJob of this shard as its controller.
    pub fn has_job(&self, uid: &Uid) -> bool {
        self.index.find_job(uid).is_some()
    }

    /// The namespace of a known CronJob.
    pub fn namespace_of(&self, uid: &Uid) -> Option<&str> {
        let owner = self.index.find_cron_job(uid)?;
        Some(&self.index.cron_job(owner).record.identity.namespace)
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
            cron_jobs: self.n_managed,
            jobs: self.index.n_jobs(),
            wheel_entries: self.timers.len(),
        }
    }

    /// Evaluates a CronJob, in the order of B-3.1. Idempotent: repeated with the same facts it does nothing.
    fn evaluate(&mut self, owner: OwnerIndex, now: Timestamp) {
        self.note_naming(owner);
        self.contained_at(owner, |shard| shard.evaluate_known(owner, now));
    }

    fn evaluate_known(&mut self, owner: OwnerIndex, now: Timestamp) {
        let Some(cron_job) = self.index.get_cron_job(owner) else {
            return;
        };
        if cron_job.management == Management::Leaving {
            return self.leave(owner, now);
        }
        match cron_job.unusable {
            None => {}
            Some(Unusable::Undecodable) => return,
            Some(Unusable::Panicked) => return self.report_panicked(owner),
        }
        if !self.is_listed(owner) || self.is_paused {
            return;
        }
        match self.phase_of(owner) {
            ShardPhase::Standby => return,
            ShardPhase::Leading | ShardPhase::Closing => {}
            ShardPhase::Sealed => return self.flush_status(owner, now),
        }
        #[cfg(test)]
        self.panic_if_told(owner, PanicAt::Evaluation);
        self.report_reserved_annotations(owner);
        self.report_future_cursor(owner, now);
        self.report_invalid_threshold(owner);
        self.report_invalid_options(owner);
        self.report_template_not_kept(owner);
        self.note_carried_tokens(owner);
        self.clean_history(owner, now);
        self.reconcile_active(owner, now);
        if !self.awaits_calendar(owner) {
            self.decide(owner, now);
        }
        self.run_now(owner, now);
        if self.phase == ShardPhase::Leading {
            self.emit_status(owner, now);
        } else {
            self.flush_status(owner, now);
        }
    }

    fn emit_event(&mut self, owner: OwnerIndex, reason: EventReason, message: String) {
        let cron_job = self.index.cron_job(owner);
        // The leader emits the Event, while it manages the namespace.
        if self.phase == ShardPhase::Standby || cron_job.management != Management::Managed {
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
