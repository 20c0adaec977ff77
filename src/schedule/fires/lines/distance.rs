//! The shortest time between two activations of several schedules, on a wall clock that never changes.
//!
//! Only schedules that meet are compared: one has a day that the other has too, or the day after. So no pair of activations
//! is missed, however rare it is, and no activation is searched for.

use cron::TimeUnitSpec;

use super::line::Line;
use crate::schedule::fires::calendar::{self, DAY_SECONDS, Date};

/// The years that a schedule may name.
const FIRST_YEAR: i64 = 1970;
const LAST_YEAR: i64 = 2100;

const WORD_BITS: i64 = 64;

/// The shortest time in seconds, of those below two days; `None` if there is none.
pub(super) fn shortest_seconds(lines: &[Line]) -> Option<i64> {
    let meetings = Meetings::of(lines);
    let times: Vec<TimesOfDay> = lines.iter().map(TimesOfDay::of).collect();
    let mut shortest = None;
    for (place, (one, of_one)) in times.iter().zip(&meetings.0).enumerate() {
        for (other_place, other) in times.iter().enumerate() {
            let is_met = |lines: u16| lines >> other_place & 1 == 1;
            let in_day = (other_place >= place && is_met(of_one.same_day)).then(|| one.shortest_with(other));
            let over_midnight = is_met(of_one.next_day).then(|| one.until_next_day(other));
            let found = in_day.flatten().into_iter().chain(over_midnight);
            shortest = found.chain(shortest).min();
            if shortest == Some(1) {
                return shortest;
            }
        }
    }
    shortest
}

/// For each schedule, those that it meets.
struct Meetings(Vec<Met>);

/// Schedules, bit n for the one at place n.
#[derive(Clone, Copy, Default)]
struct Met {
    /// Those that have one of its days too.
    same_day: u16,
    /// Those that have the day after one of its days.
    next_day: u16,
}

impl Meetings {
    fn of(lines: &[Line]) -> Meetings {
        let with = |has: &dyn Fn(&Line) -> bool| {
            let lines = lines.iter().enumerate().filter(|(_, line)| has(line));
            lines.fold(0_u16, |found, (place, _)| found | 1 << place)
        };
        let months: Vec<u16> = (1..=12)
            .map(|month| with(&|line| line.schedule.months().includes(month)))
            .collect();
        let days: Vec<u16> = (1..=31)
            .map(|day| with(&|line| line.schedule.days_of_month().includes(day)))
            .collect();
        // Sunday is 1.
        let weekdays: Vec<u16> = (1..=7)
            .map(|day| with(&|line| line.schedule.days_of_week().includes(day)))
            .collect();
        let mut meetings = vec![Met::default(); lines.len()];
        let mut before = 0;
        for year in FIRST_YEAR..=LAST_YEAR {
            let of_year = with(&|line| u32::try_from(year).is_ok_and(|year| line.schedule.years().includes(year)));
            for day in calendar::day_number(year, 1, 1)..calendar::day_number(year + 1, 1, 1) {
                let date = Date::of_day(day);
                let today = of_year
                    & months[usize::from(date.month) - 1]
                    & days[usize::from(date.day) - 1]
                    & weekdays[usize::from(calendar::weekday(day))];
                for (place, met) in meetings.iter_mut().enumerate() {
                    met.same_day |= if today >> place & 1 == 1 { today } else { 0 };
                    met.next_day |= if before >> place & 1 == 1 { today } else { 0 };
                }
                before = today;
            }
        }
        Meetings(meetings)
    }
}

/// The seconds of the day of a schedule.
struct TimesOfDay {
    /// A bit for each second.
    seconds: Vec<u64>,
    first: i64,
    last: i64,
}

impl TimesOfDay {
    fn of(line: &Line) -> TimesOfDay {
        let n_words = usize::try_from(DAY_SECONDS / WORD_BITS).unwrap_or_default();
        let mut times = TimesOfDay {
            seconds: vec![0; n_words],
            first: DAY_SECONDS,
            last: 0,
        };
        let schedule = &line.schedule;
        for hour in schedule.hours().iter() {
            for minute in schedule.minutes().iter() {
                for second in schedule.seconds().iter() {
                    times.insert(i64::from((hour * 60 + minute) * 60 + second));
                }
            }
        }
        times
    }

    fn insert(&mut self, second: i64) {
        let place = usize::try_from(second / WORD_BITS).ok();
        if let Some(word) = place.and_then(|place| self.seconds.get_mut(place)) {
            *word |= 1 << (second % WORD_BITS);
        }
        self.first = self.first.min(second);
        self.last = self.last.max(second);
    }

    /// The shortest time between two seconds of one day that either schedule has.
    fn shortest_with(&self, other: &TimesOfDay) -> Option<i64> {
        let (mut shortest, mut before): (Option<i64>, Option<i64>) = (None, None);
        let words = self.seconds.iter().zip(&other.seconds).map(|(one, other)| one | other);
        for (place, mut word) in (0..).zip(words) {
            while word != 0 {
                let second = place * WORD_BITS + i64::from(word.trailing_zeros());
                word &= word - 1;
                shortest = before.map(|before| second - before).into_iter().chain(shortest).min();
                before = Some(second);
            }
            if shortest == Some(1) {
                break;
            }
        }
        shortest
    }

    /// The time from the last second of a day to the first second of the other schedule on the next day.
    fn until_next_day(&self, other: &TimesOfDay) -> i64 {
        DAY_SECONDS - self.last + other.first
    }
}
