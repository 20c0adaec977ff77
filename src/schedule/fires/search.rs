//! Finds matching wall-clock minutes by bit operations, in a calendar without zone changes.

use super::{
    DayRule, Spec,
    calendar::{DAY_SECONDS, Date, day_number, weekday},
};

/// The first matching minute after a wall-clock second, in wall-clock seconds. Like the library's, the search ends with
/// the fifth year after the year of `wall + 1`.
pub(in crate::schedule) fn first_after(spec: &Spec, wall: i64) -> Option<i64> {
    let minute = wall.div_euclid(60) + 1;
    let (day, minute_of_day) = (minute.div_euclid(1_440), minute.rem_euclid(1_440));
    let date = Date::of_day(day);
    if spec.has_month(date.month)
        && spec.has_day(date.day, weekday(day))
        && let Some(found) = first_minute_from(spec, minute_of_day)
    {
        return Some(day * DAY_SECONDS + found * 60);
    }
    let year_max = Date::at(wall + 1).year + 5;
    let day = first_day_after(spec, date, year_max)?;
    Some(day * DAY_SECONDS + first_minute_from(spec, 0)? * 60)
}

/// The last matching minute from `wall_min` to `wall` inclusive, in wall-clock seconds.
pub(in crate::schedule) fn last_until(spec: &Spec, wall: i64, wall_min: i64) -> Option<i64> {
    let minute = wall.div_euclid(60);
    let (day, minute_of_day) = (minute.div_euclid(1_440), minute.rem_euclid(1_440));
    let date = Date::of_day(day);
    let found = if spec.has_month(date.month)
        && spec.has_day(date.day, weekday(day))
        && let Some(found) = last_minute_until(spec, minute_of_day)
    {
        day * DAY_SECONDS + found * 60
    } else {
        let day = last_day_before(spec, day, wall_min.div_euclid(DAY_SECONDS))?;
        day * DAY_SECONDS + last_minute_until(spec, 1_439)? * 60
    };
    (found >= wall_min).then_some(found)
}

/// The number of the last matching day before `day` and at or after `day_min`.
fn last_day_before(spec: &Spec, day: i64, day_min: i64) -> Option<i64> {
    let Date {
        mut year,
        mut month,
        day: mut before,
    } = Date::of_day(day);
    loop {
        let first = day_number(year, month.into(), 1);
        if spec.has_month(month) {
            let days = matching_days(spec, year, month, first) & (u32::MAX >> (32 - before));
            if days != 0 {
                return Some(first + i64::from(days.ilog2()) - 1).filter(|found| *found >= day_min);
            }
        }
        if first <= day_min {
            return None;
        }
        (year, month) = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
        before = 32;
    }
}

fn first_day_after(spec: &Spec, date: Date, year_max: i64) -> Option<i64> {
    let Date {
        mut year,
        mut month,
        day,
    } = date;
    let mut open_days = u32::MAX << day << 1;
    while year <= year_max {
        if spec.has_month(month) {
            let first = day_number(year, month.into(), 1);
            let days = matching_days(spec, year, month, first) & open_days;
            if days != 0 {
                return Some(first + i64::from(days.trailing_zeros()) - 1);
            }
        }
        (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        open_days = u32::MAX;
    }
    None
}

/// The matching days of a month, bit n for day n.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the bits above the last day are cut on purpose"
)]
fn matching_days(spec: &Spec, year: i64, month: u8, first_day_number: i64) -> u32 {
    // The week's bits repeated, starting at the weekday of the first of the month.
    let weeks = u64::from(spec.days_of_week) * 0x8_1020_4081;
    let in_week = (weeks >> weekday(first_day_number) << 1) as u32;
    let days = match spec.day_rule {
        DayRule::Both => spec.days_of_month & in_week,
        DayRule::Either => spec.days_of_month | in_week,
    };
    let n_days = day_number(year, i64::from(month) + 1, 1) - first_day_number;
    let all = u32::MAX >> (31 - n_days) & !1;
    days & all
}

fn first_minute_from(spec: &Spec, minute_of_day: i64) -> Option<i64> {
    let (hour, minute) = (minute_of_day / 60, minute_of_day % 60);
    let minutes = spec.minutes >> minute << minute;
    if spec.has_hour(hour) && minutes != 0 {
        return Some(hour * 60 + i64::from(minutes.trailing_zeros()));
    }
    let hours = spec.hours >> hour >> 1 << hour << 1;
    (hours != 0 && spec.minutes != 0)
        .then(|| i64::from(hours.trailing_zeros()) * 60 + i64::from(spec.minutes.trailing_zeros()))
}

fn last_minute_until(spec: &Spec, minute_of_day: i64) -> Option<i64> {
    let (hour, minute) = (minute_of_day / 60, minute_of_day % 60);
    let minutes = spec.minutes & (u64::MAX >> (63 - minute));
    if spec.has_hour(hour) && minutes != 0 {
        return Some(hour * 60 + i64::from(minutes.ilog2()));
    }
    let hours = spec.hours & ((1 << hour) - 1);
    (hours != 0 && spec.minutes != 0).then(|| i64::from(hours.ilog2()) * 60 + i64::from(spec.minutes.ilog2()))
}
