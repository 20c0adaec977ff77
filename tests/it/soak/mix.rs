//! The schedules for each zone, each with its expected meaning.

use std::collections::BTreeSet;

use super::zones::SoakZone;

/// The values that the five fields match. Bit n stands for value n.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    pub(super) weekdays: u64,
    /// Whether a match of one of the two day fields suffices (B-7.8).
    pub(super) is_either: bool,
}

/// The expected activations of a CronJob.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    Calendar(Fields),
    /// Seconds between activations.
    Every(i64),
}

/// `spec.schedule`, `spec.timeZone`, and their meaning.
#[derive(Clone)]
pub(super) struct CronJob {
    pub(super) schedule: String,
    pub(super) time_zone: Option<&'static str>,
    pub(super) rule: Rule,
}

impl CronJob {
    /// The approximate number of runs per year.
    pub(super) fn n_per_year(&self) -> u64 {
        let count = |set: u64| u64::from(set.count_ones());
        match self.rule {
            Rule::Every(seconds) => 31_557_600 / seconds.unsigned_abs(),
            Rule::Calendar(fields) => {
                let (in_month, in_week) = (count(fields.days) * 12, count(fields.weekdays) * 52);
                let days = if fields.is_either {
                    in_month + in_week
                } else {
                    in_month.min(in_week).max(1)
                };
                (days * count(fields.months)).div_ceil(12) * count(fields.hours) * count(fields.minutes)
            }
        }
    }
}

fn set(values: impl IntoIterator<Item = u32>) -> u64 {
    values.into_iter().fold(0, |set, value| set | 1 << value)
}

impl Fields {
    /// Every day, at these minutes and hours.
    fn daily(minutes: impl IntoIterator<Item = u32>, hours: impl IntoIterator<Item = u32>) -> Fields {
        Fields {
            minutes: set(minutes),
            hours: set(hours),
            days: set(1..=31),
            months: set(1..=12),
            weekdays: set(0..=6),
            is_either: false,
        }
    }

    fn hourly(minutes: impl IntoIterator<Item = u32>) -> Fields {
        Fields::daily(minutes, 0..24)
    }

    fn days(self, days: impl IntoIterator<Item = u32>) -> Fields {
        Fields {
            days: set(days),
            ..self
        }
    }

    fn months(self, months: impl IntoIterator<Item = u32>) -> Fields {
        Fields {
            months: set(months),
            ..self
        }
    }

    fn weekdays(self, weekdays: impl IntoIterator<Item = u32>) -> Fields {
        Fields {
            weekdays: set(weekdays),
            ..self
        }
    }

    /// Restricts both day fields, so that a match of either suffices.
    fn either(self) -> Fields {
        Fields {
            is_either: true,
            ..self
        }
    }
}

