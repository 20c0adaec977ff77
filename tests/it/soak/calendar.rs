//! Enumerates the expected activations of a CronJob: every minute of wall-clock time that its fields match, in each
//! span of equal offset. There is no search, so the result does not depend on a path.

use jiff::civil;

use super::{
    mix::{CronJob, Fields, Rule},
    zones::{Decade, SoakZone, Span},
};

const DAY_SECONDS: i64 = 86_400;

/// The instants after `from` up to and including `until`, ascending, in Unix seconds.
pub(super) fn instants(cron_job: &CronJob, zone: &SoakZone, days: &Days, from: i64, until: i64) -> Vec<i64> {
    match &cron_job.rule {
        Rule::Every(seconds) => (1..=(until - from) / seconds).map(|n| from + n * seconds).collect(),
        Rule::Calendar(fields) => {
            let mut instants = Vec::new();
            for span in zone.spans.iter().filter(|span| span.start <= until && from < span.end) {
                let part = Span {
                    start: span.start.max(from + 1),
                    end: span.end.min(until + 1),
                    offset: span.offset,
                };
                days.push_instants(fields, &part, &mut instants);
            }
            instants
        }
    }
}

/// A day of the calendar.
struct Day {
    /// Counted from 1970-01-01.
    number: i64,
    of_month: i8,
    month: i8,
    /// Sunday is 0.
    weekday: i8,
}

/// The days of a decade, plus one on either side.
pub(super) struct Days {
    days: Vec<Day>,
}

impl Days {
    pub(super) fn of(decade: &Decade) -> Days {
        let first = decade.begin.div_euclid(DAY_SECONDS) - 1;
        let last = decade.end.div_euclid(DAY_SECONDS) + 1;
        let epoch = civil::date(1970, 1, 1);
        let day = |number: i64| {
            let date = epoch.checked_add(jiff::Span::new().days(number)).expect("a date");
            Day {
                number,
                of_month: date.day(),
                month: date.month(),
                weekday: date.weekday().to_sunday_zero_offset(),
            }
        };
        Days {
            days: (first..=last).map(day).collect(),
        }
    }

    fn push_instants(&self, fields: &Fields, span: &Span, instants: &mut Vec<i64>) {
        let day_at = |second: i64| (second + span.offset).div_euclid(DAY_SECONDS);
        let (first, last) = (day_at(span.start), day_at(span.end - 1));
        let place = |number: i64| usize::try_from(number - self.days[0].number).expect("within the decade");
        for day in &self.days[place(first)..=place(last)] {
            if !matches_day(fields, day) {
                continue;
            }
            let midnight = day.number * DAY_SECONDS - span.offset;
            for hour in (0..24).filter(|hour| fields.hours >> hour & 1 == 1) {
                let minutes = (0..60).filter(|minute| fields.minutes >> minute & 1 == 1);
                let of_hour = minutes.map(|minute| midnight + hour * 3_600 + minute * 60);
                instants.extend(of_hour.filter(|instant| (span.start..span.end).contains(instant)));
            }
        }
    }
}

fn matches_day(fields: &Fields, day: &Day) -> bool {
    let in_month = fields.days >> day.of_month & 1 == 1;
    let in_week = fields.weekdays >> day.weekday & 1 == 1;
    let is_day = if fields.is_either {
        in_month || in_week
    } else {
        in_month && in_week
    };
    is_day && fields.months >> day.month & 1 == 1
}
