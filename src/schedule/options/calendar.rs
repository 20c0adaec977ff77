//! `not-on`: a calendar, which is a ConfigMap with dates on which nothing starts.
//!
//! Each line of each value of its `data` is one date or one range of dates, and a note after it. Dates are days of the
//! zone of the CronJob, which only the schedule knows.

use std::sync::Arc;

use jiff::{
    Span,
    civil::{self, Date},
};

/// The most dates and ranges of a calendar.
pub const CALENDAR_ENTRIES_MAX: usize = 4_096;

/// The longest text of a calendar, of all its keys.
pub const CALENDAR_BYTES_MAX: usize = 256 << 10;

/// The label that a ConfigMap must have to be a calendar, with the value `true`.
pub const CALENDAR_LABEL: &str = "cronwheel.dev/calendar";

/// A valid line of a calendar.
const EXAMPLE: &str = "2026-12-24..2026-12-26 Christmas";

/// Longest note and longest part of an invalid line that is kept, in bytes.
const NOTE_MAX_BYTES: usize = 64;

/// The length of a date, such as `2026-12-25`.
const DATE_BYTES: usize = 10;

const EPOCH: Date = civil::date(1970, 1, 1);

/// A day, by its number since 1970-01-01.
pub(crate) type Day = i64;

/// A stretch of excluded days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedDays {
    /// The first day.
    pub(crate) first: Day,
    /// The last day.
    pub(crate) last: Day,
    /// Why, in the words of the calendar; may be empty.
    pub note: Box<str>,
}

impl ExcludedDays {
    /// The first date.
    pub fn first_date(&self) -> Date {
        date_of(self.first)
    }

    /// The last date.
    pub fn last_date(&self) -> Date {
        date_of(self.last)
    }
}

/// The dates of a calendar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    /// In ascending order, without overlaps.
    stretches: Box<[ExcludedDays]>,
}

impl Calendar {
    /// Reads the keys and values of a ConfigMap.
    ///
    /// # Errors
    ///
    /// The problem: the key, the line, and a valid line, or the limit that the calendar exceeds.
    pub fn read<'a>(data: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Calendar, String> {
        let mut entries = Vec::new();
        let mut n_bytes = 0;
        for (key, text) in data {
            n_bytes += text.len();
            if n_bytes > CALENDAR_BYTES_MAX {
                return Err(format!("it has more than {} KiB", CALENDAR_BYTES_MAX >> 10));
            }
            for (position, line) in text.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let entry = entry(line).map_err(|problem| {
                    let (key, line) = (kept(key), kept(line));
                    let place = format!("key {key:?}, line {}", position + 1);
                    format!("{place}: {line:?} {problem}; a valid line is {EXAMPLE:?}")
                })?;
                entries.push(entry);
                if entries.len() > CALENDAR_ENTRIES_MAX {
                    return Err(format!("it has more than {CALENDAR_ENTRIES_MAX} dates and ranges"));
                }
            }
        }
        Ok(Calendar {
            stretches: without_overlaps(entries).into(),
        })
    }

    /// [`read`](Calendar::read), unless the ConfigMap has keys in `binaryData`, whose values are no text.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Calendar::read), or the first of these keys.
    pub fn read_config_map<'a>(
        data: impl Iterator<Item = (&'a str, &'a str)>,
        mut binary_keys: impl Iterator<Item = &'a str>,
    ) -> Result<Calendar, String> {
        match binary_keys.next() {
            Some(key) => Err(format!("key {:?} is no UTF-8 text; save it as UTF-8", kept(key))),
            None => Calendar::read(data),
        }
    }

    /// The excluded days, in ascending order.
    pub fn stretches(&self) -> &[ExcludedDays] {
        &self.stretches
    }

    /// The excluded days that include this one.
    pub(crate) fn find(&self, day: Day) -> Option<&ExcludedDays> {
        let place = self.place_of(day)?;
        self.stretches.get(place)
    }

    /// The first and the last of the excluded days around this one, across adjacent entries.
    pub(crate) fn around(&self, day: Day) -> Option<(Day, Day)> {
        let place = self.place_of(day)?;
        let (before, after) = self.stretches.split_at(place);
        let found = after.first()?;
        let (mut first, mut last) = (found.first, found.last);
        for entry in before.iter().rev() {
            if entry.last + 1 < first {
                break;
            }
            first = entry.first;
        }
        for entry in &after[1..] {
            if last + 1 < entry.first {
                break;
            }
            last = entry.last;
        }
        Some((first, last))
    }

    fn place_of(&self, day: Day) -> Option<usize> {
        let place = self.stretches.partition_point(|entry| entry.last < day);
        self.stretches.get(place).filter(|entry| entry.first <= day)?;
        Some(place)
    }
}

