//! This replica's part in who leads which shard: drives [`Election`], which decides, and carries out what it wants.
//!
//! One task owns the watch of Leases, every request about them, and what this replica may do: nobody else changes the
//! [`Leadership`] that writers ask. It gives a shard up there before it says so to anybody, and takes one up there before
//! the shard is told to act. Its end ends the process.

mod adoptions;
mod handovers;
mod lease_watch;
mod notices;
mod refusals;
mod report;
mod requests;

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{mpsc, watch};

use self::{
    handovers::Handovers,
    lease_watch::LeaseWatch,
    notices::Notices,
    refusals::Refusals,
    requests::{LeaseRequest, LeaseRequests},
};
use super::{
    clock::{Clock, ClockVerdict},
    shutdown::{HANDOVER_GRACE, Phase, PhaseReceiver},
};
use crate::{
    controller::settings::Incarnations,
    coordination::{
        Adoption, Election, ElectionConfig, ElectionEffect, ElectionInput, Incarnation, Leadership, LeaseKey,
        NotOwning, RejoinReason, StopReason,
    },
    kube_api::{ApiClient, leases::LeaseApi, ordered_watch::OrderedSender},
    shard::{BootInstant, ShardCommand, ShardId, ShardReport, ShardTerm, Term, held_shards::WHOLE},
    telemetry::metrics::{ElectionMetrics, ElectionSnapshot},
};

/// What the election is connected to.
pub struct ElectionChannels {
    /// What it wants of shards.
    pub commands: mpsc::Sender<ShardCommand>,
    /// What shards say.
    pub reports: mpsc::Receiver<ShardReport>,
    /// What this replica may do.
    pub leadership: watch::Sender<Leadership>,
    /// Whether a replica with `--alone` acts.
    pub acts_alone: OrderedSender<bool>,
    /// Whether the history of the API server went back, which ends this life.
    pub went_back: OrderedSender<bool>,
    /// What writes go over, to be cut off when they must not arrive any more.
    pub writes: ApiClient,
    /// When to hand everything over.
    pub phase: PhaseReceiver,
    /// Where it says how things stand.
    pub snapshot: ElectionSnapshot,
    /// Counters.
    pub metrics: ElectionMetrics,
}

/// See the module.
pub struct ElectionTask {
    election: Election,
    config: ElectionConfig,
    lease_requests: LeaseRequests,
    clock: Clock,
    channels: ElectionChannels,
    leases: LeaseWatch,
    requests: FuturesUnordered<LeaseRequest>,
    handovers: Handovers,
    notices: Notices,
    refusals: Refusals,
    incarnations: Incarnations,
    /// The number of this life.
    incarnation: Incarnation,
    /// Whether it is that of a replica with `--alone`, which has no shards.
    is_alone: bool,
    is_synced: bool,
    /// When everything must have been handed over, once that has begun.
    leave_by: Option<BootInstant>,
    told_not_owning: Option<NotOwning>,
}

/// Why there is nothing more to do.
enum Ending {
    /// All was given away, or its time is over.
    Left,
    /// Somebody else is what we are.
    Exit,
    /// The shards' task does not take commands any more.
    Deaf,
}

impl ElectionTask {
    /// A replica with `--alone` gives its place up when nothing more is to be written.
    pub const ENDS_ALONE_IN: Phase = Phase::FlushEvents;

    /// The election of a replica; its first life is the one of the configuration.
    pub fn new(
        config: ElectionConfig,
        incarnations: Incarnations,
        api: LeaseApi,
        clock: Clock,
        channels: ElectionChannels,
    ) -> ElectionTask {
        let refusals = Refusals::new(&channels.metrics.api, &clock, config.settings.is_alone());
        let self_fence = config.timing.parts().self_fence;
        ElectionTask {
            election: Election::new(config.clone(), clock.boot()),
            leases: LeaseWatch::new(api.clone(), clock.clone(), refusals.clone(), self_fence),
            notices: Notices::new(api.clone(), clock.clone()),
            lease_requests: LeaseRequests {
                api,
                clock: clock.clone(),
                metrics: channels.metrics.api.clone(),
                refusals: refusals.clone(),
                timeout: config.timing.parts().attempt_timeout,
            },
            incarnation: config.incarnation,
            is_alone: config.settings.is_alone(),
            config,
            clock,
            requests: FuturesUnordered::new(),
            handovers: Handovers::new(channels.metrics.given.clone(), channels.metrics.taken.clone()),
            channels,
            incarnations,
            is_synced: false,
            leave_by: None,
            refusals,
            told_not_owning: None,
        }
    }

