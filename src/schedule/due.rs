//! Computes the due slot: the built-in controller's estimate (B-9.1, B-9.2), and the exact slot of cronwheel (B-9.3).

use jiff::{SignedDuration, Timestamp};

use super::{
    fires::{Schedule, floor_second},
    zone::Zone,
};

/// The number of missed activations, in the built-in controller's three classes (B-9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// At most the due activation.
    None,
    /// Up to one hundred, by the estimate.
    Few,
    /// More than one hundred, by the estimate.
    Many,
}

/// The built-in controller's estimate (B-9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The slot that the built-in controller would start. It can be missing although one is due (B-9.3).
    pub slot: Option<Timestamp>,
    /// The class of missed activations.
    pub missed: Missed,
    /// The estimated number n of activations since the earliest time: 0 before the first, 1 at the first.
    pub activations: u64,
}

/// The schedule has no two activations at least a second apart (B-9.2 step 3), so it can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct NeverRuns;

/// The built-in controller classifies more activations than this as *many* (B-9.2 step 6).
const MISSED_FEW_MAX: u64 = 100;

/// The instant from which activations count (B-9.1).
///
/// A deadline whose start is before the earliest representable instant has no effect.
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

/// The built-in controller's most recent slot and its estimate of missed activations (B-9.2).
///
/// The cost does not grow with the number of activations: as in [`most_recent`], the loop of step 5 is skipped.
///
/// # Errors
///
/// Returns [`NeverRuns`] if the schedule has no first or second activation.
pub fn estimate(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Result<Estimate, NeverRuns> {
    let now = floor_second(now);
    // `None` is Go's zero time, which is before every `now`.
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
    // Activations are on whole seconds and ascend, so the gap of step 3 is at least one second.
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

/// The last activation at or before `now` in the chain of activations from `earliest`. Long gaps are skipped, so the
/// cost does not grow with the number of activations between.
///
/// Where the start of the chain matters, an `earliest` more than 30 years before `now` counts as 30 years before.
pub fn most_recent(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
    schedule
        .last_in_chain(floor_second(earliest), floor_second(now), local)
        .and_then(to_timestamp)
}

/// The first activation after `now` in the chain of activations from `earliest`. For `@every` this differs from the
/// first activation counted from `now`.
pub fn next_in_chain(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let base = most_recent(schedule, local, earliest, now).unwrap_or(earliest);
    schedule.next_after(base, local)
}

fn to_timestamp(unix_seconds: i64) -> Option<Timestamp> {
    Timestamp::from_second(unix_seconds).ok()
}

#[cfg(test)]
mod tests;
