//! The clock guard: decides which reading of the wall clock the controller may run by.
//!
//! Pure: every reading and every answer is an argument. It keeps two promises. A step of the wall clock of more than
//! [`STEP_MAX`] against the boot clock is not followed until answers of the API server bear it out. A clock that is
//! further from the API server's than the tolerance is an alarm, which ends by itself when the two agree again.
//!
//! Connections may lead to different API servers, so each is judged by itself and the majority decides. Our own clock
//! counts as one voice: while half of the connections agree with it, there is no alarm.

mod server_offset;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use self::server_offset::ServerOffset;
use crate::{kube_api::http::ConnectionId, shard::BootInstant};

/// A larger difference between the progress of the wall clock and of the boot clock is a step and is held.
pub const STEP_MAX: SignedDuration = SignedDuration::from_secs(1);

/// So many answers over a connection must agree before the guard believes them: one may come from a proxy's store or a
/// server just off.
const AGREEING_ANSWERS_MIN: u32 = 2;

/// So many answers without a date, and none with one, mean that the server tells no time: then the wall clock is believed.
const UNDATED_ANSWERS_MIN: u32 = 3;

/// Without an answer for so long one is asked for: a clock that drifts by a second a minute is noticed in time.
const ANSWER_INTERVAL: Duration = Duration::from_secs(10);

/// The same while the clocks are in doubt. Not a divisor of a second, so that the answers narrow the skew down.
const DOUBT_ANSWER_INTERVAL: Duration = Duration::from_millis(270);

/// A connection that has not answered for three probe intervals is closed or unused, and does not count.
const CONNECTION_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Connections that are remembered: twice the six of a replica (four for writes, one for Events, one for Leases), since
/// all may have been replaced within [`CONNECTION_SILENCE_MAX`].
const N_CONNECTIONS_MAX: usize = 12;

/// Connections that contradict our clock are replaced at most so often: six TLS handshakes a minute are little for an API
/// server, and a replica that reached one wrong server several times by chance fires again within a minute.
const RETIREMENT_INTERVAL: Duration = Duration::from_secs(10);

/// Whether the controller may act by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockVerdict {
    /// Not compared yet: nothing may be fired.
    Unknown,
    /// Near enough to the API server's.
    Fine,
    /// Too far from the API server's: nothing may be fired.
    Alarm,
}

/// What is known of the clock at the other end of a connection.
#[derive(Clone, Copy, Debug)]
struct ObservedConnection {
    /// `None` for all clients that do not tell their connections apart.
    id: Option<ConnectionId>,
    offset: ServerOffset,
    last_answer: BootInstant,
}

impl ObservedConnection {
    fn is_fresh(&self, now: BootInstant) -> bool {
        now.since(self.last_answer) < CONNECTION_SILENCE_MAX
    }

    fn is_believed(&self) -> bool {
        self.offset.n_answers >= AGREEING_ANSWERS_MIN
    }
}

/// See the module.
#[derive(Debug)]
pub struct ClockGuard {
    skew_max: SignedDuration,
    /// Wall clock minus boot clock as we go by it.
    offset: SignedDuration,
    /// Wall clock minus boot clock as it reads, while that is a step that nothing has borne out.
    held: Option<SignedDuration>,
    connections: Vec<ObservedConnection>,
    has_date: bool,
    n_undated: u32,
    last_answer: Option<BootInstant>,
    last_retirement: Option<BootInstant>,
    verdict: ClockVerdict,
}

impl ClockGuard {
    /// Starts from a first reading of both clocks; `skew_max` is the tolerance against the API server's clock.
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

    /// The tolerance against the API server's clock.
    pub fn skew_max(&self) -> SignedDuration {
        self.skew_max
    }

    /// The time to go by, for one reading of both clocks.
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

    /// Takes note of an answer of the API server: when its request was sent, when it was received, and its `Date` with
    /// the connection that it came over.
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

    /// Whether a connection is to be replaced because its server's clock contradicts ours. The replacement may reach
    /// another server.
    pub fn retire(&mut self, id: ConnectionId, now: BootInstant) -> bool {
        let is_too_soon = self
            .last_retirement
            .is_some_and(|last| now.since(last) < RETIREMENT_INTERVAL);
        let place = self.connections.iter().position(|known| known.id == Some(id));
        let Some(place) = place.filter(|_| !is_too_soon) else {
            return false;
        };
        let known = &self.connections[place];
        if !known.is_believed() || self.is_near(&known.offset) {
            return false;
        }
        self.connections.remove(place);
        self.last_retirement = Some(now);
        true
    }

    fn is_near(&self, server: &ServerOffset) -> bool {
        server.excess_of(self.offset).abs() <= self.skew_max
    }

    /// Whether this is believed of more than half of the connections.
    fn is_majority(&self, is_so: impl Fn(&ServerOffset) -> bool) -> bool {
        2 * self.n_believed(is_so) > self.fresh().count()
    }

    /// Whether this is believed of at least half of the connections.
    fn is_half(&self, is_so: impl Fn(&ServerOffset) -> bool) -> bool {
        2 * self.n_believed(is_so) >= self.fresh().count()
    }

    fn n_believed(&self, is_so: impl Fn(&ServerOffset) -> bool) -> usize {
        self.fresh()
            .filter(|known| known.is_believed() && is_so(&known.offset))
            .count()
    }

    fn fresh(&self) -> impl Iterator<Item = &ObservedConnection> {
        let last_answer = self.last_answer;
        self.connections
            .iter()
            .filter(move |known| last_answer.is_some_and(|now| known.is_fresh(now)))
    }

    /// Whether the controller may act by its clock.
    pub fn verdict(&self) -> ClockVerdict {
        self.verdict
    }

    /// Whether a step of the wall clock is being held.
    pub fn is_holding_step(&self) -> bool {
        self.held.is_some()
    }

    /// Our clock minus the API server's, to about half a second, less with many answers. Of several servers the one in
    /// the middle, the nearer of two, which is the one that decides on the alarm.
    pub fn skew(&self) -> Option<SignedDuration> {
        let believed = self.fresh().filter(|known| known.is_believed());
        let mut skews: Vec<SignedDuration> = believed.map(|known| self.offset - known.offset.middle()).collect();
        skews.sort_unstable_by_key(|skew| skew.abs());
        skews.get(skews.len().saturating_sub(1) / 2).copied()
    }

    /// Whether answers are wanted soon.
    fn is_in_doubt(&self) -> bool {
        self.verdict != ClockVerdict::Fine || self.held.is_some()
    }

    /// When the next answer is wanted at the latest, for want of others: soon while there is doubt.
    pub fn next_answer_wanted(&self, now: BootInstant) -> BootInstant {
        let interval = if self.is_in_doubt() {
            DOUBT_ANSWER_INTERVAL
        } else {
            ANSWER_INTERVAL
        };
        self.last_answer.map_or(now, |last| last + interval)
    }
}

fn signed(boot: BootInstant) -> SignedDuration {
    SignedDuration::try_from(boot.since_boot()).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests;
