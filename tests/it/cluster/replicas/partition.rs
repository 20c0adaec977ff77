//! One replica is cut off from the API server, the others are not: they take its shards, and it writes nothing.

use std::fs;

use serde_json::{Value, json};
use testbed::Wire;

use super::{group::Group, n_slots};
use crate::cluster::kubernetes::Namespace;

pub(super) async fn cut_off_for_30_seconds_it_loses_its_shards_once(namespace: Namespace) {
    let kubeconfig = namespace.control_plane.controller_kubeconfig.clone();
    let text = fs::read_to_string(&kubeconfig).expect("a kubeconfig");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let server = config["clusters"][0]["cluster"]["server"].take();
    let server = server.as_str().expect("an address").trim_start_matches("https://");
    let wire = Wire::to(server).await.expect("a port");
    config["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", wire.address()));
    let wired = kubeconfig.with_file_name(format!("{}.wired", namespace.name));
    fs::write(&wired, config.to_string()).expect("a kubeconfig");

    let mut group = Group::start(namespace, 2, 30).await;
    let lone = group.add_by("r1", &wired);
    // The settle window, then the newcomer has its share.
    group.wait_until_even(3).await;
    let before = group.shard_leases().await;
    let pod_uid = group.pod_uid(lone);
    group.sleep_until(0, -9).await;
    let cut_off = group.now();
    wire.hold();
    group.set_acting(lone, false);
    // 10.5 s where the machine does nothing else.
    group.demand_all_led_within(cut_off, 14).await;
    for (shard, (term, holder)) in group.shard_leases().await {
        let was_its = before[&shard].1 == pod_uid;
        assert_eq!(term - before[&shard].0, u64::from(was_its), "{shard}: to {holder}");
        assert_ne!(holder, pod_uid, "{shard}");
    }
    assert_eq!(group.metric(lone, "cronwheel_fences_total").await, 1);
    group.sleep_until(0, 21).await;
    wire.release();
    group.set_acting(lone, true);
    group.wait_for_metric(lone, "cronwheel_rejoins_total", 1).await;
    group.wait_until_even(3).await;
    group.finish(n_slots()).await;
}
