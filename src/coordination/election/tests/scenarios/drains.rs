//! Replicas that leave: the handover of their shards, its duration, and the other members during it.

use jiff::SignedDuration;

use super::{
    super::world::{Journal, World},
    assert_balanced, fleet,
};
use crate::{
    coordination::{Adoption, ElectionInput, LeaseKey, MemberSettings, StopReason, annotation},
    shard::{Entry, FiredThrough, Scope, ShardId},
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
fn the_next_leader_learns_the_last_renewal_of_a_leader_that_crashed() {
    let mut world = fleet(64, 3, 1);
    let (had, crashed_at) = (world.load()[1], world.wall());
    world.journal = Journal::default();
    world.kill(1);
    world.run_until_led(11_000);
    assert_eq!(world.journal.entries.len(), had);
    for (_, fired_through) in &world.journal.entries {
        let Some(FiredThrough::Renewal(renewed_at)) = fired_through else {
            panic!("{fired_through:?}");
        };
        let age = crashed_at.duration_since(*renewed_at);
        assert!(
            SignedDuration::ZERO <= age && age <= SignedDuration::from_secs(3),
            "{age:?}"
        );
    }
}

#[test]
fn a_leader_that_crashed_soon_after_it_took_a_shard_may_never_have_led_it() {
    let mut world = fleet(64, 3, 1);
    world.kill(1);
    world.run_until_led(11_000);
    world.run(5_000);
    let taken: Vec<ShardId> = world.journal.leads.iter().map(|(_, _, shard, _)| *shard).collect();
    world.journal = Journal::default();
    world.kill(0);
    world.run_until_led(11_000);
    let leads = world.journal.leads.iter().zip(&world.journal.entries);
    let unknown = leads.filter(|(_, (_, fired_through))| fired_through.is_none());
    let unknown: Vec<ShardId> = unknown.map(|((_, _, shard, _), _)| *shard).collect();
    assert!(!unknown.is_empty() && unknown.len() < world.journal.leads.len());
    assert!(unknown.iter().all(|shard| taken.contains(shard)), "{unknown:?}");
}

#[test]
fn a_released_shard_keeps_the_fired_through_of_its_last_leader() {
    let mut world = fleet(16, 3, 1);
    silence(&mut world, &[1, 2]);
    let had = world.load()[0];
    drained(&mut world, 0);
    world.run_until_led(3_000);
    assert!(
        world
            .journal
            .leads
            .iter()
            .all(|(_, _, _, adoption)| *adoption == Adoption::Released)
    );
    assert_eq!((world.journal.leads.len(), n_fired_through(&world)), (had, had));
}

/// Lets no renewal of these replicas succeed for more than two renewal intervals, and for another second from now on.
fn silence(world: &mut World, silent: &[usize]) {
    for at in silent {
        world.replicas[*at].cut_until = world.now + 5_500;
    }
    world.run(4_500);
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
fn a_drain_passes_over_a_silent_member() {
    let mut world = fleet(16, 3, 67);
    let had = world.load()[0];
    world.kill(1);
    world.run(4_500);
    let took = drained(&mut world, 0);
    assert!(took < 200, "{took} ms");
    world.run(20);
    assert_eq!(world.journal.leads.len(), had);
    assert!(
        world.journal.leads.iter().all(|(_, at, _, _)| *at == 2),
        "{:?}",
        world.journal.leads
    );
    world.run_until_led(7_000);
}

#[test]
fn a_drain_releases_its_shards_beside_silent_members() {
    let mut world = fleet(16, 5, 69);
    silence(&mut world, &[1, 2, 3, 4]);
    let took = drained(&mut world, 0);
    assert!(took < 200, "{took} ms");
    let after = world.run_until_led(3_100);
    assert!(after < 3_100, "{after} ms");
    world.run(20_000);
    assert_balanced(&world, &[1, 2, 3, 4]);
    assert_eq!((world.journal.evictions, world.journal.rejoins.len()), (0, 0));
}

/// Replica 0 of three drains, and takes `sealing` milliseconds to seal its shards. A second after the drain, something
/// happens to the next leader of some of them. Returns the world after the transfers.
fn drain_while(sealing: u64, happens: impl Fn(&mut World, usize)) -> World {
    let mut world = fleet(16, 3, 67);
    world.replicas[0].seal_delay = sealing;
    world.replicas[0].answer_delay = sealing.saturating_sub(9_000);
    world.drain(0);
    world.run(1_000);
    assert_eq!(world.journal.leads.len(), 0, "nothing is sealed yet");
    happens(&mut world, 1);
    while !world.replicas[0].has_left {
        world.run(1);
    }
    world.run(20);
    let n_led_by_0 = world.journal.stops.iter().filter(|(_, at, ..)| *at == 0).count();
    assert!((5..=6).contains(&n_led_by_0));
    world
}

/// Asserts that each shard of replica 0 was handed over to replica 2.
#[track_caller]
fn assert_handed_to_2(world: &World) {
    let stops = world.journal.stops.iter().filter(|(_, at, ..)| *at == 0);
    for (_, _, shard, reason) in stops {
        assert_eq!(*reason, StopReason::HandedOver);
        let leads = world.journal.leads.iter().filter(|(_, _, led, _)| led == shard);
        let leads: Vec<_> = leads.map(|(_, at, _, adoption)| (*at, *adoption)).collect();
        assert_eq!(leads, [(2, Adoption::HandedOver)], "{shard:?}");
    }
}

#[test]
fn a_next_leader_that_leaves_before_the_transfer_is_replaced() {
    let world = drain_while(3_000, World::drain);
    assert_handed_to_2(&world);
    assert_eq!(world.load(), [0, 0, 16]);
}

#[test]
fn a_next_leader_that_falls_silent_before_the_transfer_is_replaced() {
    let world = drain_while(7_000, World::kill);
    assert_handed_to_2(&world);
    assert_eq!(world.journal.evictions, 0);
    let freeze = |world: &mut World, next: usize| world.replicas[next].frozen_until = world.now + 6_100;
    let mut world = drain_while(7_000, freeze);
    assert_handed_to_2(&world);
    world.run(20_000);
    assert_balanced(&world, &[1, 2]);
}

#[test]
fn a_next_leader_that_is_evicted_before_the_transfer_is_replaced() {
    let world = drain_while(13_000, World::kill);
    assert_handed_to_2(&world);
    assert_eq!(world.journal.evictions, 1);
    assert_eq!(world.load(), [0, 0, 16]);
}

#[test]
fn a_next_leader_that_restarts_with_other_settings_before_the_transfer_is_replaced() {
    let world = drain_while(3_000, |world, next| {
        world.kill(next);
        world.replicas[next].config.settings = MemberSettings::of(&[Scope::Cluster], "Europe/Berlin");
        world.boot(next);
    });
    assert_handed_to_2(&world);
    assert_eq!(world.load(), [0, 0, 16]);
}

#[test]
fn a_next_leader_that_restarts_before_the_transfer_gets_its_shards() {
    let world = drain_while(3_000, |world, next| {
        world.kill(next);
        world.boot(next);
    });
    let stops = world.journal.stops.iter().filter(|(_, at, ..)| *at == 0);
    assert!(stops.clone().count() > 0 && stops.clone().all(|(_, _, _, reason)| *reason == StopReason::HandedOver));
    let to_1 = world
        .journal
        .leads
        .iter()
        .filter(|(_, at, _, adoption)| *at == 1 && *adoption == Adoption::HandedOver);
    assert!(to_1.count() > 0);
    assert_eq!(world.leaders().len(), 16);
}

/// The chosen next leaders are the members that leave too, until each knows of the other.
#[test]
fn f_03_replicas_that_leave_at_once_hand_over_to_those_that_stay() {
    for seed in 0..20 {
        let mut world = fleet(64, 4, seed);
        let had = world.load()[0] + world.load()[1];
        for leaving in 0..2 {
            world.replicas[leaving].seal_delay = 20;
            world.drain(leaving);
        }
        world.run(2_000);
        assert!(world.replicas[0].has_left && world.replicas[1].has_left, "seed {seed}");
        assert_eq!((world.n_moves(), world.leaders().len()), (had, 64), "seed {seed}");
    }
}

#[test]
fn a_staying_leader_replaces_a_next_leader_that_leaves_before_the_transfer() {
    let mut world = fleet(64, 2, 3);
    let newcomer = world.start("new");
    world.replicas[0].seal_delay = 3_000;
    world.replicas[1].seal_delay = 3_000;
    world.run(11_000);
    assert_eq!(world.n_moves(), 0, "the first shards are being sealed");
    world.drain(newcomer);
    world.run(5_000);
    assert_eq!(world.leaders().len(), 64);
    assert!(
        world.n_moves() <= 16,
        "only what was being sealed moves: {}",
        world.n_moves()
    );
    assert!(world.journal.leads.iter().all(|(_, at, _, _)| *at != newcomer));
    world.run(40_000);
    assert_balanced(&world, &[0, 1]);
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
