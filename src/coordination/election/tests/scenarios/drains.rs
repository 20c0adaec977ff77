//! Replicas that leave: the handover of their shards, its duration, and the other members during it.

use super::{super::world::World, assert_balanced, fleet};
use crate::{
    coordination::{Adoption, ElectionInput, LeaseKey, StopReason, annotation},
    shard::Entry,
};

#[test]
fn f_01_a_drain_hands_everything_over_within_five_seconds() {
    for seed in 0..2 {
        let mut world = fleet(64, 5, seed);
        let had = world.load()[2];
        world.drain(2);
        world.run(5_000);
        assert!(world.replicas[2].has_left, "seed {seed}");
        assert_eq!(world.n_moves(), had);
        assert_balanced(&world, &[0, 1, 3, 4]);
        for ((_, _, shard, adoption), entry) in world.journal.leads.iter().zip(&world.journal.entries) {
            assert_eq!(*adoption, Adoption::HandedOver);
            assert!(matches!(entry, (Entry::Watch(_), Some(_))), "{entry:?}");
            let lease = &world.store.leases[&LeaseKey::Shard(*shard)];
            assert!(lease.annotations.contains_key(annotation::FIRED_THROUGH));
        }
        assert!(
            world
                .journal
                .stops
                .iter()
                .all(|(_, _, _, reason)| *reason == StopReason::HandedOver)
        );
        assert!(!world.store.leases.contains_key(&world.member_key(2)));
        world.run(30_000);
        assert_eq!(world.n_moves(), had, "no shard moves again");
    }
}

#[test]
fn a_handover_without_fired_through_removes_that_of_an_earlier_term() {
    let mut world = fleet(64, 3, 1);
    drained(&mut world, 0);
    world.replicas[1].is_paused = true;
    world.journal.leads.clear();
    let had = world.load()[1];
    drained(&mut world, 1);
    assert!(
        world.store.moves.values().any(|moves| *moves == 2),
        "a Lease has the annotation of an earlier term"
    );
    assert_eq!(world.journal.leads.len(), had);
    assert_eq!(n_fired_through(&world), 0);
}

/// The number of shards taken since the journal began whose Leases say through which instant a leader fired every slot.
fn n_fired_through(world: &World) -> usize {
    let taken = world.journal.leads.iter();
    let leases = taken.map(|(_, _, shard, _)| &world.store.leases[&LeaseKey::Shard(*shard)]);
    let annotated = leases.filter(|lease| lease.annotations.contains_key(annotation::FIRED_THROUGH));
    annotated.count()
}

#[test]
fn a_shard_taken_without_a_handover_has_no_fired_through_of_an_earlier_term() {
    // The Leases still name the former leader, which crashed, or was the last one and released only its member Lease.
    for (n_replicas, has_crashed) in [(3, true), (2, false)] {
        let mut world = fleet(64, n_replicas, 1);
        drained(&mut world, 0);
        assert!(n_fired_through(&world) > 0);
        world.journal.leads.clear();
        let had = world.load()[1];
        if has_crashed {
            world.kill(1);
        } else {
            drained(&mut world, 1);
            world.start("next");
        }
        world.run_until_led(11_000);
        assert_eq!(world.journal.leads.len(), had);
        assert_eq!(n_fired_through(&world), 0, "crashed: {has_crashed}");
    }
}

#[test]
fn a_released_shard_keeps_the_fired_through_of_its_last_leader() {
    let mut world = fleet(16, 3, 1);
    for slow in 1..3 {
        world.replicas[slow].loads_nothing = true;
    }
    let had = world.load()[0];
    drained(&mut world, 0);
    world.run_until_led(2_000);
    assert!(
        world
            .journal
            .leads
            .iter()
            .all(|(_, _, _, adoption)| *adoption == Adoption::Released)
    );
    assert_eq!((world.journal.leads.len(), n_fired_through(&world)), (had, had));
}

fn drained(world: &mut World, leaving: usize) -> u64 {
    let begun = world.now;
    world.drain(leaving);
    while !world.replicas[leaving].has_left {
        world.run(1);
    }
    world.now - begun
}

#[test]
fn f_01_a_drain_at_a_slow_api_server_takes_less_than_five_seconds() {
    for latency_max in [4, 40, 400] {
        let mut world = fleet(256, 5, 3);
        world.latency_max = latency_max;
        let took = drained(&mut world, 1);
        assert!(took < 5_000, "{took} ms at {latency_max} ms");
    }
}

#[test]
fn f_04_shards_that_seal_slowly_do_not_delay_a_drain() {
    let mut world = fleet(256, 5, 3);
    world.replicas[1].seal_delay = 2_000;
    let took = drained(&mut world, 1);
    assert!((2_000..2_450).contains(&took), "{took} ms");
}

#[test]
fn f_04_a_replica_with_many_shards_hands_over_more_at_a_time() {
    let mut world = fleet(512, 2, 3);
    world.replicas[1].seal_delay = 2_000;
    let begun = world.now;
    world.input(1, ElectionInput::ClockTrusted(false));
    while world.load()[1] > 0 {
        world.run(10);
    }
    let took = world.now - begun;
    assert!(took < 5_500, "{took} ms");
}

#[test]
fn a_next_leader_that_loads_nothing_is_replaced_after_three_seconds() {
    let mut world = fleet(16, 3, 67);
    world.replicas[1].loads_nothing = true;
    world.drain(0);
    world.run(2_900);
    assert!(!world.replicas[0].has_left);
    world.run(500);
    assert!(world.replicas[0].has_left);
    world.run_until_led(1_000);
    assert!(
        world.journal.leads.iter().all(|(_, at, _, _)| *at == 2),
        "{:?}",
        world.journal.leads
    );
}

#[test]
fn a_drain_releases_its_shards_after_two_slow_next_leaders() {
    let mut world = fleet(16, 5, 69);
    for slow in 1..5 {
        world.replicas[slow].loads_nothing = true;
    }
    world.drain(0);
    world.run(5_900);
    assert!(!world.replicas[0].has_left);
    world.run(600);
    assert!(world.replicas[0].has_left);
    let after = world.run_until_led(2_000);
    assert!(after < 1_000, "{after} ms");
    assert_balanced(&world, &[1, 2, 3, 4]);
}

#[test]
fn the_last_replica_releases_all_shards_without_shard_writes() {
    let mut world = fleet(64, 1, 71);
    world.store.n_writes = [0, 0];
    world.drain(0);
    world.run(100);
    assert!(world.replicas[0].has_left);
    assert_eq!(world.store.n_writes[1], 0, "no shard's Lease is written");
    let next = world.start("next");
    let after = world.run_until_led(2_000);
    assert!(after < 500, "{after} ms");
    assert_eq!(world.load()[next], 64);
    assert!(
        world
            .journal
            .leads
            .iter()
            .all(|(_, _, _, adoption)| *adoption == Adoption::Released),
        "a drain is not a crash"
    );
}
