//! This replica's membership: its state, the instant until which the replica acts, and whether its view is trusted.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

use super::{Election, ElectionEffect, Guards};
use crate::{
    coordination::{Incarnation, LeaseList, LeaseRecord, MemberLease},
    shard::{BootInstant, ShardSet},
};

/// The most renewals that are remembered because the watch has not delivered them or because they failed; more than are
/// sent within a fence. A forgotten older one only costs a list.
const RENEWALS_MAX: usize = 16;

/// The state of this replica's membership.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Membership {
    /// Leases have not been listed in this incarnation.
    Listing,
    /// The member Lease is to be created or acquired.
    Joining {
        /// The instant at which the list was requested.
        seen_from: BootInstant,
        /// The earliest instant of the next attempt.
        retry_at: BootInstant,
    },
    /// This replica holds its member Lease.
    Member(Box<ActiveMembership>),
    /// The incarnation has ended.
    Over,
    /// The membership has ended for good.
    Gone,
}

impl Membership {
    pub(super) fn active(&self) -> Option<&ActiveMembership> {
        match self {
            Membership::Member(active) => Some(active),
            Membership::Listing | Membership::Joining { .. } | Membership::Over | Membership::Gone => None,
        }
    }

    pub(super) fn active_mut(&mut self) -> Option<&mut ActiveMembership> {
        match self {
            Membership::Member(active) => Some(active),
            Membership::Listing | Membership::Joining { .. } | Membership::Over | Membership::Gone => None,
        }
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    queue.push_back(item);
    if queue.len() > RENEWALS_MAX {
        queue.pop_front();
    }
}

/// A renewal by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Renewal {
    number: u64,
    sent_at: BootInstant,
}

/// One incarnation as a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ActiveMembership {
    /// The send time of the last renewal that succeeded.
    renewed_from: BootInstant,
    /// The view contains everything that happened before this instant.
    seen_from: BootInstant,
    /// The number of the last renewal that was sent.
    number: u64,
    /// Renewals that may have succeeded and that the watch has not delivered.
    unseen: VecDeque<Renewal>,
    /// Numbers of renewals that certainly failed.
    failed: VecDeque<u64>,
    /// The time of the last observed renewal of this process, as its Lease has it.
    renewed_at: Option<Timestamp>,
    pub(super) renew_at: BootInstant,
    /// The earliest instant of the next write after a write without a response.
    pub(super) retry_at: BootInstant,
    listed_again_at: Option<BootInstant>,
    /// Whether this replica's watch delivered its own announcement before that of any member with other settings. The
    /// watch delivers every Lease in the order of the writes, so of two that differ only one can be established.
    pub(super) is_established: bool,
    /// The instant of the last [`ElectionEffect::ActUntil`], unless [`ElectionEffect::Fence`] followed it.
    sent_until: Option<BootInstant>,
}

impl ActiveMembership {
    /// An incarnation that begins with the successful write of its member Lease.
    pub(super) fn new(sent_at: BootInstant, from: BootInstant, seen_from: BootInstant) -> ActiveMembership {
        ActiveMembership {
            renewed_from: from,
            seen_from,
            number: 1,
            unseen: VecDeque::from([Renewal { number: 1, sent_at }]),
            failed: VecDeque::new(),
            renewed_at: None,
            renew_at: sent_at,
            retry_at: sent_at,
            listed_again_at: None,
            is_established: false,
            sent_until: None,
        }
    }

    /// The instant until which this replica acts: one fence after the last successful renewal, or after the last one
    /// that the view contains if that is earlier.
    pub(super) fn act_until(&self, fence_after: Duration, guards: Guards) -> BootInstant {
        let from = if guards.fence_from_view {
            self.renewed_from.min(self.seen_from)
        } else {
            self.renewed_from
        };
        from + fence_after
    }

    /// Whether another process wrote the renewal in this replica's Lease. Such a renewal has a
    /// number that this process did not write, and another time. If a user edits the number, the time stays the same.
    fn is_of_twin(&mut self, lease: &MemberLease) -> bool {
        let may_be_ours = lease.renewal <= self.number && !self.failed.contains(&lease.renewal);
        if may_be_ours {
            self.renewed_at = lease.renewed_at;
        }
        lease.renewed_at != self.renewed_at
    }

    /// Records a renewal that is sent; returns its number.
    pub(super) fn sent(&mut self, sent_at: BootInstant, interval: Duration) -> u64 {
        self.number += 1;
        self.renew_at = sent_at + interval;
        let number = self.number;
        push_bounded(&mut self.unseen, Renewal { number, sent_at });
        number
    }

    /// Records a renewal that certainly failed.
    pub(super) fn failed(&mut self, number: u64) {
        self.unseen.retain(|renewal| renewal.number != number);
        push_bounded(&mut self.failed, number);
    }

    /// Counts the fence from `from` after a renewal succeeded.
    pub(super) fn succeeded(&mut self, from: BootInstant) {
        self.renewed_from = self.renewed_from.max(from);
    }
}

impl Election {
    pub(super) fn listed(&mut self, requested_at: BootInstant, list: &LeaseList, now: BootInstant) {
        self.view.replace(list, now);
        for record in &list.leases {
            self.observe_own_renewal(record, now);
        }
        let requested_at = self.guards().fence_from(requested_at, now);
        match &mut self.membership {
            Membership::Listing => {
                self.membership = Membership::Joining {
                    seen_from: requested_at,
                    retry_at: now,
                };
            }
            Membership::Joining { seen_from, .. } => *seen_from = (*seen_from).max(requested_at),
            Membership::Member(active) => active.seen_from = active.seen_from.max(requested_at),
            Membership::Over | Membership::Gone => {}
        }
    }