    /// Works until everything has been handed over, or the time for that is over.
    pub async fn run(mut self) {
        let ending = self.take_part().await;
        // Whatever is left is sent no more: others may lead it by the time that it would be.
        self.channels.leadership.send_replace(self.nothing());
        let _ = self.channels.commands.try_send(ShardCommand::ReleaseAll);
        match ending {
            Ending::Left => tracing::info!("left the election"),
            Ending::Exit => tracing::error!("another process is this very replica: this one ends"),
            Ending::Deaf => tracing::error!("shards do not take commands"),
        }
    }

    async fn take_part(&mut self) -> Ending {
        self.channels.leadership.send_replace(self.nothing());
        if self.is_alone {
            self.is_synced = true;
        } else {
            self.requests
                .push(self.lease_requests.installation(self.config.installation.clone()));
        }
        let mut result = self.take(ElectionInput::Willing(self.clock.verdict() == ClockVerdict::Fine));
        if self.is_synced {
            result = result.and_then(|()| self.take(ElectionInput::Shards(ShardReport::Synced)));
        }
        let ends_in = if self.is_alone {
            Self::ENDS_ALONE_IN
        } else {
            Phase::HandOver
        };
        let mut phase = self.channels.phase.clone();
        let mut verdict = self.clock.watch_verdict();
        loop {
            if let Err(ending) = result {
                return ending;
            }
            self.publish();
            let wakeup = self.election.next_wakeup();
            let pause = wakeup.min(self.leave_by.unwrap_or(wakeup)).since(self.clock.boot());
            let input = tokio::select! {
                biased;
                () = phase.reached(ends_in), if self.leave_by.is_none() => {
                    self.leave_by = Some(self.clock.boot() + HANDOVER_GRACE);
                    Some(ElectionInput::DrainRequested)
                }
                Some(response) = self.requests.next() => Some(self.take_response(response)),
                Some(report) = self.channels.reports.recv() => Some(self.note_report(report)),
                input = self.leases.next() => Some(input),
                _ = verdict.changed() => Some(ElectionInput::Willing(self.clock.verdict() == ClockVerdict::Fine)),
                () = tokio::time::sleep(pause) => None,
                () = self.notices.deliver() => None,
            };
            if self.leave_by.is_some_and(|by| by <= self.clock.boot()) {
                tracing::warn!("not everything could be handed over in time");
                return Ending::Left;
            }
            result = match input {
                Some(input) => self.take(input),
                None => self.pass_time(),
            };
        }
    }

    fn take(&mut self, input: ElectionInput) -> Result<(), Ending> {
        if self.election.is_contradicted_by(&input) {
            tracing::warn!("Leases are older than they were, as after a restore of etcd");
            self.channels.went_back.set(true);
        }
        let effects = self.election.handle(input, self.clock.boot());
        self.follow(effects)
    }

    fn pass_time(&mut self) -> Result<(), Ending> {
        let effects = self.election.handle_timeout(self.clock.boot());
        self.follow(effects)
    }

    /// Carries out what is wanted, and takes in what follows from it at once.
    fn follow(&mut self, effects: Vec<ElectionEffect>) -> Result<(), Ending> {
        // Before any of them is told to act.
        let quarantined = self.election.quarantined();
        self.channels
            .leadership
            .send_if_modified(|it| it.quarantine(&quarantined));
        let mut inputs = Vec::new();
        for effect in effects {
            self.perform(effect, &mut inputs)?;
        }
        inputs.into_iter().try_for_each(|input| self.take(input))
    }

