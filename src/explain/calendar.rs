//! The activations of a schedule around an instant, as text, with the clock changes.

use jiff::{
    Timestamp,
    civil::Date,
    tz::{Offset, TimeZone},
};

use super::never::search_limit;
use crate::schedule::{
    CronJobSchedule, Schedule, Zone,
    change_day::{ChangeDay, walls},
    describe::describe,
    due,
    options::{ExcludedDays, OptionName, is_without_end},
    thaw::{FrozenCronJob, Thaw},
    zone::OffsetChange,
};

/// A change of the clocks within this time is printed too.
const NEAR_SECONDS: i64 = 86_400;

/// Number of examined changes: those of all years for which a zone has a table.
const CHANGES_MAX: usize = 256;

/// Number of stretches of excluded days that are examined.
const EXCLUDED_MAX: usize = 256;

/// The zone of the process, for which cronwheel uses the default zone (B-6.2, B-7.2).
const LOCAL: &str = "Local";
const IS_LOCAL: &str = ", the default time zone, which Local stands for";

/// Formats an instant in a zone: `Tue 2026-05-05 12:00 CEST (10:00 UTC)`, with seconds if there are any.
pub fn local_text(instant: Timestamp, zone: &Zone) -> String {
    let offset = Offset::from_seconds(zone.offset_seconds_at(instant.as_second())).unwrap_or(Offset::UTC);
    let (wall, in_utc) = (offset.to_datetime(instant), Offset::UTC.to_datetime(instant));
    let time = if wall.second() == 0 { "%H:%M" } else { "%H:%M:%S" };
    let local = wall.strftime(&["%a %Y-%m-%d ", time].concat()).to_string();
    if offset == Offset::UTC {
        return local + " UTC";
    }
    let day = if wall.date() == in_utc.date() {
        ""
    } else {
        "%a %Y-%m-%d "
    };
    let in_utc = in_utc.strftime(&[day, time].concat()).to_string();
    let zone = zone.to_jiff();
    format!("{local} {} ({in_utc} UTC)", zone.to_offset_info(instant).abbreviation())
}

/// Formats the time between two instants by [`duration_text`].
pub fn span_text(from: Timestamp, to: Timestamp) -> String {
    duration_text(to.as_second().abs_diff(from.as_second()))
}

/// Formats a duration with its two largest units: `3d 4h`, `17h 43m`, `5m`, `5s`.
pub fn duration_text(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let first = units.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(3);
    let (mut parts, mut rest) = (Vec::new(), seconds);
    for (unit, letter) in units.iter().skip(first).take(2) {
        let n_units = rest / unit;
        rest %= unit;
        if n_units > 0 || parts.is_empty() {
            parts.push(format!("{n_units}{letter}"));
        }
    }
    parts.join(" ")
}

/// The activations of a schedule after an instant.
pub struct Calendar<'a> {
    effective: &'a CronJobSchedule,
    schedule: &'a Schedule,
    zone: &'a Zone,
    now: Timestamp,
    /// The start of the chain of activations: the last run or the creation.
    since: Timestamp,
    /// The last activation since then.
    pub last: Option<Timestamp>,
    /// The next ones, without those that the calendar of the CronJob excludes or a freeze holds back.
    pub next: Vec<Timestamp>,
    /// The end of a freeze that holds now.
    thaw: Option<Thaw>,
}

