//! The clock guard: decides which reading of the wall clock the controller uses.
//!
//! Pure: every reading and every answer is an argument. The guard makes two promises. A step of the wall clock of more
//! than [`STEP_MAX`] against the boot clock is not followed until answers of the API server confirm it. A difference
//! from the API server's clock beyond the tolerance is an alarm, which ends by itself when the clocks agree again.
//!
//! Connections may lead to different API servers. A round of probes has one answer over each connection. Ordered by
//! their distance from this machine's clock, the middle one, or the nearer of two, stands for the API server's clock. An
//! alarm therefore needs more than half of them.

mod server_offset;

use jiff::{SignedDuration, Timestamp};

use self::server_offset::ServerOffset;
use crate::{controller::connections::N_WRITE_CONNECTIONS, shard::BootInstant};

/// A larger difference between the progress of the wall clock and of the boot clock is a step, which is held.
pub const STEP_MAX: SignedDuration = SignedDuration::from_secs(1);

/// A round with fewer answers does not count: one server could decide alone.
const ANSWERS_MIN: usize = N_WRITE_CONNECTIONS / 2;

/// If the clock drifts by more than this since the last round, the next round is due. Several steps below [`STEP_MAX`]
/// would otherwise add up unnoticed.
const DRIFT_MAX: SignedDuration = SignedDuration::from_millis(500);

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

/// An answer to a probe.
#[derive(Clone, Copy, Debug)]
pub struct ProbeAnswer {
    /// When the probe was sent.
    pub sent: BootInstant,
    /// When the answer was received.
    pub received: BootInstant,
    /// Its `Date`.
    pub date: Option<Timestamp>,
}

impl ProbeAnswer {
    fn server(&self) -> Option<ServerOffset> {
        let date = self.date?;
        Some(ServerOffset::of_answer(self.sent, self.received, date))
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
    /// `offset` at the last round of probes.
    compared: SignedDuration,
    /// The estimate of the API server's clock.
    server: Option<ServerOffset>,
    verdict: ClockVerdict,
}

impl ClockGuard {
    /// Starts from a first reading of both clocks.
    pub fn new(skew_max: SignedDuration, wall: Timestamp, boot: BootInstant) -> ClockGuard {
        let offset = wall.as_duration() - signed(boot);
        ClockGuard {
            skew_max,
            offset,
            held: None,
            compared: offset,
            server: None,
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

    /// Records the answers to a round of probes.
    pub fn observe(&mut self, round: &[ProbeAnswer]) {
        let mut servers: Vec<ServerOffset> = round.iter().filter_map(ProbeAnswer::server).collect();
        if round.len() < ANSWERS_MIN {
            return;
        }
        self.compared = self.offset;
        servers.sort_by_key(|server| server.excess_of(self.offset).abs());
        match servers.get(servers.len().saturating_sub(1) / 2) {
            Some(median) => self.judge(self.server.map_or(*median, |known| known.and_then(*median))),
            None => self.observe_undated(),
        }
    }

    /// Whether the clock of the server that answered is too far from this machine's.
    pub fn contradicts(&self, answer: &ProbeAnswer) -> bool {
        answer.server().is_some_and(|server| !self.is_near(server))
    }

    fn judge(&mut self, server: ServerOffset) {
        self.server = Some(server);
        if let Some(reading) = self.held
            && server.excess_of(reading).abs() < server.excess_of(self.offset).abs()
        {
            self.offset = reading;
            self.held = None;
        }
        self.verdict = if self.is_near(server) {
            ClockVerdict::Fine
        } else {
            ClockVerdict::Alarm
        };
    }

    /// A server that reported no time so far: the wall clock is trusted.
    fn observe_undated(&mut self) {
        if self.server.is_none() {
            self.verdict = ClockVerdict::Fine;
            if let Some(reading) = self.held.take() {
                self.offset = reading;
            }
        }
    }

    fn is_near(&self, server: ServerOffset) -> bool {
        server.excess_of(self.offset).abs() <= self.skew_max
    }

    /// Returns whether the controller may act by its clock.
    pub fn verdict(&self) -> ClockVerdict {
        self.verdict
    }

    /// Returns whether the clocks must be compared soon.
    pub fn is_in_doubt(&self) -> bool {
        let has_drifted = (self.offset - self.compared).abs() > DRIFT_MAX;
        self.verdict != ClockVerdict::Fine || self.held.is_some() || has_drifted
    }

    /// Returns whether a step of the wall clock is held, that is, not followed yet.
    pub fn is_holding_step(&self) -> bool {
        self.held.is_some()
    }

    /// Returns this machine's clock minus the API server's, to about half a second, better with many answers.
    pub fn skew(&self) -> Option<SignedDuration> {
        self.server.map(|server| self.offset - server.middle())
    }
}

fn signed(boot: BootInstant) -> SignedDuration {
    SignedDuration::try_from(boot.since_boot()).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests;
