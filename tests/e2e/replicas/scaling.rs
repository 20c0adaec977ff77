//! An autoscaler: from one replica to five, then to two.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::group::{Group, N_SHARDS};
use crate::kubernetes::Namespace;

pub(super) async fn scaling_from_one_to_five_to_two_moves_few_shards(namespace: Namespace) {
    let mut group = Group::start(namespace, 1, 1).await;
    let first = group.shard_leases().await;
    for _ in 1..5 {
        group.add("r1");
    }
    // The settle window, then eight shards per donor at a time.
    group.wait_until_even(5).await;
    let second = group.shard_leases().await;
    let n_moves = n_moves(&first, &second);
    eprintln!("        1 to 5: {n_moves} moves");
    // Each of the five has 51 or 52 shards. A few move twice, when replicas join one after the other.
    assert!((204..=226).contains(&n_moves), "{n_moves}");

    // Around the next slot.
    group.sleep_until(1, -1).await;
    for leaver in [0, 2, 4] {
        let took = group.end(leaver).await;
        eprintln!("        drained in {took:.1?}");
    }
    group.wait_until_all_led(SignedDuration::from_secs(5)).await;
    group.wait_until_even(2).await;
    let third = group.shard_leases().await;
    let n_moves = self::n_moves(&second, &third);
    eprintln!("        5 to 2: {n_moves} moves");
    // The shards of three of five replicas, some of which move twice, because a draining replica hands shards to
    // replicas that drain next.
    assert!(n_moves <= u64::from(N_SHARDS) * 3 / 2, "{n_moves}");
    group.finish(3).await;
}

type Leases = BTreeMap<String, (u64, String)>;

fn n_moves(before: &Leases, after: &Leases) -> u64 {
    after.iter().map(|(shard, (term, _))| term - before[shard].0).sum()
}
