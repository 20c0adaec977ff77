//! The clocks: the wall clock is handed in, what waits and lags goes by tokio's, which tests pause.

use std::{fmt, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the wall time of the API server. Cheap to clone.
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
    /// A clock of somebody else's making.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> WallClock {
        WallClock { now: Arc::new(now) }
    }

    /// A clock that shows `start` now and goes with tokio's clock, so that it stands still where that is paused.
    pub fn starting_at(start: Timestamp) -> WallClock {
        let begun = instant();
        WallClock::new(move || {
            let elapsed = SignedDuration::try_from(instant().duration_since(begun)).unwrap_or(SignedDuration::MAX);
            start.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
        })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }
}

/// Tokio's time.
#[expect(clippy::disallowed_methods, reason = "this crate's one reading of tokio's clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}
