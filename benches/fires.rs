//! The next activation and the due slot.
//!
//! `next` steps through two years from 2026 on, including zone changes. A call takes about 0.1 µs, and more if a sparse
//! schedule meets a zone change. `most_recent` searches over one year and over twenty years. Its cost may grow with the
//! number of zone changes in between, and must not grow with the number of activations. The options `clock-change` and
//! `schedule` have groups of their own; they cost nothing where they are not used.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cronwheel::schedule::{ClockChange, CronJobSchedule, Schedule, Zone, due, parse_standard};
use jiff::{SignedDuration, Timestamp};

const NEXT: [(&str, &str); 10] = [
    ("* * * * *", "UTC"),
    ("*/5 * * * *", "UTC"),
    ("0 9 * * 1-5", "UTC"),
    ("0 0 13 * 5", "UTC"),
    ("* * * * *", "America/New_York"),
    ("30 2 * * *", "America/New_York"),
    ("0 0 1 * *", "America/New_York"),
    ("0 12 * * 5", "Africa/Cairo"),
    ("0 0 30 2 *", "UTC"),
    ("0 0 30 2 *", "America/New_York"),
];

const MOST_RECENT: [(&str, &str); 8] = [
    ("* * * * *", "UTC"),
    ("* * * * *", "America/New_York"),
    ("*/5 9-17 * * 1-5", "America/New_York"),
    ("30 2 * * *", "Australia/Lord_Howe"),
    ("0 0 1 * *", "America/New_York"),
    ("* * * 1-11 *", "Europe/Berlin"),
    ("0 12 * * 5", "Africa/Cairo"),
    ("@every 90s", "UTC"),
];

/// Values of the option `schedule`: the most frequent, a usual one, several, and one that never fires.
const LINES: [&str; 4] = [
    "* * * * * *",
    "30 30 2 * * *",
    "0 0 9 * * Mon-Fri\n0 0 12 * * Sat\n0 0 0 1 1 * 2027-2030",
    "0 0 0 30 2 *",
];

/// 2026-01-01T00:00:00Z.
const START_SECONDS: i64 = 1_767_225_600;

fn schedule(text: &str, zone: &str) -> Schedule {
    parse_standard(&format!("TZ={zone} {text}")).expect("the texts above are schedules")
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("within the years of a timestamp")
}

fn next(criterion: &mut Criterion) {
    let (utc, end) = (Zone::utc(), at(START_SECONDS + 2 * 365 * 86_400));
    let mut group = criterion.benchmark_group("next");
    for (text, zone) in NEXT {
        let schedule = schedule(text, zone);
        let mut reference = at(START_SECONDS);
        group.bench_function(format!("{text} {zone}"), |bencher| {
            bencher.iter(|| {
                let next = schedule.next_after(black_box(reference), &utc);
                reference = next.filter(|next| *next < end).unwrap_or(at(START_SECONDS));
                next
            });
        });
    }
    group.finish();
}

/// Steps through two years, as `next`, with options.
fn options(criterion: &mut Criterion) {
    let (utc, end) = (Zone::utc(), at(START_SECONDS + 2 * 365 * 86_400));
    let once = NEXT.map(|(text, zone)| (format!("once {text} {zone}"), schedule(text, zone)));
    let lines = LINES.map(|text| {
        let cron_job = CronJobSchedule::new("0 0 * * *", Some("Europe/Berlin"), &utc);
        let cron_job = cron_job.with_schedules(text).expect("the texts above are schedules");
        (format!("schedule {text:?}"), cron_job.parsed.expect("it is valid"))
    });
    let mut group = criterion.benchmark_group("options");
    for (name, schedule) in once.into_iter().chain(lines) {
        let schedule = schedule.with_clock_change(ClockChange::Once);
        let mut reference = at(START_SECONDS);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let next = schedule.next_after(black_box(reference), &utc);
                reference = next.filter(|next| *next < end).unwrap_or(at(START_SECONDS));
                next
            });
        });
    }
    group.finish();
}

fn most_recent(criterion: &mut Criterion) {
    let utc = Zone::utc();
    let mut group = criterion.benchmark_group("most_recent");
    for years in [1, 20] {
        for (text, zone) in MOST_RECENT {
            let schedule = schedule(text, zone);
            let mut hour = 0;
            group.bench_function(format!("{years} years of {text} {zone}"), |bencher| {
                bencher.iter(|| {
                    // A different `now` each time, over a year: some near a zone change, most not.
                    hour = (hour + 1_327) % 8_760;
                    let now = at(START_SECONDS + hour * 3_600 + 1);
                    due::most_recent(
                        &schedule,
                        &utc,
                        now - SignedDuration::from_hours(8_766 * years),
                        black_box(now),
                    )
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, next, options, most_recent);
criterion_main!(benches);
