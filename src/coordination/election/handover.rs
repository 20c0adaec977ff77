//! Handing over a shard: announce it, let the next leader load it, seal it, and transfer it with one write. This module
//! also contains the side of the next leader: loading announced shards.
//!
//! Only the leader moves a shard. A leaving leader moves all its shards at once, and offers a shard to another member
//! if the next leader does not load it. A member with too many shards moves a few at a time. It continues to lead a
//! shard that the next leader does not load.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{
    Election, ElectionEffect, LeaseKey, Purpose,
    led_shard::{Handover, LedShard},
};
use crate::{
    coordination::{Acceptance, HandoverPlan, LeaseWrite, MemberLease, annotation},
    shard::{BootInstant, ResourceVersions, SealOrder, ShardCommand, ShardId, ShardSet, ShardTerm, Term},
};

/// Maximum number of shards that a staying member hands over at a time.
const REBALANCED_MAX: usize = 8;

/// How long a shard may stay closing, from the drain or from the order to seal it. Unanswered requests and unstored
/// statuses are then left to the next leader. A longer limit would leave less of the grace period of a Pod, 30 seconds,
/// for the later phases of the shutdown.
pub const CLOSE_MAX: Duration = Duration::from_secs(9);

/// How long a leaving replica waits for the next leader to load a shard.
const LOAD_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a staying replica waits for the next leader to load a shard. The replica leads the shard meanwhile, and a
/// list takes long in a large cluster.
const REBALANCE_LOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// Maximum number of members to which a leaving replica offers a shard. If two are slow, for example because
/// everything is due at once, a third is likely to be slow too. The replica then releases the shard.
const OFFERS_MAX: usize = 2;

impl Election {
    /// The handovers that this replica announces in its member Lease: every led shard with a next leader.
    pub(super) fn plan(&self) -> HandoverPlan {
        let entries = self
            .led_shards
            .iter()
            .filter_map(|(shard, led_shard)| Some((*shard, led_shard.next_leader()?.into())));
        HandoverPlan(entries.collect())
    }

    /// Whether this replica drains and has nothing left to hand over: every led shard is sealed without a next leader,
    /// and no other member takes shards.
    pub(super) fn may_leave(&self) -> bool {
        let is_sealed_for_nobody =
            |led_shard: &LedShard| matches!(&led_shard.handover, Handover::Sealed { next_leader: None, .. });
        let is_left_to_nobody = || self.led_shards.values().all(is_sealed_for_nobody) && !self.has_other_taker();
        self.is_draining() && (self.led_shards.is_empty() || is_left_to_nobody())
    }

    /// Whether a shard may be handed over: all members that take shards have this replica's protocol version and
    /// settings.
    pub(super) fn can_transfer(&self) -> bool {
        let is_same = |lease: &MemberLease| lease.protocol == self.config.protocol;
        !self.sees_another_active() && self.takers().all(|(_, lease)| is_same(lease))
    }

    /// Whether another member takes shards.
    pub(super) fn has_other_taker(&self) -> bool {
        self.takers().any(|(pod_uid, _)| !self.is_us(pod_uid))
    }

    /// Begins to leave for good. Shards that are already being sealed get the drain's deadline if it is earlier.
    pub(super) fn drain(&mut self, now: BootInstant) {
        if !self.is_draining() {
            self.drain = Some(now);
            self.seal_again(|handover| matches!(handover, Handover::Closing { .. }), now);
        }
    }

    /// Records whether this replica trusts its clock. When it stops doing so, shards that are being sealed close at
    /// once, since no more requests are sent for them.
    pub(super) fn set_clock_trusted(&mut self, is_clock_trusted: bool, now: BootInstant) {
        let is_alarm = self.is_clock_trusted && !is_clock_trusted;
        self.is_clock_trusted = is_clock_trusted;
        if is_alarm {
            self.seal_again(|handover| matches!(handover, Handover::Closing { .. }), now);
        }
    }

    /// Advances the handover of every moving shard by one step.
    pub(super) fn hand_over(&mut self, now: BootInstant) {
        if self.is_leaving() {
            self.withdraw_offers();
            if !self.has_other_taker() {
                // The gap of a handover does not matter any more, so all shards are sealed together.
                self.seal_again(
                    |handover| {
                        matches!(
                            handover,
                            Handover::Closing {
                                has_other_taker: true,
                                ..
                            }
                        )
                    },
                    now,
                );
            }
        }
        self.offer_shards(now);
        let busy = self.requests.busy_shards();
        for shard in self.led_where(LedShard::is_moving) {
            self.follow_offer(shard, now);
            if !busy.contains(shard) {
                self.transfer(shard, now);
            }
        }
    }

    /// Withdraws offers to members that no longer take shards; these shards are placed again. This happens when several
    /// members leave at the same time and offer shards to each other.
    fn withdraw_offers(&mut self) {
        let takers: BTreeSet<Box<str>> = self.takers().map(|(pod_uid, _)| pod_uid.into()).collect();
        for led_shard in self.led_shards.values_mut() {
            if matches!(&led_shard.handover, Handover::Offered { next_leader, .. } if !takers.contains(next_leader)) {
                led_shard.handover = Handover::None;
            }
        }
    }

