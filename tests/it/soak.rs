//! Ten years of every zone with a mix of schedules. Activations ascend, and they are exactly the expected ones.
//!
//! [`calendar`] enumerates the expected activations day by day, without a search. It uses the fields as sets and jiff's
//! zones, but nothing of `schedule`. The library differs from the plain calendar only around changes that touch
//! midnight or part of an hour (B-8.4). There, and for samples elsewhere, the test compares with the library.
//!
//! Zones with equal offsets count as one, because a search depends only on the offsets. `make soak` walks every name,
//! more decades, and also frequent schedules for whole decades.

mod calendar;
mod library;
mod mix;
mod once;
mod shard;
mod walk;
mod zones;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use self::{
    calendar::Days,
    library::Sample,
    mix::CronJob,
    walk::Walked,
    zones::{Decade, SoakZone},
};

/// The extent of a walk.
struct Breadth {
    /// Whether to walk every name of the database, or one name of each group of equal zones.
    has_every_name: bool,
    /// Schedules that run more often are walked only around changes.
    n_per_year_max: u64,
    /// The maximum number of changes of a zone around which frequent schedules are walked.
    n_changes_max: usize,
    /// The number of chains in each stretch of a walk to compare with the library.
    n_samples: usize,
}

/// The breadth that fits into CI.
const USUAL: Breadth = Breadth {
    has_every_name: false,
    n_per_year_max: 400,
    n_changes_max: 6,
    n_samples: 1,
};

const EVERY_NAME: Breadth = Breadth {
    has_every_name: true,
    n_per_year_max: 400,
    n_changes_max: 6,
    n_samples: 1,
};

const HOURLY: Breadth = Breadth {
    has_every_name: false,
    n_per_year_max: 9_000,
    n_changes_max: usize::MAX,
    n_samples: 20,
};

/// The first years of decades with skipped days and with half-hour offsets, of the usual decade, and of the last decade
/// of the tables.
const YEARS: [i16; 5] = [1996, 2006, 2016, USUAL_YEAR, 2089];

const USUAL_YEAR: i16 = 2026;

/// The first years of the decades that the environment selects for a full run, if any: `full`, or a list of years.
fn years_in_full() -> Option<Vec<i16>> {
    match std::env::var("CRONWHEEL_SOAK").ok()?.as_str() {
        "" => None,
        "full" => Some(YEARS.into()),
        years => {
            let year = |text: &str| {
                text.parse()
                    .unwrap_or_else(|_| panic!("CRONWHEEL_SOAK: {text} is no year"))
            };
            Some(years.split(',').map(year).collect())
        }
    }
}

/// Walks all schedules in one zone.
fn soak_zone(zone: &SoakZone, decade: &Decade, days: &Days, breadth: &Breadth) -> (Walked, Vec<Sample>) {
    let mut walked = Walked::default();
    let mut samples = Vec::new();
    for cron_job in mix::cron_jobs(zone) {
        let fires = walk::walk(&cron_job, zone, decade, days, breadth, &mut walked);
        samples.extend(library::samples(&cron_job, zone, &fires, breadth));
    }
    (walked, samples)
}

/// Walks all zones, on all processors.
fn soak_decade(decade: &Decade, breadth: &Breadth) {
    let (zones, days) = (zones::zones(decade, breadth), Days::of(decade));
    let (place, total) = (AtomicUsize::new(0), Mutex::new((Walked::default(), 0, 0)));
    let work = || {
        let mut library = library::Library::start();
        while let Some(zone) = zones.get(place.fetch_add(1, Ordering::Relaxed)) {
            let (walked, samples) = soak_zone(zone, decade, &days, breadth);
            let n_compared = library.check(&samples);
            let mut total = total.lock().unwrap();
            total.0.add(&walked);
            total.1 += samples.len();
            total.2 += n_compared;
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let (walked, n_queries, n_compared) = total.into_inner().unwrap();
    let n_names: usize = zones.iter().map(|zone| zone.n_names).sum();
    eprintln!(
        "{decade}: {n_names} names, {} zones, {walked}; {n_compared} activations compared with the library in {n_queries} queries",
        zones.len()
    );
    assert!(
        n_names > 590 && walked.n_fires > 1_000_000 && n_compared > 50_000,
        "{walked}"
    );
}

#[test]
fn b_8_activations_match_the_calendar_for_ten_years_in_every_zone() {
    let Some(years) = years_in_full() else {
        return soak_decade(&Decade::from_year(USUAL_YEAR), &USUAL);
    };
    for year in years {
        soak_decade(&Decade::from_year(year), &EVERY_NAME);
        if year == USUAL_YEAR {
            soak_decade(&Decade::from_year(year), &HOURLY);
        }
    }
}

#[test]
fn b_8_shard_starts_the_runs_of_ten_years_on_time_in_every_zone() {
    let decade = Decade::from_year(USUAL_YEAR);
    let zones = zones::zones(&decade, &USUAL);
    let chosen = |(place, zone): (usize, _)| shard::cron_jobs(place, zone, years_in_full().is_some());
    let cron_jobs: Vec<(&SoakZone, CronJob)> = zones.iter().enumerate().flat_map(chosen).collect();
    let ran = shard::run(&cron_jobs, &decade);
    eprintln!("{decade}: {ran}");
    assert!(ran.n_fires > 50_000, "{ran}");
}
