//! Which slot is due: B-9.1 and B-9.2 as the built-in controller has them, and the exact slot that we use (B-9.3).

use jiff::Timestamp;

use super::{fires::Schedule, zone::Zone};

/// How many activations were missed, in the built-in's three classes (B-9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// At most the due one.
    None,
    /// Up to one hundred by the estimate.
    Few,
    /// More than one hundred by the estimate.
    Many,
}

/// What the built-in controller's estimate gives (B-9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The slot that the built-in would start; it may lose one (B-9.3).
    pub slot: Option<Timestamp>,
    /// Its class of missed activations.
    pub missed: Missed,
    /// Its estimate n of the number of activations since the earliest time; 0 before the first, 1 at the first.
    pub activations: u64,
}

/// The schedule yields no two activations a second apart (B-9.2 step 3): it can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct NeverRuns;

/// The instant from which activations count (B-9.1).
pub fn earliest_time(
    _created: Timestamp,
    _last_schedule_time: Option<Timestamp>,
    _starting_deadline_seconds: Option<i64>,
    _now: Timestamp,
) -> Timestamp {
    todo!()
}

/// The built-in's most recent slot and its estimate of missed ones (B-9.2).
pub fn estimate(
    _schedule: &Schedule,
    _local: &Zone,
    _earliest: Timestamp,
    _now: Timestamp,
) -> Result<Estimate, NeverRuns> {
    todo!()
}

/// The last activation not after `now` in the chain of activations from `earliest`. Long gaps are
/// jumped over: the cost does not grow with the number of activations between.
pub fn most_recent(_schedule: &Schedule, _local: &Zone, _earliest: Timestamp, _now: Timestamp) -> Option<Timestamp> {
    todo!()
}
