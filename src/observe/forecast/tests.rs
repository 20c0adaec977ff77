//! The forecast, compared with the plain enumeration of every CronJob's activations.

use jiff::SignedDuration;

use super::*;
use crate::{
    observe::{
        facts::CronJobFacts,
        sample::{cron_job, instant},
    },
    schedule::ClockChange,
};

/// The zones of random CronJobs: usual ones, changes of half an hour and at midnight, and none.
const ZONES: [Option<&str>; 7] = [
    None,
    Some("UTC"),
    Some("Europe/Berlin"),
    Some("America/New_York"),
    Some("Australia/Lord_Howe"),
    Some("America/Havana"),
    Some("Asia/Kolkata"),
];

/// A small generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[usize::try_from(self.below(texts.len() as u64)).unwrap()]
    }

    fn schedule(&mut self) -> String {
        match self.below(5) {
            0 => format!("@every {}{}", 1 + self.below(90), self.pick(&["s", "m", "h"])),
            1 => format!("{} {} * * *", self.below(60), self.below(24)),
            2 => format!("{} * * * *", self.below(60)),
            3 => format!(
                "*/{} {} * * *",
                1 + self.below(30),
                self.pick(&["*", "1-3", "0", "2,3"])
            ),
            _ => format!(
                "{} {} * * {}",
                self.below(60),
                self.pick(&["*/3", "2", "1-4"]),
                self.below(7)
            ),
        }
    }
}

/// A namespace with one CronJob of each random schedule, so that the counts of namespaces differ.
fn random_cron_jobs(seed: u64) -> Vec<CronJobFacts> {
    let mut random = Random(seed);
    let mut cron_jobs = Vec::new();
    for number in 0..300 {
        let zone = ZONES[usize::try_from(random.below(7)).unwrap()];
        let mut facts = cron_job("team-a/job", &random.schedule(), zone);
        facts.namespace = format!("team-{}", random.below(5)).into();
        facts.name = format!("job-{number}").into();
        facts.created = instant("2026-01-01T00:00:00Z") + SignedDuration::from_secs(random.below(90_000).cast_signed());
        if random.below(4) == 0 {
            facts.schedule = facts.schedule.with_clock_change(ClockChange::Once);
        }
        facts.is_suspended = random.below(20) == 0;
        facts.is_deleting = random.below(20) == 0;
        cron_jobs.push(facts);
    }
    cron_jobs
}

/// Number of starts by namespace and minute, each activation computed on its own.
fn enumerated(cron_jobs: &[CronJobFacts], from: Timestamp, to: Timestamp) -> BTreeMap<(&str, Timestamp), u32> {
    let mut starts = BTreeMap::new();
    for cron_job in cron_jobs
        .iter()
        .filter(|facts| !facts.is_suspended && !facts.is_deleting)
    {
        let mut minutes = BTreeSet::new();
        let mut at = before(from);
        while let Some(next) = cron_job
            .schedule
            .next_run(cron_job.created, at)
            .filter(|next| *next < to)
        {
            minutes.insert(start_of(minute_of(next)));
            at = next;
        }
        for minute in minutes {
            *starts.entry((&*cron_job.namespace, minute)).or_default() += 1;
        }
    }
    starts
}

#[test]
fn the_forecast_equals_the_plain_enumeration() {
    for (seed, from) in [
        (1, "2026-11-27T22:04:58.5Z"),
        // Days on which clocks change in Europe, in America, and on Lord Howe.
        (2, "2026-10-24T12:00:00Z"),
        (3, "2027-03-27T18:30:00Z"),
        (4, "2026-11-01T00:00:30Z"),
        (5, "2026-10-03T12:00:00Z"),
    ] {
        let cron_jobs = random_cron_jobs(seed);
        let from = instant(from);
        let to = from + SignedDuration::from_hours(24);
        let forecast = Forecast::new(cron_jobs.iter(), from, to);
        let expected = enumerated(&cron_jobs, from, to);
        let mut n_all = 0;
        for namespace in forecast.namespaces() {
            let row = forecast.starts_by_minute(namespace);
            for (place, n_starts) in row.iter().enumerate() {
                let minute = start_of(forecast.first_minute + i64::try_from(place).unwrap());
                let expected = expected.get(&(namespace, minute)).copied().unwrap_or_default();
                assert_eq!(*n_starts, expected, "seed {seed}: {namespace} at {minute}");
                assert_eq!(forecast.starts(namespace, minute), expected);
                n_all += u64::from(expected);
            }
        }
        assert_eq!(
            n_all,
            expected.values().map(|n| u64::from(*n)).sum::<u64>(),
            "seed {seed}"
        );
        assert_eq!(forecast.n_starts_between(from, to), n_all);
        assert!(n_all > 10_000, "seed {seed}: {n_all} starts prove little");
    }
}

