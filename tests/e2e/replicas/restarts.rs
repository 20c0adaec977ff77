//! A rollout: each replica is replaced, and the new one starts before the old one drains.

use std::time::Duration;

use jiff::SignedDuration;

use super::{
    group::{Group, N_SHARDS},
    n_slots,
};
use crate::kubernetes::Namespace;

/// The minimum time between the readiness of a Pod and the end of another one in a Deployment.
const ROLLOUT_STEP: Duration = Duration::from_millis(300);

pub(super) async fn rolling_restart_moves_at_most_three_shards_twice(namespace: Namespace) {
    let mut group = Group::start(namespace, 3, 5).await;
    let before = group.shard_leases().await;
    group.sleep_until(0, -4).await;
    for old in 0..3 {
        let new = group.add("r2");
        group.wait_until_ready(new).await;
        tokio::time::sleep(ROLLOUT_STEP).await;
        let took = group.end(old).await;
        eprintln!("        drained in {took:.1?}");
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
    group.wait_until_all_led(SignedDuration::from_secs(5)).await;
    let after = group.shard_leases().await;
    let moves = |(shard, (term, _)): (&String, &(u64, String))| term - before[shard].0;
    let n_moves: Vec<u64> = after.iter().map(moves).collect();
    // A draining replica may have one shard more than the new replica's share. That shard goes to a replica that drains
    // later.
    let n_moves_all: u64 = n_moves.iter().sum();
    let expected = u64::from(N_SHARDS)..=u64::from(N_SHARDS) + 3;
    assert!(
        n_moves.iter().all(|n| (1..=2).contains(n)) && expected.contains(&n_moves_all),
        "{n_moves:?}"
    );
    group.finish(n_slots()).await;
}
