//! Leases that other clients change.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, Verb};
use serde_json::json;

use super::{FOUR, TAKEN_WITHIN, begin, moves};
use crate::fleet::{Size, cluster::Fleet, play};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

async fn delete(fleet: &Fleet, name: &str) {
    fleet
        .request("DELETE", &format!("{LEASES}/{name}"), &json!({}))
        .await
        .unwrap();
}

#[test]
fn f_15_deleted_member_lease_starts_a_new_incarnation() {
    play(15, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 58.5).await;
        fleet.allow_late(fleet.now(), 12.0);
        delete(fleet, "cronwheel-member-uid-b").await;
        // The next life of the process starts at once and takes over the shards.
        tokio::time::sleep(Duration::from_secs(1)).await;
        fleet.all_led(TAKEN_WITHIN).await;
        fleet.at(2, 20.0).await;
        let holder = fleet.records().members["uid-b"].last().unwrap().holder;
        assert!(holder.is_some_and(|holder| holder.life == 1), "{holder:?}");
    });
}

#[test]
fn f_15_leader_recreates_a_deleted_shard_lease() {
    play(16, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 59.0).await;
        let before = fleet.now();
        for shard in [3, 9, 20] {
            delete(fleet, &format!("cronwheel-shard-5-{shard}")).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        fleet.all_led(Duration::ZERO).await;
        assert!(moves(fleet, before).is_empty());
        for shard in [3, 9, 20] {
            let records = fleet.records();
            let changes = &records.shards[&shard];
            let n_deletions = changes.iter().filter(|change| change.term.is_none()).count();
            assert_eq!(n_deletions, 1);
        }
        fleet.at(2, 20.0).await;
    });
}

/// Removes the label of a Lease, so that the watches of the replicas deliver its deletion. Asserts that the Lease has
/// its label again soon, and that every shard is led.
fn remove_label(seed: u64, lease: &str, led_within: Duration) {
    play(seed, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 58.5).await;
        fleet.allow_late(fleet.now(), 12.0);
        let n_writes = fleet.records().n_lease_writes;
        let path = format!("{LEASES}/{lease}");
        let unlabelled = json!({"metadata": {"labels": {"cronwheel.dev/lease": null}}});
        fleet.request("PATCH", &path, &unlabelled).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let lease = fleet.request("GET", &path, &json!(null)).await.unwrap();
        assert_eq!(lease["metadata"]["labels"]["cronwheel.dev/lease"], "cronwheel");
        let n_written = fleet.records().n_lease_writes - n_writes;
        assert!(n_written < 50, "{n_written} writes in a second");
        fleet.all_led(led_within).await;
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_15_shard_lease_without_its_label_is_led_again_at_once() {
    remove_label(151, "cronwheel-shard-5-9", Duration::ZERO);
}

#[test]
fn f_15_member_lease_without_its_label_starts_a_new_incarnation() {
    remove_label(152, "cronwheel-member-uid-b", TAKEN_WITHIN);
}

#[test]
fn f_15_leader_with_a_stalled_watch_gives_up_deleted_shard_leases() {
    play(18, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(1, 10.0).await;
        let (stalled_at, held) = (fleet.now(), fleet.records().held_by(fleet.number("b")));
        fleet.allow_late(stalled_at, 45.0);
        // Its renewals succeed, but it observes neither them nor the loss of its shards.
        let blind = |fault: Fault, verb: Verb| Rule {
            client: Some("b".to_owned()),
            resource: Some(Resource::Lease),
            verbs: vec![verb],
            ..Rule::new(fault)
        };
        let blind = [
            blind(Fault::StallWatch, Verb::Watch),
            blind(Fault::Unavailable, Verb::List),
        ];
        let blind = blind.map(|rule| fleet.api.faults().add(rule));
        for shard in &held {
            delete(fleet, &format!("cronwheel-shard-5-{shard}")).await;
        }
        fleet.at(1, 40.0).await;
        assert_eq!(fleet.shares()["b"], 0);
        for rule in blind {
            fleet.api.faults().remove(rule);
        }
        fleet.at(3, 20.0).await;
        fleet.all_led(Duration::ZERO).await;
    });
}

#[test]
fn f_15_all_leases_are_recreated_after_deletion() {
    play(17, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 57.0).await;
        fleet.allow_late(fleet.now(), 14.0);
        let all = fleet.request("GET", LEASES, &json!(null)).await.unwrap();
        let names = all["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|lease| lease["metadata"]["name"].as_str().unwrap());
        let names: Vec<String> = names.map(ToOwned::to_owned).collect();
        for name in names {
            delete(fleet, &name).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        fleet.all_led(TAKEN_WITHIN).await;
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_19_shards_of_a_force_deleted_pod_are_not_taken_early() {
    play(19, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 55.0).await;
        // The connection of the Pod is cut, so its process does not observe the deletion. The process may act until it
        // fences itself.
        let number = fleet.number("c");
        let held = fleet.records().held_by(number);
        let deleted_at = fleet.now();
        fleet.allow_late(deleted_at, 14.0);
        let cut = fleet.cut("c");
        delete(fleet, "cronwheel-member-uid-c").await;
        fleet.start("e");
        tokio::time::sleep(Duration::from_millis(9_900)).await;
        let still_held = fleet.records().held_by(number);
        assert_eq!(still_held, held, "no replica takes shards that may still be led");
        fleet.heal("c", cut);
        fleet.kill("c").await;
        fleet.all_led(Duration::from_secs(3)).await;
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_26_one_of_two_processes_with_the_same_identity_exits() {
    play(26, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 58.0).await;
        fleet.allow_late(fleet.now(), 14.0);
        let number = fleet.number("b");
        fleet.add("copy");
        fleet.change("copy", |pod| pod.identity = ("b".to_owned(), "uid-b".to_owned()));
        fleet.start_as("copy", number, 0);
        let begun = fleet.now();
        while !fleet.has_ended("b") && !fleet.has_ended("copy") {
            assert!(
                fleet.since(begun) <= Duration::from_millis(2_500),
                "both processes still run"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // Both acted as leader, until a renewal of one of them conflicted.
        fleet.records().led_twice.clear();
        let ended = if fleet.has_ended("b") { "b" } else { "copy" };
        let _ = fleet.ended(ended).await;
        fleet.all_led(Duration::from_secs(12)).await;
        fleet.at(2, 20.0).await;
    });
}
