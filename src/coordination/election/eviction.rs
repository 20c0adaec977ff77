//! Eviction of silent members: when a member may be evicted, and which member evicts it first.

use std::time::Duration;

use super::{Election, LeaseKey, MemberIdentity, Purpose, lease_view::Seen};
use crate::{
    coordination::{LeaseWrite, MemberLease, annotation},
    shard::{BootInstant, fnv1a_64},
};

impl Election {
    /// Begins to evict every member that has been silent for its own advertised duration, once this replica's turn has
    /// come. Silence is measured by this replica's clock, and only while its watch works.
    pub(super) fn evict_silent(&mut self, now: BootInstant) {
        let candidates: Vec<(Box<str>, BootInstant)> = self
            .seen_others()
            .filter_map(|(pod_uid, seen)| Some((pod_uid.into(), self.evictable_at(pod_uid, seen)?)))
            .collect();
        for (pod_uid, at) in candidates {
            if at > now {
                self.wake_at(at);
            } else if !self.requests.is_busy(&LeaseKey::Member(pod_uid.clone())) {
                self.begin_eviction(pod_uid, now);
            }
        }
    }

    fn begin_eviction(&mut self, victim: Box<str>, now: BootInstant) {
        if !self.guards().quorum_read {
            return self.evict(&victim, now);
        }
        let key = LeaseKey::Member(victim);
        if let Some(version) = self.view.version_of(&key) {
            self.send_read(Purpose::ReadToEvict(version), key, now);
        }
    }

    /// The instant from which this replica may evict a member; `None` if the member's Lease has no holder, or the
    /// view is not trusted.
    fn evictable_at(&self, pod_uid: &str, seen: &Seen<MemberLease>) -> Option<BootInstant> {
        let lease = seen.lease.as_ref()?;
        let turn = self.eviction_turn(pod_uid, lease.holder.member()?);
        let silent_since = if self.guards().trusted_watch {
            seen.changed_at.max(self.view.trusted_since?)
        } else {
            seen.changed_at
        };
        let duration = if self.guards().wait_out_duration {
            Duration::from_secs(lease.duration_secs.into())
        } else {
            self.config.timing.renew_interval
        };
        let at = silent_since + duration + self.config.timing.stagger * turn;
        Some(at.max(seen.retry_at))
    }

    /// All other members as observed, of any installation, with or without a Lease.
    fn seen_others(&self) -> impl Iterator<Item = (&str, &Seen<MemberLease>)> {
        self.view.seen_members().filter(|(pod_uid, _)| !self.is_us(pod_uid))
    }

    /// The number of members that come before this replica in evicting an incarnation. The order depends on the victim.
    fn eviction_turn(&self, pod_uid: &str, victim: &MemberIdentity) -> u32 {
        let order = |other: &str| fnv1a_64(format!("{other} evicts {victim}").as_bytes());
        let ours = order(&self.config.pod_uid);
        let is_before = |(other, lease): &(&str, &MemberLease)| {
            *other != pod_uid && lease.holder.member().is_some() && order(other) < ours
        };
        let n_before = self.other_members().filter(is_before).count();
        u32::try_from(n_before).unwrap_or(u32::MAX)
    }

    /// Removes the holder from a member's Lease if the Lease is still unchanged.
    pub(super) fn evict(&mut self, victim: &str, now: BootInstant) {
        let Some(seen) = self.view.seen_member(victim) else {
            return;
        };
        if !self.may_act(now) || self.evictable_at(victim, seen).is_none_or(|at| at > now) {
            return;
        }
        let write = LeaseWrite::without_holder(LeaseKey::Member(victim.into()))
            .annotate(annotation::EVICTED_BY, Some(self.identity.to_string()));
        self.send(Purpose::Evict, write, now);
    }
}
