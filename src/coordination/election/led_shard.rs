//! The shards that this replica leads. The shard Lease is authoritative, and a led shard follows it.

use jiff::Timestamp;

use super::{Adoption, Election, ElectionEffect, LeaseKey, Purpose, WriteAnswer};
use crate::{
    coordination::StopReason,
    shard::{BootInstant, Entry, ResourceVersions, SealOrder, ShardCommand, ShardId, ShardPhase, ShardTerm, Term},
};

/// One uninterrupted leadership of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LedShard {
    pub(super) term: Term,
    pub(super) since: BootInstant,
    pub(super) handover: Handover,
}

/// The progress of a shard's handover. [`LedShard::phase`] returns the corresponding phase of the shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Handover {
    /// No handover is in progress.
    None,
    /// Announced to a target, which loads it. Former targets did not load it in time.
    Offered {
        target: Box<str>,
        since: BootInstant,
        passed_over: Vec<Box<str>>,
    },
    /// Acting until its pending requests are answered, then sealed. Without a target, the shard is released.
    Closing {
        target: Option<Box<str>>,
        /// Whether another member takes shards.
        has_next_leader: bool,
    },
    /// Sealed: the shard has fired its last slot and no longer acts.
    Sealed {
        target: Option<Box<str>>,
        fired_through: Option<Timestamp>,
        written_through: ResourceVersions,
    },
}

impl LedShard {
    /// The pod uid of the member to which the shard is handed over.
    pub(super) fn target(&self) -> Option<&str> {
        match &self.handover {
            Handover::None => None,
            Handover::Offered { target, .. } => Some(target),
            Handover::Closing { target, .. } | Handover::Sealed { target, .. } => target.as_deref(),
        }
    }

    /// The order to seal this shard.
    pub(super) fn seal_order(&self, shard: ShardId, close_by: BootInstant, has_next_leader: bool) -> ElectionEffect {
        ElectionEffect::Shards(ShardCommand::Seal(SealOrder {
            shard_term: ShardTerm { shard, term: self.term },
            close_by,
            has_next_leader,
        }))
    }

    pub(super) fn phase(&self) -> ShardPhase {
        match self.handover {
            Handover::None | Handover::Offered { .. } => ShardPhase::Leading,
            Handover::Closing { .. } => ShardPhase::Closing,
            Handover::Sealed { .. } => ShardPhase::Sealed,
        }
    }
}

impl Election {
    /// Begins and ends leaderships as the Leases require. While this replica may not act, no leadership begins.
    pub(super) fn follow_leases(&mut self, now: BootInstant) {
        if self.active().is_none() {
            return;
        }
        let may_begin = self.may_act(now) && self.is_synced;
        for shard in self.config.installation.shard_count.shards() {
            let lease = self.view.lease(shard);
            let is_deleted = lease.is_none();
            let ours = lease
                .filter(|lease| lease.holder.is(&self.identity))
                .map(|lease| lease.term);
            let led = self.led_shards.get(&shard).map(|led_shard| led_shard.term);
            match (ours, led) {
                (Some(term), Some(led)) if term == led => {}
                (Some(term), led) => {
                    if led.is_some() {
                        self.stop(shard, StopReason::Lost);
                    }
                    if may_begin {
                        self.begin(shard, term, now);
                    }
                }
                (None, Some(_)) if is_deleted => {
                    self.stop(shard, StopReason::LeaseDeleted);
                    self.recreating.insert(shard);
                }
                (None, Some(_)) => self.stop_as_handed_over(shard),
                (None, None) => {
                    if !is_deleted {
                        self.recreating.remove(shard);
                    }
                }
            }
        }
    }

    fn begin(&mut self, shard: ShardId, term: Term, now: BootInstant) {
        let lease = self.view.lease(shard);
        let written_through = lease.and_then(|lease| lease.written_through);
        let (adoption, entry) = match self.taking.remove(&shard) {
            Some((taken, adoption)) if taken == term => (adoption, Entry::List),
            _ => (Adoption::HandedOver, written_through.map_or(Entry::List, Entry::Watch)),
        };
        self.recreating.remove(shard);
        self.loading.remove(&shard);
        let led_shard = LedShard {
            term,
            since: now,
            handover: Handover::None,
        };
        self.led_shards.insert(shard, led_shard);
        self.effects.push(ElectionEffect::Lead {
            shard_term: ShardTerm { shard, term },
            adoption,
            entry,
        });
    }

    fn stop(&mut self, shard: ShardId, reason: StopReason) {
        if let Some(led_shard) = self.led_shards.remove(&shard) {
            let shard_term = ShardTerm {
                shard,
                term: led_shard.term,
            };
            self.effects.push(ElectionEffect::Stop { shard_term, reason });
        }
    }

    /// Ends a leadership whose Lease names another holder or none. The reason depends on the writer of that change.
    fn stop_as_handed_over(&mut self, shard: ShardId) {
        let stage = self.led_shards.get(&shard).map(|led_shard| &led_shard.handover);
        let holder = self.view.lease(shard).and_then(|lease| lease.holder.member());
        let reason = match (stage, holder) {
            (Some(Handover::Sealed { .. }), None) => StopReason::Released,
            (
                Some(Handover::Sealed {
                    target: Some(target), ..
                }),
                Some(holder),
            ) if holder.pod_uid == *target => StopReason::HandedOver,
            _ => StopReason::Lost,
        };
        self.stop(shard, reason);
    }

    /// Handles the response to a write to a shard's Lease. The view already contains a successful write. After a
    /// conflict or an unknown outcome the Lease is read, since the view may be behind or the write may have been
    /// executed.
    pub(super) fn shard_write_answered(&mut self, shard: ShardId, answer: &WriteAnswer, now: BootInstant) {
        match answer {
            WriteAnswer::Done(_) => {}
            WriteAnswer::Conflict | WriteAnswer::Exists | WriteAnswer::Unknown => self.read_shard(shard, now),
            WriteAnswer::Missing => self.view.missing(&LeaseKey::Shard(shard), now),
            WriteAnswer::Refused => self.retry_shard_later(shard, now),
        }
    }

    pub(super) fn read_shard(&mut self, shard: ShardId, now: BootInstant) {
        self.send_read(Purpose::Read, LeaseKey::Shard(shard), now);
    }

    pub(super) fn retry_shard_later(&mut self, shard: ShardId, now: BootInstant) {
        self.view.shard_mut(shard).retry_at = now + self.config.timing.attempt_timeout;
    }
}
