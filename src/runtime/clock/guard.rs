//! The clock guard: decides which reading of the wall clock the controller may run by.
//!
//! Pure: every reading and every answer is an argument. It keeps two promises. A step of the wall clock of more than
//! [`STEP_MAX`] against the boot clock is not followed until answers of the API server bear it out. A clock that is
//! further from the API server's than the tolerance is an alarm, which ends by itself when the two agree again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::state::sharding::BootInstant;

/// A larger difference between the progress of the wall clock and of the boot clock is a step and is held.
pub const STEP_MAX: SignedDuration = SignedDuration::from_secs(1);

/// So many answers must agree before the guard believes them: one may come from a proxy's store or a server just off.
const AGREEING_ANSWERS_MIN: u32 = 2;

/// So many answers without a date, and none with one, mean that the server tells no time: then the wall clock is believed.
const UNDATED_ANSWERS_MIN: u32 = 3;

/// Without an answer for so long one is asked for: a clock that drifts by a second a minute is noticed in time.
const ANSWER_INTERVAL: Duration = Duration::from_secs(10);

/// The same while the clocks are in doubt. Not a divisor of a second, so that the answers narrow the skew down.
const DOUBT_ANSWER_INTERVAL: Duration = Duration::from_millis(270);

/// The `Date` of an answer has whole seconds.
const DATE_RESOLUTION: SignedDuration = SignedDuration::from_secs(1);

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

/// Where the API server's clock lies against our boot clock: its time minus ours, between these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServerOffset {
    low: SignedDuration,
    high: SignedDuration,
    n_answers: u32,
}

impl ServerOffset {
    /// The date was set at some instant between sending and receiving, and is cut to whole seconds.
    fn of_answer(sent: BootInstant, received: BootInstant, date: Timestamp) -> ServerOffset {
        let date = date.as_duration();
        ServerOffset {
            low: date - signed(received),
            high: date + DATE_RESOLUTION - signed(sent),
            n_answers: 1,
        }
    }

    /// What both leave possible; the later alone where they contradict each other, since one of the clocks has moved.
    fn and_then(self, later: ServerOffset) -> ServerOffset {
        let (low, high) = (self.low.max(later.low), self.high.min(later.high));
        if low > high {
            return later;
        }
        ServerOffset {
            low,
            high,
            n_answers: self.n_answers.saturating_add(1),
        }
    }

    /// How far an offset lies outside: positive when it is ahead of the server's.
    fn excess_of(&self, offset: SignedDuration) -> SignedDuration {
        if offset > self.high {
            offset - self.high
        } else if offset < self.low {
            offset - self.low
        } else {
            SignedDuration::ZERO
        }
    }

    fn middle(&self) -> SignedDuration {
        self.low + (self.high - self.low) / 2
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
    server: Option<ServerOffset>,
    n_undated: u32,
    last_answer: Option<BootInstant>,
    verdict: ClockVerdict,
}

impl ClockGuard {
    /// Starts from a first reading of both clocks; `skew_max` is the tolerance against the API server's clock.
    pub fn new(skew_max: SignedDuration, wall: Timestamp, boot: BootInstant) -> ClockGuard {
        ClockGuard {
            skew_max,
            offset: wall.as_duration() - signed(boot),
            held: None,
            server: None,
            n_undated: 0,
            last_answer: None,
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

    /// Takes note of an answer of the API server: when its request was sent, when it was received, and its `Date`.
    pub fn observe(&mut self, sent: BootInstant, received: BootInstant, date: Option<Timestamp>) {
        self.last_answer = Some(received);
        let Some(date) = date else {
            return self.observe_undated();
        };
        let answer = ServerOffset::of_answer(sent, received, date);
        let server = self.server.map_or(answer, |known| known.and_then(answer));
        self.server = Some(server);
        if server.n_answers < AGREEING_ANSWERS_MIN {
            return;
        }
        if let Some(reading) = self.held
            && server.excess_of(reading).abs() <= server.excess_of(self.offset).abs()
        {
            self.offset = reading;
            self.held = None;
        }
        let is_near = server.excess_of(self.offset).abs() <= self.skew_max;
        self.verdict = if is_near {
            ClockVerdict::Fine
        } else {
            ClockVerdict::Alarm
        };
    }

    fn observe_undated(&mut self) {
        self.n_undated = self.n_undated.saturating_add(1);
        if self.n_undated >= UNDATED_ANSWERS_MIN && self.server.is_none() {
            self.verdict = ClockVerdict::Fine;
            if let Some(reading) = self.held.take() {
                self.offset = reading;
            }
        }
    }

    /// Whether the controller may act by its clock.
    pub fn verdict(&self) -> ClockVerdict {
        self.verdict
    }

    /// Whether a step of the wall clock is being held.
    pub fn is_holding_step(&self) -> bool {
        self.held.is_some()
    }

    /// Our clock minus the API server's, to about half a second, less with many answers.
    pub fn skew(&self) -> Option<SignedDuration> {
        self.server.map(|server| self.offset - server.middle())
    }

    /// When the next answer is wanted at the latest, for want of others: soon while there is doubt.
    pub fn next_answer_wanted(&self, now: BootInstant) -> BootInstant {
        let is_in_doubt = self.verdict != ClockVerdict::Fine || self.held.is_some();
        let interval = if is_in_doubt {
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
