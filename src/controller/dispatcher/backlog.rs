//! What waits to be sent, in lanes: creates, behind them those that are overdue, then look-ups, and behind all what nobody
//! waits for. Creates of shards in quarantine are in a lane of their own, one on the way at a time. So are creates that read
//! their CronJob first, a few at a time. Pure and bounded.
//!
//! What is overdue goes by tokens: after an outage of many CronJobs the API server gets so many a second, and what
//! becomes due meanwhile does not wait for them.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    fair_queue::{FairQueue, Namespaced},
    request::{Lane, Queued},
};
use crate::{controller::tokens::Tokens, shard::BootInstant};

/// Requests that can wait. A CronJob has at most one create waiting, so this is a million CronJobs due at one instant,
/// the most that one shard is built for: some 300 MiB should it ever fill.
pub(super) const BACKLOG_MAX: usize = 1 << 20;

/// Overdue creates that may go at once, and how many a second after that: a part of what an API server takes.
const OVERDUE_AT_ONCE: u32 = 1_000;
const OVERDUE_PER_SECOND: u32 = 500;

/// What has waited behind creates for so long gets one turn in [`BACKGROUND_TURNS`], since creates may wait for it.
const BACKGROUND_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);

const BACKGROUND_TURNS: u32 = 8;

/// While others wait no namespace has more than one of so many parts of the places on the way, but always so many
/// places: a tenant whose webhooks are slow does not take the places of all others.
const SHARES: u32 = 4;
const SHARE_MIN: u32 = 8;

/// Creates that read their CronJob first, or have read it and are not answered: one of so many places, and so many at
/// most. Each holds the CronJob and the Job, which may have 1.5 MiB each.
const READING_SHARE: u32 = 8;
const READING_MAX: u32 = 8;

/// How many requests are on the way by namespace.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    by_namespace: Counts,
    /// Creates of shards in quarantine.
    n_quarantined: u32,
    /// Creates that read their CronJob first, or have read it.
    reading: Counts,
}

/// Numbers by namespace.
#[derive(Debug, Default)]
struct Counts {
    counts: HashMap<Box<str>, u32>,
    sum: u32,
}

impl Counts {
    fn add(&mut self, namespace: &str) {
        self.sum += 1;
        match self.counts.get_mut(namespace) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(namespace.into(), 1);
            }
        }
    }

    fn remove(&mut self, namespace: &str) {
        if let Some(count) = self.counts.get_mut(namespace) {
            self.sum -= 1;
            *count -= 1;
            if *count == 0 {
                self.counts.remove(namespace);
            }
        }
    }

    fn of(&self, namespace: &str) -> u32 {
        self.counts.get(namespace).copied().unwrap_or_default()
    }
}

impl InFlight {
    pub(super) fn enter(&mut self, queued: &Queued) {
        self.n_quarantined += u32::from(queued.is_quarantined());
        self.by_namespace.add(queued.namespace());
        if queued.is_reading() {
            self.reading.add(queued.namespace());
        }
    }

    pub(super) fn leave(&mut self, queued: &Queued) {
        self.n_quarantined -= u32::from(queued.is_quarantined());
        self.by_namespace.remove(queued.namespace());
        if queued.is_reading() {
            self.reading.remove(queued.namespace());
        }
    }
}

#[derive(Debug)]
pub(super) struct Backlog {
    len_max: usize,
    quarantined: FairQueue<Queued>,
    completed: FairQueue<Queued>,
    reading: FairQueue<Queued>,
    creates: FairQueue<Queued>,
    overdue: FairQueue<Queued>,
    tokens: Tokens,
    look_ups: FairQueue<Queued>,
    background: FairQueue<Queued>,
    n_turns: u32,
}

impl Backlog {
    /// An empty one that holds at most so many.
    pub(super) fn new(len_max: usize) -> Backlog {
        Backlog {
            len_max,
            quarantined: FairQueue::default(),
            completed: FairQueue::default(),
            reading: FairQueue::default(),
            creates: FairQueue::default(),
            overdue: FairQueue::default(),
            tokens: Tokens::new(
                OVERDUE_AT_ONCE,
                OVERDUE_PER_SECOND,
                BootInstant::after_boot(Duration::ZERO),
            ),
            look_ups: FairQueue::default(),
            background: FairQueue::default(),
            n_turns: 0,
        }
    }

