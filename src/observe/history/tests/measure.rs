//! A measurement, for documents: `CRONWHEEL_MEASURE_HISTORY=1 cargo test --lib history::tests::measure -- --nocapture`.

#![expect(clippy::disallowed_methods, reason = "a measurement needs a clock")]

use std::{env, time::Instant};

use super::*;

#[test]
fn rows_per_second_and_bytes_per_run() {
    if env::var_os("CRONWHEEL_MEASURE_HISTORY").is_none() {
        return;
    }
    let n_cron_jobs: u64 = env::var("CRON_JOBS").map_or(20_000, |text| text.parse().unwrap());
    let n_runs_each: i64 = env::var("RUNS_EACH").map_or(100, |text| text.parse().unwrap());
    let folder = Folder::new("measure");
    let mut store = Store::open(&folder.file(), &cluster(), Limits::default()).unwrap();
    let mut last = now();
    let mut longest = [Duration::ZERO; 2];
    let (mut n_rows, mut writing) = (0u64, Duration::ZERO);
    let start = Instant::now();
    for number in 0..n_runs_each {
        last = now() + minutes(15 * number);
        for first in (0..n_cron_jobs).step_by(500) {
            let finished: Vec<_> = (first..n_cron_jobs.min(first + 500))
                .map(|cron_job| run(cron_job, last))
                .collect();
            let created: Vec<_> = finished
                .iter()
                .cloned()
                .map(|record| {
                    with(record, |run| {
                        (run.started, run.finished, run.result) = (None, None, RunResult::Running);
                    })
                })
                .collect();
            for records in [created, finished] {
                let before = Instant::now();
                store.write(&records).unwrap();
                let took = before.elapsed();
                longest[0] = longest[0].max(took);
                writing += took;
                n_rows += u64::try_from(records.len()).unwrap();
            }
            let before = Instant::now();
            store.retain(last).unwrap();
            longest[1] = longest[1].max(before.elapsed());
        }
    }
    let n_runs: u64 = store
        .connection()
        .query_one("SELECT count(*) FROM runs", (), |row| row.get::<_, u32>(0))
        .unwrap()
        .into();
    let pages: u32 = store
        .connection()
        .query_one("PRAGMA page_count", (), |row| row.get(0))
        .unwrap();
    let bytes = u64::from(pages) * 4096;
    eprintln!(
        "all: {:?}, of which writing {writing:?} for {n_rows} upserts in transactions of 500",
        start.elapsed()
    );
    eprintln!(
        "{} upserts/s; longest transaction {:?}, longest slice of retention {:?}",
        u128::from(n_rows) * 1000 / writing.as_millis(),
        longest[0],
        longest[1]
    );
    eprintln!("{n_runs} runs, {bytes} bytes, {} bytes per run", bytes / n_runs);
    eprintln!(
        "{} bytes of memory for a record, without its texts",
        size_of::<Record>()
    );
    measure_reading(&folder, store, last);
}

/// Loads, closes and opens a file whose last run is of this instant.
fn measure_reading(folder: &Folder, store: Store, last: Timestamp) {
    let before = Instant::now();
    let mut n_loaded = 0u64;
    store
        .load(last - SignedDuration::from_hours(24), 10, &mut |_| n_loaded += 1)
        .unwrap();
    eprintln!("load of {n_loaded} records: {:?}", before.elapsed());
    let before = Instant::now();
    drop(store);
    eprintln!("close: {:?}", before.elapsed());
    let before = Instant::now();
    let mut store = Store::open(&folder.file(), &cluster(), Limits::default()).unwrap();
    eprintln!("open: {:?}", before.elapsed());
    let before = Instant::now();
    let verdict: String = store
        .connection()
        .query_one("PRAGMA quick_check(1)", (), |row| row.get(0))
        .unwrap();
    eprintln!("quick_check: {verdict} in {:?}", before.elapsed());
}
