//! How fast a replica gives away what it leads: what may be on the way at a time, and how long a shard acts on.
//!
//! A few shards at a time, so that the others are led while these move. One that was asked to end has all its shards leave
//! nothing lying from the first instant on, so that each has little to wait for when its turn comes; and it has as many on
//! the way as it takes to be done in time, by how long those before them took.

use std::time::Duration;

use super::{
    Election, ElectionEffect,
    tenure::{Stage, Tenure},
};
use crate::state::sharding::{BootInstant, ShardSet};

/// A shard acts no longer than this, from the beginning of a drain or from when it should be sealed, to have answered and
/// stored what it began: with the seal that follows, and a Lease write, within what a replica has to hand over.
pub const CLOSE_MAX: Duration = Duration::from_secs(7);

/// So many shards at a time are told to be sealed and handed over where nothing hurries: more make each take longer, and all
/// of them hardly less. Those that have something open are led until it is answered, and go when it is.
const SEALS_AT_EASE: usize = 2;

/// A drain has no more than this on the way for haste: the API server is as busy as it can be by then.
const SEALS_IN_HASTE_MAX: usize = 16;

/// A replica that leaves with many shards has more of them on the way at a time, so as to be done in so many rounds.
const SEAL_ROUNDS_MAX: usize = 25;

/// What a replica that was asked to end has not sent by then, as in a burst, others can send as well.
const SEND_MAX: Duration = Duration::from_millis(500);

/// A drain aims at having given all shards away after this, of the half second that it should take until it is gone.
const DRAIN_AIM: Duration = Duration::from_millis(350);

/// What is left when that is over, or nearly, is to go within this.
const DRAIN_REST: Duration = Duration::from_millis(50);

/// A shard that takes longer to be sealed and handed over counts as this: it had something open, and others have not.
const PASSAGE_MAX: Duration = Duration::from_millis(200);

/// A seal that takes longer waits for its last fires, and keeps no other from beginning.
pub(super) const SEAL_PATIENCE: Duration = Duration::from_millis(50);

/// While one leaves the others send nothing that can wait, for so long at most: what it hands over with is a few writes
/// that the API server has behind all theirs. So does who takes shards over that must be listed before they act.
const QUIET_MAX: Duration = Duration::from_secs(1);

/// A drain that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Drain {
    since: BootInstant,
    /// How long shards have taken of late, from the order to seal them until they were another's; none before the first.
    passage: Option<Duration>,
}

impl Drain {
    fn note_passage(&mut self, took: Duration) {
        let took = took.min(PASSAGE_MAX);
        self.passage = Some(self.passage.map_or(took, |passage| (passage + took) / 2));
    }

    /// So many at a time, each of which takes that long, are all given away in time.
    fn seals_needed(&self, n_left: usize, passage_min: Duration, now: BootInstant) -> usize {
        let passage = self.passage.unwrap_or_default().max(passage_min);
        let time_left = (self.since + DRAIN_AIM).since(now).max(DRAIN_REST);
        let work = passage.saturating_mul(n_left.try_into().unwrap_or(u32::MAX));
        let needed = work.as_micros().div_ceil(time_left.as_micros());
        usize::try_from(needed).unwrap_or(usize::MAX).min(SEALS_IN_HASTE_MAX)
    }
}

impl Election {
    /// Until when we send nothing that can wait, if so. Who leaves itself sends what others wait for.
    pub(super) fn quiet_until(&self) -> Option<BootInstant> {
        let since = self.adopted_at.max(self.rings.drained_since())?;
        (!self.is_leaving()).then(|| since + QUIET_MAX)
    }

    /// Begins to leave for good. What closes for another reason closes as soon as the rest.
    pub(super) fn drain(&mut self, now: BootInstant) {
        if self.is_draining() {
            return;
        }
        self.drain = Some(Drain {
            since: now,
            passage: None,
        });
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
            self.drain.map_or(now, |drain| drain.since) + CLOSE_MAX
        } else {
            now
        }
    }

    /// A shard is another's, which we were told to seal at that instant.
    pub(super) fn note_passage(&mut self, since: BootInstant, now: BootInstant) {
        if let Some(drain) = &mut self.drain {
            drain.note_passage(now.since(since));
        }
    }

    /// How many more shards may be sealed now. When a seal has taken too long, we wake up.
    pub(super) fn room_for_seals(&mut self, now: BootInstant) -> usize {
        let (mut n_on_the_way, mut n_left, mut is_any_slow) = (0, 0, false);
        let mut slow_at: Option<BootInstant> = None;
        for (shard, tenure) in &self.tenures {
            let since = match &tenure.stage {
                Stage::Sealing { since, .. } => {
                    n_on_the_way += usize::from(now < *since + SEAL_PATIENCE);
                    // What is slower still has its own reason, and says nothing about others.
                    is_any_slow |= now >= *since + SEAL_PATIENCE && now < *since + 2 * SEAL_PATIENCE;
                    since
                }
                Stage::Sealed {
                    target: Some(_), since, ..
                } => {
                    // One that was refused waits before it is tried again.
                    n_on_the_way += usize::from(self.view.shard(*shard).is_some_and(|seen| seen.retry_at <= now));
                    is_any_slow |= now >= *since + SEAL_PATIENCE;
                    since
                }
                Stage::Leading | Stage::Offered { .. } => {
                    n_left += 1;
                    continue;
                }
                Stage::Sealed { target: None, .. } => continue,
            };
            let at = *since + SEAL_PATIENCE;
            if now < at {
                slow_at = Some(slow_at.map_or(at, |earliest| earliest.min(at)));
            }
        }
        if let Some(at) = slow_at {
            self.wake_at(at);
        }
        let needed = self.drain.map_or(0, |drain| {
            let passage_min = if is_any_slow { SEAL_PATIENCE } else { Duration::ZERO };
            drain.seals_needed(n_left, passage_min, now)
        });
        let in_rounds = if self.is_leaving() {
            self.tenures.len() / SEAL_ROUNDS_MAX
        } else {
            0
        };
        SEALS_AT_EASE.max(needed).max(in_rounds).saturating_sub(n_on_the_way)
    }
}
