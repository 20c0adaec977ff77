//! Handing over a shard: seal it, and transfer it to the next leader with one write. The next leader already knows every
//! CronJob and Job, and acts once its watches have delivered the versions that the write names.
//!
//! Only the leader moves a shard. A leaving leader moves all its shards at once. A member with too many shards moves a few
//! at a time. The next leader is chosen when the shard is ordered to be sealed, and again before the write if that member
//! left or fell silent in between.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Election, ElectionEffect, LeaseKey, Purpose,
    led_shard::{Handover, LedShard},
};
use crate::{
    coordination::{LeaseWrite, MemberIdentity, MemberLease, Placement, annotation},
    shard::{BootInstant, ResourceVersions, SealOrder, ShardId, ShardPhase, ShardTerm, Term},
};

/// Maximum number of shards that a staying member hands over at a time.
const REBALANCED_MAX: usize = 8;

/// How long a shard may stay closing, from the drain or from the order to seal it. Unanswered requests and unstored
/// statuses are then left to the next leader. A longer limit would leave less of the grace period of a Pod, 30 seconds,
/// for the later phases of the shutdown.
pub const CLOSE_MAX: Duration = Duration::from_secs(9);

impl Election {
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
    fn can_transfer(&self) -> bool {
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

    /// Begins to move shards, and transfers those that are sealed.
    pub(super) fn hand_over(&mut self, now: BootInstant) {
        if self.is_leaving() && !self.has_other_taker() {
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
        self.move_shards(now);
        self.transfer_sealed(now);
    }

    /// The shards that may be moved now. A leaving replica may move every shard. A staying one moves a shard no earlier
    /// than one settle window after it took it.
    fn movable_shards(&self, now: BootInstant) -> Vec<ShardId> {
        let is_leaving = self.is_leaving();
        self.led_where(|led_shard| !led_shard.is_moving() && (is_leaving || now >= led_shard.movable_at))
    }

    /// The led shards that meet a condition.
    fn led_where(&self, is_wanted: impl Fn(&LedShard) -> bool) -> Vec<ShardId> {
        let wanted = self.led_shards.iter().filter(|(_, led_shard)| is_wanted(led_shard));
        wanted.map(|(shard, _)| *shard).collect()
    }

    /// Begins to move shards to the members where placement wants them: all shards of a leaving replica, otherwise at
    /// most [`REBALANCED_MAX`] at a time.
    ///
    /// A leaving replica first announces that it takes no shards. Members that leave at the same time then know of each
    /// other, and choose next leaders that stay.
    fn move_shards(&mut self, now: BootInstant) {
        let is_leaving = self.is_leaving();
        let is_announced = !self.own_lease().is_some_and(MemberLease::takes_shards);
        let has_reason = if is_leaving {
            is_announced
        } else {
            self.may_rebalance(now)
        };
        let movable = self.movable_shards(now);
        if movable.is_empty() || !has_reason || !self.joined_members().any(|(pod_uid, _)| self.is_us(pod_uid)) {
            return;
        }
        let placement = self.place(false, now);
        let next_leader = |shard| {
            let is_wanted = is_leaving || placement.move_of(shard, &self.config.pod_uid).is_some();
            let next_leader = is_wanted.then(|| self.next_leader(shard, &placement, is_leaving, now));
            next_leader.flatten().map(|identity| identity.pod_uid.clone())
        };
        let moves: Vec<(ShardId, Option<Box<str>>)> = movable
            .into_iter()
            .map(|shard| (shard, next_leader(shard)))
            .filter(|(_, next_leader)| is_leaving || next_leader.is_some())
            .collect();
        let n_moving = self.led_where(LedShard::is_moving).len();
        let room = if is_leaving {
            usize::MAX
        } else {
            REBALANCED_MAX.saturating_sub(n_moving)
        };
        for (shard, next_leader) in moves.into_iter().take(room) {
            self.seal(shard, next_leader, now);
        }
    }

    /// The member to which a shard is to be transferred: the one on which it is placed, or the next one in the order of
    /// the ring if `takes_any`.
    fn next_leader(
        &self,
        shard: ShardId,
        placement: &Placement,
        takes_any: bool,
        now: BootInstant,
    ) -> Option<&MemberIdentity> {
        let target = placement.target(shard).into_iter();
        let others = placement.takers(shard).filter(|_| takes_any);
        let mut candidates = target.chain(others).filter(|pod_uid| !self.is_us(pod_uid));
        candidates.find_map(|pod_uid| self.ready_taker(pod_uid, now))
    }

    /// The incarnation of a member that may lead a shard now. Its last renewal must be recent: a shard that is transferred
    /// to a member that has ceased to run has no leader until the member is evicted.
    fn ready_taker(&self, pod_uid: &str, now: BootInstant) -> Option<&MemberIdentity> {
        let seen = self.view.seen_member(pod_uid)?;
        let is_recent = now.since(seen.changed_at) <= self.config.timing.trusted_age();
        let identity = self.taker(pod_uid)?.holder.member()?;
        (is_recent && self.can_transfer()).then_some(identity)
    }

    fn seal(&mut self, shard: ShardId, next_leader: Option<Box<str>>, now: BootInstant) {
        let (close_by, has_other_taker) = (self.close_by(now), self.has_other_taker());
        if let Some(led_shard) = self.led_shards.get_mut(&shard) {
            led_shard.handover = Handover::Closing {
                next_leader,
                has_other_taker,
            };
            let term = led_shard.term;
            self.effects.push(ElectionEffect::Seal(SealOrder {
                shard_term: ShardTerm { shard, term },
                close_by,
                has_other_taker,
            }));
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

    pub(super) fn sealed(
        &mut self,
        shard_term: ShardTerm,
        fired_through: Option<Timestamp>,
        written_through: Option<ResourceVersions>,
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

    /// Transfers every sealed shard with one write each.
    fn transfer_sealed(&mut self, now: BootInstant) {
        let busy = self.requests.busy_shards();
        let mut sealed = self.led_where(|led_shard| led_shard.phase() == ShardPhase::Sealed);
        sealed.retain(|shard| !busy.contains(*shard));
        let is_without_next_leader = |shard: &ShardId| self.chosen_next_leader(*shard, now).is_none();
        if sealed.iter().any(is_without_next_leader) {
            self.choose_again(&sealed, now);
        }
        for shard in sealed {
            self.transfer(shard, now);
        }
    }

    /// The chosen next leader of a shard, if it may still lead the shard.
    fn chosen_next_leader(&self, shard: ShardId, now: BootInstant) -> Option<&MemberIdentity> {
        self.ready_taker(self.led_shards.get(&shard)?.next_leader()?, now)
    }

    /// Chooses another next leader for each sealed shard whose chosen one left, fell silent or may not lead it any more.
    fn choose_again(&mut self, sealed: &[ShardId], now: BootInstant) {
        let placement = self.place(false, now);
        for shard in sealed.iter().copied() {
            let chosen = self.chosen_next_leader(shard, now);
            let chosen = chosen.or_else(|| self.next_leader(shard, &placement, true, now));
            let chosen = chosen.map(|identity| identity.pod_uid.clone());
            let led_shard = self.led_shards.get_mut(&shard);
            if let Some(Handover::Sealed { next_leader, .. }) = led_shard.map(|led_shard| &mut led_shard.handover) {
                *next_leader = chosen;
            }
        }
    }

    /// Transfers a sealed shard to its next leader, or to no holder.
    fn transfer(&mut self, shard: ShardId, now: BootInstant) {
        let handover = self.led_shards.get(&shard).map(|led_shard| &led_shard.handover);
        let Some(Handover::Sealed {
            next_leader,
            fired_through,
            written_through,
        }) = handover
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
            let retry_at = seen.retry_at;
            return self.wake_at(retry_at);
        }
        let holder = next_leader
            .as_deref()
            .and_then(|pod_uid| self.taker(pod_uid)?.holder.member());
        let fired_through = fired_through.map(|through| through.to_string());
        let write = LeaseWrite {
            holder: Some(holder.map(ToString::to_string).unwrap_or_default().into()),
            term: holder.is_some().then_some(Term(lease.term.0 + 1)),
            is_acquisition: holder.is_some(),
            ..LeaseWrite::to(LeaseKey::Shard(shard))
        }
        .annotate(
            annotation::WRITTEN_THROUGH,
            written_through.map(|through| through.to_string()),
        )
        .annotate(annotation::FIRED_THROUGH, fired_through);
        self.send(Purpose::Transfer, write, now);
    }
}