    /// The shards that may be offered now. A leaving replica may offer every shard. A staying one offers a shard no earlier
    /// than one settle window after it took it, or after an offer that was not accepted.
    fn movable_shards(&self, now: BootInstant) -> Vec<ShardId> {
        let is_leaving = self.is_leaving();
        self.led_where(|led_shard| !led_shard.is_moving() && (is_leaving || now >= led_shard.offer_after))
    }

    /// The led shards that meet a condition.
    fn led_where(&self, is_wanted: impl Fn(&LedShard) -> bool) -> Vec<ShardId> {
        let wanted = self.led_shards.iter().filter(|(_, led_shard)| is_wanted(led_shard));
        wanted.map(|(shard, _)| *shard).collect()
    }

    /// Offers shards to the members where placement wants them: all shards of a leaving replica, otherwise at most
    /// [`REBALANCED_MAX`] at a time.
    fn offer_shards(&mut self, now: BootInstant) {
        let movable = self.movable_shards(now);
        let is_leaving = self.is_leaving();
        let has_reason = is_leaving || self.may_rebalance(now) || !self.view.quarantined().is_empty();
        if movable.is_empty() || !has_reason || !self.joined_members().any(|(pod_uid, _)| self.is_us(pod_uid)) {
            return;
        }
        let placement = self.place(false, now);
        let n_moving = self.led_where(LedShard::is_moving).len();
        let room = if is_leaving {
            usize::MAX
        } else {
            REBALANCED_MAX.saturating_sub(n_moving)
        };
        let next_leader = |shard| placement.move_of(shard, &self.config.pod_uid).map(Into::into);
        let offers: Vec<(ShardId, Option<Box<str>>)> = movable
            .into_iter()
            .map(|shard| (shard, next_leader(shard)))
            .filter(|(_, next_leader)| is_leaving || next_leader.is_some())
            .take(room)
            .collect();
        for (shard, next_leader) in offers {
            self.offer(shard, next_leader, Vec::new(), now);
        }
    }

    /// Announces a shard to its next leader, or seals it at once if no member can load it.
    fn offer(&mut self, shard: ShardId, next_leader: Option<Box<str>>, passed_over: Vec<Box<str>>, now: BootInstant) {
        let can_transfer = self.can_transfer();
        match (next_leader, self.led_shards.get_mut(&shard)) {
            (Some(next_leader), Some(led_shard)) if can_transfer => {
                led_shard.handover = Handover::Offered {
                    next_leader,
                    since: now,
                    passed_over,
                };
            }
            _ => self.seal(shard, None, now),
        }
    }

    fn seal(&mut self, shard: ShardId, next_leader: Option<Box<str>>, now: BootInstant) {
        let (close_by, has_other_taker) = (self.close_by(now), self.has_other_taker());
        if let Some(led_shard) = self.led_shards.get_mut(&shard) {
            led_shard.handover = Handover::Closing {
                next_leader,
                has_other_taker,
            };
            let term = led_shard.term;
            self.effects.push(ElectionEffect::Shards(ShardCommand::Seal(SealOrder {
                shard_term: ShardTerm { shard, term },
                close_by,
                has_other_taker,
            })));
        }
    }

    /// Repeats the order to seal closing shards. Their deadline may be earlier by now.
    fn seal_again(&mut self, is_wanted: impl Fn(&Handover) -> bool, now: BootInstant) {
        for shard in self.led_where(|led_shard| is_wanted(&led_shard.handover)) {
            let next_leader = self.led_shards[&shard].next_leader().map(Into::into);
            self.seal(shard, next_leader, now);
        }
    }

    /// The deadline of a shard that is ordered now to be sealed. A replica that does not trust its clock sends no
    /// requests, so there is nothing to wait for.
    fn close_by(&self, now: BootInstant) -> BootInstant {
        if self.is_clock_trusted {
            self.drain.unwrap_or(now) + CLOSE_MAX
        } else {
            now
        }
    }

    /// Seals an offered shard when its next leader has loaded it. If the next leader does not load it in time, a leaving
    /// replica offers it again or seals it, and a staying one withdraws the offer.
    fn follow_offer(&mut self, shard: ShardId, now: BootInstant) {
        let Some(Handover::Offered {
            next_leader,
            since,
            passed_over,
        }) = self.handover(shard)
        else {
            return;
        };
        let timeout = if self.is_leaving() {
            LOAD_TIMEOUT
        } else {
            REBALANCE_LOAD_TIMEOUT
        };
        let late_at = *since + timeout;
        let taker = self.taker(next_leader);
        if !self.can_transfer() {
            // A member has another protocol version or other settings: release the shard instead.
            self.seal(shard, None, now);
        } else if taker.is_some_and(|lease| lease.loaded.contains(shard)) {
            self.seal(shard, Some(next_leader.clone()), now);
        } else if taker.is_some() && now < late_at {
            self.wake_at(late_at);
        } else if self.is_leaving() {
            let passed_over = [&passed_over[..], std::slice::from_ref(next_leader)].concat();
            let next_leader = (passed_over.len() < OFFERS_MAX)
                .then(|| self.preferred_next_leader(shard, &passed_over, now))
                .flatten();
            self.offer(shard, next_leader, passed_over, now);
        } else if let Some(led_shard) = self.led_shards.get_mut(&shard) {
            led_shard.handover = Handover::None;
            led_shard.offer_after = now + self.config.timing.settle_window;
        }
    }

