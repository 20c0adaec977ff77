//! The requests of a lane in flight by namespace, and the limits of each namespace.
//!
//! A namespace is slow while one of its requests has been in flight for [`RECENT_MAX`], as behind an admission
//! webhook that does not respond, or while it has requests in flight and the last answer took as long. Such requests
//! stay for up to half a minute. So slow namespaces have separate places, and never take those of other namespaces,
//! even while these are free.

use std::collections::HashMap;

use super::{
    fair_queue::FairQueue,
    pacing::{RECENT_MAX, SendInstants},
};
use crate::shard::BootInstant;

/// All slow namespaces of a replica together have one `SLOW_PART`th of the limit of a lane in flight, in addition to the
/// requests of other namespaces. The limit for creates is `--max-inflight`.
const SLOW_PART: u32 = 2;

/// Maximum number of requests about Jobs in flight, those of slow namespaces included: the capacity of the connections
/// for writes beside the other requests.
pub const REQUESTS_IN_FLIGHT_MAX: u32 = 320;

/// Maximum number of status writes in flight, those of slow namespaces excluded: enough to keep the API server of a small
/// cluster busy.
pub(super) const STATUSES_IN_FLIGHT_MAX: u32 = 32;

/// Returns the number of places for slow namespaces in a lane with this limit for other namespaces.
pub(super) const fn places_for_slow(in_flight_max: u32) -> u32 {
    if in_flight_max < SLOW_PART {
        1
    } else {
        in_flight_max / SLOW_PART
    }
}

/// The requests in flight.
#[derive(Debug)]
pub(super) struct InFlight {
    /// The number of places for slow namespaces.
    slow_max: u32,
    by_namespace: HashMap<Box<str>, Sends>,
    /// Requests that read their CronJob first, including those that have read it.
    n_reading: u32,
}

/// The requests of a namespace in flight.
#[derive(Debug, Default)]
struct Sends {
    n: u32,
    n_reading: u32,
    instants: SendInstants,
    /// Whether the last answer was slow.
    was_slow: bool,
}

impl Sends {
    fn is_slow(&self, now: BootInstant) -> bool {
        let oldest = self.instants.oldest();
        self.was_slow || oldest.is_some_and(|sent| now.since(sent) >= RECENT_MAX)
    }
}

impl InFlight {
    /// Creates the state without requests, for at most `in_flight_max` requests of namespaces that are not slow.
    pub(super) fn new(in_flight_max: u32) -> InFlight {
        InFlight {
            slow_max: places_for_slow(in_flight_max),
            by_namespace: HashMap::new(),
            n_reading: 0,
        }
    }

    /// Returns the maximum number of requests in flight: those of slow namespaces are in addition to `in_flight_max`.
    pub(super) fn total_max(&self, in_flight_max: u32) -> u32 {
        (in_flight_max + self.slow_max).min(REQUESTS_IN_FLIGHT_MAX.max(in_flight_max))
    }

    /// Records that a request of a namespace is sent now.
    pub(super) fn enter(&mut self, namespace: &str, is_reading: bool, now: BootInstant) {
        self.n_reading += u32::from(is_reading);
        let sends = self.by_namespace.entry(namespace.into()).or_default();
        sends.n += 1;
        sends.n_reading += u32::from(is_reading);
        sends.instants.enter(now);
    }

    /// Records that a request that was `sent` at an instant is no longer in flight.
    pub(super) fn leave(&mut self, namespace: &str, is_reading: bool, sent: BootInstant, now: BootInstant) {
        self.n_reading -= u32::from(is_reading);
        let Some(sends) = self.by_namespace.get_mut(namespace) else {
            return;
        };
        sends.n -= 1;
        sends.n_reading -= u32::from(is_reading);
        sends.was_slow = now.since(sent) >= RECENT_MAX;
        sends.instants.leave(sent);
        if sends.n == 0 {
            self.by_namespace.remove(namespace);
        }
    }

    /// Returns how many requests of a namespace are in flight.
    pub(super) fn n_of(&self, namespace: &str) -> u32 {
        self.by_namespace.get(namespace).map_or(0, |sends| sends.n)
    }

    /// Returns the requests that namespaces may send at an instant.
    pub(super) fn room(&self, now: BootInstant) -> Room<'_> {
        let slow = || self.by_namespace.values().filter(|sends| sends.is_slow(now));
        Room {
            in_flight: self,
            now,
            is_for_slow: slow().map(|sends| sends.n).sum::<u32>() < self.slow_max,
            n_reading_of_slow: slow().map(|sends| sends.n_reading).sum(),
        }
    }
}

/// The requests that namespaces may send at an instant.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    in_flight: &'a InFlight,
    now: BootInstant,
    /// Whether a slow namespace may send a request.
    is_for_slow: bool,
    /// The requests of slow namespaces that read their CronJob first.
    n_reading_of_slow: u32,
}

impl<'a> Room<'a> {
    /// Returns how many requests of a namespace are in flight; `None` if it is held back.
    pub(super) fn n_of(&self, namespace: &str) -> Option<u32> {
        match self.in_flight.by_namespace.get(namespace) {
            Some(sends) if self.holds_back(sends) => None,
            sends => Some(sends.map_or(0, |sends| sends.n)),
        }
    }

    /// Removes the next request that reads its CronJob first, if it may be sent. `places` is the limit for such requests of
    /// namespaces that are not slow. One namespace has at most half of the places, even if no other waits, since its
    /// webhooks may be slow. Slow namespaces together have half as many places, in addition. They have more only if their
    /// requests were sent before they turned slow.
    pub(super) fn pop_reading<T, D: Copy + Ord>(self, queue: &mut FairQueue<T, D>, places: u32) -> Option<T> {
        let half = (places / 2).max(1);
        let (n, n_of_slow) = (self.in_flight.n_reading, self.n_reading_of_slow);
        // The second limit bounds the memory, since a namespace may turn slow when all its places are in use.
        if n - n_of_slow >= places || n >= places + half {
            return None;
        }
        let is_without_place = |sends: &Sends| {
            let is_over_slow = n_of_slow >= half && sends.is_slow(self.now);
            sends.n_reading >= half || is_over_slow || self.holds_back(sends)
        };
        queue.pop(half, |namespace| match self.in_flight.by_namespace.get(namespace) {
            Some(sends) if is_without_place(sends) => None,
            sends => Some(sends.map_or(0, |sends| sends.n_reading)),
        })
    }

    /// Returns the namespaces that are held back.
    pub(super) fn held_back(self) -> impl Iterator<Item = &'a str> {
        let namespaces = self.in_flight.by_namespace.iter();
        namespaces
            .filter(move |(_, sends)| self.holds_back(sends))
            .map(|(name, _)| &**name)
    }

    fn holds_back(&self, sends: &Sends) -> bool {
        !self.is_for_slow && sends.is_slow(self.now)
    }
}
