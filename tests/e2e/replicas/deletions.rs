//! A user deletes Leases. Terms never decrease, and all shards are led again.

use jiff::SignedDuration;
use kube::api::{DeleteParams, ListParams};

use super::{
    group::{Group, N_SHARDS},
    n_slots,
};
use crate::kubernetes::Namespace;

/// Shards become free at the time at which the Lease of their holder would have expired.
const UNOWNED_SECONDS_MAX: i64 = 15;

pub(super) async fn all_shards_are_led_after_a_member_lease_is_deleted(namespace: Namespace) {
    let group = Group::start(namespace, 3, 6).await;
    let name = format!("cronwheel-member-{}", group.pod_uid(1));
    deleted(group, Some(&name)).await;
}

pub(super) async fn all_shards_are_led_after_a_shard_lease_is_deleted(namespace: Namespace) {
    let group = Group::start(namespace, 3, 6).await;
    deleted(group, Some("cronwheel-shard-8-17")).await;
}

pub(super) async fn all_shards_are_led_after_all_leases_are_deleted(namespace: Namespace) {
    let group = Group::start(namespace, 3, 6).await;
    deleted(group, None).await;
}

/// Deletes one Lease, or all of them at once, a few seconds before a slot.
async fn deleted(group: Group, name: Option<&str>) {
    let before = group.shard_leases().await;
    group.sleep_until(0, -5).await;
    let (leases, at_once) = (group.namespace.api("Lease"), DeleteParams::default());
    match name {
        Some(name) => drop(leases.delete(name, &at_once).await.expect("a delete")),
        None => drop(
            leases
                .delete_collection(&at_once, &ListParams::default())
                .await
                .expect("a delete"),
        ),
    }
    group.sleep_until(0, UNOWNED_SECONDS_MAX - 5).await;
    group.wait_until_all_led(SignedDuration::from_secs(1)).await;
    let after = group.shard_leases().await;
    assert_eq!(after.len(), N_SHARDS as usize, "{after:?}");
    for (shard, (term, _)) in after {
        assert!(term >= before[&shard].0, "{shard}: {term} after {}", before[&shard].0);
    }
    group.finish(n_slots()).await;
}
