//! The last activation at or before an instant in the chain of activations from another, without walking the chain.
//!
//! An activation depends on the one before it (B-8.4), so a search cannot simply start near the chain's end. Two
//! facts allow most of the chain to be skipped. Each is about the library's path (B-8.3), and seeded tests check each
//! against the plain walk.
//!
//! 1. *Inside a span.* Where path and answer see a single offset, the next activation is the first matching minute.
//!    From a chain member on, all matching minutes up to the margin before the span's end are members. Within an hour
//!    that matches, the path needs no margin: [`jump`].
//! 2. *Merging.* Let a search enter a span in any state. Within the span its time of day deviates no further: a step of
//!    a day or past midnight sets the hour to 0, the next minute 0 sets minute and second to 0, and the activations
//!    missed until then lie on the first matching days, at most five. The day of the month can be off only while months
//!    are skipped: it may jump over one matching month and land late in the next, then it is 1. After three whole
//!    matching months, if months are restricted, and eight matching days, every search has returned, and by fact 1 the
//!    following activations belong to every chain: [`merge_point`].

use super::{
    PATH_BEFORE_SECONDS, Spec,
    calendar::{DAY_SECONDS, Date, day_number},
    next_of_spec, search, starts_undisturbed, undisturbed_until,
};
use crate::schedule::zone::{Span, Zone};

/// The maximum age of a chain's start. No object is older, but anyone who may write a status can set an earlier time.
const AGE_MAX_SECONDS: i64 = 30 * 366 * DAY_SECONDS;

/// Jumps end here (2100-01-01T00:00:00Z). 2100 has no 29 February, and a chain can end because of that (B-8.1).
const JUMP_END_SECONDS: i64 = 4_102_444_800;

/// How many spans before `now` are tried as a merge point. In all zones one of the last few is long enough.
const MERGE_SPANS_MAX: usize = 6;

/// Matching days after which chains have merged, with a margin.
const MERGE_DAYS: usize = 8;

/// Whole matching months that must precede these days if months are restricted.
const MERGE_MONTHS: usize = 3;

/// The last activation at or before `now` in the chain from `earliest`, in Unix seconds.
pub(super) fn last_until(spec: &Spec, zone: &Zone, earliest: i64, now: i64) -> Option<i64> {
    let mut search = Search {
        spec,
        zone,
        now,
        at: earliest.max(now.saturating_sub(AGE_MAX_SECONDS)),
        last: None,
        may_merge: true,
    };
    while search.advance() {}
    search.last
}

/// A search for the last activation at or before `now`.
struct Search<'a> {
    spec: &'a Spec,
    zone: &'a Zone,
    now: i64,
    /// The chain member that the search has reached, or its reference.
    at: i64,
    /// The last activation found.
    last: Option<i64>,
    may_merge: bool,
}

impl Search<'_> {
    /// Takes one step. Returns whether the search continues.
    fn advance(&mut self) -> bool {
        let Search { spec, zone, now, .. } = *self;
        let jump = jump(spec, zone, self.at, now);
        if let Some(to) = jump.to {
            (self.at, self.last) = (to, Some(to));
        }
        if jump.is_final {
            return false;
        }
        if std::mem::take(&mut self.may_merge)
            && let Some(start) = merge_point(spec, zone, self.at, now)
        {
            self.at = start;
            return true;
        }
        match next_of_spec(spec, zone, self.at) {
            Some(next) if next <= now => (self.at, self.last) = (next, Some(next)),
            _ => return false,
        }
        true
    }
}

struct Jump {
    /// A later member of the chain.
    to: Option<i64>,
    /// Whether no later member is due.
    is_final: bool,
}

