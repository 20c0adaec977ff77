//! Activations at every instant at which the zone's clock shows a matching time (O-5.2): none for a skipped time, and two
//! for a repeated one.

use super::{AGE_MAX_SECONDS, OFFSETS_APART_MAX_SECONDS, WallTimes};
use crate::schedule::zone::Zone;

/// The first activation after an instant, in Unix seconds.
pub(super) fn next_after(times: &impl WallTimes, zone: &Zone, reference: i64) -> Option<i64> {
    let mut from = reference + 1;
    // The result of the latest search, and the time after which it searched.
    let mut found: Option<(i64, Option<i64>)> = None;
    loop {
        let span = zone.whole_span_at(from);
        let before = from + span.offset - 1;
        let is_covered = |(after, next): &(i64, Option<i64>)| *after <= before && next.is_none_or(|next| before < next);
        let (after, next) = found
            .filter(is_covered)
            .unwrap_or_else(|| (before, times.first_after(before)));
        if let Some(next) = next.filter(|next| next - span.offset < span.end) {
            return Some(next - span.offset);
        }
        if span.end == i64::MAX {
            return None;
        }
        found = Some((after, next));
        from = span.end;
        // From here on the clock shows only times after those that the search has passed.
        if from > after + OFFSETS_APART_MAX_SECONDS {
            from = from.max(next? - OFFSETS_APART_MAX_SECONDS);
        }
    }
}

/// The last activation after `earliest` and at or before `now`, in Unix seconds.
pub(super) fn last_until(times: &impl WallTimes, zone: &Zone, earliest: i64, now: i64) -> Option<i64> {
    let earliest = earliest.max(now.saturating_sub(AGE_MAX_SECONDS));
    let wall_min = earliest - OFFSETS_APART_MAX_SECONDS;
    let mut until = now;
    let mut found: Option<(i64, Option<i64>)> = None;
    while until > earliest {
        let span = zone.whole_span_at(until);
        let wall = until + span.offset;
        let is_covered = |(up_to, last): &(i64, Option<i64>)| wall <= *up_to && last.is_none_or(|last| last <= wall);
        let (up_to, last) = found
            .filter(is_covered)
            .unwrap_or_else(|| (wall, times.last_until(wall, wall_min)));
        if let Some(last) = last.filter(|last| last - span.offset >= span.start) {
            return Some(last - span.offset).filter(|last| *last > earliest);
        }
        if span.start <= earliest {
            return None;
        }
        found = Some((up_to, last));
        until = span.start - 1;
        // From here back the clock shows only times before those that the search has passed.
        if until < up_to - OFFSETS_APART_MAX_SECONDS {
            until = until.min(last? + OFFSETS_APART_MAX_SECONDS);
        }
    }
    None
}
