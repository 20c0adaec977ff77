//! Handing over a shard: announce it, let the target load it, seal it, and transfer it with one write. This module
//! also contains the target's side: loading announced shards.
//!
//! Only the leader moves a shard. A draining leader moves all its shards at once and chooses another target when one
//! does not respond. A member with too many shards moves a few at a time, and continues to lead those that their target
//! does not load.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{
    Election, ElectionEffect, LeaseKey, Purpose,
    led_shard::{Handover, LedShard},
};
use crate::{
    coordination::{LeaseWrite, Plan, annotation},
    shard::{BootInstant, ResourceVersions, ShardCommand, ShardId, ShardSet, ShardTerm, Term},
};

/// Maximum number of shards that a staying member hands over at a time, to reduce its number of shards.
const PULLS_MAX: usize = 8;

/// How long a leaving replica waits for a target to load a shard.
const LOAD_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a staying replica waits for a target to load a shard. It leads the shard meanwhile, and lists take long in
/// a large cluster.
const PULL_LOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum number of targets that a leaving replica tries for a shard. If two targets are slow, for example because
/// everything is due at once, a third is likely to be slow too. The replica then releases the shard.
const TARGETS_MAX: usize = 2;

/// The inputs of the choice of shards to offer. While they are unchanged, the election does not compute the placement
/// again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OfferInputs {
    generation: u64,
    may_pull: bool,
    is_leaving: bool,
    n_moving: usize,
    n_may_go: usize,
}

impl Election {
    /// The handovers that this replica announces in its member Lease: every led shard with a target.
    pub(super) fn plan(&self) -> Plan {
        let entries = self
            .led_shards
            .iter()
            .filter_map(|(shard, led_shard)| Some((*shard, led_shard.target()?.into())));
        Plan(entries.collect())
    }

    /// Whether every led shard is sealed without a target and no other member takes shards.
    pub(super) fn all_sealed_without_target(&self) -> bool {
        let is_without_target =
            |led_shard: &LedShard| matches!(&led_shard.handover, Handover::Sealed { target: None, .. });
        self.led_shards.values().all(is_without_target) && !self.has_taker()
    }

    pub(super) fn has_taker(&self) -> bool {
        self.takers().any(|(pod_uid, _)| !self.is_us(pod_uid))
    }

    /// Advances the handover of every moving shard by one step.
    pub(super) fn hand_over(&mut self, now: BootInstant) {
        if self.is_leaving() {
            self.withdraw_offers();
            self.seal_without_successor(now);
        }
        self.announce(now);
        let moving = self.led_where(|led_shard| led_shard.handover != Handover::None);
        if moving.is_empty() {
            return;
        }
        let busy = self.requests.busy_shards();
        for shard in moving {
            self.follow_offer(shard, now);
            if !busy.contains(shard) {
                self.transfer(shard, now);
            }
        }
    }

    /// Withdraws offers to members that no longer take shards, and has these shards placed again. This happens when
    /// several members leave at the same time and offer shards to each other.
    fn withdraw_offers(&mut self) {
        let takers: BTreeSet<Box<str>> = self.takers().map(|(pod_uid, _)| pod_uid.into()).collect();
        for led_shard in self.led_shards.values_mut() {
            if matches!(&led_shard.handover, Handover::Offered { target, .. } if !takers.contains(target)) {
                led_shard.handover = Handover::None;
                self.last_offer_inputs = None;
            }
        }
    }

    /// The shards that may be offered now: all shards of a leaving replica, otherwise those that it has led for at
    /// least the settle window.
    fn may_go(&self, now: BootInstant) -> Vec<ShardId> {
        let window = self.config.timing.settle_window;
        let is_leaving = self.is_leaving();
        self.led_where(|led_shard| {
            led_shard.handover == Handover::None && (is_leaving || now >= led_shard.since + window)
        })
    }

    /// The led shards that meet a condition.
    fn led_where(&self, is_wanted: impl Fn(&LedShard) -> bool) -> Vec<ShardId> {
        let wanted = self.led_shards.iter().filter(|(_, led_shard)| is_wanted(led_shard));
        wanted.map(|(shard, _)| *shard).collect()
    }

    /// Offers shards to the members where placement wants them: all shards of a leaving replica, otherwise at most
    /// [`PULLS_MAX`] at a time.
    fn announce(&mut self, now: BootInstant) {
        let may_go = self.may_go(now);
        let is_moving = |led_shard: &&LedShard| led_shard.handover != Handover::None;
        let inputs = OfferInputs {
            generation: self.view.generation,
            may_pull: self.may_pull(now),
            is_leaving: self.is_leaving(),
            n_moving: self.led_shards.values().filter(is_moving).count(),
            n_may_go: may_go.len(),
        };
        let has_reason = inputs.is_leaving || inputs.may_pull || !self.view.quarantined().is_empty();
        if may_go.is_empty() || !has_reason || self.last_offer_inputs == Some(inputs) {
            return;
        }
        self.last_offer_inputs = Some(inputs);
        let placed = self.place(false, now);
        let Some(us) = placed.member(&self.config.pod_uid) else {
            return;
        };
        let room = if inputs.is_leaving {
            usize::MAX
        } else {
            PULLS_MAX.saturating_sub(inputs.n_moving)
        };
        let mut n_offered = 0;
        for shard in may_go {
            let target = placed.placement.move_of(shard, us);
            let target = target.map(|target| placed.pod_uids[target].clone());
            if n_offered < room && (target.is_some() || inputs.is_leaving) {
                n_offered += 1;
                self.offer(shard, target, Vec::new(), now);
            }
        }
    }

