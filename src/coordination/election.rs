//! One replica's part in the election: its own membership, its view of the other members, and the shards that it leads.
//!
//! The methods are those of [`crate::shard::ShardState`]: [`Election::handle`] takes a fact, and
//! [`Election::handle_timeout`] advances the time; both return the effects. [`Election::next_wakeup`] returns the
//! next deadline. A fact changes the state, and all effects are then derived from the whole state. So a fact that
//! arrives late, twice or in another form (response, event, list) has the same result.

mod adoption;
mod eviction;
mod guards;
mod handover;
mod lease_view;
mod led_shard;
mod members;
mod membership;
mod no_shards_reason;
mod renewal;
mod requests;

use std::{collections::BTreeMap, time::Duration};

use self::{
    adoption::Taking,
    guards::Guards,
    lease_view::LeaseView,
    led_shard::LedShard,
    members::Members,
    membership::{ActiveMembership, MembershipState},
    requests::{Purpose, Requests},
};
pub use self::{handover::CLOSE_MAX, no_shards_reason::NoShardsReason};
use super::{
    Adoption, ElectionEffect, ElectionInput, Incarnation, Installation, LeaseKey, MemberIdentity, MemberSettings,
    Timing,
};
use crate::shard::{BootInstant, ShardId, ShardPhase, ShardReport, ShardSet, Term};

/// The configuration of an election, fixed for its lifetime.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElectionConfig {
    /// The name of this replica's Pod.
    pub pod_name: Box<str>,
    /// The uid of this replica's Pod, after which its member Lease is named.
    pub pod_uid: Box<str>,
    /// The first incarnation, drawn at random.
    pub incarnation: Incarnation,
    /// The revision of the Pod template. Members of one Deployment with different revisions are in a rollout.
    pub revision: Box<str>,
    /// This replica's version of the protocol.
    pub protocol: u16,
    /// The installation's constants as configured in this replica.
    pub installation: Installation,
    /// The scope and default time zone of this replica.
    pub settings: MemberSettings,
    /// The durations of the protocol.
    pub timing: Timing,
}

/// A summary of the election for readiness, metrics and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overview {
    /// This replica's identity.
    pub identity: MemberIdentity,
    /// The reason why this replica takes no shards; `None` if it does.
    pub no_shards_reason: Option<NoShardsReason>,
    /// The instant until which led shards may act.
    pub act_until: Option<BootInstant>,
    /// The shards that this replica leads, with their terms.
    pub led: BTreeMap<ShardId, (Term, ShardPhase)>,
    /// The vacant shards, and since when; none before Leases are listed.
    pub vacant: BTreeMap<ShardId, BootInstant>,
    /// The number of members that take shards.
    pub n_takers: usize,
}

/// The election state machine of one replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Election {
    config: ElectionConfig,
    #[cfg(test)]
    guards: Guards,
    identity: MemberIdentity,
    membership: MembershipState,
    view: LeaseView,
    requests: Requests,
    /// The shards that this replica leads.
    led_shards: BTreeMap<ShardId, LedShard>,
    /// Shards that this replica has requested.
    taking: BTreeMap<ShardId, Taking>,
    /// Shards that this replica led and whose Leases were deleted; it creates these Leases again at once.
    recreating: ShardSet,
    members: Members,
    is_synced: bool,
    /// Whether this replica trusts its clock; it leads no shards while it does not.
    is_clock_trusted: bool,
    /// Whether the account of this replica has the rights to start Jobs.
    may_start: bool,
    /// The instant at which this replica began to leave.
    drain: Option<BootInstant>,
    last_handled: BootInstant,
    wakeup: BootInstant,
    effects: Vec<ElectionEffect>,
}

impl Election {
    /// Creates an election without any facts. It joins after the first list of Leases.
    pub fn new(config: ElectionConfig, now: BootInstant) -> Election {
        Election {
            #[cfg(test)]
            guards: Guards::ALL,
            identity: MemberIdentity {
                pod_name: config.pod_name.clone(),
                pod_uid: config.pod_uid.clone(),
                incarnation: config.incarnation,
            },
            membership: MembershipState::Listing,
            view: LeaseView::new(config.installation.shard_count, now),
            requests: Requests::default(),
            led_shards: BTreeMap::new(),
            taking: BTreeMap::new(),
            recreating: ShardSet::EMPTY,
            members: Members::new(now),
            is_synced: false,
            is_clock_trusted: true,
            may_start: true,
            drain: None,
            last_handled: now,
            wakeup: now,
            effects: Vec::new(),
            config,
        }
    }

