//! Which slot is due: B-9.1 and B-9.2 as the built-in controller has them, and the exact slot that we use (B-9.3).

use jiff::{SignedDuration, Timestamp};

use super::{
    fires::{Schedule, floor_second},
    zone::Zone,
};

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

/// More activations than this are *many*, by the built-in's estimate (B-9.2 step 6).
const MISSED_FEW_MAX: u64 = 100;

/// The instant from which activations count (B-9.1).
///
/// A deadline that reaches back beyond what can be told has no effect.
pub fn earliest_time(
    created: Timestamp,
    last_schedule_time: Option<Timestamp>,
    starting_deadline_seconds: Option<i64>,
    now: Timestamp,
) -> Timestamp {
    let earliest = last_schedule_time.unwrap_or(created);
    let deadline =
        starting_deadline_seconds.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
    deadline.map_or(earliest, |deadline| deadline.max(earliest))
}

/// The built-in's most recent slot and its estimate of missed ones (B-9.2).
///
/// Its cost does not grow with the number of activations either: the walk of step 5 is jumped over as in
/// [`most_recent`].
pub fn estimate(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Result<Estimate, NeverRuns> {
    let now = floor_second(now);
    // Go's zero time, for "none", lies before every `now`.
    let first = schedule.next_second(floor_second(earliest), local).ok_or(NeverRuns)?;
    if now < first {
        return Ok(Estimate {
            slot: None,
            missed: Missed::None,
            activations: 0,
        });
    }
    let second = schedule.next_second(first, local).ok_or(NeverRuns)?;
    if now < second {
        return Ok(Estimate {
            slot: to_timestamp(first),
            missed: Missed::None,
            activations: 1,
        });
    }
    // Activations lie on whole seconds and ascend, so that the gap of step 3 is one second at least.
    let gap = second - first;
    let activations = (now - first) / gap + 1;
    let start = first + (activations - 2) * gap;
    let activations = activations.unsigned_abs();
    let missed = if activations > MISSED_FEW_MAX {
        Missed::Many
    } else {
        Missed::Few
    };
    Ok(Estimate {
        slot: schedule.last_in_chain(start, now, local).and_then(to_timestamp),
        missed,
        activations,
    })
}

/// The last activation not after `now` in the chain of activations from `earliest`. Long gaps are
/// jumped over: the cost does not grow with the number of activations between.
///
/// What lies more than 30 years before `now` counts as 30 years ago, where that makes a difference.
pub fn most_recent(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
    schedule
        .last_in_chain(floor_second(earliest), floor_second(now), local)
        .and_then(to_timestamp)
}

/// The first activation after `now` in the chain of activations from `earliest`, which for `@every` is not the same as
/// the first from `now`.
pub fn next_in_chain(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let base = most_recent(schedule, local, earliest, now).unwrap_or(earliest);
    schedule.next_after(base, local)
}

fn to_timestamp(unix_seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(unix_seconds).ok()
}

#[cfg(test)]
mod tests;
