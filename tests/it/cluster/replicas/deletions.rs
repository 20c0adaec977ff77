//! Somebody deletes Leases: terms never decrease, and all shards are led again.

use jiff::SignedDuration;

use super::{
    group::{Group, N_SHARDS},
    n_slots,
};
use crate::cluster::kubernetes::Namespace;

/// Shards are free again when the Lease of their holder would have ended.
const UNOWNED_SECONDS_MAX: i64 = 15;

pub(super) async fn a_member_s_lease_deleted(namespace: Namespace) {
    let group = Group::start(namespace, 3, 6).await;
    let name = format!("cronwheel-member-{}", group.pod_uid(1));
    deleted(group, &["delete", "lease", &name]).await;
}

pub(super) async fn a_shard_s_lease_deleted(namespace: Namespace) {
    let group = Group::start(namespace, 3, 6).await;
    deleted(group, &["delete", "lease", "cronwheel-shard-6-17"]).await;
}

pub(super) async fn all_leases_deleted(namespace: Namespace) {
    let group = Group::start(namespace, 3, 6).await;
    deleted(group, &["delete", "lease", "--all"]).await;
}

/// A few seconds before a slot.
async fn deleted(group: Group, arguments: &[&str]) {
    let before = group.shard_leases().await;
    group.sleep_until(0, -5).await;
    group.namespace.kubectl(arguments).await;
    group.sleep_until(0, UNOWNED_SECONDS_MAX - 5).await;
    group.wait_until_all_led(SignedDuration::from_secs(1)).await;
    let after = group.shard_leases().await;
    assert_eq!(after.len(), N_SHARDS as usize, "{after:?}");
    for (shard, (term, _)) in after {
        assert!(term >= before[&shard].0, "{shard}: {term} after {}", before[&shard].0);
    }
    group.finish(n_slots()).await;
}