impl<'a> Calendar<'a> {
    /// The first `count` activations after `now`, in the chain of activations from `since`.
    pub fn new(
        effective: &'a CronJobSchedule,
        schedule: &'a Schedule,
        (since, now): (Timestamp, Timestamp),
        count: usize,
    ) -> Calendar<'a> {
        let local = &effective.default_zone;
        let last = due::most_recent(schedule, local, since, now);
        let first = schedule
            .next_after(last.unwrap_or(since), local)
            .filter(|next| *next > now);
        let first = first.or_else(|| schedule.next_after(now, local));
        let first = first.and_then(|first| effective.wanted_from(first));
        let next = std::iter::successors(first, |at| effective.next_wanted(*at));
        Calendar {
            effective,
            schedule,
            zone: effective.effective_zone(),
            now,
            since,
            last,
            next: next.take(count).collect(),
            thaw: None,
        }
    }

    /// The same calendar in a freeze: the next activations are those that it does not hold back.
    #[must_use]
    pub fn in_freeze(mut self, frozen: Option<FrozenCronJob<'_>>) -> Calendar<'a> {
        let Some(frozen) = frozen else { return self };
        let first = frozen.next_run().filter(|_| !is_without_end(frozen.until));
        let next = std::iter::successors(first, |at| self.effective.next_wanted(*at));
        self.next = next.take(self.next.len()).collect();
        self.thaw = Some(frozen.thaw(self.now));
        self
    }

    /// Whether nothing ever starts, and no freeze is the reason.
    pub fn never_runs(&self) -> bool {
        self.next.is_empty() && self.thaw.as_ref().is_none_or(|thaw| thaw.n_held_back == 0)
    }

    /// Formats an instant in the zone of the schedule.
    pub fn local(&self, instant: Timestamp) -> String {
        local_text(instant, self.zone)
    }

    /// Returns the schedule, its zone and its description. An interval has no zone (B-7.5).
    pub fn schedule_text(&self) -> String {
        let text = if self.effective.options().has_schedules {
            OptionName::Schedule.annotation().to_owned()
        } else {
            self.effective.text.escape_debug().to_string()
        };
        let description = describe(self.schedule);
        let name = self.zone.name();
        let is_in_text = self.effective.names_zone_in_text();
        let source = match self.effective.time_zone.as_deref() {
            _ if self.schedule.is_every() => return format!("{text}: {description}"),
            _ if self.schedule.zone().is_some() && is_in_text => ", which the schedule names",
            Some(LOCAL) => IS_LOCAL,
            _ if is_in_text => IS_LOCAL,
            Some(_) => "",
            None => ", the default time zone",
        };
        format!("{text} in {name}{source}: {description}")
    }

    /// Returns the next activations and the clock changes near them, in order.
    pub fn next_lines(&self) -> Vec<String> {
        let activation = |at: &Timestamp| {
            let span = span_text(self.now, *at);
            let start = self.start_text(*at).unwrap_or_default();
            (at.as_second(), format!("in {span}, {}{start}", self.local(*at)))
        };
        let thaw = self.thaw_line().into_iter();
        let mut lines: Vec<(i64, String)> = thaw.chain(self.next.iter().map(activation)).collect();
        lines.extend(self.changes());
        lines.extend(self.excluded_lines());
        if self.never_runs() {
            let limit = search_limit(self.effective);
            let later = if limit.is_empty() { "later " } else { "" };
            lines.push((0, format!("never: no {later}instant{limit} matches")));
        }
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// The stretches of days on which activations fall out before the last of the next ones, each with their number.
    pub fn excluded(&self) -> Vec<(&'a ExcludedDays, u64)> {
        let exclusion = self.effective.exclusion();
        let until = self.next.last().copied().unwrap_or(Timestamp::MAX);
        let counts = exclusion.map(|exclusion| exclusion.counts(self.since, self.now, until));
        counts.into_iter().flatten().take(EXCLUDED_MAX).collect()
    }

    fn thaw_line(&self) -> Option<(i64, String)> {
        let thaw = self.thaw.as_ref()?;
        let sentence = thaw.sentence()?;
        let line = format!("frozen until {}: {sentence}", self.local(thaw.until));
        Some((thaw.until.as_second(), line))
    }

    fn excluded_lines(&self) -> Vec<(i64, String)> {
        let line = |(days, n_slots): (&ExcludedDays, u64)| {
            let runs = if n_slots == 1 { "run falls" } else { "runs fall" };
            let begin = days.first_date().to_zoned(TimeZone::UTC).map_or(0, |begin| {
                let wall = begin.timestamp().as_second();
                wall - i64::from(self.zone.offset_seconds_at(wall))
            });
            (begin, format!("{}: {n_slots} {runs} out, by not-on", days_text(days)))
        };
        self.excluded().into_iter().map(line).collect()
    }

    /// The start of a slot, if the option `spread` moves it.
    pub fn start_text(&self, slot: Timestamp) -> Option<String> {
        let start = self.effective.start_of(slot);
        let wall = Offset::from_seconds(self.zone.offset_seconds_at(start.as_second())).unwrap_or(Offset::UTC);
        (start != slot).then(|| format!(", starts {}", wall.to_datetime(start).strftime("%H:%M:%S")))
    }

    /// Returns the first clock change nearby, and those that disturb runs up to the last printed activation.
    fn changes(&self) -> Vec<(i64, String)> {
        let (false, Some(last)) = (self.schedule.is_every(), self.next.last()) else {
            // Clock changes do not affect an interval.
            return Vec::new();
        };
        let now = self.now.as_second();
        let until = last.as_second().max(now + NEAR_SECONDS);
        let first = self.zone.next_change_after(now - NEAR_SECONDS);
        let changes = std::iter::successors(first, |change| self.zone.next_change_after(change.at));
        let near = changes.take(CHANGES_MAX).take_while(|change| change.at <= until);
        near.map(|change| {
            (
                ChangeDay::new(self.effective, self.schedule, self.since, &change),
                change,
            )
        })
        .enumerate()
        .filter(|(position, (day, _))| *position == 0 || day.is_disturbed())
        .map(|(_, (day, change))| (change.at, change_text(&day, &change)))
        .collect()
    }
}

/// Formats excluded days with their note: `Thu 2026-12-24 to Sat 2026-12-26 (Christmas)`.
pub fn days_text(days: &ExcludedDays) -> String {
    let date = |date: Date| date.strftime("%a %Y-%m-%d").to_string();
    let (first, last) = (date(days.first_date()), date(days.last_date()));
    let note = match &*days.note {
        "" => String::new(),
        note => format!(" ({note})"),
    };
    if first == last {
        first + &note
    } else {
        format!("{first} to {last}{note}")
    }
}

fn change_text(day: &ChangeDay, change: &OffsetChange) -> String {
    let wall =
        |unix_seconds: i64| Offset::UTC.to_datetime(Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::MAX));
    let (from, to) = walls(change);
    let direction = if to > from { "forward" } else { "back" };
    // A change back at midnight returns to the day before, which ends then.
    let is_end_of_day = to < from && from == day.midnight_wall + 86_400;
    let from = if is_end_of_day {
        "24:00".to_owned()
    } else {
        wall(from).strftime("%H:%M").to_string()
    };
    let date = wall(day.midnight_wall).strftime("%a %Y-%m-%d").to_string();
    let to = wall(to).strftime("%H:%M").to_string();
    format!("{date}: clocks go {direction} from {from} to {to}{}", day.text())
}
