//! A replica is frozen and resumed. It writes nothing for shards that others have taken over.

use super::{group::Group, n_slots};
use crate::kubernetes::Namespace;

/// The allowed number of moves for each shard of the frozen replica.
struct Moves {
    least: u64,
    most: u64,
}

pub(super) async fn frozen_for_5_seconds_a_replica_keeps_its_shards(namespace: Namespace) {
    frozen(namespace, 5, Moves { least: 0, most: 0 }).await;
}

pub(super) async fn frozen_for_9_seconds_a_replica_loses_its_shards_at_most_once(namespace: Namespace) {
    frozen(namespace, 9, Moves { least: 0, most: 1 }).await;
}

pub(super) async fn frozen_for_11_seconds_a_replica_loses_its_shards_once(namespace: Namespace) {
    frozen(namespace, 11, Moves { least: 1, most: 1 }).await;
}

pub(super) async fn frozen_for_60_seconds_a_replica_loses_its_shards_once(namespace: Namespace) {
    frozen(namespace, 60, Moves { least: 1, most: 1 }).await;
}

/// A slot is due two seconds before the end of the freeze, or ten seconds after its beginning.
async fn frozen(namespace: Namespace, seconds: i64, moves: Moves) {
    let before_slot = (seconds - 2).min(10);
    let mut group = Group::start(namespace, 3, before_slot + 1).await;
    let before = group.shard_leases().await;
    let pod_uid = group.pod_uid(1);
    group.sleep_until(0, -before_slot).await;
    let frozen = group.freeze(1);
    group.sleep_until(0, seconds - before_slot).await;
    group.thaw(1);
    // Shards either move to the remaining replicas or stay.
    group.assert_all_led_within(frozen, seconds.max(11) + 5).await;
    for (shard, (term, holder)) in group.shard_leases().await {
        let n_moves = term - before[&shard].0;
        if before[&shard].1 == pod_uid {
            assert!(
                (moves.least..=moves.most).contains(&n_moves),
                "{shard}: {n_moves} moves, to {holder}"
            );
        } else {
            assert_eq!(n_moves, 0, "{shard} went to {holder}");
        }
    }
    if moves.least > 0 {
        group.wait_for_metric(1, "cronwheel_rejoins_total", 1).await;
    }
    group.finish(n_slots() + seconds / 60).await;
}