/// The schedules for every zone.
fn calendar_rows() -> Vec<(&'static str, Fields)> {
    let at = |minute, hour| Fields::daily([minute], [hour]);
    let midnight = at(0, 0);
    vec![
        ("*/5 * * * *", Fields::hourly((0..60).step_by(5))),
        ("*/7 * * * *", Fields::hourly((0..60).step_by(7))),
        ("3-59/15 * * * *", Fields::hourly((3..60).step_by(15))),
        ("0 * * * *", Fields::hourly([0])),
        ("@hourly", Fields::hourly([0])),
        ("30 * * * *", Fields::hourly([30])),
        ("59 */2 * * *", Fields::daily([59], (0..24).step_by(2))),
        ("*/20 0-4 * * *", Fields::daily([0, 20, 40], 0..=4)),
        ("5/25 22,23,0,1 * * *", Fields::daily([5, 30, 55], [22, 23, 0, 1])),
        (
            "*/30 0-4 20-31 mar,Oct *",
            Fields::daily([0, 30], 0..=4).days(20..=31).months([3, 10]),
        ),
        ("@daily", midnight),
        ("@midnight", midnight),
        ("59 23 * * *", at(59, 23)),
        ("0 12 * * *", at(0, 12)),
        ("17 3 * * MON-FRI", at(17, 3).weekdays(1..=5)),
        ("0 2 ? * 1-6/2", at(0, 2).weekdays([1, 3, 5])),
        ("@weekly", midnight.weekdays([0])),
        ("0 12 * * 5", at(0, 12).weekdays([5])),
        ("0 12 * * Sun", at(0, 12).weekdays([0])),
        ("30 1 * 3,10,11 SUN", at(30, 1).months([3, 10, 11]).weekdays([0])),
        ("@monthly", midnight.days([1])),
        ("0 5 7 * *", at(0, 5).days([7])),
        ("30 2 31 * *", at(30, 2).days([31])),
        ("45 23 28-31 * *", at(45, 23).days(28..=31)),
        ("0 0 */5 * ?", midnight.days((1..=31).step_by(5))),
        ("0 0 1,15 * 3", midnight.days([1, 15]).weekdays([3]).either()),
        ("0 4 13 * FRI", at(0, 4).days([13]).weekdays([5]).either()),
        ("15 0 1-7 * SUN", at(15, 0).days(1..=7).weekdays([0]).either()),
        ("0 6 8-14 jan-dec/3 *", at(0, 6).days(8..=14).months([1, 4, 7, 10])),
        ("@yearly", midnight.days([1]).months([1])),
        ("@annually", midnight.days([1]).months([1])),
        ("59 23 31 12 *", at(59, 23).days([31]).months([12])),
        ("7 6 5 4 3", at(7, 6).days([5]).months([4]).weekdays([3]).either()),
        ("0 0 29 2 *", midnight.days([29]).months([2])),
        ("30 2 29 FEB ?", at(30, 2).days([29]).months([2])),
        ("0 3 29 2 0", at(0, 3).days([29]).months([2]).weekdays([0]).either()),
        ("0 0 30 2 *", midnight.days([30]).months([2])),
        ("* * 31 2 *", Fields::hourly(0..60).days([31]).months([2])),
        ("0 0 31 2,4,6,9,11 *", midnight.days([31]).months([2, 4, 6, 9, 11])),
    ]
}

const EVERY: [(&str, i64); 5] = [
    ("@every 90s", 90),
    ("@every 1h30m", 5_400),
    ("@every 25h", 90_000),
    ("@every 720h0m1.9s", 2_592_001),
    ("@every 8784h", 31_622_400),
];

/// All schedules for a zone.
pub(super) fn cron_jobs(zone: &SoakZone) -> Vec<CronJob> {
    let rows = calendar_rows()
        .into_iter()
        .map(|(text, fields)| (text.to_owned(), fields));
    let in_zone = rows.chain(half_hours(zone)).map(|(schedule, fields)| CronJob {
        schedule,
        time_zone: Some(zone.name),
        rule: Rule::Calendar(fields),
    });
    let every = EVERY.iter().map(|(text, seconds)| CronJob {
        schedule: (*text).to_owned(),
        time_zone: Some(zone.name),
        rule: Rule::Every(*seconds),
    });
    in_zone.chain(named_in_text(zone)).chain(every).collect()
}

/// Daily schedules at each half hour in and around the times that changes of the zone skip or repeat.
fn half_hours(zone: &SoakZone) -> Vec<(String, Fields)> {
    let ends = zone.changes().map(super::zones::Change::wall_range);
    let half_hours = ends.flat_map(|(from, to)| from.div_euclid(1_800) - 1..=to.div_euclid(1_800) + 1);
    let of_day: BTreeSet<u32> = half_hours
        .filter_map(|half_hour| u32::try_from(half_hour.rem_euclid(48)).ok())
        .collect();
    let daily = of_day.into_iter().map(|half_hour| {
        let (minute, hour) = (half_hour % 2 * 30, half_hour / 2);
        (format!("{minute} {hour} * * *"), Fields::daily([minute], [hour]))
    });
    daily.collect()
}

/// Schedules with a zone in the text, which overrides the zone field (B-7.1).
fn named_in_text(zone: &SoakZone) -> [CronJob; 3] {
    let rule = |fields| Rule::Calendar(fields);
    [
        CronJob {
            schedule: format!("CRON_TZ={} 30 2 * * *", zone.name),
            time_zone: None,
            rule: rule(Fields::daily([30], [2])),
        },
        CronJob {
            schedule: format!("TZ={} @weekly", zone.name),
            time_zone: Some("Asia/Tokyo"),
            rule: rule(Fields::daily([0], [0]).weekdays([0])),
        },
        CronJob {
            schedule: format!("CRON_TZ={} 0 1 * 3-11 6", zone.name),
            time_zone: Some("America/New_York"),
            rule: rule(Fields::daily([0], [1]).months(3..=11).weekdays([6])),
        },
    ]
}
