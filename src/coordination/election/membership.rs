//! Our own life: where it stands, until when we act, and how far our view can be trusted.

use std::{collections::VecDeque, time::Duration};

use super::{Election, ElectionEffect, Guards, LeaseView};
use crate::{
    coordination::{ExitReason, Incarnation, LeaseRecord, MemberLease, Plan, RejoinReason},
    shard::{BootInstant, ResourceVersion, ShardSet},
};

/// Renewals that are remembered, since the watch has not shown them or since they failed; more than are sent within a
/// fence. An older one that is forgotten costs a list and no more.
const RENEWALS_MAX: usize = 16;

/// Where our own Lease is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Membership {
    /// Leases have not been listed in this life.
    Listing,
    /// Ours is to be made, or made ours.
    Joining {
        /// When the list was asked for.
        seen_from: BootInstant,
        /// Before when it is not tried again.
        retry_at: BootInstant,
    },
    /// It is ours.
    Member(Box<ActiveMembership>),
    /// This life is over.
    Over,
    /// There will be no other.
    Gone,
}

impl Membership {
    pub(super) fn active(&self) -> Option<&ActiveMembership> {
        match self {
            Membership::Member(active) => Some(active),
            Membership::Listing | Membership::Joining { .. } | Membership::Over | Membership::Gone => None,
        }
    }

    pub(super) fn is_joined_or_joining(&self) -> bool {
        matches!(self, Membership::Joining { .. } | Membership::Member(_))
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    queue.push_back(item);
    if queue.len() > RENEWALS_MAX {
        queue.pop_front();
    }
}

/// What others can know of us, as it was last written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Published {
    pub(super) accepts: bool,
    pub(super) is_draining: bool,
    pub(super) plan: Plan,
    pub(super) warmed: ShardSet,
}

impl Published {
    /// Whether somebody waits for what is new in this; what is only gone from it can wait for the next renewal.
    pub(super) fn is_urgent(&self, former: &Published) -> bool {
        self.accepts != former.accepts
            || self.is_draining != former.is_draining
            || self
                .plan
                .0
                .iter()
                .any(|(shard, target)| former.plan.0.get(shard) != Some(target))
            || self.warmed.iter().any(|shard| !former.warmed.contains(shard))
    }
}

/// A renewal by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Renewal {
    number: u64,
    sent_at: BootInstant,
}

/// One life as a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ActiveMembership {
    pub(super) version: ResourceVersion,
    /// The send of the last renewal that is known to have succeeded.
    renewed_from: BootInstant,
    /// Our view holds everything that happened before this.
    seen_from: BootInstant,
    /// The number of the last renewal that was sent.
    number: u64,
    /// The number of the last one that was answered.
    acknowledged: u64,
    /// Renewals that may have succeeded and that the watch has not shown.
    unseen: VecDeque<Renewal>,
    /// Numbers of renewals that certainly did not succeed.
    failed: VecDeque<u64>,
    pub(super) renew_at: BootInstant,
    /// Before when nothing is written, since the last write had no answer.
    pub(super) retry_at: BootInstant,
    listed_again_at: Option<BootInstant>,
    pub(super) published: Published,
    /// Whether our watch showed that we take shards before it showed the same of a member with other settings. The watch
    /// shows every Lease in the order of the writes, so of two that differ only one can be.
    pub(super) is_established: bool,
    /// What [`ElectionEffect::ActUntil`] said last, and whether its passing has been told.
    told_until: Option<BootInstant>,
    is_fence_told: bool,
}

impl ActiveMembership {
    /// The life that begins with a Lease that was made ours by a write sent at an instant.
    pub(super) fn new(
        version: ResourceVersion,
        sent_at: BootInstant,
        from: BootInstant,
        seen_from: BootInstant,
    ) -> ActiveMembership {
        ActiveMembership {
            version,
            renewed_from: from,
            seen_from,
            number: 1,
            acknowledged: 1,
            unseen: VecDeque::from([Renewal { number: 1, sent_at }]),
            failed: VecDeque::new(),
            renew_at: sent_at,
            retry_at: sent_at,
            listed_again_at: None,
            published: Published::default(),
            is_established: false,
            told_until: None,
            is_fence_told: true,
        }
    }

