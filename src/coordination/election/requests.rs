//! Lease requests: those in flight with their purposes and time-outs, the sending of new ones, and their answers.

use std::{collections::BTreeMap, time::Duration};

use super::{Election, membership::MembershipState};
use crate::{
    coordination::{ElectionEffect, LeaseAnswer, LeaseKey, LeaseRecord, LeaseWrite, RequestId},
    shard::{BootInstant, ResourceVersion, ShardId, ShardSet},
};

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// Acquire this replica's member Lease.
    Join,
    /// Renew it; renewals are numbered.
    Renew { number: u64 },
    /// Give it up.
    Leave,
    /// Acquire a shard.
    Take,
    /// Transfer a shard to its next leader, or to no holder.
    Transfer,
    /// Evict a member.
    Evict,
    /// Read a Lease whose last write failed or has no known outcome.
    Read,
    /// Read the Lease of a silent member, to evict the member if the version is still the last observed one.
    ReadToEvict(ResourceVersion),
}

/// A request in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pending {
    pub(super) key: LeaseKey,
    pub(super) purpose: Purpose,
    pub(super) sent_at: BootInstant,
}

impl Pending {
    fn shard(&self) -> Option<ShardId> {
        match self.key {
            LeaseKey::Shard(shard) => Some(shard),
            LeaseKey::Member(_) => None,
        }
    }
}

/// All requests in flight; at most one for each Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Requests {
    last: u64,
    pending: BTreeMap<RequestId, Pending>,
}

impl Requests {
    /// Records a request that is sent.
    fn sent(&mut self, key: LeaseKey, purpose: Purpose, sent_at: BootInstant) -> RequestId {
        self.last += 1;
        let request = RequestId(self.last);
        self.pending.insert(request, Pending { key, purpose, sent_at });
        request
    }

    /// Removes and returns the requests that have timed out.
    pub(super) fn expire(&mut self, now: BootInstant, timeout: Duration) -> Vec<Pending> {
        let late = self
            .pending
            .extract_if(.., |_, pending| now >= pending.sent_at + timeout);
        late.map(|(_, pending)| pending).collect()
    }

    /// The instant at which the next request times out.
    pub(super) fn next_expiry(&self, timeout: Duration) -> Option<BootInstant> {
        self.pending.values().map(|pending| pending.sent_at + timeout).min()
    }

    /// Whether a request on this Lease is in flight.
    pub(super) fn is_busy(&self, key: &LeaseKey) -> bool {
        self.pending.values().any(|pending| pending.key == *key)
    }

    /// The shards with requests in flight.
    pub(super) fn busy_shards(&self) -> ShardSet {
        self.pending.values().filter_map(Pending::shard).collect()
    }

    /// The shards with requests in flight to acquire them.
    pub(super) fn requested_shards(&self) -> ShardSet {
        let takes = self.pending.values().filter(|pending| pending.purpose == Purpose::Take);
        takes.filter_map(Pending::shard).collect()
    }

    /// Forgets all requests; later responses belong to a former incarnation.
    pub(super) fn forget_all(&mut self) {
        self.pending.clear();
    }
}

impl Election {
    /// Sends a write that is based on the known version of its Lease. A Lease that is not known is created.
    pub(super) fn send(&mut self, purpose: Purpose, write: LeaseWrite, now: BootInstant) {
        let precondition = self.view.version_of(&write.key);
        let request = self.requests.sent(write.key.clone(), purpose, now);
        self.effects.push(ElectionEffect::Write {
            request,
            precondition,
            write,
        });
    }

    /// Deletes a Lease that still has its known version.
    pub(super) fn send_delete(&mut self, purpose: Purpose, key: LeaseKey, now: BootInstant) {
        if let Some(precondition) = self.view.version_of(&key) {
            let request = self.requests.sent(key.clone(), purpose, now);
            self.effects.push(ElectionEffect::Delete {
                request,
                precondition,
                key,
            });
        }
    }

    /// Reads a Lease from the quorum.
    pub(super) fn send_read(&mut self, purpose: Purpose, key: LeaseKey, now: BootInstant) {
        let request = self.requests.sent(key.clone(), purpose, now);
        self.effects.push(ElectionEffect::Read { request, key });
    }

    /// Handles the response to a request.
    pub(super) fn answered(&mut self, request: RequestId, answer: &LeaseAnswer, now: BootInstant) {
        let Some(pending) = self.requests.pending.remove(&request) else {
            return;
        };
        match answer {
            LeaseAnswer::Done(record) => self.done(&pending, record, now),
            LeaseAnswer::Missing => self.view.missing(&pending.key, now),
            LeaseAnswer::Conflict | LeaseAnswer::Exists => self.conflicted(&pending, now),
            LeaseAnswer::Unknown => self.unanswered(&pending, now),
            LeaseAnswer::Refused => self.retry_later(&pending.key, now),
        }
    }

    fn done(&mut self, pending: &Pending, record: &LeaseRecord, now: BootInstant) {
        if pending.purpose != Purpose::Leave {
            self.view.apply(record, Some(pending.sent_at), now);
        }
        match (pending.purpose, &pending.key) {
            (Purpose::Join, _) => self.joined(record, pending.sent_at, now),
            (Purpose::Renew { .. }, _) => self.renewed(pending.sent_at, now),
            (Purpose::Leave, _) => self.end(MembershipState::Gone, ElectionEffect::Left),
            (Purpose::Read, key) => self.renew_soon_after_reading(key, now),
            (Purpose::ReadToEvict(version), LeaseKey::Member(victim)) if record.resource_version == version => {
                self.evict(victim, now);
            }
            (Purpose::Take | Purpose::Transfer | Purpose::Evict | Purpose::ReadToEvict(_), _) => {}
        }
    }

    /// Handles a write that failed because the view is behind. The Lease is read. If it belongs to another member, the
    /// next attempt to evict that member waits instead.
    fn conflicted(&mut self, pending: &Pending, now: BootInstant) {
        if let (Purpose::Renew { number }, Some(active)) = (pending.purpose, self.membership.active_mut()) {
            active.failed(number);
        }
        match &pending.key {
            LeaseKey::Member(pod_uid) if !self.is_us(pod_uid) => self.retry_later(&pending.key, now),
            LeaseKey::Member(_) | LeaseKey::Shard(_) => self.send_read(Purpose::Read, pending.key.clone(), now),
        }
    }

    /// Handles a request without a usable response in time. A write to a shard Lease may have been executed, so that
    /// Lease is read.
    pub(super) fn unanswered(&mut self, pending: &Pending, now: BootInstant) {
        if matches!(pending.key, LeaseKey::Shard(_)) && pending.purpose != Purpose::Read {
            self.send_read(Purpose::Read, pending.key.clone(), now);
        } else {
            self.retry_later(&pending.key, now);
        }
    }

    fn retry_later(&mut self, key: &LeaseKey, now: BootInstant) {
        if *key == self.own_key() {
            self.retry_own_write(now);
        } else {
            self.view.set_retry_at(key, now + self.config.timing.attempt_timeout);
        }
    }
}
