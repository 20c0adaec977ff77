//! One replica is cut off from the API server. The others take over its shards, and it writes nothing. The fence
//! refuses earlier writes that the network delivers late.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use testbed::Proxy;

use super::{group::Group, n_slots};
use crate::{audit::Audit, cases::installing::fence, kubernetes::Namespace};

/// Starts a proxy to the API server. Returns it with a kubeconfig that uses it.
async fn start_proxy(namespace: &Namespace) -> (Proxy, PathBuf) {
    let kubeconfig = namespace.control_plane.controller_kubeconfig.clone();
    let text = fs::read_to_string(&kubeconfig).expect("a kubeconfig");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    let server = config["clusters"][0]["cluster"]["server"].take();
    let server = server.as_str().expect("an address").trim_start_matches("https://");
    let proxy = Proxy::to(server).await.expect("a port");
    config["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", proxy.address()));
    let kubeconfig = kubeconfig.with_file_name(format!("{}.proxy", namespace.name));
    fs::write(&kubeconfig, config.to_string()).expect("a kubeconfig");
    (proxy, kubeconfig)
}

pub(super) async fn cut_off_for_30_seconds_a_replica_loses_its_shards_once(namespace: Namespace) {
    let (proxy, kubeconfig) = start_proxy(&namespace).await;
    let mut group = Group::start(namespace, 2, 30).await;
    let isolated = group.add_by("r1", &kubeconfig);
    // After the settle window, the new replica gets its share.
    group.wait_until_even(3).await;
    let before = group.shard_leases().await;
    let pod_uid = group.pod_uid(isolated);
    group.sleep_until(0, -9).await;
    let cut_off = group.now();
    proxy.hold();
    group.set_acting(isolated, false);
    // 10.5 s on an idle machine.
    group.assert_all_led_within(cut_off, 14).await;
    for (shard, (term, holder)) in group.shard_leases().await {
        let was_its = before[&shard].1 == pod_uid;
        assert_eq!(term - before[&shard].0, u64::from(was_its), "{shard}: to {holder}");
        assert_ne!(holder, pod_uid, "{shard}");
    }
    assert_eq!(group.metric(isolated, "cronwheel_fences_total").await, 1);
    group.sleep_until(0, 21).await;
    proxy.release();
    group.set_acting(isolated, true);
    group.wait_for_metric(isolated, "cronwheel_rejoins_total", 1).await;
    group.wait_until_even(3).await;
    group.finish(n_slots()).await;
}

/// A replica sends its creates for a slot in time, and they arrive forty seconds later, when no request for that slot
/// may be alive. By then other replicas have started these Jobs and a user has deleted them, so that no name conflicts.
pub(super) async fn fence_policy_denies_creates_delayed_by_the_network(namespace: Namespace) {
    // The policy applies to the account, which other cases may use too. It is therefore tested in another namespace.
    fence(&namespace, "default").await;
    let (proxy, kubeconfig) = start_proxy(&namespace).await;
    let mut group = Group::start(namespace, 2, 30).await;
    let isolated = group.add_by("r1", &kubeconfig);
    group.wait_until_even(3).await;
    group.sleep_until(0, -1).await;
    let cut_off = group.now();
    proxy.delay();
    group.sleep_until(0, 0).await;
    group.set_acting(isolated, false);
    group.assert_all_led_within(cut_off, 15).await;
    group.sleep_until(0, 21).await;
    let made_by_others = group.complete_jobs_later_than(0, 5);
    assert!(made_by_others.len() >= 8, "{made_by_others:?}");
    for job in &made_by_others {
        group.namespace.delete_job(job).await;
    }
    group.sleep_until(0, 40).await;
    proxy.release();
    group.set_acting(isolated, true);
    group.wait_for_metric(isolated, "cronwheel_rejoins_total", 1).await;
    group.wait_until_even(3).await;
    let refused = Audit::read(&group.namespace).await.refused_jobs();
    let n_refused = made_by_others.iter().filter(|job| refused.contains(*job)).count();
    eprintln!(
        "        {}: {n_refused} late creates were refused",
        group.namespace.name
    );
    assert!(n_refused >= 8, "{refused:?} of {made_by_others:?}");
    group.finish(n_slots()).await;
}
