//! Writes this replica's member Lease: joining, renewing, leaving, and the data published in it.

use jiff::SignedDuration;

use super::{
    Election, LeaseKey, Purpose,
    membership::{ActiveMembership, MembershipState},
};
use crate::{
    coordination::{Acceptance, JobsLabelled, LeaseRecord, LeaseWrite, MemberLease, MemberSettings, annotation},
    shard::{BootInstant, ShardSet},
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

    /// The shards that this replica has loaded for a handover.
    fn loaded(&self) -> ShardSet {
        let loaded = self.loading.iter().filter(|(_, is_loaded)| **is_loaded);
        loaded.map(|(shard, _)| *shard).collect()
    }

    /// Whether other members wait for a change that this replica has not published. Mere removals can wait for the next
    /// renewal.
    pub(super) fn has_news(&self) -> bool {
        let Some(published) = self.own_lease() else {
            return false;
        };
        (self.own_acceptance() == Acceptance::Now) != published.takes_shards()
            || self.is_draining() != published.is_draining
            || self
                .plan()
                .0
                .iter()
                .any(|(shard, next_leader)| published.plan.0.get(shard) != Some(next_leader))
            || !self.loaded().is_within(&published.loaded)
    }

    /// The whole content of this replica's member Lease.
    fn own_write(&self, number: u64) -> LeaseWrite {
        let config = &self.config;
        let flag = |is_set: bool| is_set.then_some("true");
        let text = |text: String| (!text.is_empty()).then_some(text);
        let loaded = self.loaded();
        let loaded = (!loaded.is_empty()).then(|| loaded.to_hex(config.installation.shard_count));
        LeaseWrite {
            holder: Some(self.identity.to_string().into()),
            duration_secs: Some(config.timing.duration_secs()),
            is_renewal: true,
            ..LeaseWrite::to(self.own_key())
        }
        .annotate(annotation::RENEWAL, Some(number.to_string()))
        .annotate(annotation::PROTOCOL, Some(config.protocol.to_string()))
        .annotate(annotation::REVISION, Some(config.revision.clone()))
        .annotate(annotation::INSTALLATION, Some(self.own_installation.clone()))
        .annotate(annotation::SETTINGS, Some(config.settings.to_string()))
        .annotate(annotation::ACCEPTS, self.own_acceptance().text())
        .annotate(annotation::DRAINING, flag(self.is_draining()))
        .annotate(annotation::LEADS, flag(!self.led_shards.is_empty()))
        .annotate(annotation::GENESIS, flag(self.view.is_genesis))
        .annotate(annotation::PLAN, text(self.plan().to_text()))
        .annotate(annotation::LOADED, loaded)
        .annotate(
            annotation::JOBS_LABELLED,
            self.jobs_labelled().map(|proof| proof.to_string()),
        )
        .annotate(annotation::EVICTED_BY, None::<&str>)
    }

    /// The latest proof in the view that every Job of a CronJob has its label. A proof of another member counts if
    /// both have the same settings and so the same Jobs. A replica that runs alone creates Jobs without a label, so a
    /// proof counts only if it is later than the last Lease of such a replica.
    pub fn jobs_labelled(&self) -> Option<JobsLabelled> {
        let leases = || self.view.members().map(|(_, lease)| lease);
        let is_alike = |lease: &&MemberLease| {
            lease.installation == self.own_installation && lease.settings.as_ref() == Some(&self.config.settings)
        };
        let proofs = leases().filter(is_alike).filter_map(|lease| lease.jobs_labelled);
        let latest = proofs.chain(self.jobs_labelled).max()?;
        let is_alone = |lease: &&MemberLease| lease.settings.as_ref().is_some_and(MemberSettings::is_alone);
        let ends = leases().filter(is_alone).filter_map(|lease| {
            let duration = SignedDuration::from_secs(lease.duration_secs.into());
            lease.renewed_at?.checked_add(duration).ok()
        });
        (ends.max() < Some(latest.at)).then_some(latest)
    }

    pub(super) fn join(&mut self, now: BootInstant) {
        let write = LeaseWrite {
            is_acquisition: true,
            ..self.own_write(1)
        };
        self.send(Purpose::Join, write, now);
    }

    pub(super) fn renew(&mut self, now: BootInstant) {
        let interval = self.config.timing.renew_interval;
        if let Some(active) = self.membership.active_mut() {
            let number = active.sent(now, interval);
            self.send(Purpose::Renew { number }, self.own_write(number), now);
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
            .annotate(annotation::ACCEPTS, None::<&str>);
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