#[test]
fn the_peak_is_the_earliest_of_the_busiest_minutes() {
    let mut cron_jobs = Vec::new();
    for (name, text) in [
        ("shop/a", "0 2 * * *"),
        ("shop/b", "0 * * * *"),
        ("data/c", "0 2,4 * * *"),
        ("data/d", "0 4 * * *"),
        ("data/e", "30 2 30 2 *"),
    ] {
        cron_jobs.push(cron_job(name, text, None));
    }
    let from = instant("2026-11-27T22:04:58Z");
    let forecast = Forecast::new(cron_jobs.iter(), from, from + SignedDuration::from_hours(24));
    let peak = Peak {
        at: instant("2026-11-28T02:00:00Z"),
        n_starts: 3,
        namespace: "shop".into(),
        n_starts_in_namespace: 2,
    };
    assert_eq!(forecast.peak(), Some(&peak));
    let starts_at =
        |second: &str| forecast.n_starts_between(instant(second), instant(second) + SignedDuration::from_nanos(1));
    assert_eq!(starts_at("2026-11-28T04:00:59Z"), 3);
    assert_eq!(starts_at("2026-11-27T22:00:00Z"), 0, "before the forecast");
    let hour = (instant("2026-11-28T01:30:00Z"), instant("2026-11-28T02:00:00Z"));
    assert_eq!(forecast.n_starts_between(hour.0, hour.1), 0);
    assert_eq!(
        forecast.n_starts_between(hour.0, hour.1 + SignedDuration::from_secs(1)),
        3
    );
    assert_eq!(forecast.n_starts_between(hour.1, hour.0), 0);
    let nothing = Forecast::new(cron_jobs[4..].iter(), from, from + SignedDuration::from_hours(24));
    assert_eq!(nothing.peak(), None);
}

#[test]
fn cron_jobs_that_start_nothing_are_left_out() {
    let mut cron_jobs = Vec::new();
    for (name, text, zone) in [
        ("a/suspended", "* * * * *", None),
        ("a/deleting", "* * * * *", None),
        ("a/zone", "* * * * *", Some("Mars/Base")),
        ("a/text", "every day", None),
    ] {
        cron_jobs.push(cron_job(name, text, zone));
    }
    cron_jobs[0].is_suspended = true;
    cron_jobs[1].is_deleting = true;
    let from = instant("2026-11-27T22:00:00Z");
    let to = from + SignedDuration::from_hours(24);
    let forecast = Forecast::new(cron_jobs.iter(), from, to);
    assert_eq!((forecast.peak(), forecast.namespaces().count()), (None, 0));
    assert_eq!(forecast.n_starts_between(from, to), 0);
    let empty = Forecast::new(cron_jobs.iter(), to, from);
    assert_eq!((empty.n_starts_between(from, to), empty.to()), (0, to));
}

#[test]
fn a_spread_flattens_a_peak_unless_it_is_ignored() {
    let from = instant("2026-05-05T10:00:30Z");
    let mut cron_jobs = Vec::new();
    for hash in 0..4_u64 {
        let mut facts = cron_job("a/b", "0 * * * *", None);
        let window = |name: &str| (name == "cronwheel.dev/spread").then_some("4m");
        facts.schedule = facts.schedule.with_options("hello", window, hash << 62);
        cron_jobs.push(facts);
    }
    let to = from + SignedDuration::from_hours(1);
    let starts = |forecast: &Forecast| -> Vec<u64> {
        let minutes = ["10:00", "10:01", "10:02", "10:03", "11:00"];
        let minutes = minutes.map(|minute| instant(&format!("2026-05-05T{minute}:00Z")));
        let length = SignedDuration::from_mins(1);
        minutes
            .map(|minute| forecast.n_starts_between(minute, minute + length))
            .into()
    };
    // Those of the slot before the forecast that start in it count too.
    assert_eq!(starts(&Forecast::new(cron_jobs.iter(), from, to)), [0, 1, 1, 1, 1]);
    let ignored = cron_jobs.iter().map(|facts| ForecastInput {
        facts,
        ignores_options: true,
        frozen_until: None,
    });
    assert_eq!(starts(&Forecast::new(ignored, from, to)), [0, 0, 0, 0, 4]);
}