    /// Takes a fact and returns the effects, in order.
    pub fn handle(&mut self, input: ElectionInput, now: BootInstant) -> Vec<ElectionEffect> {
        self.detect_thaw(now);
        match input {
            ElectionInput::Listed { requested_at, list } => self.listed(requested_at, &list, now),
            ElectionInput::Applied(record) => {
                self.view.apply(&record, None, now);
                self.view.observe_version(record.resource_version);
                self.observe_own_renewal(&record, now);
            }
            ElectionInput::Deleted(key, version) => {
                self.view.delete(&key, version, now);
                self.view.observe_version(version);
            }
            ElectionInput::Answered { request, answer } => self.answered(request, &answer, now),
            ElectionInput::Shards(report) => self.take_report(report),
            ElectionInput::ClockTrusted(is_clock_trusted) => self.set_clock_trusted(is_clock_trusted, now),
            ElectionInput::MayStart(may_start) => self.may_start = may_start,
            ElectionInput::DrainRequested => self.drain(now),
            ElectionInput::Rejoined(incarnation) => self.rejoined(incarnation),
        }
        self.derive_effects(now);
        std::mem::take(&mut self.effects)
    }

    fn take_report(&mut self, report: ShardReport) {
        match report {
            ShardReport::Synced => self.is_synced = true,
            ShardReport::Leading(_) => {}
            ShardReport::Sealed {
                shard_term,
                fired_through,
                written_through,
                ..
            } => self.sealed(shard_term, fired_through, written_through),
        }
    }

    /// Whether a consistent list of Leases proves that the API server's history went back. Then the state of the
    /// election is unreliable.
    pub fn is_contradicted_by(&self, input: &ElectionInput) -> bool {
        let ElectionInput::Listed { requested_at, list } = input else {
            return false;
        };
        self.view.is_contradicted_by(*requested_at, list)
    }

    /// Advances the time and returns the effects. An early or repeated call is harmless.
    pub fn handle_timeout(&mut self, now: BootInstant) -> Vec<ElectionEffect> {
        self.detect_thaw(now);
        self.derive_effects(now);
        std::mem::take(&mut self.effects)
    }

    /// The next instant at which time alone changes something; it may be early, but is never late.
    pub fn next_wakeup(&self) -> BootInstant {
        self.wakeup
    }

    /// The instant until which led shards may act; `None` if they may not.
    fn act_until(&self) -> Option<BootInstant> {
        let active = self.active()?;
        Some(active.act_until(self.fence_after(), self.guards()))
    }

    /// Returns the summary of the election.
    pub fn overview(&self, now: BootInstant) -> Overview {
        let is_listed = self.view.is_listed;
        let vacancies = if is_listed { self.vacancies() } else { BTreeMap::new() };
        Overview {
            identity: self.identity.clone(),
            no_shards_reason: self.no_shards_reason(now),
            act_until: self.act_until(),
            led: self
                .led_shards
                .iter()
                .map(|(shard, led_shard)| (*shard, (led_shard.term, led_shard.phase())))
                .collect(),
            vacant: vacancies
                .into_iter()
                .map(|(shard, vacancy)| (shard, vacancy.since))
                .collect(),
            n_takers: self.takers().count(),
        }
    }

    /// Derives all effects from the state.
    fn derive_effects(&mut self, now: BootInstant) {
        self.wakeup = now + self.config.timing.renew_interval;
        for pending in self.requests.expire(now, self.config.timing.attempt_timeout) {
            self.unanswered(&pending, now);
        }
        self.judge_own_lease();
        self.refresh_trust(now);
        self.note_members(now);
        self.follow_leases(now);
        if self.may_act(now) {
            self.evict_silent(now);
            self.adopt(now);
            self.hand_over(now);
        }
        self.maintain_membership(now);
        if let Some(expiry) = self.requests.next_expiry(self.config.timing.attempt_timeout) {
            self.wake_at(expiry);
        }
        self.last_handled = now;
    }

    /// Ends the incarnation of a process that did not run for as long as its fence: its queues and sockets hold
    /// requests from before the pause.
    fn detect_thaw(&mut self, now: BootInstant) {
        let is_thaw = now.since(self.last_handled) > self.fence_after();
        if is_thaw
            && matches!(
                self.membership,
                MembershipState::Joining { .. } | MembershipState::Member(_)
            )
        {
            self.rejoin("the process did not run for longer than its fence");
        }
    }

    /// Schedules a wake-up at an instant, if that is before the next one.
    fn wake_at(&mut self, at: BootInstant) {
        self.wakeup = self.wakeup.min(at);
    }

    /// Whether this replica may act: its shards on their CronJobs, and the replica on the Leases of others.
    fn may_act(&self, now: BootInstant) -> bool {
        self.act_until().is_some_and(|until| now < until)
    }

    /// Whether this replica drains.
    fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Whether this replica gives all its shards away.
    fn is_leaving(&self) -> bool {
        self.is_draining()
            || !self.is_clock_trusted
            || self.disagreement().is_some()
            || self.settings_differ().is_some()
    }

    fn fence_after(&self) -> Duration {
        self.config.timing.self_fence
    }

    fn own_key(&self) -> LeaseKey {
        LeaseKey::Member(self.config.pod_uid.clone())
    }

    fn active(&self) -> Option<&ActiveMembership> {
        self.membership.active()
    }

    fn is_established(&self) -> bool {
        self.active().is_some_and(|active| active.is_established)
    }
}

#[cfg(test)]
mod tests;