/// The state of a calendar that a CronJob names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NamedCalendar {
    /// It was not read.
    #[default]
    Unknown,
    /// It has these dates.
    Known(Arc<Calendar>),
    /// It does not exist, or it cannot be used.
    Unusable,
}

/// The option `not-on`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotOn {
    /// The name of the ConfigMap.
    pub name: Box<str>,
    /// Its content.
    pub calendar: NamedCalendar,
}

impl NotOn {
    /// Reads the name of a ConfigMap.
    pub(super) fn read(value: &str) -> Result<NotOn, String> {
        const NAME_MAX_BYTES: usize = 63;
        if value.len() > NAME_MAX_BYTES || !value.split('.').all(is_label) {
            return Err(format!(
                "it is no name of a ConfigMap with at most {NAME_MAX_BYTES} characters; a valid value is \"holidays\""
            ));
        }
        Ok(NotOn {
            name: value.into(),
            calendar: NamedCalendar::Unknown,
        })
    }

    /// The calendar, if it is known and can be used.
    pub fn known(&self) -> Option<&Calendar> {
        match &self.calendar {
            NamedCalendar::Known(calendar) => Some(calendar),
            NamedCalendar::Unknown | NamedCalendar::Unusable => None,
        }
    }
}

/// Whether a text is a part of the name of a ConfigMap, between its dots.
fn is_label(text: &str) -> bool {
    let is_outer = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: &u8| is_outer(byte) || *byte == b'-';
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_outer) && bytes.last().is_some_and(is_outer) && bytes.iter().all(is_inner)
}

fn entry(line: &str) -> Result<ExcludedDays, &'static str> {
    let (dates, note) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (first, last) = match dates.split_once("..") {
        Some((first, last)) => (day(first), day(last)),
        None => (day(dates), day(dates)),
    };
    let (Some(first), Some(last)) = (first, last) else {
        return Err("does not begin with a date or a range of dates");
    };
    if last < first {
        return Err("is a range whose end is before its beginning");
    }
    let note = note.trim();
    if has_date(note) && !note.starts_with('#') {
        return Err(
            "has a second date; write a range without spaces, each other date in a line of its own, and # before a note \
             with a date",
        );
    }
    let note = note.trim_start_matches('#').trim_start();
    Ok(ExcludedDays {
        first,
        last,
        note: kept(note),
    })
}

/// Whether a text has something in the form of a date, such as the end of a range after any word or sign.
fn has_date(text: &str) -> bool {
    text.as_bytes().windows(DATE_BYTES).any(is_date_form)
}

fn is_date_form(text: &[u8]) -> bool {
    text.len() == DATE_BYTES
        && text.iter().enumerate().all(|(place, byte)| match place {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// The day of a date as `2026-12-25`.
fn day(text: &str) -> Option<Day> {
    let date: Date = text.parse().ok().filter(|_| is_date_form(text.as_bytes()))?;
    let since_epoch = EPOCH.until(date).ok()?;
    Some(since_epoch.get_days().into())
}

pub(crate) fn date_of(day: Day) -> Date {
    let since_epoch = Span::new().try_days(day);
    let date = since_epoch.and_then(|span| EPOCH.checked_add(span));
    date.unwrap_or(if day < 0 { Date::MIN } else { Date::MAX })
}

/// A text without control characters, truncated.
fn kept(text: &str) -> Box<str> {
    let text: String = text.chars().filter(|character| !character.is_control()).collect();
    text[..text.floor_char_boundary(NOTE_MAX_BYTES)].trim_end().into()
}

/// Sorts the entries. Of days that are in several entries, the one that begins first counts.
fn without_overlaps(mut entries: Vec<ExcludedDays>) -> Vec<ExcludedDays> {
    entries.sort_by_key(|entry| entry.first);
    let mut disjoint: Vec<ExcludedDays> = Vec::with_capacity(entries.len());
    for entry in entries {
        let free_from = disjoint.last().map_or(Day::MIN, |before| before.last + 1);
        let first = entry.first.max(free_from);
        if first <= entry.last {
            disjoint.push(ExcludedDays { first, ..entry });
        }
    }
    disjoint
}

#[cfg(test)]
mod tests;
