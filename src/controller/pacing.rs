//! The number of requests that one lane may have in flight, and its pauses, learned from the API server's answers
//! alone.
//!
//! Pure: instants are arguments. After "too many requests" the lane pauses for as long as the server requires. After a
//! connection failure the pauses grow, and then single probes go out, one per second, until a request is answered.
//! Requests that fail together are one incident: only failures of requests sent since the last incident count. A
//! connection that is lost while the server answers over others is no incident.

use std::time::Duration;

use crate::{
    kube_api::{Answer, Answered},
    shard::{BootInstant, back_off::BackOff},
};

mod limit;
mod send_instants;

use limit::InFlightLimit;
pub use send_instants::{RECENT_MAX, SendInstants};

/// The first pause if the server names none; each further incident in a row doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The maximum pause that the lane chooses by itself: a server that is back is noticed within it.
const PAUSE_MAX: Duration = Duration::from_secs(5);

const PAUSES: BackOff = BackOff {
    first: PAUSE_MIN,
    longest: PAUSE_MAX,
};

/// The maximum pause that a server can require: an absurd `Retry-After` must not stop the controller.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);

/// How long the lane waits for the answer to a probe before it sends the next request as another probe. The first may
/// hang on a dead connection for as long as a request may take.
const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// For this time after an answer, a lost connection is not evidence of a server failure.
const ANSWER_VALIDITY: Duration = Duration::from_secs(1);

/// Number of lost requests within [`ANSWER_VALIDITY`] that are ignored, as many as one connection carries; more are an
/// incident.
const LOST_MAX: u32 = 96;

/// The incident-free period in which a request was sent, and the instant of the send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    period: u64,
    pub(super) sent: BootInstant,
}

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A request may be sent now.
    Now,
    /// No request may be sent before this instant.
    Wait(BootInstant),
    /// No request may be sent until one in flight is answered.
    Full,
}

/// The last pause of a lane, which may be over. While a probe is in flight, it is a pause of [`PROBE_PATIENCE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LanePause {
    until: BootInstant,
    /// Whether the server required the pause.
    is_required: bool,
    /// Whether the server did not answer or was unable to: single probes follow until a request is answered.
    then_probe: bool,
}

impl LanePause {
    const NONE: LanePause = LanePause {
        until: BootInstant::after_boot(Duration::ZERO),
        is_required: false,
        then_probe: false,
    };
}

/// The pace of one lane.
#[derive(Debug)]
pub struct Pacer {
    limit: InFlightLimit,
    pause: LanePause,
    period: u64,
    n_incidents_in_row: u32,
    last_answer: Option<BootInstant>,
    /// The instant since which lost requests are counted. `n_lost` is their number.
    lost_since: BootInstant,
    n_lost: u32,
}

impl Pacer {
    /// Creates a pacer with at most `in_flight_max` requests in flight.
    pub fn new(in_flight_max: u32) -> Pacer {
        Pacer {
            limit: InFlightLimit::new(in_flight_max),
            pause: LanePause::NONE,
            period: 0,
            n_incidents_in_row: 0,
            last_answer: None,
            lost_since: BootInstant::after_boot(Duration::ZERO),
            n_lost: 0,
        }
    }

    /// Returns the present limit of requests in flight.
    pub fn in_flight_limit(&self) -> u32 {
        self.limit.get()
    }

    /// Divides the initial limit among `n_senders` replicas.
    pub fn share_among(&mut self, n_senders: u32) {
        self.limit.share_among(n_senders);
    }

    /// Returns whether one more request may be sent while `n_in_flight` are in flight.
    pub fn admission(&self, now: BootInstant, n_in_flight: u32) -> Admission {
        if now < self.pause.until {
            Admission::Wait(self.pause.until)
        } else if n_in_flight >= self.limit.get() && !self.pause.then_probe {
            Admission::Full
        } else {
            // Requests in flight from before the incident do not delay the probe.
            Admission::Now
        }
    }

    /// Records that an admitted request is sent.
    pub fn on_sent(&mut self, now: BootInstant) -> Ticket {
        if self.pause.then_probe {
            self.pause = LanePause {
                until: now + PROBE_PATIENCE,
                is_required: false,
                then_probe: true,
            };
        }
        Ticket {
            period: self.period,
            sent: now,
        }
    }

