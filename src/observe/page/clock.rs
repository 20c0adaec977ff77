//! Instants as text, in the zone of a CronJob and in UTC.

use std::{cell::RefCell, collections::BTreeMap, iter::successors};

use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};
use maud::{Markup, html};

use super::words;
use crate::schedule::Zone;

/// Older instants show their day instead of their age.
const AGE_SHOWN_MAX: SignedDuration = SignedDuration::from_hours(48);

/// Formats instants relative to the time of a page.
pub(super) struct Clock {
    pub(super) now: Timestamp,
    /// The zone of times that belong to no CronJob.
    pub(super) home: Zone,
    /// The zones of this page: loading one takes longer than formatting.
    loaded: RefCell<BTreeMap<Box<str>, TimeZone>>,
}

impl Clock {
    pub(super) fn new(now: Timestamp, home: Zone) -> Clock {
        Clock {
            now,
            home,
            loaded: RefCell::default(),
        }
    }

    /// An instant in a zone, as an element. Its title has the day, and UTC.
    pub(super) fn time(&self, at: Timestamp, zone: &Zone) -> Markup {
        html! {
            time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(self.full(at, zone)) {
                (self.short(at, zone)) " " (self.abbreviation(at, zone))
            }
        }
    }

    /// An instant in the home zone, as an element without the zone's name.
    pub(super) fn home_time(&self, at: Timestamp) -> Markup {
        html! {
            time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(self.full(at, &self.home)) {
                (self.short(at, &self.home))
            }
        }
    }

    /// The time until or since an instant, as an element that the script keeps current.
    pub(super) fn distance(&self, at: Timestamp) -> Markup {
        html! { span data-at=(at.as_second()) { (self.distance_text(at)) } }
    }

    /// The age of a state, or its day if it is old.
    pub(super) fn age(&self, since: Timestamp) -> Markup {
        let age = self.now.duration_since(since);
        html! {
            @if age > AGE_SHOWN_MAX {
                "since " time datetime=(since.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(self.full(since, &self.home)) {
                    (self.day(since))
                }
            } @else {
                span data-since=(since.as_second()) title=(self.full(since, &self.home)) {
                    (words::duration(whole_seconds(age)))
                }
            }
        }
    }

    /// A day in the home zone: `12 Nov`, with the year if it is another.
    pub(super) fn day(&self, at: Timestamp) -> String {
        let (at, now) = (self.zoned(at, &self.home), self.zoned(self.now, &self.home));
        let format = if at.year() == now.year() { "%-d %b" } else { "%-d %b %Y" };
        at.strftime(format).to_string()
    }

    /// The time of day in a zone, with its day unless that is today: `22:05`, `Sun 04:00`, `12 Nov 04:00`.
    pub(super) fn short(&self, at: Timestamp, zone: &Zone) -> String {
        let (there, now) = (self.zoned(at, zone), self.zoned(self.now, zone));
        let is_near = at.duration_since(self.now).abs() < SignedDuration::from_hours(6 * 24);
        let day = match () {
            () if there.date() == now.date() => "",
            () if is_near => "%a ",
            () if there.year() == now.year() => "%-d %b ",
            () => "%-d %b %Y ",
        };
        there.strftime(&[day, time_format(&there)].concat()).to_string()
    }

    /// Day and time of day in a zone, with the zone's name: `Fri 27 Nov 18:00 EST`, with the year if it is another.
    pub(super) fn dated(&self, at: Timestamp, zone: &Zone) -> String {
        let (there, now) = (self.zoned(at, zone), self.zoned(self.now, zone));
        let day = if there.year() == now.year() {
            "%a %-d %b "
        } else {
            "%a %-d %b %Y "
        };
        let text = there.strftime(&[day, time_format(&there)].concat()).to_string();
        [&text, " ", &self.abbreviation(at, zone)].concat()
    }

    /// The time of day in the home zone.
    pub(super) fn time_of_day(&self, at: Timestamp) -> String {
        self.zoned(at, &self.home).strftime("%H:%M").to_string()
    }

    /// The time of day in the home zone with seconds and the zone's name.
    pub(super) fn precise(&self, at: Timestamp) -> String {
        let time = self.zoned(at, &self.home).strftime("%H:%M:%S").to_string();
        [&time, " ", &self.abbreviation(at, &self.home)].concat()
    }

    /// Day and time of day in a zone, and in UTC: `27 Nov 2026 02:30 CET, 01:30 UTC`.
    pub(super) fn full(&self, at: Timestamp, zone: &Zone) -> String {
        let (there, in_utc) = (self.zoned(at, zone), at.to_zoned(TimeZone::UTC));
        let time = time_format(&there);
        let text = there.strftime(&["%-d %b %Y ", time].concat()).to_string();
        let text = [&text, " ", &self.abbreviation(at, zone)].concat();
        if there.offset().is_zero() {
            return text;
        }
        let day = if there.date() == in_utc.date() { "" } else { "%-d %b " };
        let in_utc = in_utc.strftime(&[day, time].concat()).to_string();
        format!("{text}, {in_utc} UTC")
    }

    /// The name of the zone's offset at an instant, such as `CET`.
    pub(super) fn abbreviation(&self, at: Timestamp, zone: &Zone) -> String {
        let zone = self.load(zone);
        zone.to_offset_info(at).abbreviation().to_owned()
    }

    /// The offsets of the home zone in a span: since when, seconds east of UTC, and the name.
    pub(super) fn offsets(&self, from: Timestamp, to: Timestamp) -> Vec<(i64, i32, String)> {
        let next_change = |at: &i64| self.home.next_change_after(*at).map(|change| change.at);
        let starts = successors(Some(from.as_second()), next_change).take_while(|at| *at < to.as_second());
        let offset = |at: i64| {
            let name = Timestamp::from_second(at).map(|instant| self.abbreviation(instant, &self.home));
            (at, self.home.offset_seconds_at(at), name.unwrap_or_default())
        };
        starts.map(offset).collect()
    }

    fn distance_text(&self, at: Timestamp) -> String {
        let until = at.duration_since(self.now);
        let text = words::duration(whole_seconds(until));
        if until.is_negative() {
            text + " ago"
        } else {
            ["in ", &text].concat()
        }
    }

    fn zoned(&self, at: Timestamp, zone: &Zone) -> Zoned {
        at.to_zoned(self.load(zone))
    }

    fn load(&self, zone: &Zone) -> TimeZone {
        let mut loaded = self.loaded.borrow_mut();
        if let Some(known) = loaded.get(zone.name()) {
            return known.clone();
        }
        let new = zone.to_jiff();
        loaded.insert(zone.name().into(), new.clone());
        new
    }
}

/// Seconds appear only if there are any.
fn time_format(time: &Zoned) -> &'static str {
    if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" }
}

