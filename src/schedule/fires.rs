//! The next activation of a schedule, equal to robfig/cron v3 in every quirk (B-8).
//!
//! There are two algorithms with the same result. A bit search over wall-clock time (`search`) is used where no zone
//! change can affect the library's search path. Elsewhere `walk` follows the library's own loop step by step: around
//! a zone change the library's answer depends on its path, so only walking that path gives the same answer.
//!
//! With the option `clock-change: once`, `once` searches the wall clock and maps the result to an instant (O-6). With
//! the option `schedule`, the `cron` crate searches the wall clock, and `shown` or `once` map the result (O-5).

mod calendar;
mod chain;
mod lines;
mod merged;
mod once;
mod search;
mod shown;
mod walk;

use std::sync::Arc;

use jiff::Timestamp;

pub(super) use self::lines::Lines;
pub use self::lines::{SCHEDULES_MAX, SCHEDULES_MAX_BYTES, SchedulesError};
use super::{
    clock_change::ClockChange,
    zone::{Span, Zone},
};

/// A parsed schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// Five fields, or a descriptor that is equivalent to five fields.
    Spec(Spec),
    /// `@every`: the period in seconds, at least one.
    Every(i64),
    /// The option `schedule` (O-5).
    Lines(Arc<Lines>),
}

/// The values of the five fields, bit n for value n (B-7.7). 32 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days_of_month: u32,
    pub(super) months: u16,
    /// Sunday is 0.
    pub(super) days_of_week: u8,
    pub(super) day_rule: DayRule,
    /// `Literal` for hour fields with all hours.
    pub(super) clock_change: ClockChange,
    /// The zone that the text names; `None` means the zone of the reference (B-7.2).
    pub(super) zone: Option<Zone>,
}

/// The combination of the two day fields (B-7.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayRule {
    /// At least one of them has the star mark: a day must be in both.
    Both,
    /// Both are restricted: a day in either of them matches.
    Either,
}

/// Times of day and dates of a wall clock without zone changes, in wall-clock seconds: local time counted as if it were
/// Unix time.
trait WallTimes {
    /// The first time after another.
    fn first_after(&self, wall: i64) -> Option<i64>;

    /// The last time from `wall_min` to `wall` inclusive.
    fn last_until(&self, wall: i64, wall_min: i64) -> Option<i64>;
}

impl WallTimes for Spec {
    fn first_after(&self, wall: i64) -> Option<i64> {
        search::first_after(self, wall)
    }

    fn last_until(&self, wall: i64, wall_min: i64) -> Option<i64> {
        search::last_until(self, wall, wall_min)
    }
}

impl Spec {
    fn has_month(&self, month: u8) -> bool {
        self.months >> month & 1 == 1
    }

    fn has_hour(&self, hour: i64) -> bool {
        self.hours >> hour & 1 == 1
    }

    fn has_minute(&self, minute: i64) -> bool {
        self.minutes >> minute & 1 == 1
    }

    /// Whether a day matches (B-7.8). `weekday` is 0 on Sunday.
    fn has_day(&self, day_of_month: u8, weekday: u8) -> bool {
        let in_month = self.days_of_month >> day_of_month & 1 == 1;
        let in_week = self.days_of_week >> weekday & 1 == 1;
        match self.day_rule {
            DayRule::Both => in_month && in_week,
            DayRule::Either => in_month || in_week,
        }
    }
}

/// The time before the start of the library's path within which an offset can affect the path. The path starts no
/// earlier than the midnight before the reference. It looks up offsets at wall times read as UTC, up to 14 h away, and at
/// wall times displaced by the shift of a change, up to 24 h away.
const PATH_BEFORE_SECONDS: i64 = (24 + 26) * 3600;

/// The maximum age of a chain's start. No object is older, but anyone who may write a status can set an earlier time.
const AGE_MAX_SECONDS: i64 = 30 * 366 * calendar::DAY_SECONDS;

/// No two offsets of a zone differ by more, and no offset is further from UTC.
const OFFSETS_APART_MAX_SECONDS: i64 = 26 * 3_600;

/// An hour field with all hours.
const ALL_HOURS: u32 = (1 << 24) - 1;

/// The path ends at the answer, and its look-ups end within 26 h of the answer.
const PATH_AFTER_SECONDS: i64 = 26 * 3600;

/// Upper bound of retries, each with a reference one minute later, where the library returns its own reference or an
/// earlier instant. In these cases the zone sets its clock back by two hours at most.
const RETRIES_MAX: i64 = 180;

impl Schedule {
    pub(super) fn spec(spec: Spec) -> Schedule {
        Schedule { rule: Rule::Spec(spec) }
    }

    pub(super) fn every(seconds: i64) -> Schedule {
        debug_assert!(seconds >= 1, "a period of {seconds} s");
        Schedule {
            rule: Rule::Every(seconds),
        }
    }

