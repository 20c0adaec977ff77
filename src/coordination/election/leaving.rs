//! Draining a replica: each shard acts until it is sealed, and is sealed when its pending requests are answered and its
//! statuses stored.

use std::time::Duration;

use super::{Election, led_shard::Handover};
use crate::shard::BootInstant;

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
        self.seal_again(self.close_by(now), |_| true);
    }

    /// Records whether this replica trusts its clock. When it stops doing so, shards that are being sealed close at
    /// once, since no more requests are sent for them.
    pub(super) fn set_willing(&mut self, is_willing: bool, now: BootInstant) {
        let is_alarm = self.is_willing && !is_willing;
        self.is_willing = is_willing;
        if is_alarm {
            self.seal_again(now, |_| true);
        }
    }

    /// Seals all shards together if no other member takes shards: the gap of a handover does not matter then.
    pub(super) fn seal_without_successor(&mut self, now: BootInstant) {
        if !self.has_taker() {
            self.seal_again(self.close_by(now), |has_next_leader| has_next_leader);
        }
    }

    /// Moves the deadline of shards that are being sealed.
    fn seal_again(&mut self, close_by: BootInstant, is_wanted: impl Fn(bool) -> bool) {
        let has_taker = self.has_taker();
        for (shard, led_shard) in &mut self.led_shards {
            if let Handover::Closing { has_next_leader, .. } = &mut led_shard.handover
                && is_wanted(*has_next_leader)
            {
                *has_next_leader = has_taker;
                self.effects.push(led_shard.seal_order(*shard, close_by, has_taker));
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
