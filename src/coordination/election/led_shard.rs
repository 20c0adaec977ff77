//! The shards that this replica leads. The shard Lease is authoritative, and a led shard follows it.

use jiff::Timestamp;

use super::{Adoption, Election, ElectionEffect};
use crate::{
    coordination::{ShardLease, StopReason},
    shard::{BootInstant, Entry, FiredThrough, ResourceVersions, ShardId, ShardPhase, ShardTerm, Term},
};

/// One uninterrupted leadership of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LedShard {
    pub(super) term: Term,
    /// The earliest instant at which a staying replica hands the shard to another member.
    pub(super) movable_at: BootInstant,
    pub(super) handover: Handover,
}

/// The progress of a shard's handover. The next leader is named by its pod uid. [`LedShard::phase`] returns the
/// corresponding phase of the shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Handover {
    /// No handover is in progress.
    None,
    /// Acting until its pending requests are answered, then sealed. Without a next leader, the shard is released.
    Closing {
        next_leader: Option<Box<str>>,
        /// Whether another member takes shards. It then leads this shard next, even if it was not chosen.
        has_other_taker: bool,
    },
    /// Sealed: the shard has fired its last slot and no longer acts.
    Sealed {
        next_leader: Option<Box<str>>,
        fired_through: Option<Timestamp>,
        written_through: Option<ResourceVersions>,
    },
}

impl LedShard {
    /// The chosen next leader.
    pub(super) fn next_leader(&self) -> Option<&str> {
        match &self.handover {
            Handover::None => None,
            Handover::Closing { next_leader, .. } | Handover::Sealed { next_leader, .. } => next_leader.as_deref(),
        }
    }

    pub(super) fn is_moving(&self) -> bool {
        self.handover != Handover::None
    }

    pub(super) fn phase(&self) -> ShardPhase {
        match self.handover {
            Handover::None => ShardPhase::Leading,
            Handover::Closing { .. } => ShardPhase::Closing,
            Handover::Sealed { .. } => ShardPhase::Sealed,
        }
    }

    /// The reason why this leadership ends. It follows from who changed the shard's Lease.
    fn reason_to_stop(&self, lease: Option<&ShardLease>) -> StopReason {
        let Some(lease) = lease else {
            return StopReason::LeaseDeleted;
        };
        if self.phase() != ShardPhase::Sealed {
            return StopReason::Lost;
        }
        match lease.holder.member() {
            None => StopReason::Released,
            Some(holder) if self.next_leader() == Some(&holder.pod_uid) => StopReason::HandedOver,
            Some(_) => StopReason::Lost,
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
            let has_other_holder = lease.is_some_and(|lease| !lease.holder.is(&self.identity));
            let own_term = lease.filter(|_| !has_other_holder).map(|lease| lease.term);
            let led_term = self.led_shards.get(&shard).map(|led_shard| led_shard.term);
            match led_term {
                Some(term) if own_term == Some(term) => continue,
                Some(_) => self.stop(shard),
                None if has_other_holder => {
                    self.recreating.remove(shard);
                }
                None => {}
            }
            if let Some(term) = own_term
                && may_begin
                && self.is_labelled(shard, term)
            {
                self.begin(shard, term, now);
            }
        }
    }

    /// Ends the leadership of a shard whose Lease no longer names this replica in the term that it leads.
    fn stop(&mut self, shard: ShardId) {
        let Some(led_shard) = self.led_shards.remove(&shard) else {
            return;
        };
        let reason = led_shard.reason_to_stop(self.view.lease(shard));
        if reason == StopReason::LeaseDeleted {
            self.recreating.insert(shard);
        }
        let shard_term = ShardTerm {
            shard,
            term: led_shard.term,
        };
        self.effects.push(ElectionEffect::Stop { shard_term, reason });
    }

    /// Whether the Lease of a shard of this replica has its label. After a deletion, the Lease may exist without it. Then
    /// this replica writes the label, in its next term, before it leads.
    fn is_labelled(&self, shard: ShardId, term: Term) -> bool {
        let is_written = || self.taking.get(&shard).is_some_and(|taking| taking.term == term);
        !self.recreating.contains(shard) || is_written()
    }

    fn begin(&mut self, shard: ShardId, term: Term, now: BootInstant) {
        let lease = self.view.lease(shard);
        let written_through = lease.and_then(|lease| lease.written_through);
        let sealed = lease.and_then(|lease| lease.fired_through).map(FiredThrough::Seal);
        let taking = self.taking.remove(&shard).filter(|taking| taking.term == term);
        let adoption = taking.map_or(Adoption::HandedOver, |taking| taking.adoption);
        let entry = match adoption {
            // Nobody has led the shard before, so there is nothing to observe.
            Adoption::First => Entry::Watch(ResourceVersions::default()),
            Adoption::HandedOver => written_through.map_or(Entry::Current, Entry::Watch),
            Adoption::Released | Adoption::Crashed | Adoption::Recreated => Entry::Current,
        };
        self.recreating.remove(shard);
        let led_shard = LedShard {
            term,
            movable_at: now + self.config.timing.settle_window,
            handover: Handover::None,
        };
        self.led_shards.insert(shard, led_shard);
        self.effects.push(ElectionEffect::Lead {
            shard_term: ShardTerm { shard, term },
            adoption,
            entry,
            fired_through: sealed.or(taking.and_then(|taking| taking.fired_through)),
        });
    }
}
