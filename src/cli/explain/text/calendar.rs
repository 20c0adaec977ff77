//! The activations around an instant in the CronJob's zone, with the changes of its clocks.

mod change_day;

use std::fmt;

use jiff::{Timestamp, tz::Offset};

use self::change_day::{Chain, ChangeDay, walls};
use crate::{
    schedule::{Schedule, Zone, due, zone::OffsetChange},
    shard::CronJobRecord,
};

/// Number of printed activations.
const NEXT_TOLD: usize = 3;

/// A change of the clocks within this time is printed too.
const NEAR_SECONDS: i64 = 86_400;

/// Number of examined changes: those of some years.
const CHANGES_MAX: usize = 16;

/// The zone of the process, for which cronwheel uses the default zone (B-6.2, B-7.2).
const LOCAL: &str = "Local";
const IS_LOCAL: &str = ", the default time zone, which Local stands for";

/// Returns the zone of a schedule: that in its text, otherwise `spec.timeZone`, otherwise the default (B-7.1). A text
/// with the zone `Local` means the default, whatever the field contains; an interval has no zone.
pub(super) fn zone_of(record: &CronJobRecord) -> &Zone {
    let schedule = &record.schedule;
    let parsed = schedule.parsed.as_ref().ok();
    let in_text = parsed.and_then(Schedule::zone);
    let is_local = schedule.names_zone_in_text() && parsed.is_some_and(|parsed| !parsed.is_every());
    let in_field = schedule.zone.as_ref().and_then(|zone| zone.as_ref().ok());
    in_text
        .or(in_field.filter(|_| !is_local))
        .unwrap_or(&schedule.default_zone)
}

/// Formats an instant in a zone: `Tue 2026-05-05 12:00 +02:00`, with seconds if there are any.
pub(super) struct Local<'a> {
    instant: Timestamp,
    zone: &'a Zone,
}

impl Local<'_> {
    pub(super) fn new(instant: Timestamp, zone: &Zone) -> Local<'_> {
        Local { instant, zone }
    }
}

impl fmt::Display for Local<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offset = offset(self.zone.offset_seconds_at(self.instant.as_second()));
        let wall = offset.to_datetime(self.instant);
        let form = if wall.second() == 0 {
            "%a %Y-%m-%d %H:%M"
        } else {
            "%a %Y-%m-%d %H:%M:%S"
        };
        write!(f, "{}", wall.strftime(form))?;
        if offset == Offset::UTC {
            return f.write_str(" UTC");
        }
        write!(f, " {} ({})", offset_words(offset), self.instant)
    }
}

fn offset(seconds: i32) -> Offset {
    Offset::from_seconds(seconds).unwrap_or(Offset::UTC)
}

fn offset_words(offset: Offset) -> String {
    let minutes = offset.seconds().abs() / 60;
    let sign = if offset.seconds() < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// A schedule around an instant.
pub(super) struct Calendar<'a> {
    record: &'a CronJobRecord,
    schedule: &'a Schedule,
    zone: &'a Zone,
    now: Timestamp,
    /// The start of the chain of activations: the last run or the creation.
    since: Timestamp,
    /// The last activation since the last run or the creation.
    last: Option<Timestamp>,
    next: Vec<Timestamp>,
}

impl<'a> Calendar<'a> {
    pub(super) fn new(record: &'a CronJobRecord, schedule: &'a Schedule, now: Timestamp) -> Calendar<'a> {
        let local = &record.schedule.default_zone;
        let since = due::earliest_time(record.created, record.status.last_schedule_time, None, now);
        let last = due::most_recent(schedule, local, since, now);
        let first = schedule
            .next_after(last.unwrap_or(since), local)
            .filter(|next| *next > now);
        let first = first.or_else(|| schedule.next_after(now, local));
        let next = std::iter::successors(first, |at| schedule.next_after(*at, local));
        Calendar {
            record,
            schedule,
            zone: zone_of(record),
            now,
            since,
            last,
            next: next.take(NEXT_TOLD).collect(),
        }
    }

    /// Returns ` in` the zone and its origin; empty for an interval, which has no zone (B-7.5).
    pub(super) fn zone_words(&self) -> String {
        let name = self.zone.name();
        let schedule = &self.record.schedule;
        let is_in_text = schedule.names_zone_in_text();
        let source = match schedule.time_zone.as_deref() {
            _ if self.schedule.is_every() => return String::new(),
            _ if self.schedule.zone().is_some() && is_in_text => {
                ", which the text names, and Kubernetes does not support that"
            }
            Some(LOCAL) => IS_LOCAL,
            _ if is_in_text => IS_LOCAL,
            Some(_) => "",
            None => ", the default time zone",
        };
        format!(" in {name}{source}")
    }

    pub(super) fn last(&self) -> String {
        let local = |instant| Local::new(instant, self.zone);
        match (self.last, self.record.status.last_schedule_time) {
            (Some(last), _) => local(last).to_string(),
            (None, Some(started)) => format!("{}, which was started", local(started)),
            (None, None) => format!("none since the creation at {}", local(self.record.created)),
        }
    }

    /// Returns the next activations and the clock changes near them, in order.
    pub(super) fn next(&self) -> Vec<String> {
        let activation = |at: &Timestamp| (at.as_second(), Local::new(*at, self.zone).to_string());
        let mut lines: Vec<(i64, String)> = self.next.iter().map(activation).collect();
        lines.extend(self.changes());
        if lines.is_empty() {
            lines.push((0, "none: no instant within five years matches".to_owned()));
        }
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().map(|(_, words)| words).collect()
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
        let chain = Chain {
            schedule: self.schedule,
            text: &self.record.schedule.text,
            zone: self.zone,
            default_zone: &self.record.schedule.default_zone,
            since: self.since,
        };
        near.map(|change| (ChangeDay::new(&chain, &change), change))
            .enumerate()
            .filter(|(position, (day, _))| *position == 0 || day.is_disturbed())
            .map(|(_, (day, change))| (change.at, change_words(&day, &change)))
            .collect()
    }
}

fn change_words(day: &ChangeDay, change: &OffsetChange) -> String {
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
    format!("{date}: clocks go {direction} from {from} to {to}{}", day.words())
}
