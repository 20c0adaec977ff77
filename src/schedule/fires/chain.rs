//! The last activation at or before an instant in the chain of activations from another, without walking the chain.
//!
//! An activation depends on the one before it (B-8.4), so a search cannot simply start near the chain's end. But where
//! path and answer see a single offset, the next activation is the first matching minute. From a chain member on, all
//! matching minutes up to the margin before the span's end are therefore members. Within an hour that matches, the path
//! needs no margin. Seeded tests compare the result with the plain walk.

use super::{AGE_MAX_SECONDS, Spec, next_of_spec, search, starts_undisturbed, undisturbed_until};
use crate::schedule::zone::Zone;

/// Jumps end here (2100-01-01T00:00:00Z). 2100 has no 29 February, and a chain can end because of that (B-8.1).
const JUMP_END_SECONDS: i64 = 4_102_444_800;

/// The last activation at or before `now` in the chain from `earliest`, in Unix seconds.
pub(super) fn last_until(spec: &Spec, zone: &Zone, earliest: i64, now: i64) -> Option<i64> {
    let (last, _) = last_and_steps(spec, zone, earliest, now);
    last
}

/// The last activation, and the number of jumps of the search for it.
fn last_and_steps(spec: &Spec, zone: &Zone, earliest: i64, now: i64) -> (Option<i64>, u32) {
    let mut at = earliest.max(now.saturating_sub(AGE_MAX_SECONDS));
    let (mut last, mut n_steps) = (None, 0);
    loop {
        n_steps += 1;
        if let Some(member) = jump(spec, zone, at, now) {
            (at, last) = (member, Some(member));
        }
        match next_of_spec(spec, zone, at) {
            Some(next) if next <= now => (at, last) = (next, Some(next)),
            _ => return (last, n_steps),
        }
    }
}

/// The last member in the same span after a chain member, or after the chain's reference. If a change of the offset is
/// near, the last member in the same hour.
fn jump(spec: &Spec, zone: &Zone, from: i64, now: i64) -> Option<i64> {
    let span = zone.span_at(from);
    if span.offset % 60 != 0 {
        return None;
    }
    let wall_min = from + 1 + span.offset;
    let hour_end = wall_min - wall_min.rem_euclid(3_600) + 3_599 - span.offset;
    let mut limit = hour_end.min(span.end - 1);
    if starts_undisturbed(spec, &span, from) {
        limit = limit.max(undisturbed_until(&span).min(JUMP_END_SECONDS));
    }
    let wall = search::last_until(spec, limit.min(now) + span.offset, wall_min)?;
    Some(wall - span.offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fires::tests::spec;

    #[test]
    fn the_steps_to_the_last_slot_are_bounded_after_thirty_years() {
        // Near a change of the offset each hour takes a step: 76 hours for each of 130 changes.
        const STEPS_EXPECTED_MAX: u32 = 10_000;
        for text in [
            "0 0 30 2 *",
            "0 0 29 2 1",
            "* * * 1 *",
            "*/7 * * * 0-5",
            "* * 1 * 1",
            "0 2 * * *",
            "0 * * * *",
        ] {
            for name in [
                "Africa/Casablanca",
                "America/Havana",
                "Antarctica/Troll",
                "Australia/Lord_Howe",
                "Pacific/Apia",
            ] {
                let (spec, zone) = (spec(text), Zone::load(name).unwrap());
                for now in [1_770_000_000, 2_800_000_000] {
                    let (_, n_steps) = last_and_steps(&spec, &zone, now - AGE_MAX_SECONDS, now);
                    assert!(n_steps <= STEPS_EXPECTED_MAX, "{text} in {name} until {now}: {n_steps}");
                }
            }
        }
    }
}