    /// Takes a request in, or gives it back when there is no room.
    pub(super) fn push(&mut self, queued: Queued, now: Timestamp) -> Result<(), Box<Queued>> {
        if self.n_creates() + self.n_background() >= self.len_max {
            return Err(Box::new(queued));
        }
        let lane = match queued.request.lane(now) {
            Lane::Creates | Lane::Overdue if queued.is_quarantined() => &mut self.quarantined,
            Lane::Creates | Lane::Overdue if queued.is_completed => &mut self.completed,
            Lane::Creates | Lane::Overdue if queued.is_reading() => &mut self.reading,
            Lane::Creates => &mut self.creates,
            Lane::Overdue => {
                self.overdue.push(queued.request.futile_from(now), queued);
                return Ok(());
            }
            Lane::LookUps => &mut self.look_ups,
            Lane::Background => &mut self.background,
        };
        let deadline = queued.request.deadline(now);
        lane.push(deadline, queued);
        Ok(())
    }

    /// The next to be sent, at a time when `places` may be on the way and `in_flight` are; else, where something waits
    /// for a token alone, until when.
    pub(super) fn pop(
        &mut self,
        (now, boot): (Timestamp, BootInstant),
        places: u32,
        in_flight: &InFlight,
    ) -> Result<Queued, Option<BootInstant>> {
        self.n_turns = self.n_turns.wrapping_add(1);
        let share = SHARE_MIN.max(places / SHARES);
        let n_in_flight = |namespace: &str| in_flight.by_namespace.of(namespace);
        let is_background_turn = self.n_turns.is_multiple_of(BACKGROUND_TURNS)
            && (is_old(&self.look_ups, now) || is_old(&self.background, now));
        // Its CronJob's next slot has come, which waits for the answer. It is not sent, so it takes no token.
        if let Some(futile) = self.overdue.pop_until(now) {
            return Ok(futile);
        }
        // One of them at a time takes no place worth mentioning from others.
        if in_flight.n_quarantined == 0
            && let Some(queued) = self.quarantined.pop(share, n_in_flight)
        {
            return Ok(queued);
        }
        if let Some(queued) = self.completed.pop(share, n_in_flight) {
            return Ok(queued);
        }
        let reading_max = (places / READING_SHARE).clamp(1, READING_MAX);
        if in_flight.reading.sum < reading_max
            // Half of the places at most for one namespace, whose webhooks may be slow.
            && let Some(queued) = self.reading.pop((reading_max / 2).max(1), |namespace| in_flight.reading.of(namespace))
        {
            return Ok(queued);
        }
        if !is_background_turn && let Some(queued) = self.creates.pop(share, n_in_flight) {
            return Ok(queued);
        }
        let mut wait = None;
        if !is_background_turn && self.overdue.len() > 0 {
            match self.tokens.take(boot) {
                Ok(()) => return self.overdue.pop(share, n_in_flight).ok_or(None),
                Err(at) => wait = Some(at),
            }
        }
        if let Some(queued) = self.look_ups.pop(share, n_in_flight) {
            return Ok(queued);
        }
        self.background.pop(share, n_in_flight).ok_or(wait)
    }

    fn lanes(&mut self) -> [&mut FairQueue<Queued>; 7] {
        [
            &mut self.quarantined,
            &mut self.completed,
            &mut self.reading,
            &mut self.creates,
            &mut self.overdue,
            &mut self.look_ups,
            &mut self.background,
        ]
    }

    /// Any that waits, to be given back.
    pub(super) fn take_any(&mut self) -> Option<Queued> {
        self.lanes().into_iter().find_map(|lane| lane.pop(u32::MAX, |_| 0))
    }

    pub(super) fn n_creates(&self) -> usize {
        self.quarantined.len() + self.completed.len() + self.reading.len() + self.creates.len() + self.overdue.len()
    }

    pub(super) fn n_background(&self) -> usize {
        self.look_ups.len() + self.background.len()
    }
}

/// Whether what has waited longest in a lane, by when it came, has waited for too long.
fn is_old(lane: &FairQueue<Queued>, now: Timestamp) -> bool {
    lane.earliest()
        .is_some_and(|came| now.duration_since(came) > BACKGROUND_WAIT_MAX)
}

#[cfg(test)]
mod tests;
