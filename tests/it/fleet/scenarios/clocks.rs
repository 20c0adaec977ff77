//! Wrong clocks. Leases depend only on the boot clock. Jobs depend on no wall clock that contradicts the API server.

use std::{collections::BTreeMap, time::Duration};

use cronwheel::controller::clock::SimulatedWall;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{FOUR, begin, evicted, moves};
use crate::fleet::{Size, cluster::Fleet, play};

/// Asserts that a replica with a wrong clock leads no shard and reports the wrong clock.
async fn assert_reports_wrong_clock(fleet: &Fleet, name: &str) {
    assert_eq!(fleet.shares()[name], 0);
    let not_ready = fleet.not_ready(name).await;
    assert!(not_ready.contains("seconds off the API server's"), "{not_ready}");
    assert!(not_ready.contains("this replica takes no shards"), "{not_ready}");
    let metric = fleet.takes_no_shards(name);
    assert_eq!(metric.as_deref(), Some("unwilling"));
}

/// Asserts that every member was renewed without gaps, regardless of its clock.
fn assert_renewed_since(fleet: &Fleet, since: Timestamp) {
    let records = fleet.records();
    for (pod_uid, changes) in &records.members {
        let at: Vec<_> = changes
            .iter()
            .map(|change| change.at)
            .filter(|at| *at >= since)
            .collect();
        assert!(at.len() > 5, "{pod_uid}: {} renewals", at.len());
        for pair in at.windows(2) {
            let pause = pair[1].duration_since(pair[0]);
            assert!(
                pause < SignedDuration::from_millis(2_600),
                "{pod_uid}: {pause:?} to {}",
                pair[1]
            );
        }
    }
}

#[test]
fn f_16_clock_step_of_an_hour_evicts_no_replica_and_starts_no_extra_run() {
    for (seed, by) in [
        (160, SignedDuration::from_hours(1)),
        (161, SignedDuration::from_hours(-1)),
    ] {
        play(seed, Size::default(), async |fleet| {
            begin(fleet, &FOUR).await;
            fleet.at(0, 57.0).await;
            let before = fleet.now();
            fleet.wall("b").step(by);
            fleet.at(1, 10.0).await;
            // The responses of the API server contradict the clock, so the replica ignores it.
            assert_eq!((fleet.shares()["b"], fleet.not_ready("b").await), (8, String::new()));
            fleet.at(1, 20.0).await;
            fleet.wall("b").step(-by);
            fleet.at(2, 20.0).await;
            assert_eq!(fleet.not_ready("b").await, "");
            assert_renewed_since(fleet, before);
            assert_eq!(evicted(fleet), Vec::<String>::new());
            assert!(moves(fleet, before).values().all(|n_moves| *n_moves <= 1));
            fleet.at(3, 20.0).await;
        });
    }
}

#[test]
fn f_16_replica_with_a_clock_off_by_five_seconds_leads_no_shard() {
    for (seed, by) in [
        (162, SignedDuration::from_secs(5)),
        (163, SignedDuration::from_secs(-5)),
    ] {
        play(seed, Size::default(), async |fleet| {
            fleet.add("wrong");
            let epoch = fleet.now() + by;
            fleet.change("wrong", |pod| pod.wall = SimulatedWall::starting_at(epoch));
            fleet.start("wrong");
            fleet.start_all(&FOUR);
            fleet.at(1, 20.0).await;
            fleet.all_led(Duration::ZERO).await;
            assert_reports_wrong_clock(fleet, "wrong").await;
            assert_renewed_since(fleet, fleet.instant(0, 40.0));
            assert!(fleet.records().writes.iter().all(|write| write.process != 1));
        });
    }
}

