//! A replica is killed: its restart in the same pod takes back at once what it led, others take it when it is silent.

use super::{group::Group, n_slots};
use crate::kubernetes::Namespace;

pub(super) async fn a_replica_killed_comes_back_in_its_pod(namespace: Namespace) {
    let mut group = Group::start(namespace, 3, 2).await;
    group.sleep_until(0, -1).await;
    let killed = group.kill(1);
    group.restart(1);
    // 3 s where the machine does nothing else.
    group.demand_all_led_within(killed, 8).await;
    group.finish(n_slots()).await;
}

pub(super) async fn a_replica_killed_stays_away(namespace: Namespace) {
    let mut group = Group::start(namespace, 3, 6).await;
    group.sleep_until(0, -5).await;
    let killed = group.kill(2);
    // 10.5 s where the machine does nothing else.
    group.demand_all_led_within(killed, 14).await;
    group.wait_until_even(2).await;
    group.finish(n_slots()).await;
}
