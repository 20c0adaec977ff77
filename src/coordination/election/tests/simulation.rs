//! Fleets under random faults of every kind, from seeds. The world checks that no two replicas act on one shard and
//! that terms increase by one; this module checks that the fleet comes to rest after the faults end.
//!
//! `CRONWHEEL_LEASE_SEEDS` sets the number of seeds and `CRONWHEEL_LEASE_SEED` the first one; failures print it.

use super::world::World;
use crate::{coordination::LeaseKey, shard::ShardId};

/// The number of fleets that one test run simulates.
const N_SEEDS: u64 = 4;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn fleets_under_random_faults_have_one_leader_per_shard_and_settle() {
    let first = number("CRONWHEEL_LEASE_SEED").unwrap_or(1);
    let n_seeds = number("CRONWHEEL_LEASE_SEEDS").unwrap_or(N_SEEDS);
    for seed in first..first + n_seeds {
        eprintln!("CRONWHEEL_LEASE_SEED={seed}");
        simulate(seed);
    }
}

fn simulate(seed: u64) {
    let mut world = World::new(16, seed);
    world.trace = number("CRONWHEEL_LEASE_TRACE").is_some();
    let n_replicas = 2 + world.random.below(4);
    for number in 0..n_replicas {
        let at = world.start(&format!("pod-{number}"));
        world.replicas[at].rate = 955 + world.random.below(90);
    }
    world.latency_max = [5, 50, 400][below(&mut world, 3)];
    for _ in 0..25 {
        disturb(&mut world);
        let millis = world.random.below(6_000);
        world.run(millis);
    }
    calm(&mut world);
    world.run_until_led(16_000);
    world.run(60_000);
    let live: Vec<usize> = (0..world.replicas.len())
        .filter(|at| world.replicas[*at].process.is_some())
        .collect();
    let load = world.load();
    let share = 16 / live.len()..=16_usize.div_ceil(live.len());
    let is_balanced = live.iter().all(|at| share.contains(&load[*at]));
    assert!(is_balanced, "seed {seed}: {load:?}");
    let moves = world.n_moves();
    world.run(40_000);
    assert_eq!(world.n_moves(), moves, "seed {seed}: it comes to rest");
}

fn below(world: &mut World, bound: usize) -> usize {
    usize::try_from(world.random.below(bound as u64)).unwrap()
}

/// Injects one fault, or makes a replica join or leave.
fn disturb(world: &mut World) {
    let at = below(world, world.replicas.len());
    let now = world.now;
    let millis = world.random.below(20_000);
    let kind = below(world, 14);
    if world.replicas[at].process.is_none() {
        if !world.replicas[at].has_left {
            world.boot(at);
        }
        return;
    }
    match kind {
        0 => world.kill(at),
        1 => {
            world.kill(at);
            world.boot(at);
        }
        2 | 3 => world.replicas[at].frozen_until = now + millis,
        4 | 5 => world.replicas[at].cut_until = now + millis,
        6 => world.replicas[at].watch_lag = world.random.below(6_000),
        7 => world.break_watch(at, millis),
        8 => world.replicas[at].loss = 2 + world.random.below(8),
        9 => {
            let key = world.member_key(at);
            world.delete(&key);
        }
        10 => {
            let shard = ShardId(u16::try_from(world.random.below(16)).unwrap());
            world.delete(&LeaseKey::Shard(shard));
        }
        11 if world.n_live() > 1 => world.drain(at),
        12 if world.n_live() < 6 => {
            world.start(&format!("pod-at-{now}"));
        }
        _ => {
            for replica in &mut world.replicas {
                replica.cut_until = now + millis;
            }
        }
    }
}

/// Ends all faults and restarts every process that died.
fn calm(world: &mut World) {
    let now = world.now;
    for at in 0..world.replicas.len() {
        let replica = &mut world.replicas[at];
        replica.cut_until = now;
        replica.frozen_until = replica.frozen_until.min(now);
        replica.watch_lag = 0;
        replica.loss = 0;
        if replica.process.is_none() && !replica.has_left {
            world.boot(at);
        }
    }
    world.latency_max = 5;
    if world.n_live() == 0 {
        world.start("last");
    }
    world.run(20_000);
}