    pub(super) fn lines(lines: Lines) -> Schedule {
        Schedule {
            rule: Rule::Lines(Arc::new(lines)),
        }
    }

    /// The same schedule with the option `clock-change` (O-6). Schedules of every hour or more often do not change.
    #[must_use]
    pub fn with_clock_change(mut self, clock_change: ClockChange) -> Schedule {
        self.set_clock_change(clock_change);
        self
    }

    pub(super) fn set_clock_change(&mut self, clock_change: ClockChange) {
        match &mut self.rule {
            Rule::Spec(spec) if spec.hours != ALL_HOURS => spec.clock_change = clock_change,
            Rule::Spec(_) | Rule::Every(_) => {}
            Rule::Lines(lines) => Arc::make_mut(lines).set_clock_change(clock_change),
        }
    }

    /// Whether the option `clock-change` changes any activation (O-6).
    pub(super) fn follows_once(&self) -> bool {
        match &self.rule {
            Rule::Spec(spec) => spec.clock_change == ClockChange::Once,
            Rule::Every(_) => false,
            Rule::Lines(lines) => lines.follow_once(),
        }
    }

    /// What options change, as a key: with the same `spec.schedule` and zone, schedules with equal keys have equal
    /// activations. `None` if no option changes them.
    pub fn options_key(&self) -> Option<Box<str>> {
        match &self.rule {
            Rule::Spec(spec) if spec.clock_change == ClockChange::Literal => None,
            Rule::Spec(spec) => Some(spec.clock_change.as_str().into()),
            Rule::Every(_) => None,
            Rule::Lines(lines) => Some(lines.key().into()),
        }
    }

    /// Whether an activation may be at another second than 0 because the option `schedule` says so (O-5.5).
    pub fn has_seconds(&self) -> bool {
        self.as_lines().is_some_and(Lines::has_seconds)
    }

    /// Whether the run of a wall-clock second starts at the end of the gap if a clock change skips that second (O-6.1).
    pub(super) fn is_moved_out_of_gap(&self, wall: i64) -> bool {
        match &self.rule {
            Rule::Spec(spec) => spec.clock_change == ClockChange::Once,
            Rule::Every(_) => false,
            Rule::Lines(lines) => lines.is_moved_out_of_gap(wall),
        }
    }

    /// The wall-clock seconds after `wall` that the schedule names, ascending; none for `@every`.
    pub(super) fn wall_times_after(&self, wall: i64) -> impl Iterator<Item = i64> {
        let sources: Vec<&dyn WallTimes> = match &self.rule {
            Rule::Spec(spec) => vec![spec],
            Rule::Every(_) => Vec::new(),
            Rule::Lines(lines) => lines.wall_times().collect(),
        };
        let mut before = None;
        merged::times_after(sources, wall).filter(move |time| before.replace(*time) != Some(*time))
    }

    /// Whether the activations may end without a fault of the schedule, because the option `schedule` names years
    /// (O-5.6).
    pub fn may_end(&self) -> bool {
        self.as_lines()
            .is_some_and(|lines| lines.wall_after(i64::MIN).is_some())
    }

    /// Returns the first activation strictly later than `reference`, at whole seconds, or `None` where the library
    /// returns the zero time (B-8.1). `local` is the zone of a schedule that names none (B-7.2).
    ///
    /// Where the library never returns (B-8.4) the result is `None`. Where the library returns the reference itself, as
    /// it does in zones that change a minute after midnight, the result is the next later activation.
    pub fn next_after(&self, reference: Timestamp, local: &Zone) -> Option<Timestamp> {
        let next = self.next_second(floor_second(reference), local)?;
        Timestamp::from_second(next).ok()
    }

    /// Returns the library's result even where it is the reference itself or earlier, for comparisons with the built-in
    /// controller. To iterate, use [`Schedule::next_after`], which is equal everywhere else.
    pub fn library_next_after(&self, reference: Timestamp, local: &Zone) -> Option<Timestamp> {
        let next = match &self.rule {
            Rule::Spec(spec) if spec.clock_change == ClockChange::Literal => {
                library_next(spec, spec.zone.as_ref().unwrap_or(local), floor_second(reference))
            }
            Rule::Spec(_) | Rule::Every(_) | Rule::Lines(_) => self.next_second(floor_second(reference), local),
        };
        Timestamp::from_second(next?).ok()
    }

    /// Whether this is an `@every` schedule, anchored to the reference instant (B-7.5).
    pub fn is_every(&self) -> bool {
        matches!(self.rule, Rule::Every(_))
    }

    /// The fields, or `None` for `@every`.
    pub(super) fn fields(&self) -> Option<&Spec> {
        match &self.rule {
            Rule::Spec(spec) => Some(spec),
            Rule::Every(_) | Rule::Lines(_) => None,
        }
    }

