//! Processes that are stopped and resumed, by SIGSTOP or with their machine.

use std::time::Duration;

use super::{FOUR, TAKEN_WITHIN, assert_moved_once, begin, evicted, moves, taken};
use crate::fleet::{Size, cluster::Fleet, oracle::writes_of_former_holders, play};

/// Freezes the process in `b` for a while. Returns the shards that it held, and its number.
async fn freeze(fleet: &mut Fleet, from: (i64, f64), seconds: u64, late: f64) -> (Vec<u16>, u64) {
    begin(fleet, &FOUR).await;
    fleet.at(from.0, from.1).await;
    let (number, frozen_at) = (fleet.number("b"), fleet.now());
    let held = fleet.records().held_by(number);
    fleet.allow_late(frozen_at, late);
    fleet.freeze("b");
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let n_writes = fleet
        .records()
        .writes
        .iter()
        .filter(|write| write.process == number)
        .count();
    fleet.thaw("b");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let n_after = fleet
        .records()
        .writes
        .iter()
        .filter(|write| write.process == number)
        .count();
    if seconds >= 11 {
        assert_eq!(n_after, n_writes, "a resumed process without leadership writes nothing");
        assert_moved_once(fleet, &held, frozen_at);
        let took = taken(fleet, number, &held, frozen_at);
        assert!(took <= TAKEN_WITHIN, "{took:?}");
        assert_eq!(evicted(fleet), ["uid-b"]);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let life = fleet.records().members["uid-b"].last().unwrap().holder;
        assert!(
            life.is_some_and(|holder| holder.process == number && holder.life >= 1),
            "{life:?}"
        );
    }
    assert_eq!(writes_of_former_holders(&fleet.records()).len(), 0);
    (held, number)
}

#[test]
fn f_06_replica_frozen_for_five_seconds_keeps_its_shards() {
    for (seed, from) in [(60, (0, 57.3)), (61, (1, 0.0)), (62, (1, 10.4))] {
        play(seed, Size::default(), async |fleet| {
            let frozen_at = fleet.instant(from.0, from.1);
            freeze(fleet, from, 5, 5.5).await;
            fleet.at(2, 10.0).await;
            assert!(moves(fleet, frozen_at).is_empty());
        });
    }
}

#[test]
fn f_06_replica_frozen_for_nine_seconds_loses_its_shards_at_most_once() {
    for (seed, from) in [(63, (0, 53.1)), (64, (0, 59.99))] {
        play(seed, Size::default(), async |fleet| {
            let frozen_at = fleet.instant(from.0, from.1);
            freeze(fleet, from, 9, 11.5).await;
            // The settle window ends ten seconds after the return. Shards are rebalanced only afterwards.
            fleet.until(frozen_at + Duration::from_secs(9 + 9)).await;
            let moves = moves(fleet, frozen_at);
            assert!(moves.values().all(|n_moves| *n_moves == 1), "{moves:?}");
            fleet.at(2, 20.0).await;
        });
    }
}

#[test]
fn f_06_replica_frozen_for_eleven_seconds_loses_its_shards_once() {
    for (seed, from) in [(65, (0, 52.0)), (66, (1, 0.01))] {
        play(seed, Size::default(), async |fleet| {
            freeze(fleet, from, 11, 11.5).await;
            fleet.at(2, 20.0).await;
        });
    }
}

#[test]
fn f_06_replica_frozen_for_a_minute_loses_its_shards_once() {
    play(67, Size::default(), async |fleet| {
        freeze(fleet, (0, 58.0), 60, 11.0).await;
        fleet.at(3, 20.0).await;
    });
}

#[test]
fn f_06_replica_frozen_for_ten_minutes_loses_its_shards_once() {
    play(
        68,
        Size {
            n_cron_jobs: 30,
            n_shards: 16,
        },
        async |fleet| {
            freeze(fleet, (0, 58.0), 600, 11.0).await;
            fleet.at(12, 20.0).await;
        },
    );
}

#[test]
fn f_06_late_create_of_a_frozen_replica_finds_the_job_of_the_new_leader() {
    play(69, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 59.0).await;
        let frozen_at = fleet.now();
        let (number, held) = (fleet.number("b"), fleet.records().held_by(fleet.number("b")));
        fleet.allow_late(frozen_at, 12.5);
        fleet.freeze_at_create("b", 3);
        fleet.at(1, 14.0).await;
        assert_moved_once(fleet, &held, frozen_at);
        let n_writes = |fleet: &Fleet| {
            fleet
                .records()
                .writes
                .iter()
                .filter(|write| write.process == number)
                .count()
        };
        let n_before = n_writes(fleet);
        let n_exists_before = fleet.records().n_exists;
        fleet.thaw("b");
        fleet.at(1, 16.0).await;
        assert_eq!(n_writes(fleet), n_before);
        assert!(
            fleet.records().n_exists > n_exists_before,
            "the checked create finds the Job of the new leader"
        );
        fleet.at(2, 20.0).await;
    });
}