fn whole_seconds(duration: SignedDuration) -> SignedDuration {
    SignedDuration::from_secs(duration.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        let berlin = Zone::load("Europe/Berlin").unwrap();
        Clock::new("2026-11-27T21:04:58Z".parse().unwrap(), berlin)
    }

    #[test]
    fn an_instant_has_the_day_that_its_distance_needs() {
        let clock = clock();
        let cases = [
            ("2026-11-27T21:05:00Z", "22:05"),
            ("2026-11-27T21:05:07Z", "22:05:07"),
            ("2026-11-28T01:30:00Z", "Sat 02:30"),
            ("2026-12-25T08:00:00Z", "25 Dec 09:00"),
            ("2027-06-01T08:00:00Z", "1 Jun 2027 10:00"),
        ];
        for (at, text) in cases {
            assert_eq!(clock.short(at.parse().unwrap(), &clock.home), text);
        }
        let dated = |at: &str| clock.dated(at.parse().unwrap(), &Zone::utc());
        assert_eq!(dated("2026-12-25T08:00:00Z"), "Fri 25 Dec 08:00 UTC");
        assert_eq!(dated("2027-01-01T08:00:00Z"), "Fri 1 Jan 2027 08:00 UTC");
    }

    #[test]
    fn an_element_has_the_zone_and_utc() {
        let clock = clock();
        let at = "2026-11-28T00:30:00Z".parse().unwrap();
        assert_eq!(
            clock.time(at, &Zone::load("America/New_York").unwrap()).into_string(),
            "<time datetime=\"2026-11-28T00:30:00Z\" title=\"27 Nov 2026 19:30 EST, 28 Nov 00:30 UTC\">19:30 EST</time>"
        );
        assert_eq!(clock.full(at, &Zone::utc()), "28 Nov 2026 00:30 UTC");
        assert_eq!(
            clock.distance(at).into_string(),
            "<span data-at=\"1795825800\">in 3 h 25 m</span>"
        );
    }

    #[test]
    fn an_old_state_has_a_day_instead_of_an_age() {
        let clock = clock();
        let age = |at: &str| {
            let markup = clock.age(at.parse().unwrap()).into_string();
            markup.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned()
        };
        assert_eq!(age("2026-11-27T17:52:00Z"), "3 h 12 m");
        assert_eq!(age("2026-11-12T08:00:00Z"), "12 Nov");
    }

    #[test]
    fn the_offsets_of_a_span_include_a_clock_change() {
        let offsets = clock().offsets(
            "2026-10-24T12:00:00Z".parse().unwrap(),
            "2026-10-26T12:00:00Z".parse().unwrap(),
        );
        let expected = [(1_792_843_200, 7_200, "CEST"), (1_792_890_000, 3_600, "CET")];
        assert_eq!(
            offsets,
            expected.map(|(at, seconds, name)| (at, seconds, name.to_owned()))
        );
    }
}
