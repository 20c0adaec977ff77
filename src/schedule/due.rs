//! Computes the due slot exactly (B-9.1, B-9.3), and whether the built-in controller would count many missed slots
//! (B-9.2).

use jiff::{SignedDuration, Timestamp};

use super::{
    fires::{Schedule, floor_second},
    zone::Zone,
};

/// The schedule has no two activations at least a second apart (B-9.2 step 3), so it can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub struct NeverRuns;

/// The built-in controller classifies more activations than this as *many* (B-9.2 step 6).
const MISSED_FEW_MAX: i64 = 100;

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

/// Whether the built-in controller would count more than a hundred activations from `earliest` to `now` (B-9.2). It
/// takes the gap between the first two activations for the gap between all.
///
/// # Errors
///
/// Returns [`NeverRuns`] if the schedule has no first or second activation.
pub fn is_many_missed(
    schedule: &Schedule,
    local: &Zone,
    earliest: Timestamp,
    now: Timestamp,
) -> Result<bool, NeverRuns> {
    let now = floor_second(now);
    // `None` is Go's zero time, which is before every `now`. The option `schedule` may name some years only (O-5.6).
    let end = || if schedule.may_end() { Ok(false) } else { Err(NeverRuns) };
    let Some(first) = schedule.next_second(floor_second(earliest), local) else {
        return end();
    };
    if now < first {
        return Ok(false);
    }
    let Some(second) = schedule.next_second(first, local) else {
        return end();
    };
    // Activations are on whole seconds and ascend, so the gap of step 3 is at least one second.
    let n_activations = (now - first) / (second - first) + 1;
    Ok(n_activations > MISSED_FEW_MAX)
}

/// The last activation at or before `now` in the chain of activations from `earliest`. The cost grows with the number of
/// zone changes between, and not with the number of activations.
///
/// Where the start of the chain matters, an `earliest` more than 30 years before `now` counts as 30 years before.
pub fn most_recent(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
    schedule
        .last_in_chain(floor_second(earliest), floor_second(now), local)
        .and_then(|second| Timestamp::from_second(second).ok())
}

/// The first activation after `now` in the chain of activations from `earliest`. For `@every` this differs from the
/// first activation counted from `now`.
pub fn next_in_chain(schedule: &Schedule, local: &Zone, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let base = most_recent(schedule, local, earliest, now).unwrap_or(earliest);
    schedule.next_after(base, local)
}

#[cfg(test)]
mod tests;
