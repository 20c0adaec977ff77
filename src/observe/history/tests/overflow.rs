//! The bounded queue.

use super::*;
use crate::observe::history::queue::{Queue, RECORDS_MAX};

fn second(number: i64) -> Timestamp {
    now() + SignedDuration::from_secs(number)
}

/// Observed since the start, at this second.
fn observed(number: i64) -> Record {
    observation(second(0), second(number))
}

fn observations(queue: &mut Queue) -> Vec<Record> {
    let mut records = queue.take();
    queue.written(records.len());
    records.retain(|record| matches!(record, Record::Observation(_)));
    records
}

#[test]
fn observations_come_last_and_only_the_latest_of_each_period() {
    let mut queue = Queue::new(now());
    queue.add(vec![observed(1), run(1, now()), observed(2)], second(2));
    queue.add(
        vec![run(2, now()), observation(second(5), second(6)), observed(3)],
        second(6),
    );
    let expected = [
        run(1, now()),
        run(2, now()),
        observed(3),
        observation(second(5), second(6)),
    ];
    assert_eq!(queue.take(), expected);
    assert_eq!(queue.now(), second(6));
    assert_eq!(queue.take(), []);
}

#[test]
fn a_full_queue_counts_what_it_loses_and_ends_the_period() {
    let mut queue = Queue::new(now());
    queue.add(vec![run(1, now()); RECORDS_MAX - 1], now());
    assert_eq!(
        queue.add(vec![observed(1), run(2, now()), observed(2)], second(2)),
        RECORDS_MAX
    );
    assert_eq!(queue.n_lost(), 0);
    // The run at second 3 is lost. What was observed before stays.
    queue.add(vec![run(3, now()), observed(3), observed(4)], second(4));
    assert_eq!(queue.n_lost(), 1);
    let records = queue.take();
    assert_eq!(
        records[RECORDS_MAX - 1..],
        [run(2, now()), observed(2), observation(second(3), second(4))]
    );
    // Records that are taken still need their room until they are written.
    queue.add(vec![run(4, now()), observed(5)], second(5));
    assert_eq!(queue.n_lost(), 2);
    queue.written(records.len());
    assert_eq!(observations(&mut queue), [observation(second(5), second(5))]);
    queue.add(vec![run(5, now()), observed(6)], second(6));
    assert_eq!(queue.n_lost(), 2);
    assert_eq!(observations(&mut queue), [observation(second(5), second(6))]);
    // A period that the caller begins is whole again.
    queue.add(vec![observation(second(7), second(8))], second(8));
    assert_eq!(observations(&mut queue), [observation(second(7), second(8))]);
}

#[test]
fn lost_records_are_named_in_a_banner() {
    let folder = Folder::new("overflow");
    fs::create_dir(folder.file()).unwrap();
    let history = folder.open();
    history.record(vec![run(1, now()); RECORDS_MAX + 7], now());
    assert!(history.flush());
    let banners = history.banners();
    assert_eq!(banners.len(), 2);
    assert!(banners[1].sentence.contains("lacks 7 changes"), "{banners:?}");
}