    /// Until when we act: a renewal that succeeded, and a view that shows it, hold for as long as the fence says.
    pub(super) fn act_until(&self, fence_after: Duration, guards: Guards) -> BootInstant {
        let from = if guards.fence_from_view {
            self.renewed_from.min(self.seen_from)
        } else {
            self.renewed_from
        };
        from + fence_after
    }

    /// Whether a renewal with this number can be one of this process.
    fn knows(&self, number: u64) -> bool {
        number <= self.number && !self.failed.contains(&number)
    }

    /// A first renewal, or one more, is sent.
    pub(super) fn sent(&mut self, sent_at: BootInstant, interval: Duration) -> (u64, ResourceVersion) {
        self.number += 1;
        self.renew_at = sent_at + interval;
        let number = self.number;
        push_bounded(&mut self.unseen, Renewal { number, sent_at });
        (number, self.version)
    }

    /// A renewal certainly did not succeed.
    pub(super) fn failed(&mut self, number: u64) {
        self.unseen.retain(|renewal| renewal.number != number);
        push_bounded(&mut self.failed, number);
    }

    /// A renewal succeeded, and counts from this instant.
    pub(super) fn succeeded(&mut self, number: u64, from: BootInstant, version: ResourceVersion, published: Published) {
        self.version = self.version.max(version);
        self.renewed_from = self.renewed_from.max(from);
        self.acknowledged = self.acknowledged.max(number);
        self.published = published;
    }
}

impl Election {
    pub(super) fn listed(
        &mut self,
        asked_at: BootInstant,
        version: ResourceVersion,
        leases: &[LeaseRecord],
        now: BootInstant,
    ) {
        self.view.replace(version, leases, now);
        for record in leases {
            self.echoed(record, now);
        }
        let asked_at = if self.guards.fence_from_send { asked_at } else { now };
        match &mut self.membership {
            Membership::Listing => {
                self.membership = Membership::Joining {
                    seen_from: asked_at,
                    retry_at: now,
                };
            }
            Membership::Joining { seen_from, .. } => *seen_from = (*seen_from).max(asked_at),
            Membership::Member(active) => active.seen_from = active.seen_from.max(asked_at),
            Membership::Over | Membership::Gone => {}
        }
    }

    pub(super) fn rejoined(&mut self, incarnation: Incarnation, now: BootInstant) {
        if self.membership == Membership::Over {
            self.identity.incarnation = incarnation;
            self.membership = Membership::Listing;
            self.view.is_connected = false;
            self.view.trusted_since = None;
            self.is_synced = false;
            self.last_handled = Some(now);
            self.effects.push(ElectionEffect::Relist);
        }
    }

    /// The watch or a list shows our own Lease: it has caught up with the renewal that it shows.
    pub(super) fn echoed(&mut self, record: &LeaseRecord, now: BootInstant) {
        if record.key != self.own_key() || *record.holder != *self.identity.to_string() {
            return;
        }
        let lease = MemberLease::read(record, self.config.installation.shard_count);
        let (number, accepts) = (lease.renewal, lease.accepts());
        let is_first = self.is_without_other_settings();
        if let Membership::Member(active) = &mut self.membership
            && let Some(shown) = active.unseen.iter().find(|renewal| renewal.number == number).copied()
        {
            active.unseen.retain(|renewal| renewal.number > number);
            active.acknowledged = active.acknowledged.max(number);
            let from = if self.guards.fence_from_send {
                shown.sent_at
            } else {
                now
            };
            active.seen_from = active.seen_from.max(from);
            active.renewed_from = active.renewed_from.max(from);
            active.is_established = accepts && (active.is_established || is_first);
        }
    }

    /// Looks at our own Lease as it was last seen: whether it is ours still, and at which version.
    pub(super) fn judge_own_lease(&mut self) {
        let Membership::Member(active) = &mut self.membership else {
            return;
        };
        let Some(seen) = self.view.members.get(&self.config.pod_uid) else {
            return self.end_life(RejoinReason::LeaseDeleted);
        };
        if seen.lease.holder.is(&self.identity) {
            if !active.knows(seen.lease.renewal) {
                return self.exit(ExitReason::Twin);
            }
            active.version = active.version.max(seen.lease.resource_version);
            return;
        }
        match seen.lease.holder.member() {
            Some(other) if other.pod_uid == self.identity.pod_uid => self.exit(ExitReason::Superseded),
            _ => self.end_life(RejoinReason::Evicted),
        }
    }