    /// Announces a shard to a target, or seals it at once if no target can load it.
    fn offer(&mut self, shard: ShardId, target: Option<Box<str>>, passed_over: Vec<Box<str>>, now: BootInstant) {
        let can_transfer = self.can_transfer();
        match (target, self.led_shards.get_mut(&shard)) {
            (Some(target), Some(led_shard)) if can_transfer => {
                led_shard.handover = Handover::Offered {
                    target,
                    since: now,
                    passed_over,
                };
            }
            _ => self.seal(shard, None, now),
        }
    }

    fn seal(&mut self, shard: ShardId, target: Option<Box<str>>, now: BootInstant) {
        let (close_by, has_next_leader) = (self.close_by(now), self.has_taker());
        if let Some(led_shard) = self.led_shards.get_mut(&shard) {
            led_shard.handover = Handover::Closing {
                target,
                has_next_leader,
            };
            let order = led_shard.seal_order(shard, close_by, has_next_leader);
            self.effects.push(order);
        }
    }

    /// Seals a shard that its target has loaded. If the target does not load it in time, a leaving replica chooses
    /// another target or none; a staying one withdraws the offer.
    fn follow_offer(&mut self, shard: ShardId, now: BootInstant) {
        let Some(LedShard {
            handover:
                Handover::Offered {
                    target,
                    since,
                    passed_over,
                },
            ..
        }) = self.led_shards.get(&shard)
        else {
            return;
        };
        let patience = if self.is_leaving() {
            LOAD_TIMEOUT
        } else {
            PULL_LOAD_TIMEOUT
        };
        let (target, late_at) = (target.clone(), *since + patience);
        let lease = self.taker(&target);
        if !self.can_transfer() {
            // A live member does not support this protocol version or has other settings: release the shard instead.
            self.seal(shard, None, now);
        } else if lease.is_some_and(|lease| lease.loaded.contains(shard)) {
            self.seal(shard, Some(target), now);
        } else if lease.is_some() && now < late_at {
            self.wake_at(late_at);
        } else if self.is_leaving() {
            let mut passed_over = passed_over.clone();
            passed_over.push(target);
            let next = (passed_over.len() < TARGETS_MAX)
                .then(|| self.place(false, now).next_target(shard, &passed_over))
                .flatten();
            self.offer(shard, next, passed_over, now);
        } else if let Some(led_shard) = self.led_shards.get_mut(&shard) {
            led_shard.handover = Handover::None;
            led_shard.since = now;
        }
    }

    pub(super) fn sealed(
        &mut self,
        shard_term: ShardTerm,
        fired_through: Option<Timestamp>,
        written_through: ResourceVersions,
    ) {
        if let Some(led_shard) = self.led_shards.get_mut(&shard_term.shard)
            && led_shard.term == shard_term.term
            && let Handover::Closing { target, .. } = &mut led_shard.handover
        {
            led_shard.handover = Handover::Sealed {
                target: target.take(),
                fired_through,
                written_through,
            };
        }
    }

    /// Transfers a sealed shard with one write, to its target or to no holder.
    fn transfer(&mut self, shard: ShardId, now: BootInstant) {
        let Some(led_shard) = self.led_shards.get(&shard) else {
            return;
        };
        let Handover::Sealed {
            target,
            fired_through,
            written_through,
        } = &led_shard.handover
        else {
            return;
        };
        if target.is_none() && self.is_draining() && !self.has_taker() {
            // No member can take the shard now. It becomes free when this replica gives up its member Lease.
            return;
        }
        let seen = self.view.shard(shard);
        if seen.lease.is_none() {
            return;
        }
        if seen.retry_at > now {
            return self.wake_at(seen.retry_at);
        }
        let target = target.as_deref().filter(|_| self.can_transfer());
        let heir = target.and_then(|target| self.taker(target)?.holder.member());
        let fired_through = fired_through.map(|through| through.to_string());
        let write = LeaseWrite {
            holder: Some(heir.map(ToString::to_string).unwrap_or_default().into()),
            term: heir.is_some().then_some(Term(led_shard.term.0 + 1)),
            is_renewal: heir.is_some(),
            is_acquisition: heir.is_some(),
            ..LeaseWrite::to(LeaseKey::Shard(shard))
        }
        .annotate(annotation::WRITTEN_THROUGH, Some(written_through.to_string()))
        .annotate(annotation::FIRED_THROUGH, fired_through);
        self.send(Purpose::Write, write, now);
    }

    /// Loads the shards that other members announce to this replica, and releases loaded shards that no member
    /// announces any more.
    pub(super) fn load_announced(&mut self) {
        let announced = self.announced_to_us();
        let takes = self.is_synced && !self.is_leaving();
        let is_wanted = |shard: ShardId| takes && announced.contains(shard);
        let unwanted: Vec<ShardId> = self
            .loading
            .keys()
            .copied()
            .filter(|shard| !is_wanted(*shard))
            .collect();
        for shard in unwanted {
            self.loading.remove(&shard);
            self.effects.push(ElectionEffect::Shards(ShardCommand::Release(shard)));
        }
        let is_new = |shard: &ShardId| !self.loading.contains_key(shard) && !self.led_shards.contains_key(shard);
        let wanted: ShardSet = announced
            .iter()
            .filter(|shard| is_wanted(*shard) && is_new(shard))
            .collect();
        if !wanted.is_empty() {
            self.loading.extend(wanted.iter().map(|shard| (shard, false)));
            self.effects.push(ElectionEffect::Shards(ShardCommand::Load(wanted)));
        }
    }
}
