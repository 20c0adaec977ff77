//! How fast a replica gives away what it leads: what may be on the way at a time, and how long a shard acts on.
//!
//! A few shards at a time, so that the others are led while these move. One that was asked to end has all its shards leave
//! nothing lying from the first instant on, so that each has little to wait for when its turn comes; and when that has taken
//! too long all the same it is in a hurry.

use std::time::Duration;

use super::{
    Election, ElectionEffect,
    tenure::{Stage, Tenure},
};
use crate::state::sharding::{BootInstant, ShardSet};

/// A shard acts no longer than this, from the beginning of a drain or from when it should be sealed, to have answered and
/// stored what it began: with the seal that follows, and a Lease write, within what a replica has to hand over.
pub const CLOSE_MAX: Duration = Duration::from_secs(7);

/// So many shards at a time are told to be sealed and handed over: more make each take longer, and all of them hardly less.
/// Those that have something open are led until it is answered, and go when it is.
const SEALS_MAX: usize = 2;

/// A replica that leaves with many shards has more of them on the way at a time, so as to be done in so many rounds.
const SEAL_ROUNDS_MAX: usize = 25;

/// What a replica that was asked to end has not sent by then, as in a burst, others can send as well.
const SEND_MAX: Duration = Duration::from_millis(500);

/// A drain that takes so long meets a busy API server, where each shard takes long whatever the number on the way: so many
/// are from then on, more each time. On an idle server most have gone by then.
const SEALS_MAX_IN_A_HURRY: [(Duration, usize); 2] =
    [(Duration::from_millis(250), 8), (Duration::from_millis(400), 12)];

/// A seal that takes longer waits for its last fires, and keeps no other from beginning.
pub(super) const SEAL_PATIENCE: Duration = Duration::from_millis(50);

impl Election {
    /// Begins to leave for good. What closes for another reason closes as soon as the rest.
    pub(super) fn drain(&mut self, now: BootInstant) {
        if self.is_draining() {
            return;
        }
        self.draining_since = Some(now);
        let shards: ShardSet = self.tenures.keys().copied().collect();
        if !shards.is_empty() {
            // Where nobody takes them over, nobody else can send it.
            let take_back_at = self.is_there_a_taker().then_some(now + SEND_MAX);
            self.effects.push(ElectionEffect::Close { shards, take_back_at });
        }
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

    /// Of what was told before to be sealed.
    fn close_sooner(&mut self, by: BootInstant) {
        let is_closing = |tenure: &Tenure| matches!(tenure.stage, Stage::Sealing { .. });
        let closing = self.tenures.iter().filter(|(_, tenure)| is_closing(tenure));
        self.effects.extend(closing.map(|(shard, tenure)| ElectionEffect::Seal {
            shard: *shard,
            term: tenure.term,
            close_by: by,
        }));
    }

    /// Until when a shard acts that is told now to be sealed. Who does not go by its clock has nothing sent, so there is
    /// nothing to wait for.
    pub(super) fn close_by(&self, now: BootInstant) -> BootInstant {
        if self.is_willing {
            self.draining_since.unwrap_or(now) + CLOSE_MAX
        } else {
            now
        }
    }

    /// How many more shards may be sealed now. When a seal has taken too long, we wake up.
    pub(super) fn room_for_seals(&mut self, now: BootInstant) -> usize {
        let mut n_on_the_way = 0;
        let mut slow_at: Option<BootInstant> = None;
        for (shard, tenure) in &self.tenures {
            match &tenure.stage {
                Stage::Sealing { since, .. } if now < *since + SEAL_PATIENCE => {
                    n_on_the_way += 1;
                    let at = *since + SEAL_PATIENCE;
                    slow_at = Some(slow_at.map_or(at, |earliest| earliest.min(at)));
                }
                Stage::Sealed { target: Some(_), .. } => {
                    // One that was refused waits before it is tried again.
                    n_on_the_way += usize::from(self.view.shard(*shard).is_some_and(|seen| seen.retry_at <= now));
                }
                Stage::Leading | Stage::Offered { .. } | Stage::Sealing { .. } | Stage::Sealed { .. } => {}
            }
        }
        if let Some(at) = slow_at {
            self.wake_at(at);
        }
        self.seals_max(now).saturating_sub(n_on_the_way)
    }

    fn seals_max(&mut self, now: BootInstant) -> usize {
        let mut least = SEALS_MAX;
        if let Some(since) = self.draining_since {
            for (elapsed, seals_max) in SEALS_MAX_IN_A_HURRY {
                if now < since + elapsed {
                    self.wake_at(since + elapsed);
                    break;
                }
                least = seals_max;
            }
        }
        let n_left = if self.is_leaving() { self.tenures.len() } else { 0 };
        least.max(n_left / SEAL_ROUNDS_MAX)
    }
}
