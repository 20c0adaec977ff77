//! The proleptic Gregorian calendar over wall-clock seconds: local time counted as if it were Unix time.

/// Seconds in a day.
pub(super) const DAY_SECONDS: i64 = 86_400;

/// A calendar date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    /// 1 to 12.
    pub(super) month: u8,
    /// 1 to 31.
    pub(super) day: u8,
}

impl Date {
    /// The date of a wall-clock second.
    pub(super) fn at(wall_seconds: i64) -> Date {
        Date::of_day(wall_seconds.div_euclid(DAY_SECONDS))
    }

    /// The date of a day number, counted from 1970-01-01.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "months and days are small"
    )]
    pub(super) fn of_day(day_number: i64) -> Date {
        // Years start in March, so that the leap day is the last day; in cycles of 400 years.
        let shifted = day_number + 719_468;
        let cycle = shifted.div_euclid(146_097);
        let day_of_cycle = shifted.rem_euclid(146_097);
        let year_of_cycle =
            (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
        let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 {
            month_from_march + 3
        } else {
            month_from_march - 9
        };
        let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
        Date {
            year,
            month: month as u8,
            day: day as u8,
        }
    }
}

/// The day number of a date. As in Go's `time.Date`, month and day may lie outside their ranges.
pub(super) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let (year, month_from_march) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let first_of_month = (153 * month_from_march + 2) / 5;
    cycle * 146_097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + first_of_month + day - 1 - 719_468
}

/// The day of the week; Sunday is 0.
#[expect(clippy::cast_possible_truncation, reason = "between 0 and 6")]
pub(super) fn weekday(day_number: i64) -> u8 {
    (day_number + 4).rem_euclid(7) as u8
}
