//! How many requests one lane may have in flight, and when it must wait: learnt from the API server's answers alone.
//!
//! Pure: instants are arguments. After "too many requests" the lane pauses for as long as the server asks; after a
//! failure to reach it the lane pauses ever longer and then lets single probes through, one a second, until any request
//! is answered. Many requests that fail together are one incident: only failures of requests sent since the last one
//! count. A connection that is lost while the server answers over others is no incident.

use std::time::Duration;

use crate::{
    kube_api::{Answer, Answered},
    shard::BootInstant,
};

mod limit;

use limit::InflightLimit;

/// The first pause when the server does not say how long; each incident in a row doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause of our own choice: a server that is back is noticed within it.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The longest pause that a server can ask for: an absurd `Retry-After` must not stop the controller.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// The lane waits for a probe's answer so long; then the next request is a probe too, since the first may be on a
/// connection that is dead, and hang for as long as a request may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// For so long after an answer a lost connection says nothing about the server.
const ANSWER_VALIDITY: Duration = Duration::from_secs(1);

/// So many requests lost within [`ANSWER_VALIDITY`] are passed over, as many as one connection carries; more are an incident.
const LOST_MAX: u32 = 96;

/// Names the incident-free period in which a request was sent, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    period: u64,
    sent: BootInstant,
}

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
    Paused {
        until: BootInstant,
        /// The server asked for it.
        is_asked: bool,
        /// The server did not answer, or was in no state to.
        then_probe: bool,
    },
    /// A single request is out to see whether the server is back; it is waited for until then.
    Probing {
        until: BootInstant,
    },
}

/// The pace of one lane.
#[derive(Debug)]
pub struct Pacer {
    limit: InflightLimit,
    lane: Lane,
    period: u64,
    n_incidents_in_row: u32,
    last_answer: Option<BootInstant>,
    /// Since when requests lost are counted, and how many there were.
    lost_since: BootInstant,
    n_lost: u32,
}

impl Pacer {
    /// A lane that never has more than `inflight_max` requests in flight.
    pub fn new(inflight_max: u32) -> Pacer {
        Pacer {
            limit: InflightLimit::new(inflight_max),
            lane: Lane::Open,
            period: 0,
            n_incidents_in_row: 0,
            last_answer: None,
            lost_since: BootInstant::after_boot(Duration::ZERO),
            n_lost: 0,
        }
    }

    /// How many requests may be in flight at present.
    pub fn inflight_limit(&self) -> u32 {
        self.limit.get()
    }

    /// Shares what the server carries with other replicas.
    pub fn share_among(&mut self, n_senders: u32) {
        self.limit.share_among(n_senders);
    }

    /// Whether one more request may be sent while `n_inflight` are out.
    pub fn admission(&self, now: BootInstant, n_inflight: u32) -> Admission {
        match self.lane {
            Lane::Paused { until, .. } | Lane::Probing { until } if now < until => Admission::Wait(until),
            // What is left from before the incident does not stand in the way of the probe.
            Lane::Paused { then_probe: true, .. } | Lane::Probing { .. } => Admission::Now,
            Lane::Paused { .. } | Lane::Open if n_inflight >= self.limit.get() => Admission::Full,
            Lane::Paused { .. } | Lane::Open => Admission::Now,
        }
    }

    /// Takes note that a request is sent, which was admitted.
    pub fn on_sent(&mut self, now: BootInstant) -> Ticket {
        self.lane = match self.lane {
            Lane::Paused { then_probe: true, .. } | Lane::Probing { .. } => Lane::Probing {
                until: now + PROBE_PATIENCE,
            },
            Lane::Paused { then_probe: false, .. } | Lane::Open => Lane::Open,
        };
        Ticket {
            period: self.period,
            sent: now,
        }
    }

    /// Learns from whatever came of a request, after `latency`, while `n_inflight` others were out.
    pub fn on_answered<T>(
        &mut self,
        ticket: Ticket,
        answered: &Answered<T>,
        now: BootInstant,
        latency: Duration,
        n_inflight: u32,
    ) {
        match (&answered.answer, answered.code) {
            (Answer::Outcome(_), Some(_)) => self.on_outcome(ticket, latency, n_inflight),
            // Given up without an answer: that is no sign of a server that answers, nor of one that does not.
            (Answer::Outcome(_), None) => {}
            (Answer::Throttled { retry_after, .. }, _) => self.on_throttled(ticket, now, *retry_after),
            (Answer::Unavailable { retry_after, .. }, Some(_)) => self.on_unavailable(ticket, now, *retry_after),
            (Answer::Unavailable { .. }, None) => self.on_lost(ticket, now),
        }
    }

