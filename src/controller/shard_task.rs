//! The event loop around the shards of a replica: inputs, effects, and the passage of time.
//!
//! Each iteration of the loop processes the available inputs, hands every effect to its queue without waiting, and
//! publishes a snapshot. The passage of time comes first, so that a flood of events does not delay a due slot. While
//! the clock is in doubt, the time of the shards stands still: inputs are processed, and no slot becomes due. The same
//! holds while this replica is fenced.

mod lifecycle_channels;

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

pub use self::lifecycle_channels::LifecycleChannels;
use super::{
    clock::{Clock, ClockVerdict, Sleeper},
    dispatcher::{DispatchQueue, Queued, Request},
    event_task::EventQueue,
    run_log::RunLog,
    shutdown::{Phase, PhaseReceiver},
    status_batcher::StatusQueue,
    version_task::VersionAnswer,
};
use crate::{
    coordination::Leadership,
    kube_api::{
        NamespaceSelector,
        latest_value::{LatestReceiver, LatestSender},
    },
    shard::{Clocks, ContainedPanic, Effect, HeldShards, Input, ShardCommand, TermedAnswer, TermedEffect},
    telemetry::metrics::ShardFigures,
};

/// Maximum number of inputs per iteration and channel: some hundred microseconds of work, by which they can delay a due
/// slot.
const BATCH_MAX: usize = 128;

/// Maximum interval between two iterations; the liveness probe relies on it.
const ITERATION_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// A larger step back of the clock takes effect at once. Smaller steps back freeze the time of the shards until the
/// clock has caught up.
const FALL_BACK_MAX: SignedDuration = SignedDuration::from_secs(1);

/// The channels of the shard task.
#[derive(Debug)]
pub struct ShardChannels {
    /// Inputs from the watches.
    pub inputs: mpsc::Receiver<Input>,
    /// Answers to requests.
    pub answers: mpsc::Receiver<TermedAnswer>,
    /// Queue of Job requests.
    pub dispatch: Arc<DispatchQueue>,
    /// Queue of status writes.
    pub statuses: Arc<StatusQueue>,
    /// Queue of Events.
    pub events: EventQueue,
    /// Phase of the shutdown; it ends the task.
    pub phase: PhaseReceiver,
    /// Snapshot for metrics and probes.
    pub snapshot: LatestSender<ShardFigures>,
    /// The leadership; its deadline limits every action. A change wakes the task.
    pub leadership: LatestReceiver<Leadership>,
    /// Channels to the election and the version task.
    pub lifecycle: LifecycleChannels,
    /// Selects the managed namespaces; all are if `None`.
    pub namespace_selector: Option<NamespaceSelector>,
    /// Set once the managed namespaces are known.
    pub are_namespaces_known: LatestSender<bool>,
}

/// The task that runs the shards of a replica.
pub struct ShardTask {
    shards: HeldShards,
    clock: Clock,
    sleeper: Sleeper,
    /// The time of the shards: that of the clock, unless the clock is in doubt.
    time: Timestamp,
    channels: ShardChannels,
    /// Answers and inputs taken from their channels in this iteration.
    answers: Vec<TermedAnswer>,
    inputs: Vec<Input>,
    was_synced: bool,
    run_log: RunLog,
    /// The last number of managed namespaces that the log reports.
    n_namespaces: Option<usize>,
}

/// The reason for an iteration of the loop.
enum Wakeup {
    /// The intake stops.
    End,
    /// A slot may be due, or it may have changed whether the replica may act.
    Time,
    /// Inputs were taken from their channels.
    Inputs,
    /// A command of the election.
    Command(ShardCommand),
    /// An answer of the version task.
    Versions(VersionAnswer),
}

impl ShardTask {
    /// Creates the task for shards that start at `time`.
    pub fn new(shards: HeldShards, clock: Clock, time: Timestamp, channels: ShardChannels) -> ShardTask {
        let sleeper = clock.sleeper();
        ShardTask {
            shards,
            clock,
            sleeper,
            time,
            channels,
            answers: Vec::new(),
            inputs: Vec::new(),
            was_synced: false,
            run_log: RunLog::default(),
            n_namespaces: None,
        }
    }