    pub(super) fn rejoined(&mut self, incarnation: Incarnation) {
        if self.membership == Membership::Over {
            self.identity.incarnation = incarnation;
            self.membership = Membership::Listing;
            self.view.trusted_since = None;
            self.effects.push(ElectionEffect::Relist);
        }
    }

    /// Handles this replica's own Lease as delivered by the watch or a list: the view has reached that renewal.
    pub(super) fn observe_own_renewal(&mut self, record: &LeaseRecord, now: BootInstant) {
        if record.key != self.own_key() || *record.holder != *self.identity.to_string() {
            return;
        }
        let lease = MemberLease::read(record, self.config.installation.shard_count);
        let (number, accepts) = (lease.renewal, lease.accepts());
        let (is_first, guards) = (!self.sees_another_active(), self.guards());
        if let Some(active) = self.membership.active_mut()
            && let Some(renewal) = active.unseen.iter().find(|renewal| renewal.number == number).copied()
        {
            active.unseen.retain(|renewal| renewal.number > number);
            let from = guards.fence_from(renewal.sent_at, now);
            active.seen_from = active.seen_from.max(from);
            active.renewed_from = active.renewed_from.max(from);
            active.is_established = accepts && (active.is_established || is_first);
        }
    }

    /// This replica's own Lease, if the replica holds it.
    pub(super) fn own_lease(&self) -> Option<&MemberLease> {
        let lease = self.view.member(&self.config.pod_uid)?;
        lease.holder.is(&self.identity).then_some(lease)
    }

    /// Checks whether this replica still holds its own Lease as last observed.
    pub(super) fn judge_own_lease(&mut self) {
        let Some(active) = self.membership.active_mut() else {
            return;
        };
        let Some(lease) = self.view.member(&self.config.pod_uid) else {
            return self.rejoin("its Lease was deleted");
        };
        match lease.holder.member() {
            Some(holder) if *holder == self.identity => {
                if active.is_of_twin(lease) {
                    self.end(
                        Membership::Gone,
                        ElectionEffect::Exit("another process renews the Lease in the same incarnation"),
                    );
                }
            }
            Some(holder) if holder.pod_uid == self.identity.pod_uid => {
                self.end(
                    Membership::Gone,
                    ElectionEffect::Exit("a later process of the Pod holds the Lease"),
                );
            }
            _ => self.rejoin("its Lease names another holder, or none"),
        }
    }

    /// Ends the incarnation. Another one follows, unless this replica drains.
    pub(super) fn rejoin(&mut self, reason: &'static str) {
        if self.is_draining() {
            self.end(Membership::Gone, ElectionEffect::Left);
        } else {
            self.end(Membership::Over, ElectionEffect::Rejoin(reason));
        }
    }

    /// Ends the incarnation. It holds no shards any more, even if Leases still name it.
    pub(super) fn end(&mut self, membership: Membership, effect: ElectionEffect) {
        self.requests.forget_all();
        self.led_shards.clear();
        self.taking.clear();
        self.loading.clear();
        self.recreating = ShardSet::EMPTY;
        self.membership = membership;
        self.effects.push(effect);
    }

    /// Updates whether the view is trusted: the renewals succeed, and the watch delivers them.
    pub(super) fn refresh_trust(&mut self, now: BootInstant) {
        let age = self.config.timing.trusted_age();
        let is_recent = self
            .active()
            .is_some_and(|active| now.since(active.renewed_from) <= age && now.since(active.seen_from) <= age);
        let view = &mut self.view;
        view.trusted_since = is_recent.then(|| view.trusted_since.unwrap_or(now));
    }

    /// Joins, renews, moves the fence, and leaves.
    pub(super) fn maintain_membership(&mut self, now: BootInstant) {
        self.emit_fence(now);
        if self.is_draining()
            && self.led_shards.is_empty()
            && !matches!(self.membership, Membership::Member(_) | Membership::Gone)
        {
            self.end(Membership::Gone, ElectionEffect::Left);
        }
        if self.requests.is_busy(&self.own_key()) {
            return;
        }
        match &self.membership {
            Membership::Joining { retry_at, .. } if *retry_at <= now => self.join(now),
            Membership::Joining { retry_at, .. } => self.wake_at(*retry_at),
            Membership::Member(active) => {
                let is_urgent = self.has_news() || self.may_leave();
                let at = if is_urgent { now } else { active.renew_at }.max(active.retry_at);
                self.request_list(now);
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

    fn emit_fence(&mut self, now: BootInstant) {
        let (fence_after, guards) = (self.fence_after(), self.guards());
        let Some(active) = self.membership.active_mut() else {
            return;
        };
        let until = active.act_until(fence_after, guards);
        if now < until {
            if active.sent_until.replace(until) != Some(until) {
                self.effects.push(ElectionEffect::ActUntil(until));
            }
            self.wake_at(until);
        } else if active.sent_until.take().is_some() {
            self.effects.push(ElectionEffect::Fence);
        }
    }

    /// Requests a list if the watch does not deliver this replica's renewals, to update the view before the fence.
    fn request_list(&mut self, now: BootInstant) {
        let patience = self.fence_after() / 2;
        let timeout = self.config.timing.attempt_timeout;
        let Some(active) = self.membership.active_mut() else {
            return;
        };
        let due =
            (active.seen_from + patience).max(active.listed_again_at.map_or(now, |requested| requested + timeout));
        if due <= now {
            active.listed_again_at = Some(now);
            self.effects.push(ElectionEffect::Relist);
        }
        self.wake_at(if due <= now { now + timeout } else { due });
    }
}
