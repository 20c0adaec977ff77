//! Estimates the offset of an API server's clock from its answers.

use jiff::{SignedDuration, Timestamp};

use super::signed;
use crate::shard::BootInstant;

/// Resolution of the `Date` header: whole seconds.
const DATE_RESOLUTION: SignedDuration = SignedDuration::from_secs(1);

/// Bounds of the API server's time minus this machine's boot clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerOffset {
    low: SignedDuration,
    high: SignedDuration,
}

impl ServerOffset {
    /// Bounds from one answer. The server set the date between the send and the receipt, and truncated it to whole
    /// seconds.
    pub(super) fn of_answer(sent: BootInstant, received: BootInstant, date: Timestamp) -> ServerOffset {
        let date = date.as_duration();
        ServerOffset {
            low: date - signed(received),
            high: date + DATE_RESOLUTION - signed(sent),
        }
    }

    /// The intersection of both bounds. If they contradict each other, one of the clocks has moved, and `later`
    /// replaces `self`.
    pub(super) fn and_then(self, later: ServerOffset) -> ServerOffset {
        let (low, high) = (self.low.max(later.low), self.high.min(later.high));
        if low > high {
            return later;
        }
        ServerOffset { low, high }
    }

    /// The distance of an offset from the bounds; positive if it is ahead of the server's clock.
    pub(super) fn excess_of(self, offset: SignedDuration) -> SignedDuration {
        if offset > self.high {
            offset - self.high
        } else if offset < self.low {
            offset - self.low
        } else {
            SignedDuration::ZERO
        }
    }

    pub(super) fn middle(self) -> SignedDuration {
        self.low + (self.high - self.low) / 2
    }
}
