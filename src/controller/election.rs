//! This replica's part in the election of shard leaders: drives [`Election`], which decides, and executes its effects.
//!
//! One task owns the watch of Leases, every Lease request, and the [`Leadership`] that writers check; no other task
//! changes it. A shard is removed from [`Leadership`] before any message that gives it up, and added before the shard
//! starts to act. The end of this task ends the process.

mod abandon;
mod handovers;
mod lease_watch;
mod refusals;
mod report;
mod requests;

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::sync::mpsc;

pub use self::abandon::abandon_membership;
use self::{
    handovers::Handovers,
    lease_watch::LeaseWatch,
    refusals::Refusals,
    report::LedLog,
    requests::{LeaseRequest, LeaseRequests},
};
use super::{
    clock::Clock,
    permissions::MissingPermission,
    shutdown::{HANDOVER_GRACE, Phase, PhaseReceiver},
};
use crate::{
    controller::settings::Incarnations,
    coordination::{
        Adoption, Election, ElectionConfig, ElectionEffect, ElectionInput, Incarnation, Leadership, NoShardsReason,
        StopReason,
    },
    kube_api::{
        ApiClient,
        latest_value::{LatestReceiver, LatestSender},
        leases::LeaseApi,
    },
    shard::{BootInstant, ShardCommand, ShardReport, ShardTerm},
    telemetry::metrics::{ElectionFigures, ElectionMetrics},
};

/// The channels of the election.
pub struct ElectionChannels {
    /// Commands to the shards.
    pub commands: mpsc::Sender<ShardCommand>,
    /// Reports of the shards.
    pub reports: mpsc::Receiver<ShardReport>,
    /// The shards and terms in which this replica may write. A change wakes the shards.
    pub leadership: LatestSender<Leadership>,
    /// Whether the history of the API server went back, which ends this session.
    pub went_back: LatestSender<bool>,
    /// The number of fences. A change ends the open watches of CronJobs and Jobs.
    pub n_fences: LatestSender<u64>,
    /// The client of writes. A fence resets its connections, so that no write in flight arrives late.
    pub writes: ApiClient,
    /// The permissions that the account lacks.
    pub missing_permissions: LatestReceiver<Vec<MissingPermission>>,
    /// Phase of the shutdown; it starts the handover of all shards.
    pub phase: PhaseReceiver,
    /// The snapshot of the election for metrics and probes.
    pub snapshot: LatestSender<Option<ElectionFigures>>,
    /// Metrics of the election.
    pub metrics: ElectionMetrics,
}

/// The task that runs one [`Election`].
pub struct ElectionTask {
    election: Election,
    config: ElectionConfig,
    lease_requests: LeaseRequests,
    clock: Clock,
    channels: ElectionChannels,
    leases: LeaseWatch,
    requests: FuturesUnordered<LeaseRequest>,
    /// The warning Events in flight.
    events: FuturesUnordered<BoxFuture<'static, ()>>,
    handovers: Handovers,
    incarnations: Incarnations,
    /// Deadline for the handover of all shards, once the shutdown has begun.
    leave_by: Option<BootInstant>,
    logged_reason: Option<NoShardsReason>,
    led_log: LedLog,
}

/// Reasons to end the task.
enum Ending {
    /// All shards were handed over.
    Left,
    /// The time for the handover has expired.
    TimedOut,
    /// Another process has the identity of this replica.
    Exit,
    /// The shard task accepts no more commands.
    ShardTaskEnded,
}

impl ElectionTask {
    /// Creates the election of a replica. Its first incarnation is that of the configuration.
    pub fn new(
        config: ElectionConfig,
        incarnations: Incarnations,
        api: LeaseApi,
        clock: Clock,
        channels: ElectionChannels,
    ) -> ElectionTask {
        let refusals = Refusals::new(&channels.metrics.api, &clock);
        let self_fence = config.timing.self_fence;
        ElectionTask {
            election: Election::new(config.clone(), clock.boot()),
            leases: LeaseWatch::new(api.clone(), clock.clone(), refusals.clone(), self_fence),
            lease_requests: LeaseRequests {
                api,
                clock: clock.clone(),
                refusals,
                timeout: config.timing.attempt_timeout,
            },
            config,
            clock,
            requests: FuturesUnordered::new(),
            events: FuturesUnordered::new(),
            handovers: Handovers::new(channels.metrics.given.clone(), channels.metrics.taken.clone()),
            channels,
            incarnations,
            leave_by: None,
            logged_reason: None,
            led_log: LedLog::default(),
        }
    }

