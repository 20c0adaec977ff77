//! The library's loop, step by step (B-8.3): correct everywhere, including where the result depends on the path.
//!
//! Steps that cannot change the result are combined, and their number is bounded: where the library loops forever (a
//! zone that skips a whole day, B-8.4) the walk returns `None`.

use super::{
    Spec,
    calendar::{DAY_SECONDS, Date, day_number, weekday},
};
use crate::schedule::zone::{Span, Zone};

/// Bounds one search. The longest search that terminates, for an impossible date, takes six years of month steps with
/// the days of each matching month, a day of hours and an hour of minutes: a few thousand.
const STEPS_MAX: u32 = 20_000;

/// The library's answer to `reference`, in Unix seconds. Where an offset changes just after midnight, the answer can be
/// the reference itself or earlier.
pub(super) fn next(spec: &Spec, zone: &Zone, reference: i64) -> Option<i64> {
    if spec.months == 0 || spec.hours == 0 || spec.minutes == 0 {
        return None;
    }
    Walk::new(spec, zone, reference).run()
}

/// The end of the search for a value of one field. `None` in its place means that no steps are left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// The field of the current instant matches.
    Found,
    /// The search moved a larger field, which may no longer match.
    Carried,
}

struct Walk<'a> {
    spec: &'a Spec,
    zone: &'a Zone,
    /// The span of equal offset around the last instant that was looked up.
    span: Span,
    /// The current instant of the walk, in Unix seconds.
    at: i64,
    /// Whether the fields below the first mismatch were reset.
    is_zeroed: bool,
    steps_left: u32,
}

