//! Requests that wait, in several queues: creates, then overdue creates, then look-ups, then background requests that
//! no slot waits for. Creates that first read their CronJob have their own queue, with a few in flight at a time. Pure
//! and bounded.
//!
//! Overdue creates need tokens: after an outage of many CronJobs the API server receives a limited rate of them, and
//! slots that become due meanwhile do not wait behind them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    request::Queued,
    withdrawable::{RequestKey, Withdrawable},
};
use crate::{
    controller::{
        fair_queue::FairQueue,
        in_flight::{InFlight, Room},
        tokens::Tokens,
    },
    shard::BootInstant,
};

/// Capacity of the backlog. A CronJob has at most one create queued, so this is a million CronJobs due at one instant,
/// the design limit of one shard: some 450 MiB if it ever fills.
pub(super) const BACKLOG_MAX: usize = 1 << 20;

/// Overdue creates that are sent at once, and the rate per second after that: a part of what an API server can handle.
const OVERDUE_AT_ONCE: u32 = 1_000;
const OVERDUE_PER_SECOND: u32 = 500;

/// Requests that have waited longer than this behind creates get one turn in [`BACKGROUND_TURNS`], since creates may
/// depend on them.
const BACKGROUND_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);
const BACKGROUND_TURNS: u32 = 8;

/// While others wait, a namespace has at most one `SHARES`th of the places in flight, but always `SHARE_MIN` places: a
/// tenant whose webhooks turn slow delays others by an eighth at most, until it counts as slow.
const SHARES: u32 = 8;
const SHARE_MIN: u32 = 8;

/// A request goes before all requests of its namespace that arrive this much later, regardless of their deadlines.
/// Otherwise a daily CronJob would wait for as long as the minutely CronJobs of its namespace take all its places.
const PRECEDENCE_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Limit for creates that read their CronJob first, until they are answered: one `READING_SHARE`th of the places,
/// `READING_MAX` at most, and half as many more for slow namespaces. Each holds the CronJob and the Job, up to 1.5 MiB
/// each.
const READING_SHARE: u32 = 8;
const READING_MAX: u32 = 8;

/// A queue of the backlog. Creates, and deletes that a create waits for, are in the first four. Those in the first one
/// have few places of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueKind {
    /// Creates that read their CronJob first.
    Reading,
    /// Creates that have read their CronJob.
    Completed,
    /// All other creates that are due now.
    Creates,
    /// Creates whose slot is long past. There are many after an outage; they wait behind those that are due now.
    Overdue,
    /// Look-ups, on which a slot may depend later: sent when no create waits.
    LookUps,
    /// Requests that no slot depends on: sent last.
    Background,
}

#[derive(Debug)]
pub(super) struct Backlog {
    len_max: usize,
    /// Indexed by [`QueueKind`].
    queues: [FairQueue<Queued>; 6],
    tokens: Tokens,
    n_turns: u32,
    withdrawable: Withdrawable,
}

impl Backlog {
    /// Creates an empty backlog that holds at most `len_max` requests.
    pub(super) fn new(len_max: usize) -> Backlog {
        Backlog {
            len_max,
            queues: std::array::from_fn(|_| FairQueue::default()),
            tokens: Tokens::new(
                OVERDUE_AT_ONCE,
                OVERDUE_PER_SECOND,
                BootInstant::after_boot(Duration::ZERO),
            ),
            n_turns: 0,
            withdrawable: Withdrawable::default(),
        }
    }

    /// Adds a request, or returns it if the backlog is full.
    pub(super) fn push(&mut self, mut queued: Queued, now: Timestamp) -> Result<(), Box<Queued>> {
        if self.n_creates() + self.n_background() >= self.len_max {
            return Err(Box::new(queued));
        }
        queued.arrived = now;
        self.insert(queued, now);
        Ok(())
    }

    fn insert(&mut self, queued: Queued, now: Timestamp) {
        let kind = queued.queue_kind(now);
        let deadline = if kind == QueueKind::Overdue {
            queued.request.expires_at()
        } else {
            let arrived = queued.arrived;
            queued.request.deadline(arrived).min(arrived + PRECEDENCE_MAX)
        };
        let key = queued.key();
        let namespace: Box<str> = queued.request.namespace().into();
        let place = self.queue(kind).push(&namespace, deadline, queued);
        if let Some(key) = key {
            self.withdrawable.wait(key, kind, place);
        }
    }

    /// Adds a request that was popped and not answered, with its first deadline, or returns it if it was withdrawn.
    /// A full backlog takes it too: the requests in flight are bounded.
    pub(super) fn put_back(&mut self, queued: Queued, now: Timestamp) -> Option<Queued> {
        if self.take_withdrawn(&queued) {
            return Some(queued);
        }
        self.insert(queued, now);
        None
    }

    /// Forgets a popped request that is answered or returns. Returns whether it was withdrawn meanwhile.
    pub(super) fn take_withdrawn(&mut self, queued: &Queued) -> bool {
        self.withdrawable.take_withdrawn(queued)
    }

    /// Removes a request that waits. One that is popped and not answered is not put back.
    pub(super) fn withdraw(&mut self, namespace: &str, key: &RequestKey) -> Option<Queued> {
        let (kind, place) = self.withdrawable.withdraw(key)?;
        self.queue(kind).remove(namespace, place)
    }