    /// The server did what was asked, or refused it for reasons of its own.
    fn on_outcome(&mut self, ticket: Ticket, latency: Duration, n_inflight: u32) {
        self.last_answer = self.last_answer.max(Some(ticket.sent + latency));
        if ticket.period != self.period {
            return self.end_probing();
        }
        self.lane = Lane::Open;
        self.n_incidents_in_row = 0;
        if self.limit.on_outcome(latency, n_inflight) {
            self.period += 1;
        }
    }

    /// The server answers after all, if only what was sent before the pause: what it asked for itself is kept to.
    fn end_probing(&mut self) {
        self.lane = match self.lane {
            Lane::Paused {
                until, is_asked: true, ..
            } => Lane::Paused {
                until,
                is_asked: true,
                then_probe: false,
            },
            Lane::Probing { .. } | Lane::Paused { then_probe: true, .. } => Lane::Open,
            lane @ (Lane::Paused { .. } | Lane::Open) => lane,
        };
    }

    /// The server said that there are too many requests.
    fn on_throttled(&mut self, ticket: Ticket, now: BootInstant, retry_after: Option<Duration>) {
        if self.begin_incident(ticket, now, retry_after, false) {
            self.limit.on_throttled();
        } else if let Some(asked) = retry_after {
            self.wait_as_asked(now + asked.clamp(PAUSE_MIN, RETRY_AFTER_MAX));
        }
    }

    /// Another incident goes on, or the limit has just fallen: what the server asks for is kept to all the same.
    fn wait_as_asked(&mut self, asked: BootInstant) {
        let until = match self.lane {
            Lane::Paused { until, .. } | Lane::Probing { until } => until.max(asked),
            Lane::Open => asked,
        };
        self.lane = Lane::Paused {
            until,
            is_asked: true,
            then_probe: matches!(self.lane, Lane::Probing { .. } | Lane::Paused { then_probe: true, .. }),
        };
        // What is on the way was sent before it was asked: its answers do not open the lane.
        self.period += 1;
    }

    /// The server was not reached, or was in no state to answer.
    fn on_unavailable(&mut self, ticket: Ticket, now: BootInstant, retry_after: Option<Duration>) {
        self.begin_incident(ticket, now, retry_after, true);
    }

    /// The connection was lost, or there was no answer in time: an incident, unless the server has answered others since.
    fn on_lost(&mut self, ticket: Ticket, now: BootInstant) {
        let is_answering = self
            .last_answer
            .is_some_and(|answered| answered > ticket.sent && now.since(answered) < ANSWER_VALIDITY);
        if !is_answering || !self.may_pass_over(now) {
            self.begin_incident(ticket, now, None, true);
        }
    }

    fn may_pass_over(&mut self, now: BootInstant) -> bool {
        if now.since(self.lost_since) >= ANSWER_VALIDITY {
            self.lost_since = now;
            self.n_lost = 0;
        }
        self.n_lost = self.n_lost.saturating_add(1);
        self.n_lost <= LOST_MAX
    }

    /// Pauses the lane, unless this failure belongs to an incident that did so already.
    fn begin_incident(
        &mut self,
        ticket: Ticket,
        now: BootInstant,
        retry_after: Option<Duration>,
        then_probe: bool,
    ) -> bool {
        if ticket.period != self.period {
            return false;
        }
        let doubled = PAUSE_MIN.saturating_mul(1 << self.n_incidents_in_row.min(16));
        let pause = retry_after.map_or(doubled.min(PAUSE_MAX), |asked| asked.clamp(PAUSE_MIN, RETRY_AFTER_MAX));
        self.lane = Lane::Paused {
            until: now + pause,
            is_asked: retry_after.is_some(),
            then_probe,
        };
        self.n_incidents_in_row = self.n_incidents_in_row.saturating_add(1);
        self.period += 1;
        true
    }
}

#[cfg(test)]
mod tests;
