//! Activations under `clock-change: once` (O-6.1).
//!
//! A time starts at the first instant at which the zone's clock shows it or a later time. This is the instant itself
//! on most days, the end of the gap for a skipped time, and the first of two for a repeated time. It never decreases
//! from one time to a later one, so the order of the times is the order of the activations. An activation lies after an
//! instant if and only if its time is later than every time that the clock has shown by then.

use super::{AGE_MAX_SECONDS, OFFSETS_APART_MAX_SECONDS, WallTimes, calendar::DAY_SECONDS};
use crate::schedule::zone::{Span, Zone};

/// The first activation after an instant, in Unix seconds.
pub(super) fn next_after(times: &impl WallTimes, zone: &Zone, reference: i64) -> Option<i64> {
    let mut wall = latest_shown(zone, reference);
    loop {
        let start = Start::new(zone, times.first_after(wall)?);
        match start.skipped_day(zone) {
            Some(midnight) => wall = midnight + DAY_SECONDS - 1,
            None => return Some(start.at),
        }
    }
}

/// The last activation after `earliest` and at or before `now`, in Unix seconds.
pub(super) fn last_until(times: &impl WallTimes, zone: &Zone, earliest: i64, now: i64) -> Option<i64> {
    let earliest = earliest.max(now.saturating_sub(AGE_MAX_SECONDS));
    if now <= earliest {
        return None;
    }
    let wall_min = latest_shown(zone, earliest) + 1;
    let mut wall = latest_shown(zone, now);
    loop {
        let start = Start::new(zone, times.last_until(wall, wall_min)?);
        match start.skipped_day(zone) {
            Some(midnight) => wall = midnight - 1,
            None => return Some(start.at),
        }
    }
}

/// The latest time that the zone's clock has shown at or before an instant.
fn latest_shown(zone: &Zone, instant: i64) -> i64 {
    let mut span = zone.whole_span_at(instant);
    let mut latest = instant + span.offset;
    while span.start > instant - OFFSETS_APART_MAX_SECONDS {
        span = zone.whole_span_at(span.start - 1);
        latest = latest.max(span.end - 1 + span.offset);
    }
    latest
}

/// The start of a time of the wall clock.
struct Start {
    wall: i64,
    /// The first instant at which the clock shows the time or a later one.
    at: i64,
    span: Span,
}

impl Start {
    fn new(zone: &Zone, wall: i64) -> Start {
        let mut span = zone.whole_span_at(wall - OFFSETS_APART_MAX_SECONDS);
        while wall - span.offset >= span.end {
            span = zone.whole_span_at(span.end);
        }
        let at = (wall - span.offset).max(span.start);
        Start { wall, at, span }
    }

    /// The midnight of the time's day if the clock shows no time of that day at all. A day that does not exist has no
    /// activation.
    fn skipped_day(&self, zone: &Zone) -> Option<i64> {
        let midnight = self.wall - self.wall.rem_euclid(DAY_SECONDS);
        let is_skipped =
            self.at + self.span.offset >= midnight + DAY_SECONDS && latest_shown(zone, self.at - 1) < midnight;
        is_skipped.then_some(midnight)
    }
}
