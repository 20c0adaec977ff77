//! Clocks. The caller supplies the wall clock. Waits and lags use tokio's clock, which tests can pause.

use std::{fmt, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The wall clock of the API server. Cheap to clone.
#[derive(Clone)]
pub struct WallClock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl fmt::Debug for WallClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("WallClock").field(&self.now()).finish()
    }
}

impl WallClock {
    /// Creates a clock from a function.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> WallClock {
        WallClock { now: Arc::new(now) }
    }

    /// Creates a clock that starts at `start` and advances with tokio's clock. It stands still while tokio's clock is
    /// paused.
    pub fn starting_at(start: Timestamp) -> WallClock {
        let begun = instant();
        WallClock::new(move || {
            let elapsed = SignedDuration::try_from(instant().duration_since(begun)).unwrap_or(SignedDuration::MAX);
            start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
        })
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }
}

/// Returns the current time on tokio's clock.
#[expect(clippy::disallowed_methods, reason = "this crate's one reading of tokio's clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}
