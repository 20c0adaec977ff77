//! A replica with `--alone` next to replicas that share CronJobs, and next to another replica with `--alone`.

use std::time::Duration;

use serde_json::Value;

use super::{THREE, begin};
use crate::fleet::{Size, cluster::Fleet, play};

/// Starts a replica with `--alone`.
fn start_alone(fleet: &mut Fleet, name: &str) {
    fleet.add(name);
    fleet.change(name, |pod| pod.is_alone = true);
    fleet.start(name);
}

/// Asserts that a replica waits for others and is ready. A rolling update would stop otherwise.
async fn assert_waits(fleet: &Fleet, name: &str) {
    let (is_ready, body) = fleet.readiness(name).await;
    assert!(is_ready && body.contains("this replica waits"), "{name}: {body}");
    assert_eq!(
        fleet.takes_no_shards(name).as_deref(),
        Some("settings_differ"),
        "{name}"
    );
}

#[test]
fn update_from_a_lone_replica_to_three_misses_no_run() {
    play(233, Size::default(), async |fleet| {
        start_alone(fleet, "lone");
        fleet.at(1, 20.0).await;
        assert_eq!(fleet.takes_no_shards("lone"), None);
        assert_eq!(fleet.n_without_leader("lone"), 0);
        fleet.start_all(&THREE);
        for name in THREE {
            assert_eq!(fleet.n_without_leader(name), 0, "before its first list");
        }
        fleet.at(2, 20.0).await;
        for name in THREE {
            assert_waits(fleet, name).await;
        }
        assert_eq!(fleet.shares().values().sum::<usize>(), 0);
        let begun = fleet.now();
        fleet.drain("lone").await;
        let gap = fleet.all_led(Duration::from_secs(15)).await;
        fleet.allow_late(begun, gap.as_secs_f64() + 5.0);
        fleet.at(4, 20.0).await;
    });
}

#[test]
fn lone_replica_starts_nothing_while_members_exist() {
    play(234, Size::default(), async |fleet| {
        begin(fleet, &["a", "b"]).await;
        start_alone(fleet, "lone");
        fleet.at(2, 20.0).await;
        assert_waits(fleet, "lone").await;
        let all = usize::from(fleet.shard_count.get());
        assert_eq!(fleet.shares().values().sum::<usize>(), all);
        let begun = fleet.now();
        fleet.drain("a").await;
        fleet.drain("b").await;
        fleet.at(2, 45.0).await;
        assert_eq!(fleet.takes_no_shards("lone"), None);
        fleet.allow_late(begun, 30.0);
        fleet.at(4, 20.0).await;
        assert_no_warnings(fleet).await;
    });
}

/// Asserts that a waiting replica does not report Jobs and statuses of the acting replicas.
async fn assert_no_warnings(fleet: &Fleet) {
    let events = fleet.request("GET", "/api/v1/events", &Value::Null).await.unwrap();
    let events = events["items"].as_array().unwrap();
    let is_of_cron_job = |event: &&Value| event["involvedObject"]["kind"] == "CronJob";
    assert!(events.iter().any(|event| is_of_cron_job(&event)), "no Event at all");
    let warnings: Vec<&Value> = events
        .iter()
        .filter(is_of_cron_job)
        .filter(|event| event["type"] == "Warning")
        .collect();
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn second_lone_replica_takes_over_when_the_first_is_killed() {
    play(235, Size::default(), async |fleet| {
        start_alone(fleet, "first");
        start_alone(fleet, "second");
        fleet.at(1, 20.0).await;
        let waiting = ["first", "second"].map(|name| fleet.takes_no_shards(name));
        assert_eq!(waiting.iter().flatten().count(), 1, "{waiting:?}");
        let runs = if waiting[0].is_none() { "first" } else { "second" };
        let other = if runs == "first" { "second" } else { "first" };
        assert_waits(fleet, other).await;
        let begun = fleet.now();
        fleet.kill(runs).await;
        fleet.at(2, 20.0).await;
        assert_eq!(fleet.takes_no_shards(other), None);
        fleet.allow_late(begun, 20.0);
        fleet.at(3, 20.0).await;
    });
}