    /// Runs until the intake stops, then processes the answers that still arrive.
    pub async fn run(mut self) {
        if !self.wait_for_clock().await {
            return;
        }
        let mut phase = self.channels.phase.clone();
        let mut verdict = self.clock.subscribe_verdict();
        let mut leadership = self.channels.leadership.clone();
        loop {
            let due_at = self.wakeup();
            let pause = self.lifecycle_pause();
            let wakeup = tokio::select! {
                biased;
                () = phase.reached(Phase::StopIntake) => Wakeup::End,
                () = self.sleeper.sleep_until(due_at.unwrap_or_default()), if due_at.is_some() => Wakeup::Time,
                wakeup = self.channels.lifecycle.next() => wakeup,
                1.. = self.channels.answers.recv_many(&mut self.answers, BATCH_MAX) => Wakeup::Inputs,
                1.. = self.channels.inputs.recv_many(&mut self.inputs, BATCH_MAX) => Wakeup::Inputs,
                () = verdict.changed() => Wakeup::Time,
                () = leadership.changed() => Wakeup::Time,
                () = tokio::time::sleep(pause) => Wakeup::Time,
            };
            match wakeup {
                Wakeup::End => break,
                Wakeup::Time => self.pass_time(),
                Wakeup::Inputs => self.handle_inputs(),
                Wakeup::Command(command) => {
                    self.update_time();
                    self.shards.command(command, self.now());
                }
                Wakeup::Versions(answer) => self.handle_versions(answer),
            }
            self.advance_lifecycles();
            if self.perform_effects() {
                // A full queue answers at once, and the lifecycle of a shard may have waited for that answer.
                self.advance_lifecycles();
            }
            self.shards.survey(self.now());
            self.publish();
        }
        self.finish().await;
    }

    /// Waits for the clock verdict to become fine. Returns false if the intake stops first.
    async fn wait_for_clock(&mut self) -> bool {
        let mut verdict = self.clock.subscribe_verdict();
        let is_fine = tokio::select! {
            biased;
            () = self.channels.phase.reached(Phase::StopIntake) => false,
            () = verdict.wait_for(|verdict| *verdict == ClockVerdict::Fine) => true,
        };
        self.time = self.clock.now();
        is_fine
    }

    /// Returns the next wakeup of the shards; `None` while this replica may not act.
    fn wakeup(&mut self) -> Option<Timestamp> {
        let wakeup = self.shards.next_wakeup()?;
        (self.may_act() && !self.shards.is_paused()).then_some(wakeup)
    }

    /// Whether the clock verdict is fine and the leadership permits actions.
    fn may_act(&self) -> bool {
        self.clock.is_fine() && self.channels.leadership.borrow().may_act(self.clock.boot())
    }

    /// Returns the maximum time until the next iteration.
    fn lifecycle_pause(&self) -> Duration {
        let wakeup = [self.shards.next_lifecycle_step(), self.shards.next_survey()]
            .into_iter()
            .flatten()
            .min();
        let pause = wakeup.map(|at| at.since(self.clock.boot()));
        pause.unwrap_or(ITERATION_INTERVAL_MAX).min(ITERATION_INTERVAL_MAX)
    }

    fn update_time(&mut self) {
        if !self.may_act() {
            return self.shards.pause();
        }
        let now = self.clock.now();
        let fall_back = self.time.duration_since(now);
        if fall_back <= SignedDuration::ZERO || fall_back > FALL_BACK_MAX {
            self.time = now;
        }
        self.shards.resume_if_ready(self.now());
    }

    fn pass_time(&mut self) {
        self.update_time();
        if !self.shards.is_paused() {
            self.shards.handle_timeout(self.time);
        }
    }

    fn now(&self) -> Clocks {
        Clocks {
            wall: self.time,
            boot: self.clock.boot(),
        }
    }

    fn handle_versions(&mut self, answer: VersionAnswer) {
        self.update_time();
        match answer {
            VersionAnswer::Current(versions) => self.shards.take_current_versions(versions, self.now()),
            VersionAnswer::Unchanged(input) => self.shards.handle(input, self.time),
        }
    }

    /// Advances takeovers and seals, and sends the resulting requests and reports.
    fn advance_lifecycles(&mut self) {
        let now = self.now();
        self.shards.advance_lifecycles(now);
        self.channels.lifecycle.send_pending(&mut self.shards);
    }

    fn handle_inputs(&mut self) {
        self.update_time();
        for answer in self.answers.drain(..) {
            self.shards.handle_answer(answer, self.time);
        }
        for input in self.inputs.drain(..) {
            self.shards.handle(input, self.time);
        }
        // A watch that is open again ends a pause.
        self.update_time();
    }

