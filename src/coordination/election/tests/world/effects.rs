//! Carries out the effects of a replica's election.

use super::{Message, World};
use crate::{
    coordination::{ACTS_LABEL, Adoption, ElectionEffect, ElectionInput, Incarnation, LeaseKey},
    shard::{ResourceVersions, ShardId, ShardReport, ShardTerm, Term},
};

impl World {
    pub(super) fn carry_out(&mut self, at: usize, effects: Vec<ElectionEffect>) {
        for effect in effects {
            if self.trace {
                eprintln!("{} -> {at} {effect:?}", self.now);
            }
            self.carry_out_one(at, effect);
            if self.replicas[at].process.is_none() {
                return;
            }
        }
        let wakeup = self.process(at).election.next_wakeup();
        let when = self.when(at, wakeup).max(self.now + 1);
        self.process(at).woken_at = when;
        self.post(at, when - self.now, Message::Wake { due: when });
    }

    fn carry_out_one(&mut self, at: usize, effect: ElectionEffect) {
        let delay = self.latency();
        match effect {
            ElectionEffect::Write { ref write, .. } if matches!(&write.key, LeaseKey::Member(uid) if *uid != self.replicas[at].config.pod_uid) =>
            {
                self.journal.evictions += 1;
                self.post(at, delay, Message::Request(effect));
            }
            ElectionEffect::Write { .. } | ElectionEffect::Delete { .. } | ElectionEffect::Read { .. } => {
                self.note_label(at, &effect);
                self.post(at, delay, Message::Request(effect));
            }
            ElectionEffect::Relist => {
                self.journal.relists += 1;
                let requested_at = self.local(at);
                self.post(at, delay, Message::List { requested_at });
            }
            ElectionEffect::ActUntil(until) => {
                self.process(at).act_until = until;
                self.check_alone(at);
            }
            ElectionEffect::Fence => self.journal.fences.push((self.now, at)),
            ElectionEffect::Lead {
                shard_term: ShardTerm { shard, term },
                adoption,
                entry,
                fired_through,
            } => {
                self.journal.entries.push((entry, fired_through));
                self.lead(at, shard, term, adoption);
            }
            ElectionEffect::Stop {
                shard_term: ShardTerm { shard, term },
                reason,
            } => {
                self.journal.stops.push((self.now, at, shard, reason));
                let acting = self.process(at).acting.remove(&shard);
                assert!(
                    acting.is_none_or(|acting| acting == term),
                    "{shard:?} {acting:?} {term:?}"
                );
            }
            ElectionEffect::Seal(order) => {
                let input = ElectionInput::Shards(ShardReport::Sealed {
                    shard_term: order.shard_term,
                    at: self.local(at),
                    fired_through: (!self.replicas[at].is_paused).then(|| self.wall()),
                    written_through: Some(ResourceVersions::default()),
                });
                let closing = (self.when(at, order.close_by) - self.now).min(self.replicas[at].seal_delay);
                let sealing = closing + self.replicas[at].answer_delay;
                self.post(at, delay + sealing, Message::Input(input));
            }
            ElectionEffect::Rejoin(reason) => self.rejoin(at, reason, delay),
            ElectionEffect::Left => {
                self.replicas[at].has_left = true;
                self.kill(at);
            }
            ElectionEffect::Exit(_) => {
                self.replicas[at].exits += 1;
                self.kill(at);
            }
        }
    }

    /// Records whether the replica's own Lease says that it acts.
    fn note_label(&mut self, at: usize, effect: &ElectionEffect) {
        let acts = if let ElectionEffect::Write { write, .. } = effect {
            write.labels.get(ACTS_LABEL).map(Option::is_some)
        } else if let ElectionEffect::Delete { key, .. } = effect {
            matches!(key, LeaseKey::Member(_)).then_some(false)
        } else {
            None
        };
        match acts {
            Some(true) => drop(self.journal.acting.insert(at)),
            Some(false) => drop(self.journal.acting.remove(&at)),
            None => {}
        }
    }

    fn rejoin(&mut self, at: usize, reason: &'static str, delay: u64) {
        self.journal.rejoins.push((self.now, at, reason));
        self.process(at).acting.clear();
        let incarnation = Incarnation(self.random.below(u64::MAX));
        self.post(at, delay, Message::Input(ElectionInput::Rejoined(incarnation)));
    }

    fn lead(&mut self, at: usize, shard: ShardId, term: Term, adoption: Adoption) {
        self.journal.leads.push((self.now, at, shard, adoption));
        let former = self.process(at).acting.insert(shard, term);
        assert_eq!(former, None, "{shard:?} was led already");
        self.check_alone(at);
    }
}