impl<'a> Walk<'a> {
    fn new(spec: &'a Spec, zone: &'a Zone, reference: i64) -> Walk<'a> {
        let at = reference + 1;
        Walk {
            spec,
            zone,
            span: zone.span_at(at),
            at,
            is_zeroed: false,
            steps_left: STEPS_MAX,
        }
    }

    fn run(&mut self) -> Option<i64> {
        let year_max = self.date().year + 5;
        while self.date().year <= year_max {
            // After a carry the walk starts again with the month.
            if self.match_month()? == Match::Found
                && self.match_day()? == Match::Found
                && self.match_hour()? == Match::Found
                && self.match_minute()? == Match::Found
                && self.match_second()? == Match::Found
            {
                return Some(self.at);
            }
        }
        None
    }

    fn match_month(&mut self) -> Option<Match> {
        loop {
            let date = self.date();
            if self.spec.has_month(date.month) {
                return Some(Match::Found);
            }
            self.count_step()?;
            if !self.is_zeroed {
                self.is_zeroed = true;
                self.at = self.instant_of(date.year, date.month.into(), 1, 0);
            }
            let (date, time_of_day) = (self.date(), self.time_of_day());
            self.at = self.instant_of(date.year, i64::from(date.month) + 1, date.day.into(), time_of_day);
            if self.date().month == 1 {
                return Some(Match::Carried);
            }
        }
    }

    fn match_day(&mut self) -> Option<Match> {
        loop {
            let day = self.wall().div_euclid(DAY_SECONDS);
            let date = Date::of_day(day);
            if self.spec.has_day(date.day, weekday(day)) {
                return Some(Match::Found);
            }
            self.count_step()?;
            if !self.is_zeroed {
                self.is_zeroed = true;
                self.at = self.instant_of(date.year, date.month.into(), date.day.into(), 0);
            }
            let (date, time_of_day) = (self.date(), self.time_of_day());
            self.at = self.instant_of(date.year, date.month.into(), i64::from(date.day) + 1, time_of_day);
            // That day has no midnight, or two: go to the nearest hour named 0, as if hours were regular.
            let hour = self.hour();
            self.at += if hour > 12 { 24 - hour } else { -hour } * 3_600;
            if self.date().day == 1 {
                return Some(Match::Carried);
            }
        }
    }

    fn match_hour(&mut self) -> Option<Match> {
        while !self.spec.has_hour(self.hour()) {
            self.count_step()?;
            if !self.is_zeroed {
                self.is_zeroed = true;
                let (date, hour) = (self.date(), self.hour());
                self.at = self.instant_of(date.year, date.month.into(), date.day.into(), hour * 3_600);
            }
            // The step is one hour of elapsed time: after a shift by half an hour the walk is at half past.
            self.at += 3_600;
            if self.hour() == 0 {
                return Some(Match::Carried);
            }
        }
        Some(Match::Found)
    }

    fn match_minute(&mut self) -> Option<Match> {
        while !self.spec.has_minute(self.minute()) {
            self.count_step()?;
            if !self.is_zeroed {
                self.is_zeroed = true;
                // A whole minute of absolute time, even if the offset is not in whole minutes.
                self.at -= self.at.rem_euclid(60);
            }
            self.at += 60;
            if self.minute() == 0 {
                return Some(Match::Carried);
            }
        }
        Some(Match::Found)
    }

    /// The library steps by seconds; this jumps to the next second 0, or to a zone change before it.
    fn match_second(&mut self) -> Option<Match> {
        let mut second = self.wall().rem_euclid(60);
        if second == 0 {
            return Some(Match::Found);
        }
        self.is_zeroed = true;
        while second != 0 {
            self.count_step()?;
            self.at += (60 - second).min(self.span.end.saturating_sub(self.at));
            second = self.wall().rem_euclid(60);
        }
        Some(Match::Carried)
    }

    fn count_step(&mut self) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        Some(())
    }

    fn offset_at(&mut self, instant: i64) -> i64 {
        if !self.span.contains(instant) {
            self.span = self.zone.span_at(instant);
        }
        self.span.offset
    }

    /// The instant of a wall-clock time (B-8.2). Month and day may lie outside their ranges.
    fn instant_of(&mut self, year: i64, month: i64, day: i64, time_of_day: i64) -> i64 {
        let wall = day_number(year, month, day) * DAY_SECONDS + time_of_day;
        let guess = self.offset_at(wall);
        if guess == 0 {
            wall
        } else {
            wall - self.offset_at(wall - guess)
        }
    }

    fn wall(&mut self) -> i64 {
        self.at + self.offset_at(self.at)
    }

    fn date(&mut self) -> Date {
        Date::at(self.wall())
    }

    fn time_of_day(&mut self) -> i64 {
        self.wall().rem_euclid(DAY_SECONDS)
    }

    fn hour(&mut self) -> i64 {
        self.time_of_day() / 3_600
    }

    fn minute(&mut self) -> i64 {
        self.wall().rem_euclid(3_600) / 60
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::schedule::fires::tests::spec;

    #[test]
    fn wall_clock_times_become_instants_as_in_go_b_8_2() {
        #[track_caller]
        fn check(zone: &str, (year, month, day): (i64, i64, i64), hour: i64, minute: i64, expected: &str) {
            let (spec, zone) = (spec("* * * * *"), Zone::load(zone).unwrap());
            let instant = Walk::new(&spec, &zone, 0).instant_of(year, month, day, hour * 3_600 + minute * 60);
            assert_eq!(Timestamp::from_second(instant).unwrap().to_string(), expected);
        }
        // In a gap: the instant before it in the west, after it in the east.
        check("America/Santiago", (2024, 9, 8), 0, 0, "2024-09-08T03:00:00Z");
        check("Africa/Cairo", (2024, 4, 26), 0, 0, "2024-04-25T22:00:00Z");
        // In an overlap: the first in the west, the second in the east.
        check("America/Havana", (2024, 11, 3), 0, 0, "2024-11-03T04:00:00Z");
        check("Asia/Beirut", (2024, 10, 26), 23, 30, "2024-10-26T21:30:00Z");
        // An overflow continues in the next month.
        check("UTC", (2025, 13, 1), 0, 0, "2026-01-01T00:00:00Z");
        check("UTC", (2025, 2, 31), 12, 0, "2025-03-03T12:00:00Z");
    }

    /// Zones that skip a day, change at midnight, by half an hour, twice a year for Ramadan, or by odd seconds.
    const ODD_ZONES: [&str; 8] = [
        "Africa/Casablanca",
        "Africa/Monrovia",
        "America/Havana",
        "Antarctica/Troll",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Pacific/Kwajalein",
        "UTC",
    ];

    #[test]
    fn the_steps_of_a_hostile_schedule_are_bounded() {
        // Six years of days, a day of hours, an hour of minutes.
        const STEPS_EXPECTED_MAX: u32 = 6 * 366 + 24 + 60;
        let references = (0..8 * 366).map(|day| 1_700_000_000 + day * 86_400);
        for text in [
            "0 0 30 2 *",
            "59 23 29 2 1",
            "59 23 31 12 *",
            "0 0 31 2,4,6,9,11 *",
            "* * * * *",
        ] {
            let spec = spec(text);
            for (zone, reference) in ODD_ZONES
                .iter()
                .flat_map(|zone| references.clone().step_by(17).map(move |at| (zone, at)))
            {
                let zone = Zone::load(zone).unwrap();
                let mut walk = Walk::new(&spec, &zone, reference);
                walk.run();
                let n_steps = STEPS_MAX - walk.steps_left;
                assert!(
                    n_steps <= STEPS_EXPECTED_MAX,
                    "{text} in {zone:?} from {reference}: {n_steps} steps"
                );
            }
        }
        // The library never returns (B-8.4).
        let (spec, zone) = (spec("0 0 30 12 *"), Zone::load("Pacific/Apia").unwrap());
        let mut walk = Walk::new(
            &spec,
            &zone,
            "2011-12-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second(),
        );
        assert_eq!((walk.run(), walk.steps_left), (None, 0));
    }
}
