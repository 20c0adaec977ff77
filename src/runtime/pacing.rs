//! How many requests one lane may have in flight, and when it must wait: learnt from the API server's answers alone.
//!
//! Pure: instants are arguments. After "too many requests" the lane pauses for as long as the server asks; after a
//! failure to reach it the lane pauses ever longer and then lets single probes through until one is answered. Many
//! requests that fail together are one incident: only failures of requests sent since the last one count.

use std::time::Duration;

use crate::state::sharding::BootInstant;

mod limit;

use limit::InflightLimit;

/// The first pause when the server does not say how long; each incident in a row doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause of our own choice: a server that is back is noticed within it.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The longest pause that a server can ask for: an absurd `Retry-After` must not stop the controller.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// Names the incident-free period in which a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now.
    Now,
    /// Not before this instant.
    Wait(BootInstant),
    /// Not before another one is answered.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Open,
    /// The server asked for it, or did not answer: then `then_probe`.
    Paused {
        until: BootInstant,
        then_probe: bool,
    },
    /// A single request is out to see whether the server is back.
    Probing,
}

/// The pace of one lane.
#[derive(Debug)]
pub struct Pacer {
    limit: InflightLimit,
    lane: Lane,
    period: u64,
    n_incidents_in_row: u32,
}

impl Pacer {
    /// A lane that never has more than `inflight_max` requests in flight.
    pub fn new(inflight_max: u32) -> Pacer {
        Pacer {
            limit: InflightLimit::new(inflight_max),
            lane: Lane::Open,
            period: 0,
            n_incidents_in_row: 0,
        }
    }

    /// How many requests may be in flight at present.
    pub fn inflight_limit(&self) -> u32 {
        self.limit.get()
    }

    /// Whether one more request may be sent while `n_inflight` are out.
    pub fn admission(&self, now: BootInstant, n_inflight: u32) -> Admission {
        match self.lane {
            Lane::Paused { until, .. } if now < until => Admission::Wait(until),
            // What is left from before the incident does not stand in the way of the probe.
            Lane::Paused { then_probe: true, .. } => Admission::Now,
            Lane::Probing => Admission::Full,
            Lane::Paused { .. } | Lane::Open if n_inflight >= self.limit.get() => Admission::Full,
            Lane::Paused { .. } | Lane::Open => Admission::Now,
        }
    }

    /// Takes note that a request is sent, which was admitted.
    pub fn on_sent(&mut self) -> Ticket {
        self.lane = match self.lane {
            Lane::Paused { then_probe: true, .. } | Lane::Probing => Lane::Probing,
            Lane::Paused { then_probe: false, .. } | Lane::Open => Lane::Open,
        };
        Ticket(self.period)
    }

    /// The server did what was asked, or refused it for reasons of its own.
    pub fn on_outcome(&mut self, ticket: Ticket, latency: Duration, n_inflight: u32) {
        if ticket != Ticket(self.period) {
            return;
        }
        self.lane = Lane::Open;
        self.n_incidents_in_row = 0;
        if self.limit.on_outcome(latency, n_inflight) {
            self.period += 1;
        }
    }

    /// The server said that there are too many requests.
    pub fn on_throttled(&mut self, ticket: Ticket, now: BootInstant, retry_after: Option<Duration>) {
        if self.begin_incident(ticket, now, retry_after, false) {
            self.limit.on_throttled();
        }
    }

    /// The server was not reached, or was in no state to answer.
    pub fn on_unavailable(&mut self, ticket: Ticket, now: BootInstant, retry_after: Option<Duration>) {
        self.begin_incident(ticket, now, retry_after, true);
    }

    /// Pauses the lane, unless this failure belongs to an incident that did so already.
    fn begin_incident(
        &mut self,
        ticket: Ticket,
        now: BootInstant,
        retry_after: Option<Duration>,
        then_probe: bool,
    ) -> bool {
        if ticket != Ticket(self.period) {
            return false;
        }
        let doubled = PAUSE_MIN.saturating_mul(1 << self.n_incidents_in_row.min(16));
        let pause = retry_after.map_or(doubled.min(PAUSE_MAX), |asked| asked.clamp(PAUSE_MIN, RETRY_AFTER_MAX));
        self.lane = Lane::Paused {
            until: now + pause,
            then_probe,
        };
        self.n_incidents_in_row = self.n_incidents_in_row.saturating_add(1);
        self.period += 1;
        true
    }
}

#[cfg(test)]
mod tests;