#[test]
fn a_freeze_beyond_the_forecast_leaves_no_starts() {
    let facts = cron_job("shop/a", "* * * * *", None);
    let from = instant("2026-05-05T10:00:00Z");
    let starts = |until: &str| {
        let input = ForecastInput {
            frozen_until: Some(instant(until)),
            ..ForecastInput::from(&facts)
        };
        let to = from + SignedDuration::from_hours(1);
        Forecast::new([input].into_iter(), from, to).n_starts_between(from, to)
    };
    assert_eq!(starts("2026-05-05T10:58:00Z"), 2);
    // A walk over the slots before the end would not end.
    assert_eq!(starts("9999-12-30T22:00:00Z"), 0);
}

#[test]
fn clock_changes_are_those_of_the_zones_in_use() {
    let mut cron_jobs = Vec::new();
    for (zone, text) in [
        ("Europe/Berlin", "0 2 * * *"),
        ("Europe/Paris", "@every 5m"),
        ("America/New_York", "0 2 * * *"),
        ("Europe/London", "0 2 * * *"),
    ] {
        cron_jobs.push(cron_job("a/b", text, Some(zone)));
    }
    let from = instant("2026-10-25T01:00:00Z");
    let forecast = Forecast::new(cron_jobs.iter(), from, from + SignedDuration::from_hours(24));
    let changes = forecast.clock_changes().iter();
    let changes: Vec<_> = changes
        .map(|change| (&*change.zone, change.at, change.forward_seconds))
        .collect();
    assert_eq!(
        changes,
        [("Europe/Berlin", from, -3_600), ("Europe/London", from, -3_600)]
    );
}

#[test]
fn hourly_starts_are_told_from_frequent_ones() {
    let from = instant("2026-11-27T22:00:00Z");
    let midnight = instant("2026-11-28T00:00:00Z");
    for (text, expected) in [
        ("0 * * * *", true),
        ("0 0 * * *", true),
        ("@every 1h", true),
        ("0,59 * * * *", false),
        ("*/30 * * * *", false),
        ("0 1 * * *", false),
    ] {
        let facts = cron_job("a/b", text, None);
        let forecast = Forecast::new([&facts].into_iter(), from, from + SignedDuration::from_hours(24));
        assert_eq!(forecast.starts_hourly_or_less_at(&facts, midnight), expected, "{text}");
    }
}

#[test]
fn twenty_thousand_cron_jobs_have_few_chains() {
    let mut cron_jobs = Vec::new();
    let texts = ["*/5 * * * *", "@every 2m", "0 2 * * *"];
    for (number, text) in (0..20_000).zip(texts.into_iter().cycle()) {
        let mut facts = cron_job("a/b", text, None);
        facts.namespace = format!("team-{}", number % 40).into();
        facts.created += SignedDuration::from_secs(number * 7);
        cron_jobs.push(facts);
    }
    let from = instant("2026-11-27T22:00:00Z");
    let forecast = Forecast::new(cron_jobs.iter(), from, from + SignedDuration::from_hours(24));
    // The interval has 40 phases: 7 seconds after the hour and then every 21 seconds, modulo two minutes.
    assert_eq!(forecast.minutes.len(), 1 + 40 + 1);
    let in_even_minute = |number: &u64| number * 7 % 120 < 60;
    let n_intervals = (1..20_000).step_by(3).filter(in_even_minute).count() as u64;
    assert_eq!(
        forecast.n_starts_between(instant("2026-11-28T02:00:00Z"), instant("2026-11-28T02:01:00Z")),
        6_667 + n_intervals + 6_666
    );
}

