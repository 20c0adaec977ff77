//! What the answers of one API server say about its clock.

use jiff::{SignedDuration, Timestamp};

use super::signed;
use crate::shard::BootInstant;

/// The `Date` of an answer has whole seconds.
const DATE_RESOLUTION: SignedDuration = SignedDuration::from_secs(1);

/// Where the API server's clock lies against our boot clock: its time minus ours, between these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerOffset {
    low: SignedDuration,
    high: SignedDuration,
    pub(super) n_answers: u32,
}

impl ServerOffset {
    /// The date was set at some instant between sending and receiving, and is cut to whole seconds.
    pub(super) fn of_answer(sent: BootInstant, received: BootInstant, date: Timestamp) -> ServerOffset {
        let date = date.as_duration();
        ServerOffset {
            low: date - signed(received),
            high: date + DATE_RESOLUTION - signed(sent),
            n_answers: 1,
        }
    }

    /// What both leave possible; the later alone where they contradict each other, since one of the clocks has moved.
    pub(super) fn and_then(self, later: ServerOffset) -> ServerOffset {
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
    pub(super) fn excess_of(&self, offset: SignedDuration) -> SignedDuration {
        if offset > self.high {
            offset - self.high
        } else if offset < self.low {
            offset - self.low
        } else {
            SignedDuration::ZERO
        }
    }

    pub(super) fn middle(&self) -> SignedDuration {
        self.low + (self.high - self.low) / 2
    }
}