    /// Ends this life: nothing that it held is ours any more, whatever Leases say.
    pub(super) fn end_life(&mut self, reason: RejoinReason) {
        self.drop_everything();
        if self.is_draining() {
            self.membership = Membership::Gone;
            self.effects.push(ElectionEffect::Left);
        } else {
            self.membership = Membership::Over;
            self.effects.push(ElectionEffect::Rejoin(reason));
        }
    }

    fn exit(&mut self, reason: ExitReason) {
        self.drop_everything();
        self.membership = Membership::Gone;
        self.effects.push(ElectionEffect::Exit(reason));
    }

    pub(super) fn drop_everything(&mut self) {
        self.requests.forget_all();
        self.led_shards.clear();
        self.taking.clear();
        self.warming.clear();
        self.recreating = ShardSet::EMPTY;
    }

    /// Says whether silence of others means anything: our watch goes on, and it and our renewals are recent.
    pub(super) fn refresh_trust(&mut self, now: BootInstant) {
        let age = self.config.timing.trusted_age();
        let is_recent = self
            .active()
            .is_some_and(|active| now.since(active.renewed_from) <= age && now.since(active.seen_from) <= age);
        let LeaseView {
            is_connected,
            trusted_since,
            ..
        } = &mut self.view;
        *trusted_since = (*is_connected && is_recent).then(|| trusted_since.unwrap_or(now));
    }

    /// Joins, renews, tells the fence, leaves.
    pub(super) fn live(&mut self, now: BootInstant) {
        self.tell_fence(now);
        if self.is_draining()
            && self.led_shards.is_empty()
            && !matches!(self.membership, Membership::Member(_) | Membership::Gone)
        {
            self.drop_everything();
            self.membership = Membership::Gone;
            self.effects.push(ElectionEffect::Left);
        }
        if self.requests.is_own_busy() {
            return;
        }
        match &self.membership {
            Membership::Joining { retry_at, .. } => {
                let retry_at = *retry_at;
                if retry_at <= now {
                    self.join(now);
                } else {
                    self.wake_at(retry_at);
                }
            }
            Membership::Member(active) => {
                let is_urgent = self.publication().is_urgent(&active.published) || self.may_leave();
                let at = if is_urgent { now } else { active.renew_at }.max(active.retry_at);
                self.ask_for_a_list(now);
                if at > now {
                    self.wake_at(at);
                } else if self.may_leave() {
                    self.leave(now);
                } else {
                    self.renew(now);
                }
            }
            Membership::Listing | Membership::Over | Membership::Gone => {}
        }
    }

    fn tell_fence(&mut self, now: BootInstant) {
        let (fence_after, guards) = (self.fence_after(), self.guards);
        let Membership::Member(active) = &mut self.membership else {
            return;
        };
        let until = active.act_until(fence_after, guards);
        if now < until {
            if active.told_until != Some(until) {
                active.told_until = Some(until);
                active.is_fence_told = false;
                self.effects.push(ElectionEffect::ActUntil(until));
            }
            self.wakeup = self.wakeup.min(until);
        } else if !active.is_fence_told {
            active.is_fence_told = true;
            self.effects.push(ElectionEffect::Fence);
        }
    }

    /// Our watch shows nothing of our renewals: a list brings the view up to date before the fence does harm.
    fn ask_for_a_list(&mut self, now: BootInstant) {
        let patience = self.fence_after() / 2;
        let timeout = self.config.timing.parts().attempt_timeout;
        let Membership::Member(active) = &mut self.membership else {
            return;
        };
        let due = (active.seen_from + patience).max(active.listed_again_at.map_or(now, |asked| asked + timeout));
        if due <= now {
            active.listed_again_at = Some(now);
            self.effects.push(ElectionEffect::Relist);
        }
        self.wakeup = self.wakeup.min(if due <= now { now + timeout } else { due });
    }
}
