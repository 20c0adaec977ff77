//! This replica's membership: its state, the instant until which the replica acts, and whether its view is trusted.

use std::{collections::VecDeque, time::Duration};

use jiff::Timestamp;

use super::{Election, ElectionEffect, Guards};
use crate::{
    coordination::{Incarnation, LeaseList, LeaseRecord, MemberLease},
    shard::{BootInstant, ShardSet},
};

/// Maximum number of renewals that are remembered as unseen or as failed: more than are sent within a fence. If an older
/// one is forgotten, the replica lists the Leases.
const RENEWALS_MAX: usize = 16;

/// The state of this replica's membership.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum MembershipState {
    /// Leases have not been listed in this incarnation.
    Listing,
    /// The member Lease is to be created or acquired.
    Joining {
        /// The instant at which the list was requested.
        view_as_of: BootInstant,
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

impl MembershipState {
    pub(super) fn active(&self) -> Option<&ActiveMembership> {
        if let MembershipState::Member(active) = self {
            Some(active)
        } else {
            None
        }
    }

    pub(super) fn active_mut(&mut self) -> Option<&mut ActiveMembership> {
        if let MembershipState::Member(active) = self {
            Some(active)
        } else {
            None
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
    /// The instant at which the last renewal that succeeded was sent.
    renewal_sent_at: BootInstant,
    /// The view contains everything that happened before this instant.
    view_as_of: BootInstant,
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
    /// Whether the last renewal that was sent says that this replica acts.
    pub(super) says_that_it_acts: bool,
    /// The instant of the last [`ElectionEffect::ActUntil`], unless [`ElectionEffect::Fence`] followed it.
    published_until: Option<BootInstant>,
}

impl ActiveMembership {
    /// An incarnation that begins with the successful write of its member Lease.
    pub(super) fn new(sent_at: BootInstant, from: BootInstant, view_as_of: BootInstant) -> ActiveMembership {
        ActiveMembership {
            renewal_sent_at: from,
            view_as_of,
            number: 1,
            unseen: VecDeque::from([Renewal { number: 1, sent_at }]),
            failed: VecDeque::new(),
            renewed_at: None,
            renew_at: sent_at,
            retry_at: sent_at,
            listed_again_at: None,
            is_established: false,
            says_that_it_acts: false,
            published_until: None,
        }
    }

    /// The instant until which this replica acts: one fence after the last successful renewal, or after the last one
    /// that the view contains if that is earlier.
    pub(super) fn act_until(&self, fence_after: Duration, guards: Guards) -> BootInstant {
        let from = if guards.fence_from_view {
            self.renewal_sent_at.min(self.view_as_of)
        } else {
            self.renewal_sent_at
        };
        from + fence_after
    }

    /// Records the renewal in this replica's Lease, or detects that another process wrote it. Such a renewal has a number
    /// that this process did not write, and another time. If a user edits the number, the time stays the same.
    fn detect_twin(&mut self, lease: &MemberLease) -> bool {
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

    /// A renewal succeeded: the fence counts from `from`, the instant at which it was sent.
    pub(super) fn succeeded(&mut self, from: BootInstant) {
        self.renewal_sent_at = self.renewal_sent_at.max(from);
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
            MembershipState::Listing => {
                self.membership = MembershipState::Joining {
                    view_as_of: requested_at,
                    retry_at: now,
                };
            }
            MembershipState::Joining { view_as_of, .. } => *view_as_of = (*view_as_of).max(requested_at),
            MembershipState::Member(active) => active.view_as_of = active.view_as_of.max(requested_at),
            MembershipState::Over | MembershipState::Gone => {}
        }
    }

    pub(super) fn rejoined(&mut self, incarnation: Incarnation) {
        if self.membership == MembershipState::Over {
            self.identity.incarnation = incarnation;
            self.membership = MembershipState::Listing;
            self.view.trusted_since = None;
            self.effects.push(ElectionEffect::Relist);
        }
    }

    /// Handles this replica's own Lease as delivered by the watch or a list: the view has reached that renewal.
    pub(super) fn observe_own_renewal(&mut self, record: &LeaseRecord, now: BootInstant) {
        if record.key != self.own_key() || *record.holder != *self.identity.to_string() {
            return;
        }
        let lease = MemberLease::read(record);
        let (number, accepts) = (lease.renewal, lease.takes_shards());
        let (is_first, guards) = (!self.sees_another_active(), self.guards());
        if let Some(active) = self.membership.active_mut()
            && let Some(renewal) = active.unseen.iter().find(|renewal| renewal.number == number).copied()
        {
            active.unseen.retain(|renewal| renewal.number > number);
            let from = guards.fence_from(renewal.sent_at, now);
            active.view_as_of = active.view_as_of.max(from);
            active.renewal_sent_at = active.renewal_sent_at.max(from);
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
                if active.detect_twin(lease) {
                    self.end(
                        MembershipState::Gone,
                        ElectionEffect::Exit("another process renews the Lease in the same incarnation"),
                    );
                }
            }
            Some(holder) if holder.pod_uid == self.identity.pod_uid => {
                self.end(
                    MembershipState::Gone,
                    ElectionEffect::Exit("a later process of the Pod holds the Lease"),
                );
            }
            _ => self.rejoin("its Lease names another holder, or none"),
        }
    }

    /// Ends the incarnation. Another one follows, unless this replica drains.
    pub(super) fn rejoin(&mut self, reason: &'static str) {
        if self.is_draining() {
            self.end(MembershipState::Gone, ElectionEffect::Left);
        } else {
            self.end(MembershipState::Over, ElectionEffect::Rejoin(reason));
        }
    }

    /// Ends the incarnation. It holds no shards any more, even if Leases still name it.
    pub(super) fn end(&mut self, membership: MembershipState, effect: ElectionEffect) {
        self.requests.forget_all();
        self.led_shards.clear();
        self.taking.clear();
        self.recreating = ShardSet::EMPTY;
        self.membership = membership;
        self.effects.push(effect);
    }

    /// Updates whether the view is trusted: the renewals succeed, and the watch delivers them.
    pub(super) fn refresh_trust(&mut self, now: BootInstant) {
        let age = self.config.timing.trusted_age();
        let is_recent = self
            .active()
            .is_some_and(|active| now.since(active.renewal_sent_at) <= age && now.since(active.view_as_of) <= age);
        let view = &mut self.view;
        view.trusted_since = is_recent.then(|| view.trusted_since.unwrap_or(now));
    }

    /// Publishes the fence; then joins, renews or leaves, one request at a time.
    pub(super) fn maintain_membership(&mut self, now: BootInstant) {
        self.publish_fence(now);
        let is_member = matches!(self.membership, MembershipState::Member(_) | MembershipState::Gone);
        if self.is_draining() && self.led_shards.is_empty() && !is_member {
            self.end(MembershipState::Gone, ElectionEffect::Left);
        }
        if self.requests.is_busy(&self.own_key()) {
            return;
        }
        match &self.membership {
            MembershipState::Joining { retry_at, .. } if *retry_at <= now => self.join(now),
            MembershipState::Joining { retry_at, .. } => self.wake_at(*retry_at),
            MembershipState::Member(active) => {
                let is_urgent = self.has_news(now) || self.may_leave();
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
            MembershipState::Listing | MembershipState::Over | MembershipState::Gone => {}
        }
    }

    /// Publishes the instant until which this replica acts, when it changes or has passed.
    fn publish_fence(&mut self, now: BootInstant) {
        let (fence_after, guards) = (self.fence_after(), self.guards());
        let Some(active) = self.membership.active_mut() else {
            return;
        };
        let until = active.act_until(fence_after, guards);
        if now < until {
            if active.published_until.replace(until) != Some(until) {
                self.effects.push(ElectionEffect::ActUntil(until));
            }
            self.wake_at(until);
        } else if active.published_until.take().is_some() {
            self.effects.push(ElectionEffect::Fence);
        }
    }

    /// Requests a list if the watch does not deliver this replica's renewals, to update the view before the fence.
    fn request_list(&mut self, now: BootInstant) {
        let age_max = self.fence_after() / 2;
        let timeout = self.config.timing.attempt_timeout;
        let Some(active) = self.membership.active_mut() else {
            return;
        };
        let last_times_out_at = active
            .listed_again_at
            .map_or(now, |requested_at| requested_at + timeout);
        let due_at = (active.view_as_of + age_max).max(last_times_out_at);
        if due_at > now {
            return self.wake_at(due_at);
        }
        active.listed_again_at = Some(now);
        self.effects.push(ElectionEffect::Relist);
        self.wake_at(now + timeout);
    }
}