/// Moves from a chain member, or the chain's reference, to the last member in the same span, or in the same hour if a
/// change is near (fact 1).
fn jump(spec: &Spec, zone: &Zone, from: i64, now: i64) -> Jump {
    let span = zone.span_at(from);
    if span.offset % 60 != 0 {
        return Jump {
            to: None,
            is_final: false,
        };
    }
    let wall_min = from + 1 + span.offset;
    let hour_end = wall_min - wall_min.rem_euclid(3_600) + 3_599 - span.offset;
    let final_until = if starts_undisturbed(spec, &span, from) {
        undisturbed_until(&span).min(JUMP_END_SECONDS)
    } else {
        i64::MIN
    };
    let limit = now.min(final_until.max(hour_end.min(span.end - 1)));
    let found = search::last_until(spec, limit + span.offset, wall_min);
    Jump {
        to: found.map(|wall| wall - span.offset),
        is_final: now <= final_until,
    }
}

/// A late reference whose chain merges with the one from `earliest`: the second before a matching minute that is a
/// member of all chains by facts 2 and 1.
fn merge_point(spec: &Spec, zone: &Zone, earliest: i64, now: i64) -> Option<i64> {
    let mut span = zone.span_at(now);
    for _ in 0..MERGE_SPANS_MAX {
        if span.offset % 60 == 0
            && let Some(member) = merged_member(spec, &span, earliest, now)
        {
            return Some(member - 1);
        }
        if span.start <= earliest {
            return None;
        }
        span = zone.span_at(span.start - 1);
    }
    None
}

fn merged_member(spec: &Spec, span: &Span, earliest: i64, now: i64) -> Option<i64> {
    let limit = now.min(undisturbed_until(span)).min(JUMP_END_SECONDS);
    let start = earliest.max(span.start.saturating_add(PATH_BEFORE_SECONDS)) + span.offset;
    let member = search::last_until(spec, limit + span.offset, start)?;
    // The first whole day of the span, or the first day after the months that merging takes.
    let mut day_min = start.div_euclid(DAY_SECONDS) + 1;
    if !spec.has_every_month() {
        day_min = day_after_months(spec, day_min, member.div_euclid(DAY_SECONDS))?;
    }
    let mut day = member.div_euclid(DAY_SECONDS);
    for _ in 0..MERGE_DAYS {
        day = search::last_day_before(spec, day, day_min)?;
    }
    Some(member - span.offset)
}

/// The day after [`MERGE_MONTHS`] whole matching months from `day` on, if it is before `day_max`.
fn day_after_months(spec: &Spec, day: i64, day_max: i64) -> Option<i64> {
    let date = Date::of_day(day);
    // `day` may be the first of its month; that month is not counted in any case.
    let (mut year, mut month) = (date.year, date.month);
    let mut months_left = MERGE_MONTHS;
    loop {
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        let first = day_number(year, month.into(), 1);
        if first >= day_max {
            return None;
        }
        if months_left == 0 {
            return Some(first);
        }
        months_left -= usize::from(spec.has_month(month));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fires::tests::spec;

    #[test]
    fn the_steps_to_the_last_slot_are_bounded_after_thirty_years() {
        // Near a change of the offset each hour takes a step. Merging leaves few changes within thirty years.
        const STEPS_EXPECTED_MAX: u32 = 400;
        let now = 1_770_000_000;
        let texts = [
            "0 0 30 2 *",
            "0 0 29 2 1",
            "* * * 1 *",
            "*/7 * * * 0-5",
            "* * 1 * 1",
            "0 2 * * *",
            "* * * * *",
        ];
        for text in texts {
            for name in [
                "Africa/Casablanca",
                "America/Havana",
                "Antarctica/Troll",
                "Australia/Lord_Howe",
                "Pacific/Apia",
            ] {
                let (spec, zone) = (spec(text), Zone::load(name).unwrap());
                for now in (0..400).map(|day| now + day * 86_400) {
                    let mut search = Search {
                        spec: &spec,
                        zone: &zone,
                        now,
                        at: now - AGE_MAX_SECONDS,
                        last: None,
                        may_merge: true,
                    };
                    let mut n_steps = 1;
                    while search.advance() {
                        n_steps += 1;
                        assert!(n_steps <= STEPS_EXPECTED_MAX, "{text} in {name} until {now}");
                    }
                }
            }
        }
    }
}