    /// Hands every effect to its queue. A full queue answers at once, and the answer may cause further effects. Returns
    /// whether any queue did.
    fn perform_effects(&mut self) -> bool {
        let mut is_answered = false;
        while let Some(ordered) = self.shards.poll_effect() {
            if let Some(answer) = self.perform(ordered) {
                is_answered = true;
                self.shards.handle_answer(answer, self.time);
            }
        }
        is_answered
    }

    /// Performs one effect. Returns the answer if its queue is full, or to a request that it withdraws.
    fn perform(&self, TermedEffect { shard_term, effect }: TermedEffect) -> Option<TermedAnswer> {
        let ShardChannels { dispatch, statuses, .. } = &self.channels;
        let push = |request| {
            let order = Queued::new(request, shard_term);
            dispatch.push(order, self.time).err().map(|answer| *answer)
        };
        match effect {
            Effect::CreateJob(order) => push(Request::Create(order)),
            Effect::DeleteJob(delete) => push(Request::Delete(delete)),
            Effect::LookUpJob(look_up) => push(Request::LookUp(look_up)),
            Effect::Withdraw(withdrawal) => dispatch.withdraw(shard_term, &withdrawal),
            Effect::WriteStatus(write) => {
                let pushed = statuses.push(shard_term, write, self.clock.boot());
                pushed.err().map(|answer| *answer)
            }
            Effect::EmitEvent(event) => {
                self.channels.events.push(event, self.time);
                None
            }
        }
    }

    fn publish(&mut self) {
        for ContainedPanic { cron_job, message } in self.shards.take_panics() {
            tracing::error!(%cron_job, panic = %message, "panicked on a CronJob: its Event InternalError has the consequence");
        }
        let troubles = self.shards.trouble_report();
        let (shards, last_iteration) = (&mut self.shards, self.clock.boot());
        // A namespace that may not be listed does not make this replica unready, if others may be.
        let is_synced = shards.are_permitted_watches_synced();
        self.channels.snapshot.send_modify(|figures| {
            figures.outcome_counts.clone_from(shards.outcome_counts());
            figures.sizes = shards.sizes();
            figures.led = shards.led();
            figures.template_use = shards.template_memory().in_use();
            figures.n_refused = shards.n_refused();
            figures.n_namespaces_refused = shards.n_namespaces_refused();
            figures.n_panics = shards.n_panics();
            figures.n_cron_jobs_panicked = shards.n_cron_jobs_panicked();
            figures.troubles = troubles;
            figures.n_namespaces = shards.namespaces().count();
            figures.is_synced = is_synced;
            figures.last_iteration = Some(last_iteration);
        });
        if is_synced && !self.was_synced {
            self.was_synced = true;
            let sizes = shards.sizes();
            tracing::info!(
                n_cron_jobs = sizes.cron_jobs,
                n_jobs = sizes.jobs,
                "all lists are complete: Jobs start from now on"
            );
        }
        self.report_namespaces();
        self.run_log.write(self.shards.ended_runs(), last_iteration);
    }

    /// Reports each change of the number of managed namespaces, and the remedy if there are none.
    fn report_namespaces(&mut self) {
        let namespaces = self.shards.namespaces();
        let Some(selector) = self
            .channels
            .namespace_selector
            .as_ref()
            .filter(|_| namespaces.are_known())
        else {
            return;
        };
        self.channels.are_namespaces_known.set(true);
        let n_namespaces = namespaces.count();
        if self.n_namespaces == n_namespaces {
            return;
        }
        self.n_namespaces = n_namespaces;
        let is_none = n_namespaces == Some(0);
        let advice = is_none.then(|| selector.no_namespace_text());
        if let Some(advice) = &advice {
            tracing::warn!("{advice}");
        } else {
            tracing::info!(n_namespaces, "manages the namespaces that match --namespace-selector");
        }
        let advice = advice.map(Into::into);
        self.channels
            .snapshot
            .send_modify(|figures| figures.no_namespace_advice = advice);
    }

    /// Processes answers until every task whose answers cause status writes has ended.
    async fn finish(mut self) {
        let mut phase = self.channels.phase.clone();
        loop {
            let is_over = tokio::select! {
                biased;
                1.. = self.channels.answers.recv_many(&mut self.answers, BATCH_MAX) => false,
                () = phase.reached(Phase::EndShards) => true,
            };
            self.handle_inputs();
            self.perform_effects();
            self.publish();
            if is_over {
                break;
            }
        }
        self.run_log.end(self.shards.ended_runs());
    }
}

#[cfg(test)]
mod tests;
