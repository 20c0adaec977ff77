//! Fault scenarios by number, as far as the election decides their outcome.

mod agreement;
mod crashes;
mod drains;
mod moves;

use std::collections::BTreeMap;

use super::world::{Journal, World};

/// Starts a fleet and runs it until it has come to rest.
fn fleet(count: u64, n_replicas: usize, seed: u64) -> World {
    let mut world = World::new(count, seed);
    for number in 0..n_replicas {
        world.start(&format!("pod-{number}"));
    }
    world.run_until_led(2_500);
    world.run(30_000);
    world.store.moves = BTreeMap::new();
    world.journal = Journal::default();
    world
}

fn share(world: &World, n_replicas: usize) -> std::ops::RangeInclusive<usize> {
    let n_shards = usize::from(world.count.get());
    n_shards / n_replicas..=n_shards.div_ceil(n_replicas)
}

#[track_caller]
fn assert_balanced(world: &World, replicas: &[usize]) {
    let (load, share) = (world.load(), share(world, replicas.len()));
    assert!(replicas.iter().all(|at| share.contains(&load[*at])), "{load:?}");
    assert_eq!(
        replicas.iter().map(|at| load[*at]).sum::<usize>(),
        usize::from(world.count.get())
    );
}
