//! The clock guard: decides which reading of the wall clock the controller uses.
//!
//! Pure: every reading and every answer is an argument. The guard makes two promises. A step of the wall clock of more
//! than [`STEP_MAX`] against the boot clock is not followed until answers of the API server confirm it. A difference
//! from the API server's clock beyond the tolerance is an alarm, which ends by itself when the clocks agree again.
//!
//! Connections may lead to different API servers, so each connection is judged by itself and the majority decides. The
//! clock of this machine counts as one vote: while half of the connections agree with it, there is no alarm.

mod server_offset;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use self::server_offset::ServerOffset;
use crate::{kube_api::http::ConnectionId, shard::BootInstant};

/// A larger difference between the progress of the wall clock and of the boot clock is a step, which is held.
pub const STEP_MAX: SignedDuration = SignedDuration::from_secs(1);

/// Number of answers over a connection that must agree before the guard uses them. A single answer may come from a
/// proxy's cache or from a server whose clock is being corrected.
const AGREEING_ANSWERS_MIN: u32 = 2;

/// If this many answers have no `Date`, and none has one, the server reports no time and the wall clock is trusted.
const UNDATED_ANSWERS_MIN: u32 = 3;

/// A connection without an answer for three probe intervals is closed or unused, and does not count.
const CONNECTION_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Number of connections that the guard stores: twice the six of a replica (four for writes, one for Events, one for
/// Leases), since all may have been replaced within [`CONNECTION_SILENCE_MAX`].
const N_CONNECTIONS_MAX: usize = 12;

/// Minimum interval between two replacements of connections whose clock contradicts this machine's. Six TLS handshakes
/// a minute are little for an API server. A replica with several connections to one wrong server fires again within a
/// minute.
const RETIREMENT_INTERVAL: Duration = Duration::from_secs(10);

/// Whether the controller may act by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockVerdict {
    /// The clocks have not been compared yet: no slot may be fired.
    Unknown,
    /// The difference from the API server's clock is within the tolerance.
    Fine,
    /// The difference from the API server's clock is too large: no slot may be fired.
    Alarm,
}

/// Estimate of the clock at the other end of a connection.
#[derive(Clone, Copy, Debug)]
struct ObservedConnection {
    /// `None` for all clients that do not identify their connections.
    id: Option<ConnectionId>,
    offset: ServerOffset,
    last_answer: BootInstant,
}

impl ObservedConnection {
    fn is_fresh(&self, now: BootInstant) -> bool {
        now.since(self.last_answer) < CONNECTION_SILENCE_MAX
    }

    fn has_agreeing_answers(&self) -> bool {
        self.offset.n_answers >= AGREEING_ANSWERS_MIN
    }
}

/// Compares the wall clock with the boot clock and with the API servers' clocks.
#[derive(Debug)]
pub struct ClockGuard {
    /// The tolerance against the API server's clock.
    pub skew_max: SignedDuration,
    /// Wall clock minus boot clock, as the controller uses it.
    offset: SignedDuration,
    /// Wall clock minus boot clock as read, after a step that no answer has confirmed.
    held: Option<SignedDuration>,
    connections: Vec<ObservedConnection>,
    has_date: bool,
    n_undated: u32,
    last_answer: Option<BootInstant>,
    last_retirement: Option<BootInstant>,
    verdict: ClockVerdict,
}

impl ClockGuard {
    /// Starts from a first reading of both clocks.
    pub fn new(skew_max: SignedDuration, wall: Timestamp, boot: BootInstant) -> ClockGuard {
        ClockGuard {
            skew_max,
            offset: wall.as_duration() - signed(boot),
            held: None,
            connections: Vec::with_capacity(N_CONNECTIONS_MAX),
            has_date: false,
            n_undated: 0,
            last_answer: None,
            last_retirement: None,
            verdict: ClockVerdict::Unknown,
        }
    }

    /// Returns the controller's time for one reading of both clocks.
    pub fn read(&mut self, wall: Timestamp, boot: BootInstant) -> Timestamp {
        let reading = wall.as_duration() - signed(boot);
        if (reading - self.offset).abs() <= STEP_MAX {
            self.offset = reading;
            self.held = None;
        } else {
            self.held = Some(reading);
        }
        Timestamp::from_duration(self.offset + signed(boot)).unwrap_or(wall)
    }

