//! Replicas that leave: how their shards go, how long that takes, and what the others do meanwhile.

use super::{super::world::World, assert_balanced, fleet};
use crate::state::lease::{Adoption, ElectionInput, StopReason};

#[test]
fn f1_a_replica_that_drains_hands_everything_over_and_is_gone_in_half_a_second() {
    for seed in 0..2 {
        let mut world = fleet(64, 5, seed);
        let had = world.load()[2];
        world.drain(2);
        world.run(500);
        assert!(world.replicas[2].has_left, "seed {seed}");
        assert_eq!(world.n_moves(), had);
        assert_balanced(&world, &[0, 1, 3, 4]);
        let is_handed_over = |adoption: &Adoption| {
            matches!(
                adoption,
                Adoption::HandedOver {
                    fired_through: Some(_),
                    written_through: Some(_)
                }
            )
        };
        assert!(
            world
                .journal
                .leads
                .iter()
                .all(|(_, _, _, adoption)| is_handed_over(adoption))
        );
        assert!(
            world
                .journal
                .stops
                .iter()
                .all(|(_, _, _, reason)| *reason == StopReason::HandedOver)
        );
        assert!(!world.store.leases.contains_key(&world.member_key(2)));
        world.run(30_000);
        assert_eq!(world.n_moves(), had, "nothing moves again");
    }
}

/// The most shards that nobody led at a time while a replica drained, and how long that took.
fn drained(world: &mut World, leaver: usize) -> (usize, u64) {
    let (begun, n_shards) = (world.now, usize::from(world.count.get()));
    let mut n_unled_max = 0;
    world.drain(leaver);
    while !world.replicas[leaver].has_left {
        world.run(1);
        n_unled_max = n_unled_max.max(n_shards - world.leaders().len());
    }
    (n_unled_max, world.now - begun)
}

#[test]
fn f1_a_drain_leaves_few_shards_without_a_leader_at_a_time() {
    let mut world = fleet(256, 5, 3);
    let (n_unled_max, took) = drained(&mut world, 1);
    // Two on their way, and those whose next leader has not seen yet what the one before has.
    assert!((2..=6).contains(&n_unled_max), "{n_unled_max}");
    assert!(took < 500, "{took} ms");
}

#[test]
fn f1_a_drain_at_a_slow_server_has_as_many_on_the_way_as_it_takes() {
    for (latency_max, took_max) in [(40, 800), (400, 5_000)] {
        let mut world = fleet(256, 5, 3);
        world.latency_max = latency_max;
        let (n_unled_max, took) = drained(&mut world, 1);
        assert!((8..=24).contains(&n_unled_max), "{n_unled_max} at {latency_max} ms");
        assert!(took < took_max, "{took} ms at {latency_max} ms");
    }
}

fn is_quiet(world: &World, at: usize) -> bool {
    let quiet_until = world.overview(at).quiet_until;
    quiet_until.is_some_and(|until| world.local(at) < until)
}

#[test]
fn f1_while_one_drains_the_others_are_quiet_for_a_second_at_most() {
    let mut world = fleet(64, 3, 3);
    world.run(1_000);
    assert!((0..3).all(|at| !is_quiet(&world, at)));
    world.drain(1);
    world.run(50);
    assert_eq!([0, 1, 2].map(|at| is_quiet(&world, at)), [true, false, true]);
    while !world.replicas[1].has_left {
        world.run(1);
    }
    world.run(50);
    assert!([0, 2].iter().all(|at| !is_quiet(&world, *at)), "it is gone");

    world.replicas[0].seal_delay = 2_000;
    world.drain(0);
    world.run(900);
    assert!(is_quiet(&world, 2));
    world.start("another");
    world.run(200);
    assert!(!is_quiet(&world, 2) && !world.replicas[0].has_left, "it takes too long");
}

#[test]
fn f3_who_takes_shards_of_the_dead_is_quiet_for_a_second() {
    let mut world = fleet(64, 3, 3);
    world.kill(1);
    world.run(5_000);
    assert!(!is_quiet(&world, 0) && !is_quiet(&world, 2));
    world.run_until_led(20_000);
    assert!(is_quiet(&world, 0) && is_quiet(&world, 2));
    world.run(1_000);
    assert!(!is_quiet(&world, 0) && !is_quiet(&world, 2));
}

#[test]
fn f4_shards_that_fire_their_last_for_long_keep_no_others_from_being_sealed() {
    let mut world = fleet(256, 5, 3);
    world.replicas[1].seal_delay = 2_000;
    let (_, took) = drained(&mut world, 1);
    // 52 shards, as many every twentieth of a second as it takes to be done in time, and the two seconds.
    assert!((2_250..2_450).contains(&took), "{took} ms");
}

#[test]
fn f4_a_replica_with_many_shards_gives_more_of_them_at_a_time() {
    let mut world = fleet(512, 2, 3);
    world.replicas[1].seal_delay = 2_000;
    let begun = world.now;
    // One whose clock is in doubt is in no haste.
    world.input(1, ElectionInput::Willing(false));
    while world.load()[1] > 0 {
        world.run(10);
    }
    let took = world.now - begun;
    assert!(took < 5_500, "{took} ms");
}

#[test]
fn a_drain_that_takes_long_has_more_shards_on_the_way() {
    let drained_after = |warm_delay| {
        let mut world = fleet(128, 3, 67);
        for replica in &mut world.replicas[1..] {
            replica.warm_delay = warm_delay;
        }
        world.drain(0);
        world.run(warm_delay);
        let mut millis = 0;
        while !world.replicas[0].has_left {
            world.run(1);
            millis += 1;
        }
        millis
    };
    let (at_leisure, in_a_hurry) = (drained_after(20), drained_after(1_000));
    assert!(in_a_hurry * 4 < at_leisure * 3, "{at_leisure} ms and {in_a_hurry} ms");
}

#[test]
fn a_target_that_warms_nothing_is_passed_over_after_three_seconds() {
    let mut world = fleet(16, 3, 67);
    world.replicas[1].warms_nothing = true;
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
fn a_leaver_whose_targets_are_all_slow_waits_for_two_and_leaves_the_shards_to_whoever_takes_them() {
    let mut world = fleet(16, 5, 69);
    for slow in 1..5 {
        world.replicas[slow].warms_nothing = true;
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
fn the_last_replica_leaves_with_one_write_and_the_next_takes_all_at_once() {
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
    let is_released = |adoption: &Adoption| matches!(adoption, Adoption::Released { .. });
    assert!(
        world
            .journal
            .leads
            .iter()
            .all(|(_, _, _, adoption)| is_released(adoption)),
        "it is no crash"
    );
}
