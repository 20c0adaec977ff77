//! How a replica leaves: each of its shards acts until its seal, and is sealed when what it began is answered and stored.

use std::time::Duration;

use super::{Election, ElectionEffect, led_shard::HandoverStage};
use crate::shard::{BootInstant, SealOrder, ShardCommand, ShardTerm};

/// The longest that a shard acts after a drain began, or after the order to seal it: what it began is answered and stored
/// within this, or by the next leader.
pub const CLOSE_MAX: Duration = Duration::from_secs(7);

impl Election {
    /// Begins to leave for good. What closes for another reason closes as soon as the rest.
    pub(super) fn drain(&mut self, now: BootInstant) {
        if self.is_draining() {
            return;
        }
        self.drain = Some(now);
        self.close_sooner(self.close_by(now));
    }

    /// Whether we go by our clock. What closes when it is in doubt closes at once: nothing more will be sent for it.
    pub(super) fn set_willing(&mut self, is_willing: bool, now: BootInstant) {
        let is_alarm = self.is_willing && !is_willing;
        self.is_willing = is_willing;
        if is_alarm {
            self.close_sooner(now);
        }
    }

    /// Shortens the time of shards that wait for their seal.
    fn close_sooner(&mut self, by: BootInstant) {
        self.seal_again(by, |_| true);
    }

    /// Where the last other member has gone there is no gap to keep short: all shards are sealed at once.
    pub(super) fn seal_without_successor(&mut self, now: BootInstant) {
        if !self.is_there_a_taker() {
            self.seal_again(self.close_by(now), |has_successor| has_successor);
        }
    }

    fn seal_again(&mut self, close_by: BootInstant, is_wanted: impl Fn(bool) -> bool) {
        let is_there_a_taker = self.is_there_a_taker();
        for (shard, led_shard) in &mut self.led_shards {
            if let HandoverStage::Sealing { has_successor, .. } = &mut led_shard.stage
                && is_wanted(*has_successor)
            {
                *has_successor = is_there_a_taker;
                let shard_term = ShardTerm {
                    shard: *shard,
                    term: led_shard.term,
                };
                let order = SealOrder {
                    shard_term,
                    close_by,
                    has_successor: is_there_a_taker,
                };
                self.effects.push(ElectionEffect::Shards(ShardCommand::Seal(order)));
            }
        }
    }

    /// Until when a shard acts that is told now to be sealed. Who does not go by its clock has nothing sent, so there is
    /// nothing to wait for.
    pub(super) fn close_by(&self, now: BootInstant) -> BootInstant {
        if self.is_willing {
            self.drain.unwrap_or(now) + CLOSE_MAX
        } else {
            now
        }
    }
}
