//! Leases as the in-memory API is asked for them, over the very connection that a run has for them.

use cronwheel::cluster::lease_client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use cronwheel::{
    cluster::{LeaseApi, OwnerPod},
    state::{lease::ReadAnswer, sharding::ShardCount},
};
use kube::api::DeleteParams;
use serde_json::json;

use super::kubernetes::{Namespace, wait};
use crate::leases::{TIMEOUT, held, member, shard, told, told::done, wall};

/// A client for Leases, as an administrator.
async fn client(namespace: &Namespace) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(&namespace.control_plane.admin_kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    lease_client(&config.expect("a configuration")).expect("a client")
}

macro_rules! as_in_memory {
    ($($case:ident),* $(,)?) => {$(
        pub(super) async fn $case(namespace: Namespace) {
            told::$case(client(&namespace).await, &namespace.name).await;
        }
    )*};
}

as_in_memory![
    a_lease_is_made_renewed_and_read,
    a_write_based_on_what_was_is_a_conflict,
    what_a_server_cannot_store_is_refused,
    a_list_and_a_watch_from_it_miss_nothing,
    a_lease_without_our_label_is_gone_until_it_is_written_again,
    whoever_comes_first_makes_the_installation,
    an_installation_that_cannot_be_is_told_with_the_fix,
];

pub(super) async fn a_lease_goes_with_its_pod(namespace: Namespace) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "replica"}});
    namespace.create(account).await;
    namespace
        .create(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "replica-0"},
            "spec": {"serviceAccountName": "replica", "containers": [{"name": "cronwheel", "image": "cronwheel"}]},
        }))
        .await;
    let pod = namespace.find("Pod", "replica-0").await.expect("the Pod");
    let uid = pod["metadata"]["uid"].as_str().expect("a uid");
    let owner = OwnerPod {
        name: "replica-0".into(),
        uid: uid.into(),
    };
    let api = LeaseApi::new(
        client(&namespace).await,
        &namespace.name,
        ShardCount::default(),
        Some(owner),
    );
    done(api.create(&held(member(uid), "one"), wall(), TIMEOUT).await);
    done(api.create(&held(shard(0), "one"), wall(), TIMEOUT).await);
    let at_once = DeleteParams::default().grace_period(0);
    namespace.delete("Pod", "replica-0", at_once).await;
    let is_gone = async || api.read(&member(uid), TIMEOUT).await.answer == ReadAnswer::Missing;
    assert!(wait(is_gone).await, "the Lease outlives its Pod");
    let shard = api.read(&shard(0), TIMEOUT).await.answer;
    assert!(matches!(shard, ReadAnswer::Found(_)), "{shard:?}");
}