    /// Runs until every shard has been handed over or the time for the handover has expired.
    pub async fn run(mut self) {
        let ending = self.participate().await;
        // Requests that remain are not sent: another replica may lead their shards by then.
        self.end_leadership();
        let _ = self.channels.commands.try_send(ShardCommand::ReleaseAll);
        match ending {
            Ending::Left => tracing::info!("left the election"),
            Ending::TimedOut => {
                tracing::warn!(
                    "not all shards were handed over in time: the others move when the member Lease expires"
                );
            }
            Ending::Exit => tracing::error!("another process has the identity of this replica: this process ends"),
            Ending::ShardTaskEnded => tracing::error!("the shard task does not accept commands"),
        }
    }

    async fn participate(&mut self) -> Ending {
        self.end_leadership();
        let mut result = self.handle(ElectionInput::ClockTrusted(self.clock.is_fine()));
        let mut phase = self.channels.phase.clone();
        let mut verdict = self.clock.subscribe_verdict();
        let mut missing = self.channels.missing_permissions.clone();
        loop {
            if let Err(ending) = result {
                return ending;
            }
            self.publish();
            let wakeup = self.election.next_wakeup();
            let pause = wakeup.min(self.leave_by.unwrap_or(wakeup)).since(self.clock.boot());
            let input = tokio::select! {
                biased;
                () = phase.reached(Phase::HandOver), if self.leave_by.is_none() => {
                    self.leave_by = Some(self.clock.boot() + HANDOVER_GRACE);
                    Some(ElectionInput::DrainRequested)
                }
                Some(response) = self.requests.next() => Some(self.take_response(response)),
                Some(()) = self.events.next() => None,
                Some(report) = self.channels.reports.recv() => Some(self.note_report(report)),
                input = self.leases.next() => Some(input),
                () = verdict.changed() => Some(ElectionInput::ClockTrusted(self.clock.is_fine())),
                () = missing.changed() => {
                    let stops_all = missing.borrow().iter().any(MissingPermission::stops_everything);
                    Some(ElectionInput::MayStart(!stops_all))
                }
                () = tokio::time::sleep(pause) => None,
            };
            if self.leave_by.is_some_and(|by| by <= self.clock.boot()) {
                return Ending::TimedOut;
            }
            result = match input {
                Some(input) => self.handle(input),
                None => self.pass_time(),
            };
        }
    }

    fn handle(&mut self, input: ElectionInput) -> Result<(), Ending> {
        if self.election.is_contradicted_by(&input) {
            tracing::warn!("Leases returned to older versions, as after a restore of etcd");
            self.channels.went_back.set(true);
        }
        let effects = self.election.handle(input, self.clock.boot());
        self.execute(effects)
    }

    fn pass_time(&mut self) -> Result<(), Ending> {
        let effects = self.election.handle_timeout(self.clock.boot());
        self.execute(effects)
    }

    /// Executes effects, and handles the inputs that result from them at once.
    fn execute(&mut self, effects: Vec<ElectionEffect>) -> Result<(), Ending> {
        let mut inputs = Vec::new();
        for effect in effects {
            self.perform(effect, &mut inputs)?;
        }
        inputs.into_iter().try_for_each(|input| self.handle(input))
    }

    /// Handles a report of the shards and returns it as an input of the election.
    fn note_report(&mut self, report: ShardReport) -> ElectionInput {
        match &report {
            ShardReport::Synced => {}
            ShardReport::Leading(shard_term) => {
                tracing::debug!(shard = shard_term.shard.0, term = shard_term.term.0, at = %self.clock.now(), "leads");
                self.handovers.leads(shard_term.shard, self.clock.boot());
            }
            ShardReport::Sealed {
                shard_term,
                at: sealed_at,
                fired_through,
                ..
            } => {
                let at = fired_through.unwrap_or_else(|| self.clock.now());
                self.handovers.sealed(shard_term.shard, *sealed_at);
                tracing::debug!(shard = shard_term.shard.0, term = shard_term.term.0, %at, "sealed");
                // From this point no order of this term is sent, even if it waits in a queue.
                self.channels
                    .leadership
                    .send_modify(|leadership| leadership.end(*shard_term));
            }
        }
        ElectionInput::Shards(report)
    }

