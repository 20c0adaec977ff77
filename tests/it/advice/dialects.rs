//! Random schedules of Quartz, AWS, Spring and crontabs, with their meaning for the library `cron`, which reads the
//! seconds first and counts days of the week from 1.

use std::str::FromStr as _;

use jiff::Timestamp;

use crate::random::Random;

/// A schedule in its dialect.
pub(super) struct Drawn {
    pub(super) text: String,
    /// The same for the library: seconds, minute, hour, day of month, month, day of week, year.
    pub(super) meaning: String,
}

/// Draws a schedule that Kubernetes refuses.
pub(super) fn draw(random: &mut Random) -> Drawn {
    let minute = numbers(random, 0, 59);
    let hour = numbers(random, 0, 23);
    let month = numbers(random, 1, 12);
    let is_of_month = random.is_one_in(2);
    let of_month = if is_of_month {
        numbers(random, 1, 28)
    } else {
        "?".to_owned()
    };
    let of_week = if is_of_month { "?".to_owned() } else { days(random) };
    let seconds = if random.is_one_in(3) {
        "0".to_owned()
    } else {
        numbers(random, 0, 59)
    };
    let quartz = format!("{seconds} {minute} {hour} {of_month} {month} {of_week}");
    let aws = format!("{minute} {hour} {of_month} {month} {of_week} *");
    match random.below(5) {
        0 => Drawn {
            text: quartz.clone(),
            meaning: format!("{quartz} *"),
        },
        1 => Drawn {
            text: format!("{quartz} *"),
            meaning: format!("{quartz} *"),
        },
        2 => Drawn {
            text: if random.is_one_in(2) {
                aws.clone()
            } else {
                format!("cron({aws})")
            },
            meaning: format!("0 {aws}"),
        },
        3 => crontab(random, &minute, &hour, &month),
        _ => wrapped(random, &minute, &month),
    }
}

/// A line of a crontab. Its days of the week count from 0, and 7 is Sunday too.
fn crontab(random: &mut Random, minute: &str, hour: &str, month: &str) -> Drawn {
    let first = random.between(0, 7);
    let last = random.between(first, 7);
    let days = if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    };
    let listed: Vec<String> = (first..=last).map(|day| (day % 7 + 1).to_string()).collect();
    let tail = random.pick(&[
        "root /usr/bin/backup",
        "/bin/true",
        "# at night",
        "user run --all 5 * * * *",
    ]);
    Drawn {
        text: format!("{minute} {hour} * {month} {days} {tail}"),
        meaning: format!("0 {minute} {hour} ? {month} {} *", listed.join(",")),
    }
}

/// Hours that pass midnight.
fn wrapped(random: &mut Random, minute: &str, month: &str) -> Drawn {
    let first = random.between(12, 23);
    let last = random.between(0, first - 1);
    let mut hours: Vec<String> = (first..=23).chain(0..=last).map(|hour| hour.to_string()).collect();
    let mut step = String::new();
    if random.is_one_in(2) {
        let every = random.between(2, 5);
        step = format!("/{every}");
        hours = hours.into_iter().step_by(usize::try_from(every).unwrap()).collect();
    }
    Drawn {
        text: format!("{minute} {first}-{last}{step} * {month} *"),
        meaning: format!("0 {minute} {} * {month} * *", hours.join(",")),
    }
}

/// A field with numbers: a star, one, a list, a range, or a step.
fn numbers(random: &mut Random, min: i64, max: i64) -> String {
    let one = random.between(min, max);
    let other = random.between(one, max);
    match random.below(6) {
        0 | 1 => "*".to_owned(),
        2 if one < other => format!("{one},{other}"),
        3 if one < other => format!("{one}-{other}"),
        4 => format!("{one}/{}", random.between(1, max.min(20))),
        _ => one.to_string(),
    }
}

/// Days of the week that count from 1.
fn days(random: &mut Random) -> String {
    const NAMES: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let first = random.below(7);
    let last = first + random.below(7 - first);
    let day = |day: usize, is_named: bool| {
        if is_named {
            NAMES[day].to_owned()
        } else {
            (day + 1).to_string()
        }
    };
    let is_named = random.is_one_in(2);
    match random.below(4) {
        0 => "*".to_owned(),
        1 if first < last => format!("{}-{}", day(first, is_named), day(last, is_named)),
        2 if first < last => format!("{},{}", day(last, is_named), day(first, is_named)),
        _ => day(first, is_named),
    }
}

/// The first minutes in Unix time at which the library fires.
pub(super) fn minutes(meaning: &str, start: Timestamp, n_minutes: usize) -> Vec<i64> {
    let schedule = cron::Schedule::from_str(meaning).unwrap_or_else(|error| panic!("{meaning}: {error}"));
    let start = chrono::DateTime::from_timestamp(start.as_second(), 0).unwrap();
    let mut minutes: Vec<i64> = schedule
        .after(&start)
        .take(n_minutes * 60)
        .map(|at| at.timestamp() / 60)
        .collect();
    minutes.dedup();
    minutes.truncate(n_minutes);
    minutes
}