    /// Learns from the result of a request after `latency`, while `n_in_flight` others are in flight.
    pub fn on_answered<T>(
        &mut self,
        ticket: Ticket,
        answered: &Answered<T>,
        now: BootInstant,
        latency: Duration,
        n_in_flight: u32,
    ) {
        match (&answered.answer, answered.code) {
            (Answer::Outcome(_), Some(_)) => self.on_outcome(ticket, latency, n_in_flight),
            // A request that was given up without an answer proves neither that the server answers nor that it does
            // not.
            (Answer::Outcome(_), None) => {}
            (Answer::Throttled { retry_after, .. }, _) => self.on_throttled(ticket, now, *retry_after),
            (Answer::Unavailable { retry_after, .. }, Some(_)) => self.on_unavailable(ticket, now, *retry_after),
            (Answer::Unavailable { .. }, None) => self.on_lost(ticket, now),
        }
    }

    /// The server executed the request, or refused it for reasons other than load.
    fn on_outcome(&mut self, ticket: Ticket, latency: Duration, n_in_flight: u32) {
        self.last_answer = self.last_answer.max(Some(ticket.sent + latency));
        if ticket.period != self.period {
            return self.end_probing();
        }
        self.pause = LanePause::NONE;
        self.n_incidents_in_row = 0;
        self.limit.on_outcome(latency, n_in_flight);
    }

    /// An answer to a request from before the pause proves that the server answers. A pause that the server required
    /// continues.
    fn end_probing(&mut self) {
        if self.pause.is_required {
            self.pause.then_probe = false;
        } else if self.pause.then_probe {
            self.pause = LanePause::NONE;
        }
    }

    /// The server answered "too many requests".
    fn on_throttled(&mut self, ticket: Ticket, now: BootInstant, retry_after: Option<Duration>) {
        if self.begin_incident(ticket, now, retry_after, false) {
            self.limit.on_throttled();
        } else if let Some(required) = retry_after {
            self.wait_as_required(now + required.clamp(PAUSE_MIN, RETRY_AFTER_MAX));
        }
    }

    /// Another incident is in progress, or the limit has just been lowered. The server's `Retry-After` is respected in
    /// any case.
    fn wait_as_required(&mut self, required: BootInstant) {
        self.pause.until = self.pause.until.max(required);
        self.pause.is_required = true;
        // The requests in flight were sent before the pause was required, so their answers do not open the lane.
        self.period += 1;
    }

    /// The server was unable to answer.
    fn on_unavailable(&mut self, ticket: Ticket, now: BootInstant, retry_after: Option<Duration>) {
        self.begin_incident(ticket, now, retry_after, true);
    }

    /// The connection was lost or the request timed out: an incident, unless the server has answered other requests
    /// since.
    fn on_lost(&mut self, ticket: Ticket, now: BootInstant) {
        let is_answering = self
            .last_answer
            .is_some_and(|answered| answered > ticket.sent && now.since(answered) < ANSWER_VALIDITY);
        if !is_answering || self.count_lost(now) > LOST_MAX {
            self.begin_incident(ticket, now, None, true);
        }
    }

    /// Counts a lost request. Returns how many were lost lately.
    fn count_lost(&mut self, now: BootInstant) -> u32 {
        if now.since(self.lost_since) >= ANSWER_VALIDITY {
            self.lost_since = now;
            self.n_lost = 0;
        }
        self.n_lost = self.n_lost.saturating_add(1);
        self.n_lost
    }

    /// Pauses the lane and returns true, unless this failure belongs to an incident that already paused it.
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
        self.n_incidents_in_row = self.n_incidents_in_row.saturating_add(1);
        let chosen = PAUSES.after(self.n_incidents_in_row);
        let pause = retry_after.map_or(chosen, |required| required.clamp(PAUSE_MIN, RETRY_AFTER_MAX));
        self.pause = LanePause {
            until: now + pause,
            is_required: retry_after.is_some(),
            then_probe,
        };
        self.period += 1;
        true
    }
}

#[cfg(test)]
mod tests;
