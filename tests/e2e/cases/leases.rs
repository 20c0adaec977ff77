//! The tests of Leases that also run against the in-memory API, over the same connection as in a run.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use cronwheel::{
    coordination::LeaseAnswer,
    kube_api::{ApiServer, LeaseApi, LeaseEvent, OwnerPod, lease_client},
    shard::ShardCount,
};
use futures::StreamExt as _;
use kube::{
    api::DeleteParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use testbed::Proxy;

use crate::{
    every_server::{self, TIMEOUT, done, held, member, shard, wall},
    kubernetes::{Namespace, wait},
};

/// A client for Leases, as an administrator.
async fn client(namespace: &Namespace) -> kube::Client {
    client_of(kubeconfig(namespace)).await
}

fn kubeconfig(namespace: &Namespace) -> Kubeconfig {
    Kubeconfig::read_from(&namespace.control_plane.admin_kubeconfig).expect("a kubeconfig")
}

async fn client_of(kubeconfig: Kubeconfig) -> kube::Client {
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let server = ApiServer::open(&config.expect("a configuration"))
        .await
        .expect("credentials");
    lease_client(&server).expect("a client")
}

macro_rules! as_in_memory {
    ($($case:ident),* $(,)?) => {$(
        pub(super) async fn $case(namespace: Namespace) {
            every_server::$case(client(&namespace).await, &namespace.name).await;
        }
    )*};
}

every_server::for_each_case!(as_in_memory);

pub(super) async fn member_lease_is_deleted_with_its_pod(namespace: Namespace) {
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
    let is_gone = async || api.read(&member(uid), TIMEOUT).await.answer == LeaseAnswer::Missing;
    assert!(wait(is_gone).await, "the Lease outlives its Pod");
    let shard = api.read(&shard(0), TIMEOUT).await.answer;
    assert!(matches!(shard, LeaseAnswer::Done(_)), "{shard:?}");
}

/// The shortest fence is four seconds after the send of the last renewal.
pub(super) async fn silent_connection_is_replaced_before_the_fence(namespace: Namespace) {
    let mut kubeconfig = kubeconfig(&namespace);
    let cluster = kubeconfig.clusters[0].cluster.as_mut().expect("a cluster");
    let server = cluster.server.take().expect("an address");
    let proxy = Proxy::to(server.trim_start_matches("https://")).await.expect("a port");
    cluster.server = Some(format!("https://{}", proxy.address()));
    let api = LeaseApi::new(
        client_of(kubeconfig).await,
        &namespace.name,
        ShardCount::default(),
        None,
    );
    let attempt = Duration::from_secs(1);
    let mut last = done(api.create(&held(member("a"), "one"), wall(), TIMEOUT).await);
    let mut watch = pin!(api.watch(last.resource_version, TIMEOUT));
    last = done(
        api.patch(&held(member("a"), "two"), last.resource_version, wall(), attempt)
            .await,
    );
    let shown = watch.next().await.expect("an event").expect("an event");
    assert_eq!(shown, LeaseEvent::Applied(last.clone()));

    proxy.silence();
    let begun = Instant::now();
    let renewed = async {
        loop {
            let renewal = held(member("a"), "three");
            let reply = api.patch(&renewal, last.resource_version, wall(), attempt).await;
            if let LeaseAnswer::Done(_) = reply.answer {
                return begun.elapsed();
            }
        }
    };
    let broken = async {
        let broken = watch.next().await.expect("an end");
        (broken.is_err(), begun.elapsed())
    };
    let (renewed_after, (is_broken, broken_after)) = tokio::join!(renewed, broken);
    eprintln!("renewed after {renewed_after:?}, the watch broke after {broken_after:?}");
    assert!(is_broken, "the watch ended as if its time were up");
    let fence = Duration::from_secs(4);
    assert!(
        renewed_after < fence && broken_after < fence,
        "{renewed_after:?}, {broken_after:?}"
    );
}
