//! Processes that are killed or fail.

use std::time::Duration;

use super::{FOUR, TAKEN_WITHIN, assert_history_kept, assert_moved_once, begin, evicted, taken};
use crate::fleet::{Size, play};

#[test]
fn f_05_shards_of_a_killed_and_restarted_replica_move_once() {
    play(5, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 59.7).await;
        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 3.0);
        let former = fleet.kill("b").await;
        let held = fleet.records().held_by(former);
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet.start("b");
        fleet.all_led(Duration::from_secs(3)).await;
        let took = taken(fleet, former, &held, killed_at);
        assert!(took <= Duration::from_secs(3), "{took:?}");
        assert_eq!(
            evicted(fleet),
            Vec::<String>::new(),
            "the new process replaces its predecessor without an eviction"
        );
        assert_moved_once(fleet, &held, killed_at);
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_05_shards_of_a_killed_replica_move_to_the_others() {
    play(6, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 57.0).await;
        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 11.0);
        let former = fleet.kill("b").await;
        let held = fleet.records().held_by(former);
        fleet.all_led(Duration::from_secs(11)).await;
        let took = taken(fleet, former, &held, killed_at);
        assert!(took <= TAKEN_WITHIN, "{took:?}");
        assert_eq!(evicted(fleet), ["uid-b"]);
        assert_moved_once(fleet, &held, killed_at);
        fleet.at(6, 55.0).await;
        assert_history_kept(fleet).await;
    });
}

#[test]
fn f_05_new_leader_knows_the_existing_jobs() {
    play(8, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(3, 30.0).await;
        fleet.allow_late(fleet.now(), 11.0);
        fleet.kill("b").await;
        fleet.all_led(Duration::from_secs(11)).await;
        fleet.at(8, 55.0).await;
        assert_history_kept(fleet).await;
    });
}

#[test]
fn f_17_replica_exits_when_its_lease_task_fails() {
    play(17, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        let (failed_at, held) = (fleet.now(), fleet.records().held_by(fleet.number("c")));
        fleet.change("c", |pod| {
            pod.fail_lease_task.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        // Renewals happen every two seconds.
        while !fleet.has_ended("c") {
            assert!(fleet.since(failed_at) < Duration::from_millis(3_200));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let ended_at = fleet.now();
        let error = fleet.ended("c").await.unwrap_err();
        assert_eq!(error.to_string(), "the election task failed");
        fleet.allow_late(failed_at, 2.0);
        fleet.all_led(Duration::from_secs(1)).await;
        assert!(fleet.since(ended_at) <= Duration::from_secs(1));
        assert_eq!(
            evicted(fleet),
            Vec::<String>::new(),
            "the process releases its shards before it exits"
        );
        assert_moved_once(fleet, &held, failed_at);
        fleet.at(2, 20.0).await;
    });
}
