//! What is removed, compared with a model.

use std::collections::BTreeMap;

use super::*;

/// A small generator (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn minutes(&mut self, limit: u64) -> SignedDuration {
        minutes(self.below(limit).cast_signed())
    }
}

fn open(folder: &Folder, limits: Limits) -> Store {
    Store::open(&folder.file(), &cluster(), limits).unwrap()
}

fn number(store: &mut Store, sql: &str) -> i64 {
    store.connection().query_one(sql, (), |row| row.get(0)).unwrap()
}

fn records(store: &Store) -> Vec<Record> {
    let mut records = Vec::new();
    store
        .load(Timestamp::MIN, 1, &mut |record| records.push(record))
        .unwrap();
    records
}

/// The runs in the order of `records`: by CronJob in the order of their first record, then by time.
fn runs(records: Vec<Record>) -> BTreeMap<(Uid, Timestamp), Uid> {
    let runs = records.into_iter().filter_map(|record| match record {
        Record::Run { run, .. } => Some(((run.cron_job, run.created), run.job_uid)),
        Record::Change(_) | Record::Freeze(_) | Record::Observation(_) => None,
    });
    runs.collect()
}

#[test]
fn runs_older_than_the_age_are_removed() {
    for seed in 0..3 {
        let mut random = Random(seed);
        let folder = Folder::new("age");
        let age = SignedDuration::from_hours(24 * (1 + random.below(40).cast_signed()));
        let mut store = open(
            &folder,
            Limits {
                age,
                ..Limits::default()
            },
        );
        // More of one CronJob than a slice removes, and more CronJobs than a slice passes.
        let mut slots: Vec<_> = (0..1500)
            .map(|number| (number, now() - random.minutes(60 * 24 * 60)))
            .collect();
        slots.extend((0..6000).map(|number| (7, now() - minutes(number * 14))));
        let all: Vec<_> = slots.into_iter().map(|(cron_job, slot)| run(cron_job, slot)).collect();
        store.write(&all).unwrap();
        let mut n_steps = 0;
        let mut n_before = number(&mut store, "SELECT count(*) FROM runs");
        while n_steps < 10 {
            store.retain(now()).unwrap();
            let n_after = number(&mut store, "SELECT count(*) FROM runs");
            assert!(n_before - n_after <= 5000, "seed {seed}: a long transaction");
            n_before = n_after;
            n_steps += 1;
        }
        let mut expected = runs(all);
        expected.retain(|(_, created), _| *created >= now() - age);
        assert_eq!(runs(records(&store)), expected, "seed {seed}");
    }
}

#[test]
fn the_change_that_applies_at_the_horizon_stays() {
    let folder = Folder::new("changes-age");
    let mut store = open(&folder, Limits::default());
    let days = |number: i64| now() - SignedDuration::from_hours(24 * number);
    let change = |cron_job, at, is_suspended| CronJobChange {
        is_suspended,
        ..change(cron_job, at)
    };
    let deleted = |cron_job, at| CronJobChange {
        is_deleted: true,
        ..change(cron_job, at, false)
    };
    let kept = [
        change(1, days(40), true),
        change(1, days(10), false),
        change(2, days(50), false),
        deleted(3, days(10)),
    ];
    let removed = [
        change(1, days(60), false),
        change(4, days(50), false),
        deleted(4, days(40)),
    ];
    let periods = [
        observation(days(50), days(40)),
        observation(days(35), days(20)),
        observation(days(2), days(1)),
    ];
    let changes = removed.iter().chain(&kept).cloned().map(Record::Change);
    store.write(&changes.chain(periods).collect::<Vec<_>>()).unwrap();
    for _ in 0..3 {
        store.retain(now()).unwrap();
    }
    let mut expected: Vec<_> = kept.into_iter().map(Record::Change).collect();
    // Before the horizon nothing is known.
    expected.extend([observation(days(30), days(20)), observation(days(2), days(1))]);
    assert_eq!(records(&store), expected);
    assert_eq!(number(&mut store, "SELECT count(*) FROM cron_jobs"), 3);
}

#[test]
fn a_cron_job_that_changes_all_the_time_keeps_its_latest_changes() {
    let folder = Folder::new("changes-number");
    let mut store = open(&folder, Limits::default());
    let changes = (0..1100).map(|number| CronJobChange {
        starting_deadline_seconds: Some(number),
        ..change(1, now() - minutes(1100 - number))
    });
    store.write(&changes.map(Record::Change).collect::<Vec<_>>()).unwrap();
    store.retain(now()).unwrap();
    assert_eq!(number(&mut store, "SELECT count(*) FROM changes"), 1000);
    assert_eq!(
        number(&mut store, "SELECT min(starting_deadline_seconds) FROM changes"),
        100
    );
}

#[test]
fn a_file_stays_below_its_limit_and_keeps_the_newest_runs() {
    const SIZE_BYTES: u64 = 256 << 10;
    let folder = Folder::new("size");
    let limits = Limits {
        size_bytes: SIZE_BYTES,
        ..Limits::default()
    };
    let mut store = open(&folder, limits);
    let mut random = Random(1);
    let mut model = BTreeMap::new();
    let mut time = now();
    for _ in 0..60 {
        let batch: Vec<_> = (0..200)
            .map(|_| {
                time += SignedDuration::from_secs(30);
                run(random.below(20), time)
            })
            .collect();
        store.write(&batch).expect("runs are removed before the file is full");
        model.extend(runs(batch));
        for _ in 0..4 {
            store.retain(time).unwrap();
        }
    }
    for _ in 0..20 {
        store.retain(time).unwrap();
    }
    let n_pages = number(&mut store, "PRAGMA page_count") * number(&mut store, "PRAGMA page_size");
    assert!(n_pages.unsigned_abs() <= SIZE_BYTES, "{n_pages} pages");
    let horizon = Timestamp::from_millisecond(number(&mut store, "SELECT horizon FROM history")).unwrap();
    model.retain(|(_, created), _| created.as_second() >= horizon.as_second());
    let stored = runs(records(&store));
    assert_eq!(stored, model);
    let bytes_per_run = SIZE_BYTES / u64::try_from(stored.len()).unwrap();
    assert!(bytes_per_run < 120, "{} runs are left", stored.len());
}

#[test]
fn space_is_given_back_when_much_of_it_is_free() {
    let folder = Folder::new("vacuum");
    let mut store = open(&folder, Limits::default());
    let old = (0..25_000).map(|number| {
        run(
            number % 3,
            now() - SignedDuration::from_hours(24 * 50) + minutes(number.cast_signed()),
        )
    });
    store.write(&old.collect::<Vec<_>>()).unwrap();
    let n_before = number(&mut store, "PRAGMA page_count");
    for _ in 0..15 {
        store.retain(now()).unwrap();
    }
    let n_after = number(&mut store, "PRAGMA page_count");
    assert!(n_after < n_before / 2, "{n_before} pages, then {n_after}");
}
