//! A replica is killed. After a restart in the same Pod, its shards get leaders at once; otherwise others take them over
//! after its Lease expires.

use super::{group::Group, n_slots};
use crate::kubernetes::Namespace;

pub(super) async fn all_shards_are_led_after_a_replica_restarts_in_its_pod(namespace: Namespace) {
    let mut group = Group::start(namespace, 3, 2).await;
    group.sleep_until(0, -1).await;
    let killed = group.kill(1);
    group.restart(1);
    // 3 s on an idle machine.
    group.assert_all_led_within(killed, 8).await;
    group.finish(n_slots()).await;
}

pub(super) async fn shards_of_a_killed_replica_move_to_the_others(namespace: Namespace) {
    let mut group = Group::start(namespace, 3, 6).await;
    group.sleep_until(0, -5).await;
    let killed = group.kill(2);
    // 10.5 s on an idle machine.
    group.assert_all_led_within(killed, 14).await;
    group.wait_until_even(2).await;
    group.finish(n_slots()).await;
}
