//! Writes this replica's member Lease: joining, renewing, leaving, and the data published in it.

use super::{
    Election, LeaseKey, Purpose,
    led_shard::LedShard,
    membership::{ActiveMembership, MembershipState},
};
use crate::{
    coordination::{ACTS_LABEL, Acceptance, LeaseRecord, LeaseWrite, annotation},
    shard::{BootInstant, ShardPhase},
};

impl Election {
    /// Whether this replica takes shards.
    pub(super) fn own_acceptance(&self) -> Acceptance {
        if self.is_leaving() {
            Acceptance::No
        } else if self.is_synced {
            Acceptance::Now
        } else {
            Acceptance::Soon
        }
    }

    /// Whether other members, or the policy against the built-in controller, wait for a change that this replica has not
    /// published. Mere removals can wait for the next renewal.
    pub(super) fn has_news(&self, now: BootInstant) -> bool {
        let Some(published) = self.own_lease() else {
            return false;
        };
        (self.own_acceptance() == Acceptance::Now) != published.takes_shards()
            || self.is_draining() != published.is_draining
            || self.begins_to_act(now)
    }

    /// Whether this replica acts, and its last renewal did not say so. Until it does, the built-in controller writes too.
    fn begins_to_act(&self, now: BootInstant) -> bool {
        self.active().is_some_and(|active| !active.says_that_it_acts) && self.acts(now)
    }

    /// Whether this replica starts Jobs: it leads a shard that is not sealed, is not fenced, may create Jobs, and its clock
    /// is not in doubt.
    fn acts(&self, now: BootInstant) -> bool {
        let is_sealed = |led_shard: &LedShard| led_shard.phase() == ShardPhase::Sealed;
        self.is_clock_trusted && self.may_start && self.may_act(now) && !self.led_shards.values().all(is_sealed)
    }

    /// The whole content of this replica's member Lease.
    fn own_write(&self, number: u64, now: BootInstant) -> LeaseWrite {
        let config = &self.config;
        let flag = |is_set: bool| is_set.then_some("true");
        LeaseWrite {
            holder: Some(self.identity.to_string().into()),
            duration_secs: Some(config.timing.duration_secs()),
            is_renewal: true,
            ..LeaseWrite::to(self.own_key())
        }
        .annotate(annotation::RENEWAL, Some(number.to_string()))
        .annotate(annotation::PROTOCOL, Some(config.protocol.to_string()))
        .annotate(annotation::REVISION, Some(config.revision.clone()))
        .annotate(annotation::INSTALLATION, Some(self.config.installation.to_string()))
        .annotate(annotation::SETTINGS, Some(config.settings.to_string()))
        .annotate(annotation::ACCEPTS, self.own_acceptance().text())
        .annotate(annotation::DRAINING, flag(self.is_draining()))
        .label(ACTS_LABEL, flag(self.acts(now)))
        .annotate(annotation::GENESIS, flag(self.view.is_genesis))
        .annotate(annotation::EVICTED_BY, None::<&str>)
    }

    pub(super) fn join(&mut self, now: BootInstant) {
        let write = LeaseWrite {
            is_acquisition: true,
            ..self.own_write(1, now)
        };
        self.send(Purpose::Join, write, now);
    }

    pub(super) fn renew(&mut self, now: BootInstant) {
        let (interval, acts) = (self.config.timing.renew_interval, self.acts(now));
        if let Some(active) = self.membership.active_mut() {
            active.says_that_it_acts = acts;
            let number = active.sent(now, interval);
            self.send(Purpose::Renew { number }, self.own_write(number, now), now);
        }
    }

    /// Gives this replica's member Lease up. If shards remain that no member takes, the Lease stays, without a
    /// holder, and any later member may take these shards.
    pub(super) fn leave(&mut self, now: BootInstant) {
        let key = self.own_key();
        if self.led_shards.is_empty() {
            return self.send_delete(Purpose::Leave, key, now);
        }
        let write = LeaseWrite::without_holder(key)
            .annotate(annotation::DRAINING, Some("true"))
            .annotate(annotation::ACCEPTS, None::<&str>)
            .label(ACTS_LABEL, None);
        self.send(Purpose::Leave, write, now);
    }

    pub(super) fn joined(&mut self, record: &LeaseRecord, sent_at: BootInstant, now: BootInstant) {
        if let MembershipState::Joining { view_as_of, .. } = self.membership {
            let from = self.guards().fence_from(sent_at, now);
            let mut active = ActiveMembership::new(sent_at, from, view_as_of);
            active.renew_at = sent_at + self.config.timing.renew_interval;
            self.membership = MembershipState::Member(Box::new(active));
            // The watch may have delivered the Lease before the response.
            if self.view.has_observed(record.resource_version) {
                self.observe_own_renewal(record, now);
            }
        }
    }

    pub(super) fn renewed(&mut self, sent_at: BootInstant, now: BootInstant) {
        let from = self.guards().fence_from(sent_at, now);
        if let Some(active) = self.membership.active_mut() {
            active.succeeded(from);
        }
    }

    /// After a conflict this replica's Lease was read: the next write is based on the version that was read.
    pub(super) fn renew_soon_after_reading(&mut self, key: &LeaseKey, now: BootInstant) {
        let is_own = *key == self.own_key();
        if let Some(active) = self.membership.active_mut()
            && is_own
        {
            active.renew_at = active.renew_at.min(now);
        }
    }

    /// Retries soon after a request on this replica's Lease had no response: it may have been executed or not.
    pub(super) fn retry_own_write(&mut self, now: BootInstant) {
        let soon = now + self.config.timing.renew_interval / 4;
        match &mut self.membership {
            MembershipState::Joining { retry_at, .. } => *retry_at = soon,
            MembershipState::Member(active) => {
                active.renew_at = active.renew_at.min(soon);
                active.retry_at = soon;
            }
            MembershipState::Listing | MembershipState::Over | MembershipState::Gone => {}
        }
    }
}