    fn queue(&mut self, kind: QueueKind) -> &mut FairQueue<Queued> {
        &mut self.queues[kind as usize]
    }

    fn create_queues(&self) -> &[FairQueue<Queued>] {
        &self.queues[..QueueKind::LookUps as usize]
    }

    fn background_queues(&self) -> &[FairQueue<Queued>] {
        &self.queues[QueueKind::LookUps as usize..]
    }

    /// Returns the next request to send. `places` is the limit in flight, and `in_flight` its present use. If only a
    /// token is missing, returns the instant of the next token.
    pub(super) fn pop(
        &mut self,
        now: (Timestamp, BootInstant),
        places: u32,
        in_flight: &InFlight,
    ) -> Result<Queued, Option<BootInstant>> {
        let queued = self.next(now, places, in_flight)?;
        self.withdrawable.send(&queued);
        Ok(queued)
    }

    fn next(
        &mut self,
        (now, boot): (Timestamp, BootInstant),
        places: u32,
        in_flight: &InFlight,
    ) -> Result<Queued, Option<BootInstant>> {
        self.n_turns = self.n_turns.wrapping_add(1);
        let share = share_of(places);
        let room = in_flight.room(boot);
        let n_in_flight = |namespace: &str| room.n_of(namespace);
        let is_background_turn = self.n_turns.is_multiple_of(BACKGROUND_TURNS)
            && self.background_queues().iter().any(|queue| is_old(queue, now));
        // The create has expired, and the CronJob's next slot waits for its answer. It is not sent, so it needs no
        // token.
        if let Some(expired) = self.queue(QueueKind::Overdue).pop_until(now) {
            return Ok(expired);
        }
        if let Some(queued) = self.pop_reading(places, room) {
            return Ok(queued);
        }
        if is_background_turn && let Some(queued) = self.pop_background(share, room) {
            return Ok(queued);
        }
        if let Some(queued) = self.queue(QueueKind::Creates).pop(share, n_in_flight) {
            return Ok(queued);
        }
        let mut wait = None;
        if self.queue(QueueKind::Overdue).has_next(n_in_flight) {
            match self.tokens.take(1, boot) {
                Ok(()) => return self.queue(QueueKind::Overdue).pop(share, n_in_flight).ok_or(None),
                Err(at) => wait = Some(at),
            }
        }
        self.pop_background(share, room).ok_or(wait)
    }

    /// Removes the next create that has read its CronJob, or reads it first.
    fn pop_reading(&mut self, places: u32, room: Room<'_>) -> Option<Queued> {
        // A CronJob that was read occupies memory, so its create is not held back.
        let share = share_of(places);
        let n_or_share = |namespace: &str| room.n_of(namespace).or(Some(share));
        let completed = self.queue(QueueKind::Completed).pop(share, n_or_share);
        let reading_max = (places / READING_SHARE).clamp(1, READING_MAX);
        completed.or_else(|| room.pop_reading(self.queue(QueueKind::Reading), reading_max))
    }

    /// Removes the next request that is not a create.
    fn pop_background(&mut self, share: u32, room: Room<'_>) -> Option<Queued> {
        // No admission webhook delays a read.
        let n_or_share = |namespace: &str| room.n_of(namespace).or(Some(share));
        let look_up = self.queue(QueueKind::LookUps).pop(share, n_or_share);
        let n_in_flight = |namespace: &str| room.n_of(namespace);
        look_up.or_else(|| self.queue(QueueKind::Background).pop(share, n_in_flight))
    }

    /// Removes any queued request, to be abandoned.
    pub(super) fn take_any(&mut self) -> Option<Queued> {
        let queued = self
            .queues
            .iter_mut()
            .find_map(|queue| queue.pop(u32::MAX, |_| Some(0)))?;
        self.withdrawable.send(&queued);
        self.withdrawable.take_withdrawn(&queued);
        Some(queued)
    }

    pub(super) fn n_creates(&self) -> usize {
        self.create_queues().iter().map(FairQueue::len).sum()
    }

    /// Returns the number of waiting creates that may take any place and are not held back. Few of the others are sent
    /// at a time, however many wait.
    pub(super) fn n_creates_to_send(&self, room: Room<'_>) -> usize {
        let queues = &self.create_queues()[QueueKind::Completed as usize..];
        let n_held_back = |queue: &FairQueue<Queued>| room.held_back().map(|name| queue.len_of(name)).sum::<usize>();
        queues.iter().map(|queue| queue.len() - n_held_back(queue)).sum()
    }

    pub(super) fn n_background(&self) -> usize {
        self.background_queues().iter().map(FairQueue::len).sum()
    }
}

/// The number of places that a namespace may have in flight while others wait.
fn share_of(places: u32) -> u32 {
    SHARE_MIN.max(places / SHARES)
}

/// Whether the oldest request of a queue has waited too long. The queue is ordered by arrival.
fn is_old(queue: &FairQueue<Queued>, now: Timestamp) -> bool {
    queue
        .earliest()
        .is_some_and(|came| now.duration_since(came) > BACKGROUND_WAIT_MAX)
}

#[cfg(test)]
mod tests;