#[test]
fn f_16_replica_with_a_drifting_clock_releases_its_shards() {
    for (seed, by) in [(165, 900), (166, -900)] {
        play(seed, Size::default(), async |fleet| {
            begin(fleet, &FOUR).await;
            let before = fleet.now();
            for creep in [by, -by] {
                fleet.until(fleet.now() + SignedDuration::from_mins(1)).await;
                for _ in 0..4 {
                    fleet.wall("b").step(SignedDuration::from_millis(creep));
                    tokio::time::sleep(Duration::from_secs(2)).await;
                }
                fleet.until(fleet.now() + SignedDuration::from_secs(20)).await;
                fleet.all_led(Duration::ZERO).await;
                if creep == by {
                    assert_reports_wrong_clock(fleet, "b").await;
                }
            }
            assert_eq!(fleet.not_ready("b").await, "");
            assert_eq!(evicted(fleet), Vec::<String>::new());
            assert_renewed_since(fleet, before);
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!(fleet.shares()["b"], 8);
        });
    }
}

#[test]
fn f_16_boot_clocks_may_run_five_percent_fast_or_slow() {
    play(164, Size::default(), async |fleet| {
        for (name, rate) in [("b", 1_050_000), ("c", 950_000)] {
            fleet.add(name);
            let epoch = fleet.now();
            fleet.change(name, |pod| {
                pod.wall = SimulatedWall::starting_at(epoch).with_boot_rate(rate);
            });
        }
        begin(fleet, &FOUR).await;
        fleet.at(1, 50.0).await;
        let before = fleet.now();
        fleet.allow_late(before, 12.0);
        fleet.kill("a").await;
        fleet.all_led(Duration::from_millis(11_100)).await;
        // The replica with the slow clock freezes. The replica with the fast clock takes over its shards first.
        fleet.at(2, 15.0).await;
        fleet.allow_late(fleet.now(), 12.0);
        fleet.freeze("c");
        tokio::time::sleep(Duration::from_secs(10)).await;
        fleet.thaw("c");
        tokio::time::sleep(Duration::from_secs(2)).await;
        fleet.all_led(Duration::from_secs(2)).await;
        fleet.at(3, 20.0).await;
        assert!(!moves(fleet, before).is_empty());
    });
}

#[test]
fn f_28_replicas_stay_ready_with_a_wrong_clock_at_one_of_three_servers() {
    for (seed, by) in [
        (280, SignedDuration::from_secs(3)),
        (281, SignedDuration::from_secs(-30)),
        (282, SignedDuration::from_secs(3)),
    ] {
        play(seed, Size::default(), async |fleet| {
            // One replica has most or two of its connections at the server with the wrong clock.
            let connections = if seed == 282 { [2, 2, 2, 0, 1] } else { [2, 2, 0, 1, 0] };
            for (name, connections) in [
                ("a", connections),
                ("b", [0, 1, 2, 0, 1]),
                ("c", [0, 1, 0, 1, 0]),
                ("d", [2, 0, 1, 2, 0]),
            ] {
                fleet.add(name);
                fleet.change(name, |pod| pod.write_connections_at = connections.to_vec());
            }
            begin(fleet, &FOUR).await;
            let before = fleet.now();
            fleet.api.set_clock_ahead(2, by);
            if seed == 282 {
                fleet.allow_late(before, 15.0);
            }
            fleet.until(before + SignedDuration::from_secs(15)).await;
            for _ in 0..120 {
                for name in FOUR {
                    assert_eq!(fleet.not_ready(name).await, "", "{name} at {}", fleet.now());
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            if seed != 282 {
                assert_eq!(moves(fleet, before), BTreeMap::new());
            }
        });
    }
}

#[test]
fn f_28_create_denied_by_one_api_server_is_sent_to_another() {
    play(283, Size::default(), async |fleet| {
        for name in FOUR {
            fleet.add(name);
            // An idle replica sends on its first connection.
            fleet.change(name, |pod| pod.write_connections_at = vec![2, 0, 1]);
        }
        begin(fleet, &FOUR).await;
        fleet.at(0, 59.5).await;
        fleet.api.set_clock_ahead(2, SignedDuration::from_secs(60));
        fleet.add_fence_policy();
        fleet.at(3, 20.0).await;
        assert!(fleet.records().n_denied > 0, "no create was refused");
        let events = fleet.request("GET", "/api/v1/events", &Value::Null).await.unwrap();
        let warnings: Vec<&Value> = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|event| event["type"] == "Warning")
            .collect();
        assert!(warnings.is_empty(), "{warnings:?}");
        for name in FOUR {
            assert_eq!(fleet.not_ready(name).await, "", "{name}");
        }
    });
}
