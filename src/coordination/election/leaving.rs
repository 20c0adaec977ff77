//! Draining a replica: each shard acts until it is sealed, and is sealed when its pending requests are answered and its
//! statuses stored.

use std::time::Duration;

use super::{Election, ElectionEffect, led_shard::Handover};
use crate::shard::{BootInstant, SealOrder, ShardCommand, ShardTerm};

/// The longest that a shard acts after a drain began, or after the order to seal it. Unanswered requests and unstored
/// statuses are then left to the next leader. A shard that is sealed at this limit has no leader while it waits for
/// missing answers, two seconds at most. A longer limit would leave less of the grace period of a Pod, 30 seconds, for
/// the later phases of the shutdown.
pub const CLOSE_MAX: Duration = Duration::from_secs(9);

impl Election {
    /// Begins to leave for good. Shards that are already being sealed get the drain's deadline if it is earlier.
    pub(super) fn drain(&mut self, now: BootInstant) {
        if self.is_draining() {
            return;
        }
        self.drain = Some(now);
        self.close_sooner(self.close_by(now));
    }

    /// Records whether this replica trusts its clock. When it stops doing so, shards that are being sealed close at
    /// once, since no more requests are sent for them.
    pub(super) fn set_willing(&mut self, is_willing: bool, now: BootInstant) {
        let is_alarm = self.is_willing && !is_willing;
        self.is_willing = is_willing;
        if is_alarm {
            self.close_sooner(now);
        }
    }

    /// Moves the deadline of all shards that are being sealed.
    fn close_sooner(&mut self, by: BootInstant) {
        self.seal_again(by, |_| true);
    }

    /// Seals all shards together if no other member takes shards: the gap of a handover does not matter then.
    pub(super) fn seal_without_successor(&mut self, now: BootInstant) {
        if !self.has_taker() {
            self.seal_again(self.close_by(now), |has_successor| has_successor);
        }
    }

    fn seal_again(&mut self, close_by: BootInstant, is_wanted: impl Fn(bool) -> bool) {
        let has_taker = self.has_taker();
        for (shard, led_shard) in &mut self.led_shards {
            if let Handover::Closing { has_successor, .. } = &mut led_shard.handover
                && is_wanted(*has_successor)
            {
                *has_successor = has_taker;
                let shard_term = ShardTerm {
                    shard: *shard,
                    term: led_shard.term,
                };
                let order = SealOrder {
                    shard_term,
                    close_by,
                    has_successor: has_taker,
                };
                self.effects.push(ElectionEffect::Shards(ShardCommand::Seal(order)));
            }
        }
    }

    /// The deadline of a shard that is ordered now to be sealed. A replica that does not trust its clock sends no
    /// requests, so there is nothing to wait for.
    pub(super) fn close_by(&self, now: BootInstant) -> BootInstant {
        if self.is_willing {
            self.drain.unwrap_or(now) + CLOSE_MAX
        } else {
            now
        }
    }
}