    /// The schedules of the option `schedule`, if it replaces the fields (O-5).
    /// The lines of the option `schedule`; `None` if it does not replace `spec.schedule`.
    pub fn lines_of_option(&self) -> Option<Vec<&str>> {
        let schedules = self.as_lines()?.schedules();
        Some(schedules.map(::cron::Schedule::source).collect())
    }

    pub(super) fn as_lines(&self) -> Option<&Lines> {
        match &self.rule {
            Rule::Spec(_) | Rule::Every(_) => None,
            Rule::Lines(lines) => Some(lines),
        }
    }

    /// The period of `@every` in seconds.
    pub(super) fn period_seconds(&self) -> Option<i64> {
        match &self.rule {
            Rule::Spec(_) | Rule::Lines(_) => None,
            Rule::Every(seconds) => Some(*seconds),
        }
    }

    /// The zone of the activations, if it is not that of the reference (B-7.2).
    pub fn zone(&self) -> Option<&Zone> {
        match &self.rule {
            Rule::Spec(spec) => spec.zone.as_ref(),
            Rule::Every(_) => None,
            Rule::Lines(lines) => lines.zone.as_ref(),
        }
    }

    /// The last activation at or before `now` in the chain of activations from `earliest`, in whole Unix seconds.
    pub(super) fn last_in_chain(&self, earliest: i64, now: i64, local: &Zone) -> Option<i64> {
        match &self.rule {
            Rule::Spec(spec) => {
                let zone = spec.zone.as_ref().unwrap_or(local);
                match spec.clock_change {
                    ClockChange::Literal => chain::last_until(spec, zone, earliest, now),
                    ClockChange::Once => once::last_until(spec, zone, earliest, now),
                }
            }
            Rule::Every(seconds) => {
                let periods = now.checked_sub(earliest)?.div_euclid(*seconds);
                (periods > 0).then(|| earliest + periods * seconds)
            }
            Rule::Lines(lines) => lines.last_until(local, earliest, now),
        }
    }

    /// [`Schedule::next_after`] in whole Unix seconds.
    pub(super) fn next_second(&self, reference: i64, local: &Zone) -> Option<i64> {
        match &self.rule {
            Rule::Spec(spec) => {
                let zone = spec.zone.as_ref().unwrap_or(local);
                match spec.clock_change {
                    ClockChange::Literal => next_of_spec(spec, zone, reference),
                    ClockChange::Once => once::next_after(spec, zone, reference),
                }
            }
            // Reference + period - sub-second part of the reference (B-7.5).
            Rule::Every(seconds) => reference.checked_add(*seconds),
            Rule::Lines(lines) => lines.next_after(local, reference),
        }
    }
}

/// The whole second at or before an instant. The library truncates its arguments in the same way.
pub(super) fn floor_second(instant: Timestamp) -> i64 {
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}

/// The next activation, always later than the reference.
fn next_of_spec(spec: &Spec, zone: &Zone, reference: i64) -> Option<i64> {
    (0..=RETRIES_MAX).find_map(|retry| match library_next(spec, zone, reference + retry * 60) {
        Some(found) if found <= reference => None,
        other => Some(other),
    })?
}

fn library_next(spec: &Spec, zone: &Zone, reference: i64) -> Option<i64> {
    let span = zone.span_at(reference);
    if span.offset % 60 == 0 {
        match search::first_after(spec, reference + span.offset) {
            Some(wall) if is_undisturbed(spec, &span, reference, wall - span.offset) => {
                return Some(wall - span.offset);
            }
            None if span.end == i64::MAX && starts_undisturbed(spec, &span, reference) => return None,
            Some(_) | None => {}
        }
    }
    walk::next(spec, zone, reference)
}

/// Whether the library is certain to answer with the first matching wall-clock minute after the reference.
fn is_undisturbed(spec: &Spec, span: &Span, reference: i64, answer: i64) -> bool {
    // Within an hour that matches, the path moves forward by minutes only.
    let hour_of = |instant: i64| (instant + span.offset).div_euclid(3_600);
    let is_same_hour = hour_of(answer) == hour_of(reference + 1);
    (is_same_hour && answer < span.end)
        || (answer <= undisturbed_until(span) && starts_undisturbed(spec, span, reference))
}

/// Whether the library's path from `reference` starts within the span.
fn starts_undisturbed(spec: &Spec, span: &Span, reference: i64) -> bool {
    let date = calendar::Date::at(reference + 1 + span.offset);
    // If the month does not match, the path starts on the first of that month.
    let n_days_before = if spec.has_month(date.month) {
        0
    } else {
        i64::from(date.day) - 1
    };
    reference - n_days_before * calendar::DAY_SECONDS - PATH_BEFORE_SECONDS >= span.start
}

/// The latest answer whose surroundings have only the span's offset.
fn undisturbed_until(span: &Span) -> i64 {
    if span.end == i64::MAX {
        i64::MAX
    } else {
        span.end - PATH_AFTER_SECONDS
    }
}

#[cfg(test)]
mod tests;
