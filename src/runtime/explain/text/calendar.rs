//! The activations around an instant in the CronJob's zone, with the changes of its clocks among them.

use std::fmt;

use jiff::{Timestamp, tz::Offset};

use crate::{
    schedule::{Schedule, Zone, due, parse_standard, zone::OffsetChange},
    state::CronJobRecord,
};

/// Activations that are told.
const NEXT_TOLD: usize = 3;

/// A change of the clocks so long before or after is told too.
const NEAR_SECONDS: i64 = 86_400;

/// The process's zone, for which ours is the default one (B-6.2, B-7.2).
const LOCAL: &str = "Local";
const IS_LOCAL: &str = ", the default time zone, which Local stands for";

/// The zone in which a schedule is told: the text's own, else that of `spec.timeZone`, else the default (B-7.1). A text
/// that names a zone and yet has none says `Local`, which is the default, whatever the field says; a period has none.
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

/// An instant in a zone: `Tue 2026-05-05 12:00 +02:00`, with seconds where there are any.
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
            last,
            next: next.take(NEXT_TOLD).collect(),
        }
    }

    /// ` in` the zone, and where it comes from; nothing for a period, which has none (B-7.5).
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

    /// The next activations, and the changes of the clocks near them, in the order of time.
    pub(super) fn next(&self) -> Vec<String> {
        let activation = |at: &Timestamp| (at.as_second(), Local::new(*at, self.zone).to_string());
        let mut lines: Vec<(i64, String)> = self.next.iter().map(activation).collect();
        if self.schedule.is_every() {
            // A period does not look at clocks on walls.
        } else if let Some(change) = self.near_change() {
            lines.push((change.at, self.change_words(&change)));
        }
        if lines.is_empty() {
            lines.push((0, "none: no instant within five years matches".to_owned()));
        }
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().map(|(_, words)| words).collect()
    }

    /// The first change of the clocks between the last activation and the last that is told.
    fn near_change(&self) -> Option<OffsetChange> {
        let now = self.now.as_second();
        let until = self.next.last()?.as_second().max(now + NEAR_SECONDS);
        let change = self.zone.next_change_after(now - NEAR_SECONDS)?;
        (change.at <= until).then_some(change)
    }

    fn change_words(&self, change: &OffsetChange) -> String {
        let wall = |offset_seconds: i32| offset(offset_seconds).to_datetime(instant(change.at));
        let (from, to) = (wall(change.before_seconds), wall(change.after_seconds));
        let day = from.strftime("%a %Y-%m-%d");
        let is_gap = change.after_seconds > change.before_seconds;
        let direction = if is_gap { "forward" } else { "back" };
        let consequence = match self.touched_time(change) {
            Some(time) if is_gap => format!(", so {time} does not come on that day"),
            Some(time) => format!(", so {time} comes twice on that day"),
            None => String::new(),
        };
        let (from, to) = (from.strftime("%H:%M"), to.strftime("%H:%M"));
        format!("{day}: clocks go {direction} from {from} to {to}{consequence}")
    }

    /// The first time of day at which the schedule would fire within the hour that is left out or comes twice.
    fn touched_time(&self, change: &OffsetChange) -> Option<String> {
        let (before, after) = (i64::from(change.before_seconds), i64::from(change.after_seconds));
        let (first_wall, end_wall) = (change.at + before.min(after), change.at + before.max(after));
        // Wall time read as UTC: the schedule without its zone, in a zone without changes.
        let schedule = parse_standard(without_zone(&self.record.schedule.text)).ok()?;
        let touched = schedule.next_after(instant(first_wall - 1), &Zone::utc())?;
        let is_hourly = schedule.next_after(touched, &Zone::utc())?.as_second() - touched.as_second() <= 3_600;
        // What fires every hour is not missed by an hour, nor noticed twice.
        (touched.as_second() < end_wall && !is_hourly).then(|| touched.strftime("%H:%M").to_string())
    }
}

fn instant(unix_seconds: i64) -> Timestamp {
    Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::MAX)
}

/// The text behind a `TZ=…` (B-7.3).
fn without_zone(text: &str) -> &str {
    let is_zoned = text.starts_with("TZ=") || text.starts_with("CRON_TZ=");
    text.split_once(' ')
        .filter(|_| is_zoned)
        .map_or(text, |(_, rest)| rest.trim())
}
