//! `spread`: a window over which the CronJobs of one instant start, and the place of each in it.

use super::{OptionName, Schedule, ValueProblem, duration};
use crate::schedule::{Zone, fires::Spec};

/// The longest window: a day. A slot that starts more than a day later is another schedule.
const WINDOW_MAX_SECONDS: i64 = 24 * 3600;

const MINUTES_PER_DAY: i64 = 24 * 60;

/// 2000-01-01, from which days are counted, and the days in which a schedule shows its shortest distance: with two
/// leap years.
const FIRST_DAY: i64 = 946_684_800;
const N_DAYS: i64 = 8 * 366;
const DAY_SECONDS: i64 = 24 * 3600;

/// Reads a window: a Go duration of whole seconds, shorter than the distance between any two slots.
pub(super) fn window_seconds(value: &str, schedule: Option<&Schedule>) -> Result<u32, ValueProblem> {
    let distance = schedule.and_then(shortest_distance_seconds);
    read(value, distance).map_err(|text| ValueProblem {
        text,
        example: Some(example(distance)),
    })
}

fn read(value: &str, distance: Option<i64>) -> Result<u32, String> {
    const SECOND: i64 = 1_000_000_000;
    let nanoseconds = duration::parse_nanoseconds(value).map_err(|_| "it is no duration".to_owned())?;
    let seconds = nanoseconds / SECOND;
    if nanoseconds % SECOND != 0 || seconds < 1 {
        return Err("it is no whole number of seconds above zero".into());
    }
    if seconds > WINDOW_MAX_SECONDS {
        return Err("it is longer than a day".into());
    }
    if let Some(distance) = distance.filter(|distance| seconds >= *distance) {
        return Err(format!(
            "it is not shorter than {distance} s, the shortest time between two runs"
        ));
    }
    u32::try_from(seconds).map_err(|_| "it is too long".into())
}

/// A window that fits: the example of the option, or half of a shorter distance.
fn example(distance: Option<i64>) -> String {
    match distance {
        Some(..=1) => "none".to_owned(),
        Some(distance @ ..=600) => match (distance / 2 / 60, distance / 2 % 60) {
            (0, seconds) => format!("{seconds}s"),
            (minutes, 0) => format!("{minutes}m"),
            (minutes, seconds) => format!("{minutes}m{seconds}s"),
        },
        Some(_) | None => OptionName::Spread.example().to_owned(),
    }
}

/// The offset in a window, evenly distributed for evenly distributed hashes.
pub(super) fn offset_seconds(hash: u64, window_seconds: u32) -> u32 {
    // The upper bits of the product are the hash scaled to the window.
    let scaled = (u128::from(hash) * u128::from(window_seconds)) >> 64;
    u32::try_from(scaled).unwrap_or(0)
}

/// The shortest time between two activations on a wall clock that never changes, in seconds. `None` if there are no two.
fn shortest_distance_seconds(schedule: &Schedule) -> Option<i64> {
    if let Some(period) = schedule.period_seconds() {
        return Some(period);
    }
    if let Some(lines) = schedule.as_lines() {
        return lines.shortest_distance_seconds();
    }
    let spec = schedule.fields()?;
    let minutes: Vec<i64> = (0..60).filter(|minute| spec.minutes >> minute & 1 == 1).collect();
    let hours: Vec<i64> = (0..24).filter(|hour| spec.hours >> hour & 1 == 1).collect();
    let (first_minute, last_minute) = (*minutes.first()?, *minutes.last()?);
    let (first_hour, last_hour) = (*hours.first()?, *hours.last()?);
    let in_hour = distances(&minutes).min();
    let between_hours = distances(&hours)
        .min()
        .map(|hours| hours * 60 - last_minute + first_minute);
    let between_days = shortest_days(spec)
        .map(|days| days * MINUTES_PER_DAY - (last_hour * 60 + last_minute) + (first_hour * 60 + first_minute));
    let minutes = [in_hour, between_hours, between_days].into_iter().flatten().min()?;
    Some(minutes * 60)
}

fn distances(values: &[i64]) -> impl Iterator<Item = i64> {
    values.windows(2).map(|pair| pair[1] - pair[0])
}

/// The shortest distance between two days of the schedule.
fn shortest_days(spec: &Spec) -> Option<i64> {
    let daily = Schedule::spec(Spec {
        minutes: 1,
        hours: 1,
        zone: None,
        ..spec.clone()
    });
    let utc = Zone::utc();
    let last = FIRST_DAY + N_DAYS * DAY_SECONDS;
    let next = |day: i64| daily.next_second(day, &utc).filter(|day| *day <= last);
    let mut shortest = None;
    let mut day = next(FIRST_DAY)?;
    while let Some(following) = next(day) {
        let days = (following - day) / DAY_SECONDS;
        shortest = Some(shortest.map_or(days, |shortest: i64| shortest.min(days)));
        if days == 1 {
            break;
        }
        day = following;
    }
    shortest
}
