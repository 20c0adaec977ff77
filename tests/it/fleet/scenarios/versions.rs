//! Members with different revisions, and with different versions of the protocol (F22).

use std::time::Duration;

use cronwheel::coordination::PROTOCOL_VERSION;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{THREE, begin};
use crate::fleet::{Size, cluster::Fleet, play};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// A protocol version that no release has yet.
const NEXT: u16 = PROTOCOL_VERSION + 1;

fn add(fleet: &mut Fleet, name: &str, revision: &str, protocol: u16) {
    fleet.add(name);
    fleet.change(name, |pod| {
        pod.protocol = protocol;
        revision.clone_into(&mut pod.revision);
    });
}

/// Waits until a new replica is ready, then drains an old one.
async fn replace(fleet: &mut Fleet, old: &str, new: &str, revision: &str) {
    add(fleet, new, revision, PROTOCOL_VERSION);
    fleet.start(new);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(fleet.not_ready(new).await, "");
    fleet.drain(old).await;
    fleet.all_led(Duration::from_millis(200)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// The number of shards that were handed over by a single write since an instant.
fn n_transfers(fleet: &Fleet, since: Timestamp) -> usize {
    let records = fleet.records();
    let changes = records.shards.values().flatten();
    changes
        .filter(|change| change.is_transfer && change.at >= since)
        .count()
}

/// Writes unknown metadata into every Lease.
async fn mark(fleet: &Fleet) {
    let list = fleet.request("GET", LEASES, &json!(null)).await.unwrap();
    let foreign = json!({
        "metadata": {"annotations": {"example.com/other": "kept"}, "labels": {"example.com/other": "kept"}},    });
    for lease in list["items"].as_array().unwrap() {
        let path = format!("{LEASES}/{}", lease["metadata"]["name"].as_str().unwrap());
        fleet.request("PATCH", &path, &foreign).await.unwrap();
    }
}

fn is_marked(lease: &Value) -> bool {
    let metadata = &lease["metadata"];
    metadata["annotations"]["example.com/other"] == "kept" && metadata["labels"]["example.com/other"] == "kept"
}

/// The number of shard Leases that still have the unknown metadata.
async fn n_marked(fleet: &Fleet) -> usize {
    let list = fleet.request("GET", LEASES, &json!(null)).await.unwrap();
    let of_shards = list["items"].as_array().unwrap().iter().filter(|lease| {
        let name = lease["metadata"]["name"].as_str().unwrap();
        name.starts_with("cronwheel-shard-") && is_marked(lease)
    });
    of_shards.count()
}

#[test]
fn f_22_rollout_may_be_rolled_back_halfway_and_repeated() {
    play(220, Size::default(), async |fleet| {
        for name in THREE {
            add(fleet, name, "one", PROTOCOL_VERSION);
        }
        begin(fleet, &THREE).await;
        mark(fleet).await;
        let before = fleet.now();
        replace(fleet, "a", "x", "two").await;
        replace(fleet, "b", "y", "two").await;
        // Both revisions run through the settle window and several slots.
        fleet.at(3, 20.0).await;
        replace(fleet, "y", "b2", "one").await;
        replace(fleet, "x", "a2", "one").await;
        fleet.at(5, 20.0).await;
        assert_eq!(n_marked(fleet).await, 32);

        for (old, new) in [("a2", "x2"), ("b2", "y2"), ("c", "z2")] {
            replace(fleet, old, new, "two").await;
        }
        for (old, new) in [("x2", "p"), ("y2", "q"), ("z2", "r")] {
            replace(fleet, old, new, "three").await;
        }
        let n_transfers = n_transfers(fleet, before);
        assert!(n_transfers >= 64, "{n_transfers} transfers");
        fleet.at(8, 20.0).await;
        assert_eq!(n_marked(fleet).await, 32);
        let shares = fleet.shares();
        assert!(shares.values().all(|share| (10..=11).contains(share)), "{shares:?}");
    });
}

#[test]
fn f_22_member_keeps_foreign_metadata_of_its_lease() {
    play(221, Size::default(), async |fleet| {
        fleet.add("b");
        begin(fleet, &["a", "b"]).await;
        mark(fleet).await;
        fleet.at(1, 20.0).await;
        for name in ["a", "b"] {
            let path = format!("{LEASES}/cronwheel-member-uid-{name}");
            let lease = fleet.request("GET", &path, &json!(null)).await.unwrap();
            assert!(is_marked(&lease), "{lease}");
        }
    });
}

#[test]
fn f_22_replica_with_another_protocol_takes_no_shards() {
    play(222, Size::default(), async |fleet| {
        begin(fleet, &["a", "b"]).await;
        add(fleet, "newer", "two", NEXT);
        let before = fleet.now();
        fleet.start("newer");
        fleet.at(2, 20.0).await;
        assert_eq!(fleet.shares()["newer"], 0);
        let not_ready = fleet.not_ready("newer").await;
        let reason = "it has protocol version 3, and members that take shards have 2:";
        assert!(not_ready.contains(reason), "{not_ready}");
        let metric = fleet.takes_no_shards("newer");
        assert_eq!(metric.as_deref(), Some("protocol_differs"));
        assert_eq!(fleet.takes_no_shards("a"), None);
        assert_eq!(fleet.not_ready("a").await, "");
        let events = "/api/v1/namespaces/default/events";
        let events = fleet.request("GET", events, &json!(null)).await.unwrap();
        let event = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|event| event["reason"] == "TakesNoShards");
        assert_eq!(event.unwrap()["involvedObject"]["name"], "cronwheel-member-uid-newer");
        assert!(super::moves(fleet, before).is_empty());
    });
}

#[test]
fn f_22_replicas_with_a_newer_protocol_wait_for_the_older_to_leave() {
    play(223, Size::default(), async |fleet| {
        for name in ["a", "b"] {
            add(fleet, name, "one", PROTOCOL_VERSION);
        }
        begin(fleet, &["a", "b"]).await;
        for name in ["p", "q"] {
            add(fleet, name, "two", NEXT);
            fleet.start(name);
        }
        fleet.at(1, 20.0).await;
        assert_eq!((fleet.shares()["p"], fleet.shares()["q"]), (0, 0));
        fleet.drain("a").await;
        fleet.all_led(Duration::from_millis(200)).await;
        assert_eq!((fleet.shares()["p"], fleet.shares()["q"]), (0, 0));
        fleet.drain("b").await;
        fleet.all_led(Duration::from_millis(200)).await;
        fleet.at(2, 20.0).await;
        assert_eq!((fleet.shares()["p"], fleet.shares()["q"]), (16, 16));
    });
}

#[test]
fn f_22_one_of_two_protocols_gives_way_at_start() {
    for seed in 224..228 {
        play(seed, Size::default(), async |fleet| {
            for (name, protocol) in [("a", PROTOCOL_VERSION), ("b", NEXT), ("c", PROTOCOL_VERSION)] {
                add(fleet, name, &protocol.to_string(), protocol);
            }
            fleet.start_all(&THREE);
            fleet.at(0, 50.0).await;
            fleet.all_led(Duration::ZERO).await;
            let gave_way: Vec<&str> = ["a", "b"]
                .into_iter()
                .filter(|name| fleet.takes_no_shards(name).as_deref() == Some("protocol_differs"))
                .collect();
            assert_eq!(gave_way.len(), 1, "{gave_way:?}");
            assert_eq!(fleet.shares()[gave_way[0]], 0);
            fleet.at(2, 20.0).await;
        });
    }
}
