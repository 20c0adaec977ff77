//! Writes this replica's member Lease: joining, renewing, leaving, and the data published in it.

use super::{
    Election, ElectionEffect, LeaseKey, Purpose,
    membership::{ActiveMembership, Membership, Publication},
    requests::Pending,
};
use crate::{
    coordination::{Acceptance, LeaseRecord, LeaseWrite, WriteAnswer, annotation},
    shard::BootInstant,
};

impl Election {
    /// The data that this replica should publish.
    pub(super) fn publication(&self) -> Publication {
        Publication {
            accepts: self.is_synced && !self.is_leaving(),
            is_draining: self.is_draining(),
            plan: self.plan(),
            loaded: self
                .loading
                .iter()
                .filter(|(_, is_loaded)| **is_loaded)
                .map(|(shard, _)| *shard)
                .collect(),
        }
    }

    /// The whole content of this replica's member Lease.
    fn own_write(&self, number: u64, published: &Publication) -> LeaseWrite {
        let config = &self.config;
        let count = config.installation.shard_count;
        let flag = |is_set: bool| is_set.then_some("true");
        let text = |text: String| (!text.is_empty()).then_some(text);
        let acceptance = match (published.accepts, self.is_leaving()) {
            (true, _) => Acceptance::Now,
            (false, false) => Acceptance::Soon,
            (false, true) => Acceptance::No,
        };
        let loaded = (!published.loaded.is_empty()).then(|| published.loaded.to_hex(count));
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
        .annotate(annotation::ACCEPTS, acceptance.text())
        .annotate(annotation::DRAINING, flag(published.is_draining))
        .annotate(annotation::GENESIS, flag(self.view.is_genesis))
        .annotate(annotation::PLAN, text(published.plan.to_text()))
        .annotate(annotation::LOADED, loaded)
        .annotate(
            annotation::JOBS_LABELLED,
            self.jobs_labelled().map(|proof| proof.to_string()),
        )
        .annotate(annotation::EVICTED_BY, None::<&str>)
    }

    pub(super) fn join(&mut self, now: BootInstant) {
        let write = LeaseWrite {
            is_acquisition: true,
            ..self.own_write(1, &self.publication())
        };
        self.send(Purpose::Join, write, now);
    }

    pub(super) fn renew(&mut self, now: BootInstant) {
        let published = self.publication();
        let interval = self.config.timing.renew_interval;
        let Membership::Member(active) = &mut self.membership else {
            return;
        };
        let number = active.sent(now, interval);
        let write = self.own_write(number, &published);
        self.send(Purpose::Renew { number }, write, now);
    }

    /// Whether no shard is left to hand over.
    pub(super) fn may_leave(&self) -> bool {
        self.is_draining() && (self.led_shards.is_empty() || self.all_sealed_without_target())
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

    pub(super) fn own_write_answered(&mut self, pending: &Pending, answer: &WriteAnswer, now: BootInstant) {
        match (pending.purpose, answer) {
            (Purpose::Join, WriteAnswer::Done(record)) => self.joined(record, pending.sent_at, now),
            (Purpose::Renew { .. }, WriteAnswer::Done(_)) => self.renewed(pending.sent_at, now),
            (Purpose::Leave, WriteAnswer::Done(_)) => {
                self.drop_everything();
                self.membership = Membership::Gone;
                self.effects.push(ElectionEffect::Left);
            }
            (purpose, WriteAnswer::Conflict) => {
                if let (Purpose::Renew { number }, Membership::Member(active)) = (purpose, &mut self.membership) {
                    active.failed(number);
                }
                self.read_own(now);
            }
            (_, WriteAnswer::Exists) => self.read_own(now),
            (_, WriteAnswer::Missing) => self.view.missing(&self.own_key(), now),
            (_, WriteAnswer::Unknown | WriteAnswer::Refused) => self.retry_own_write(now),
            (_, WriteAnswer::Done(_)) => {}
        }
    }

    fn joined(&mut self, record: &LeaseRecord, sent_at: BootInstant, now: BootInstant) {
        if let Membership::Joining { seen_from, .. } = self.membership {
            let from = if self.guards().fence_from_send { sent_at } else { now };
            let mut active = ActiveMembership::new(sent_at, from, seen_from);
            active.renew_at = sent_at + self.config.timing.renew_interval;
            self.membership = Membership::Member(Box::new(active));
            // The watch may have delivered the Lease before the response.
            if self.view.has_observed(record.resource_version) {
                self.observe_own_renewal(record, now);
            }
        }
    }

    fn renewed(&mut self, sent_at: BootInstant, now: BootInstant) {
        let from = if self.guards().fence_from_send { sent_at } else { now };
        if let Membership::Member(active) = &mut self.membership {
            active.succeeded(from);
        }
    }

    fn read_own(&mut self, now: BootInstant) {
        self.send_read(Purpose::Read, self.own_key(), now);
    }

    /// After a conflict this replica's Lease was read: the next write is based on the version that was read.
    pub(super) fn renew_soon_after_reading(&mut self, key: &LeaseKey, now: BootInstant) {
        let is_own = *key == self.own_key();
        if let Membership::Member(active) = &mut self.membership
            && is_own
        {
            active.renew_at = active.renew_at.min(now);
        }
    }

    /// Retries soon after a request on this replica's Lease had no response: it may have been executed or not.
    pub(super) fn retry_own_write(&mut self, now: BootInstant) {
        let soon = now + self.config.timing.renew_interval / 4;
        match &mut self.membership {
            Membership::Joining { retry_at, .. } => *retry_at = soon,
            Membership::Member(active) => {
                active.renew_at = active.renew_at.min(soon);
                active.retry_at = soon;
            }
            Membership::Listing | Membership::Over | Membership::Gone => {}
        }
    }
}