    fn perform(&mut self, effect: ElectionEffect, inputs: &mut Vec<ElectionInput>) -> Result<(), Ending> {
        match effect {
            ElectionEffect::Write {
                request,
                precondition,
                write,
            } => {
                self.note_eviction(&write);
                self.requests
                    .push(self.lease_requests.write(request, precondition, write));
            }
            ElectionEffect::Delete {
                request,
                precondition,
                key,
            } => self
                .requests
                .push(self.lease_requests.delete(request, precondition, key)),
            ElectionEffect::Read { request, key } => self.requests.push(self.lease_requests.read(request, key)),
            ElectionEffect::Relist => self.leases.relist(),
            ElectionEffect::ActUntil(until) => {
                let set = |leadership: &mut Leadership| leadership.set_until(until);
                self.channels.leadership.send_if_modified(set);
            }
            ElectionEffect::Fence => {
                self.channels.metrics.fences.inc();
                tracing::warn!("fenced: the member Lease was not renewed in time, and nothing is sent until it is");
                self.channels.writes.reset_connections();
                self.channels.n_fences.update(|n_fences| n_fences + 1);
            }
            ElectionEffect::Lead {
                shard_term,
                adoption,
                entry,
                fired_through,
            } => {
                self.lead(shard_term, adoption);
                self.command(ShardCommand::Lead {
                    shard_term,
                    entry,
                    fired_through,
                })?;
            }
            ElectionEffect::Stop { shard_term, reason } => self.stop(shard_term, reason)?,
            ElectionEffect::Seal(order) => self.command(ShardCommand::Seal(order))?,
            ElectionEffect::Rejoin(reason) => self.rejoin(reason, inputs)?,
            ElectionEffect::Left => return Err(Ending::Left),
            ElectionEffect::Exit(reason) => {
                tracing::error!(reason, "this incarnation ended");
                return Err(Ending::Exit);
            }
        }
        Ok(())
    }

    fn lead(&mut self, shard_term: ShardTerm, adoption: Adoption) {
        let ShardTerm { shard, term } = shard_term;
        tracing::debug!(
            shard = shard.0,
            term = term.0,
            adoption = adoption.name(),
            "takes a shard"
        );
        self.channels
            .leadership
            .send_modify(|leadership| leadership.begin(shard_term));
        self.handovers.taking(shard, self.clock.boot());
    }

    fn stop(&mut self, shard_term: ShardTerm, reason: StopReason) -> Result<(), Ending> {
        let ShardTerm { shard, term } = shard_term;
        tracing::debug!(shard = shard.0, term = term.0, ?reason, "leaves a shard");
        self.channels
            .leadership
            .send_modify(|leadership| leadership.end(shard_term));
        self.handovers
            .left(shard, reason == StopReason::HandedOver, self.clock.boot());
        self.command(ShardCommand::Release(shard))
    }

    /// Drops all state of this incarnation; the next one begins empty.
    fn rejoin(&mut self, reason: &'static str, inputs: &mut Vec<ElectionInput>) -> Result<(), Ending> {
        tracing::warn!(reason, "lost the membership: releases all shards and joins again");
        self.channels.metrics.rejoins.inc();
        self.config.incarnation = Incarnation((self.incarnations)());
        self.end_leadership();
        self.channels.writes.reset_connections();
        self.requests.clear();
        self.handovers.forget_all();
        self.command(ShardCommand::ReleaseAll)?;
        inputs.push(ElectionInput::Rejoined(self.config.incarnation));
        Ok(())
    }

    /// Replaces the leadership by one that is over, and wakes the shards.
    fn end_leadership(&self) {
        let now = self.clock.boot();
        let ended = Leadership::of_none_until(now, self.config.incarnation.0, self.config.timing);
        self.channels.leadership.send_replace(ended);
    }

    fn command(&self, command: ShardCommand) -> Result<(), Ending> {
        self.channels
            .commands
            .try_send(command)
            .map_err(|_| Ending::ShardTaskEnded)
    }
}

#[cfg(test)]
mod tests;