    /// Records an answer of the API server: when its request was sent, when it was received, and its `Date` together
    /// with the connection that it came over.
    pub fn observe(
        &mut self,
        sent: BootInstant,
        received: BootInstant,
        dated: Option<(Option<ConnectionId>, Timestamp)>,
    ) {
        self.last_answer = Some(received);
        let Some((connection, date)) = dated else {
            return self.observe_undated();
        };
        self.has_date = true;
        self.note(connection, received, ServerOffset::of_answer(sent, received, date));
        let is_borne_out = |guard: &ClockGuard, reading: SignedDuration| {
            guard.is_majority(|server| server.excess_of(reading).abs() <= server.excess_of(guard.offset).abs())
        };
        if let Some(reading) = self.held
            && is_borne_out(self, reading)
        {
            self.offset = reading;
            self.held = None;
        }
        if self.is_majority(|server| !self.is_near(server)) {
            self.verdict = ClockVerdict::Alarm;
        } else if self.is_half(|server| self.is_near(server)) {
            self.verdict = ClockVerdict::Fine;
        }
    }

    fn note(&mut self, id: Option<ConnectionId>, received: BootInstant, answer: ServerOffset) {
        if let Some(known) = self.connections.iter_mut().find(|known| known.id == id) {
            known.offset = known.offset.and_then(answer);
            known.last_answer = received;
            return;
        }
        self.connections.retain(|known| known.is_fresh(received));
        if self.connections.len() < N_CONNECTIONS_MAX {
            self.connections.push(ObservedConnection {
                id,
                offset: answer,
                last_answer: received,
            });
        }
    }

    fn observe_undated(&mut self) {
        self.n_undated = self.n_undated.saturating_add(1);
        if self.n_undated >= UNDATED_ANSWERS_MIN && !self.has_date {
            self.verdict = ClockVerdict::Fine;
            if let Some(reading) = self.held.take() {
                self.offset = reading;
            }
        }
    }

    /// Returns whether a connection must be replaced because its server's clock contradicts this machine's, and if so
    /// removes it here. The replacement may reach another server.
    pub fn retire(&mut self, id: ConnectionId, now: BootInstant) -> bool {
        let is_too_soon = self
            .last_retirement
            .is_some_and(|last| now.since(last) < RETIREMENT_INTERVAL);
        let place = self.connections.iter().position(|known| known.id == Some(id));
        let Some(place) = place.filter(|_| !is_too_soon) else {
            return false;
        };
        let known = &self.connections[place];
        if !known.has_agreeing_answers() || self.is_near(&known.offset) {
            return false;
        }
        self.connections.remove(place);
        self.last_retirement = Some(now);
        true
    }

    fn is_near(&self, server: &ServerOffset) -> bool {
        server.excess_of(self.offset).abs() <= self.skew_max
    }

    /// Whether more than half of the fresh connections have agreeing answers and satisfy `is_so`.
    fn is_majority(&self, is_so: impl Fn(&ServerOffset) -> bool) -> bool {
        2 * self.n_believed(is_so) > self.fresh().count()
    }

    /// Whether at least half of the fresh connections have agreeing answers and satisfy `is_so`.
    fn is_half(&self, is_so: impl Fn(&ServerOffset) -> bool) -> bool {
        2 * self.n_believed(is_so) >= self.fresh().count()
    }

    fn n_believed(&self, is_so: impl Fn(&ServerOffset) -> bool) -> usize {
        self.fresh()
            .filter(|known| known.has_agreeing_answers() && is_so(&known.offset))
            .count()
    }

    fn fresh(&self) -> impl Iterator<Item = &ObservedConnection> {
        let last_answer = self.last_answer;
        self.connections
            .iter()
            .filter(move |known| last_answer.is_some_and(|now| known.is_fresh(now)))
    }

    /// Returns whether the controller may act by its clock.
    pub fn verdict(&self) -> ClockVerdict {
        self.verdict
    }

    /// Returns whether a step of the wall clock is held, that is, not followed yet.
    pub fn is_holding_step(&self) -> bool {
        self.held.is_some()
    }

    /// Returns this machine's clock minus the API server's, to about half a second, better with many answers. With
    /// several servers it is the median, the smaller of two middle values: the one that decides on the alarm.
    pub fn skew(&self) -> Option<SignedDuration> {
        let agreeing = self.fresh().filter(|known| known.has_agreeing_answers());
        let mut skews: Vec<SignedDuration> = agreeing.map(|known| self.offset - known.offset.middle()).collect();
        skews.sort_unstable_by_key(|skew| skew.abs());
        skews.get(skews.len().saturating_sub(1) / 2).copied()
    }
}

fn signed(boot: BootInstant) -> SignedDuration {
    SignedDuration::try_from(boot.since_boot()).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests;
