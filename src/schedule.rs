//! Layer 1, pure: parsed schedules, the slot that is due, and the decision whether it starts.
//!
//! Uses the standard library, jiff's zone data, and `cron` for the option `schedule`. Reads no clock: `now` is an argument everywhere.

pub mod busy;
pub mod change_day;
pub mod clock_change;
mod concurrency;
pub mod cron;
pub mod describe;
pub mod due;
pub mod effective;
mod exclusion;
pub mod fires;
pub mod options;
pub mod policy;
pub mod thaw;
pub mod wheel;
mod with_second;
pub mod zone;

pub use clock_change::ClockChange;
pub use concurrency::ConcurrencyPolicy;
pub use cron::{ParseError, parse_standard, quote};
pub use effective::CronJobSchedule;
pub use exclusion::Exclusion;
pub use fires::{SCHEDULES_MAX, SCHEDULES_MAX_BYTES, Schedule, SchedulesError};
pub use zone::{Zone, ZoneError, tzdb_version};

use jiff::{SignedDuration, Timestamp};

/// The last instant before another.
pub(crate) fn just_before(instant: Timestamp) -> Timestamp {
    after(instant, SignedDuration::from_nanos(-1))
}

/// `instant` plus `wait`, clamped to [`Timestamp::MAX`].
pub(crate) fn after(instant: Timestamp, wait: SignedDuration) -> Timestamp {
    instant.checked_add(wait).unwrap_or(Timestamp::MAX)
}