    /// The preferred next leader of a shard among the members that take shards and were not passed over.
    fn preferred_next_leader(
        &mut self,
        shard: ShardId,
        passed_over: &[Box<str>],
        now: BootInstant,
    ) -> Option<Box<str>> {
        let placement = self.place(false, now);
        let is_new = |pod_uid: &&str| passed_over.iter().all(|other| **other != **pod_uid);
        let next_leader = placement.takers(shard).find(is_new);
        next_leader.map(Into::into)
    }

    fn handover(&self, shard: ShardId) -> Option<&Handover> {
        self.led_shards.get(&shard).map(|led_shard| &led_shard.handover)
    }

    pub(super) fn sealed(
        &mut self,
        shard_term: ShardTerm,
        fired_through: Option<Timestamp>,
        written_through: ResourceVersions,
    ) {
        if let Some(led_shard) = self.led_shards.get_mut(&shard_term.shard)
            && led_shard.term == shard_term.term
            && let Handover::Closing { next_leader, .. } = &mut led_shard.handover
        {
            led_shard.handover = Handover::Sealed {
                next_leader: next_leader.take(),
                fired_through,
                written_through,
            };
        }
    }

    /// Transfers a sealed shard with one write, to its next leader or to no holder.
    fn transfer(&mut self, shard: ShardId, now: BootInstant) {
        let Some(Handover::Sealed {
            next_leader,
            fired_through,
            written_through,
        }) = self.handover(shard)
        else {
            return;
        };
        if next_leader.is_none() && self.is_draining() && !self.has_other_taker() {
            // No member can take the shard now. It becomes free when this replica gives up its member Lease.
            return;
        }
        let seen = self.view.shard(shard);
        let Some(lease) = &seen.lease else { return };
        if seen.retry_at > now {
            return self.wake_at(seen.retry_at);
        }
        let next_leader = next_leader.as_deref().filter(|_| self.can_transfer());
        let holder = next_leader.and_then(|pod_uid| self.taker(pod_uid)?.holder.member());
        let fired_through = fired_through.map(|through| through.to_string());
        let write = LeaseWrite {
            holder: Some(holder.map(ToString::to_string).unwrap_or_default().into()),
            term: holder.is_some().then_some(Term(lease.term.0 + 1)),
            is_acquisition: holder.is_some(),
            ..LeaseWrite::to(LeaseKey::Shard(shard))
        }
        .annotate(annotation::WRITTEN_THROUGH, Some(written_through.to_string()))
        .annotate(annotation::FIRED_THROUGH, fired_through);
        self.send(Purpose::Transfer, write, now);
    }

    /// The shards that other members have announced to this replica.
    fn announced_to_us(&self) -> ShardSet {
        let others = self.joined_members().filter(|(pod_uid, _)| !self.is_us(pod_uid));
        let announced = |(_, leader): (_, &MemberLease)| {
            let is_its_own = |shard: &ShardId| {
                self.view
                    .lease(*shard)
                    .is_some_and(|lease| lease.holder == leader.holder)
            };
            leader
                .plan
                .shards_for(&self.config.pod_uid)
                .filter(|shard| is_its_own(shard) && self.may_host(*shard))
                .collect::<Vec<_>>()
        };
        others.flat_map(announced).collect()
    }

    /// Loads the shards that other members announce to this replica, and releases loaded shards that no member
    /// announces any more.
    pub(super) fn load_announced(&mut self) {
        let announced = if self.own_acceptance() == Acceptance::Now {
            self.announced_to_us()
        } else {
            ShardSet::EMPTY
        };
        let unwanted = self.loading.extract_if(.., |shard, _| !announced.contains(*shard));
        let releases = unwanted.map(|(shard, _)| ElectionEffect::Shards(ShardCommand::Release(shard)));
        self.effects.extend(releases);
        let is_new = |shard: &ShardId| !self.loading.contains_key(shard) && !self.led_shards.contains_key(shard);
        let wanted: ShardSet = announced.iter().filter(is_new).collect();
        if !wanted.is_empty() {
            self.loading.extend(wanted.iter().map(|shard| (shard, false)));
            self.effects.push(ElectionEffect::Shards(ShardCommand::Load(wanted)));
        }
    }
}
