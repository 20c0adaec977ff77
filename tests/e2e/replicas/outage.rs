//! The API server is unavailable for all replicas and comes back. No replica takes this for the death of another.

use testbed::Testbed;

use super::{group::Group, n_slots};
use crate::kubernetes::Namespace;

const N_REPLICAS: usize = 3;

pub(super) async fn away(testbed: &mut Testbed, namespace: Namespace) {
    let group = Group::start(namespace, N_REPLICAS, 21).await;
    let before = group.shard_leases().await;
    group.sleep_until(0, -20).await;
    testbed.kill_api_server().expect("a kill");
    group.sleep_until(0, 10).await;
    testbed.start_api_server().expect("an API server");
    group.sleep_until(0, 30).await;
    assert_eq!(group.shard_leases().await, before);
    for number in 0..N_REPLICAS {
        assert_eq!(group.metric(number, "cronwheel_evictions_total").await, 0);
        assert_ne!(group.metric(number, "cronwheel_fences_total").await, 0);
    }
    group.finish(n_slots()).await;
}