    /// Follows a report of the shards, which is for the election as well.
    fn note_report(&mut self, report: ShardReport) -> ElectionInput {
        match &report {
            ShardReport::Synced => self.is_synced = true,
            ShardReport::Loaded(_) => {}
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
                // From here on nothing of it is sent, whatever waits in queues.
                self.channels
                    .leadership
                    .send_modify(|leadership| leadership.end(*shard_term));
            }
        }
        ElectionInput::Shards(report)
    }

    fn perform(&mut self, effect: ElectionEffect, inputs: &mut Vec<ElectionInput>) -> Result<(), Ending> {
        match effect {
            ElectionEffect::Create { request, write } => self.requests.push(self.lease_requests.create(request, write)),
            ElectionEffect::Patch {
                request,
                precondition,
                write,
            } => {
                self.note_eviction(&write);
                self.requests
                    .push(self.lease_requests.patch(request, precondition, write));
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
            // The next report of how things stand says so.
            ElectionEffect::ActUntil(_) if self.is_alone => {}
            ElectionEffect::ActUntil(until) => {
                self.channels
                    .leadership
                    .send_modify(|leadership| leadership.renew(until));
                self.command(ShardCommand::Look)?;
            }
            ElectionEffect::Fence => {
                self.channels.metrics.fences.inc();
                tracing::warn!("fenced: our Lease is not renewed, so nothing is sent until it is");
                self.channels.writes.reset_connections();
            }
            ElectionEffect::Lead {
                shard,
                term,
                adoption,
                is_quarantined,
            } => self.lead(shard, term, &adoption, is_quarantined)?,
            ElectionEffect::Stop { shard, term, reason } => self.stop(shard, term, reason)?,
            ElectionEffect::Shards(command) => self.command(command)?,
            ElectionEffect::Rejoin(reason) => self.rejoin(reason, inputs)?,
            ElectionEffect::Left => return Err(Ending::Left),
            ElectionEffect::Exit(reason) => {
                tracing::error!(?reason, "this life is over");
                return Err(Ending::Exit);
            }
        }
        Ok(())
    }

    fn lead(&mut self, shard: ShardId, term: Term, adoption: &Adoption, is_quarantined: bool) -> Result<(), Ending> {
        tracing::info!(
            shard = shard.0,
            term = term.0,
            adoption = adoptions::name(adoption),
            is_quarantined,
            "takes a shard"
        );
        let shard_term = ShardTerm { shard, term };
        self.channels
            .leadership
            .send_modify(|leadership| leadership.begin(shard_term));
        self.handovers.taking(shard, self.clock.boot());
        if is_quarantined {
            let message = format!(
                "leaders of shard {} crashed again and again: it is led by one replica that leads nothing else, with one \
                 create at a time",
                shard.0
            );
            self.notices.warn(LeaseKey::Shard(shard), "ShardQuarantined", message);
        }
        let entry = adoptions::entry(adoption);
        self.command(ShardCommand::Lead { shard_term, entry })
    }

    fn stop(&mut self, shard: ShardId, term: Term, reason: StopReason) -> Result<(), Ending> {
        tracing::info!(shard = shard.0, term = term.0, ?reason, "leaves a shard");
        let shard_term = ShardTerm { shard, term };
        self.channels
            .leadership
            .send_modify(|leadership| leadership.end(shard_term));
        self.handovers
            .left(shard, reason == StopReason::HandedOver, self.clock.boot());
        self.command(ShardCommand::Release(shard))
    }

    /// Nothing of this life goes on; the next one begins with nothing.
    fn rejoin(&mut self, reason: RejoinReason, inputs: &mut Vec<ElectionInput>) -> Result<(), Ending> {
        tracing::warn!(?reason, "lost its membership: lets all shards go and joins anew");
        self.channels.metrics.rejoins.inc();
        self.incarnation = Incarnation((self.incarnations)());
        self.channels.leadership.send_replace(self.nothing());
        self.channels.writes.reset_connections();
        self.requests.clear();
        self.handovers.forget_all();
        self.command(ShardCommand::ReleaseAll)?;
        inputs.push(ElectionInput::Rejoined(self.incarnation));
        // The watches of CronJobs and Jobs go on; what is taken up is listed shard by shard.
        if self.is_synced {
            inputs.push(ElectionInput::Shards(ShardReport::Synced));
        }
        if !self.is_alone {
            self.requests
                .push(self.lease_requests.installation(self.config.installation.clone()));
        }
        Ok(())
    }

    fn nothing(&self) -> Leadership {
        if self.is_alone {
            return Leadership::of_one_until(WHOLE, self.clock.boot());
        }
        Leadership::of_none_until(self.clock.boot(), self.incarnation.0, self.config.timing.write_life())
    }

    fn command(&self, command: ShardCommand) -> Result<(), Ending> {
        if self.is_alone {
            return Ok(());
        }
        self.channels.commands.try_send(command).map_err(|_| Ending::Deaf)
    }
}