#[test]
fn each_slot_of_a_schedule_with_seconds_counts() {
    let mut fast = cron_job("shop/fast", "0 0 1 1 *", None);
    fast.schedule = fast.schedule.with_schedules("*/20 30-31 * * * *").unwrap();
    let cron_jobs = [fast, cron_job("shop/hourly", "30 * * * *", None)];
    let from = instant("2026-05-05T10:00:10Z");
    let forecast = Forecast::new(cron_jobs.iter(), from, from + SignedDuration::from_hours(2));
    let starts = |minute: &str| forecast.starts("shop", instant(&format!("2026-05-05T{minute}:00Z")));
    assert_eq!((starts("10:29"), starts("10:30"), starts("10:31")), (0, 4, 3));
    assert_eq!(
        forecast.n_starts_between(from, from + SignedDuration::from_hours(2)),
        14
    );
    assert_eq!(forecast.peak().map(|peak| peak.n_starts), Some(4));
    let row: u32 = forecast.starts_by_minute("shop").iter().sum();
    assert_eq!(row, 14);
}

#[test]
fn the_starts_at_the_end_of_a_freeze_follow_the_options() {
    let from = instant("2026-05-05T09:10:00Z");
    let to = from + SignedDuration::from_hours(6);
    let end = instant("2026-05-05T12:30:00Z");
    let mut facts = cron_job("shop/a", "0 * * * *", None);
    facts.last_schedule_time = Some(instant("2026-05-05T06:00:00Z"));
    let free = cron_job("data/b", "0 * * * *", None);
    let with = |annotation: &'static str, value: &'static str| {
        let mut facts = facts.clone();
        let get = move |name: &str| (name == annotation).then_some(value);
        facts.schedule = facts.schedule.with_options("hello", get, 0);
        facts
    };
    let starts = |facts: &CronJobFacts, ignores_options, frozen_until| {
        let frozen = ForecastInput {
            facts,
            ignores_options,
            frozen_until,
        };
        let forecast = Forecast::new([frozen, (&free).into()].into_iter(), from, to);
        let row = forecast.starts_by_minute("shop");
        let at_end = forecast.starts("shop", end);
        let place = forecast.place_of(end).unwrap();
        assert_eq!(row[place], at_end);
        // Each hour has one start of the other namespace.
        assert_eq!(
            forecast.n_starts_between(from, to),
            u64::from(row.iter().sum::<u32>()) + 6
        );
        assert_eq!(
            forecast.n_starts_between(end, end + SignedDuration::from_secs(60)),
            u64::from(at_end)
        );
        (at_end, row.iter().sum::<u32>())
    };
    // 13:00, 14:00 and 15:00 start after the end.
    for (name, facts, expected) in [
        ("none", facts.clone(), (1, 4)),
        ("latest", with("cronwheel.dev/on-resume", "latest"), (1, 4)),
        ("skip", with("cronwheel.dev/missed-runs", "skip"), (0, 3)),
        ("all 5", with("cronwheel.dev/missed-runs", "all 5"), (5, 8)),
        ("all", with("cronwheel.dev/on-resume", "all"), (6, 9)),
    ] {
        assert_eq!(starts(&facts, false, Some(end)), expected, "{name}");
        assert_eq!(
            starts(&facts, true, None),
            (0, 6),
            "{name} under the built-in controller"
        );
        let later = to + SignedDuration::from_hours(1);
        assert_eq!(starts(&facts, false, Some(later)), (0, 0), "{name} in a longer freeze");
        assert_eq!(starts(&facts, false, Some(from)), (0, 6), "{name} after a freeze");
    }
    let suspended = CronJobFacts {
        is_suspended: true,
        ..facts.clone()
    };
    assert_eq!(starts(&suspended, false, Some(end)), (0, 0));
    // The peak is there too.
    let many = with("cronwheel.dev/on-resume", "all");
    let input = ForecastInput::in_freeze(&many, end);
    let peak = Forecast::new([input].into_iter(), from, to).peak().cloned();
    assert_eq!(
        peak.map(|peak| (peak.at, peak.n_starts, peak.n_starts_in_namespace)),
        Some((end, 6, 6))
    );
}
