//! Replicas and API servers that fail, and clocks that are wrong.

use super::{super::world::World, assert_balanced, fleet};
use crate::{
    coordination::{Adoption, ElectionInput, LeaseKey, annotation},
    shard::ShardId,
};

#[test]
fn f_05_a_killed_process_that_restarts_leads_again_within_three_seconds() {
    let mut world = fleet(64, 3, 11);
    let had = world.load()[1];
    world.kill(1);
    world.run(1_000);
    world.boot(1);
    let after = world.run_until_led(2_000);
    assert!(after < 1_000, "{after} ms after its start");
    assert_eq!(world.n_moves(), had);
    assert_eq!(
        world.journal.evictions, 0,
        "the former incarnation is replaced without an eviction"
    );
    assert!(
        world
            .journal
            .leads
            .iter()
            .all(|(_, _, _, adoption)| *adoption == Adoption::Crashed)
    );
}

#[test]
fn f_05_a_killed_process_that_stays_down_is_replaced_within_10600_ms() {
    for seed in 0..2 {
        let mut world = fleet(64, 3, seed);
        let had = world.load()[1];
        let phase = world.random.below(2_000);
        world.run(phase);
        world.kill(1);
        let after = world.run_until_led(11_000);
        assert!((7_900..=10_600).contains(&after), "{after} ms");
        assert_eq!(world.n_moves(), had);
        assert_eq!(world.journal.evictions, 1, "one eviction is enough");
        assert_balanced(&world, &[0, 2]);
    }
}

#[test]
fn f_06_a_short_freeze_moves_nothing() {
    let mut world = fleet(64, 3, 13);
    for phase in [0, 700, 1_400] {
        world.run(phase);
        world.replicas[1].frozen_until = world.now + 5_000;
        world.run(20_000);
        assert_eq!((world.n_moves(), world.journal.rejoins.len()), (0, 0), "{phase}");
    }
}

#[test]
fn f_06_a_replica_frozen_beyond_its_fence_rejoins() {
    for (frozen, is_evicted) in [(9_000, false), (12_000, true), (60_000, true), (600_000, true)] {
        let mut world = fleet(64, 3, 17);
        let had = world.load()[1];
        world.replicas[1].frozen_until = world.now + frozen;
        world.run(frozen - 10);
        // Nine seconds after a freeze that began right after a renewal, the member is not evicted. If the freeze
        // began later in the interval, the member can be evicted.
        let allowed = if is_evicted { vec![had] } else { vec![0, had] };
        assert!(allowed.contains(&world.n_moves()), "{frozen}");
        world.run(1_000);
        let rejoins: Vec<&str> = world.journal.rejoins.iter().map(|(_, _, reason)| *reason).collect();
        assert_eq!(
            rejoins,
            ["the process did not run for longer than its fence"],
            "{frozen}"
        );
        world.run_until_led(2_000);
        world.run(40_000);
        assert!(world.store.moves.values().all(|moves| *moves <= 2), "{frozen}");
        assert_balanced(&world, &[0, 1, 2]);
    }
}

#[test]
fn f_08_an_outage_of_the_api_server_fences_all_and_moves_nothing() {
    for seed in 0..2 {
        let mut world = fleet(64, 5, seed);
        for replica in &mut world.replicas {
            replica.cut_until = world.now + 30_000;
        }
        world.run(29_900);
        assert!(world.leaders().is_empty());
        assert_eq!(world.journal.fences.len(), 5);
        world.run(100);
        let back = world.run_until_led(2_500);
        assert!(back <= 2_100, "{back} ms");
        world.run(60_000);
        assert_eq!(
            (world.n_moves(), world.journal.evictions, world.journal.rejoins.len()),
            (0, 0, 0)
        );
    }
}

#[test]
fn f_09_a_partitioned_replica_fences_itself_before_it_is_replaced() {
    let mut world = fleet(64, 3, 19);
    let (cut_at, had) = (world.now, world.load()[0]);
    world.replicas[0].cut_until = world.now + 30_000;
    world.run(7_100);
    assert_eq!(world.journal.fences.len(), 1);
    assert_eq!(world.n_moves(), 0);
    world.run_until_led(3_500);
    assert!(world.now - cut_at <= 10_600);
    world.run(20_000);
    assert_eq!(world.n_moves(), had);
    // It learns that it was evicted when it is connected again.
    world.run(2_000);
    assert_eq!(world.journal.rejoins.len(), 1);
    world.run(40_000);
    assert_balanced(&world, &[0, 1, 2]);
}

#[test]
fn f_10_no_lease_is_lost_at_a_slow_and_lossy_api_server() {
    for seed in 0..2 {
        let mut world = fleet(64, 3, seed);
        world.latency_max = 700;
        for replica in &mut world.replicas {
            replica.loss = 10;
        }
        world.run(120_000);
        assert_eq!(
            (world.n_moves(), world.journal.evictions, world.journal.rejoins.len()),
            (0, 0, 0),
            "seed {seed}"
        );
    }
}

#[test]
fn f_12_a_replica_with_a_lagging_watch_evicts_nobody() {
    let mut world = fleet(64, 3, 23);
    world.replicas[2].watch_lag = 5_000;
    world.run(60_000);
    assert_eq!(
        (world.n_moves(), world.journal.evictions, world.journal.rejoins.len()),
        (0, 0, 0)
    );
    assert!(world.journal.relists > 0, "a replica lists if its watch is late");
    assert_eq!(world.leaders().len(), 64);
    world.kill(1);
    world.run_until_led(12_000);
}

#[test]
fn f_15_a_member_rejoins_after_its_lease_is_deleted() {
    let mut world = fleet(64, 3, 29);
    world.delete(&world.member_key(1));
    world.run(300);
    let reasons: Vec<&str> = world.journal.rejoins.iter().map(|(_, _, reason)| *reason).collect();
    assert_eq!(reasons, ["its Lease was deleted"]);
    world.run_until_led(10_600);
    world.run(30_000);
    assert_balanced(&world, &[0, 1, 2]);
}

#[test]
fn f_15_a_leader_recreates_a_deleted_shard_lease_in_a_later_term() {
    let mut world = fleet(64, 3, 31);
    let leader = world.leaders()[&ShardId(5)];
    let term = world.store.terms[&ShardId(5)];
    world.delete(&LeaseKey::Shard(ShardId(5)));
    world.run(100);
    assert_eq!(world.leaders()[&ShardId(5)], leader);
    assert!(world.store.terms[&ShardId(5)] > term);
    let [(_, at, _, adoption)] = &world.journal.leads[..] else {
        panic!("{:?}", world.journal.leads)
    };
    assert_eq!((*at, adoption), (leader, &Adoption::Recreated));
}

#[test]
fn f_15_all_shards_are_led_again_after_all_leases_are_deleted() {
    let mut world = fleet(64, 3, 37);
    for key in world.store.leases.keys().cloned().collect::<Vec<_>>() {
        world.delete(&key);
    }
    let back = world.run_until_led(12_000);
    assert!(back <= 10_600, "{back} ms");
    world.run(30_000);
    assert_balanced(&world, &[0, 1, 2]);
}

#[test]
fn f_15_terms_grow_after_repeated_deletion_of_a_shard_lease() {
    let mut world = fleet(16, 2, 39);
    for _ in 0..3 {
        for at in [0, 1] {
            world.kill(at);
        }
        world.delete(&LeaseKey::Shard(ShardId(5)));
        for at in [0, 1] {
            world.boot(at);
        }
        world.run_until_led(30_000);
    }
}

#[test]
fn f_16_clocks_with_a_rate_error_of_five_percent_do_no_harm() {
    for seed in 0..2 {
        let mut world = World::new(16, seed);
        for (number, rate) in [950, 1_000, 1_050].into_iter().enumerate() {
            world.start(&format!("pod-{number}"));
            world.replicas[number].rate = rate;
        }
        world.run(30_000);
        for _ in 0..10 {
            let victim = usize::try_from(world.random.below(3)).unwrap();
            let frozen = world.random.below(14_000);
            if world.random.below(2) == 0 {
                world.replicas[victim].frozen_until = world.now + frozen;
            } else {
                world.replicas[victim].cut_until = world.now + frozen;
            }
            world.run(20_000);
        }
        world.run_until_led(12_000);
    }
}

#[test]
fn f_18_a_shard_that_kills_its_leaders_always_has_a_next_leader() {
    let mut world = fleet(32, 4, 41);
    let deadly = ShardId(9);
    for _ in 0..6 {
        let leader = world.leaders()[&deadly];
        world.kill(leader);
        let after = world.run_until_led(12_000);
        assert!(after <= 11_000, "{after} ms");
        world.boot(leader);
        world.run(3_000);
    }
    world.run(60_000);
    assert_balanced(&world, &[0, 1, 2, 3]);
}

#[test]
fn f_19_a_process_that_outlives_its_pod_loses_its_shards_safely() {
    let mut world = fleet(16, 3, 43);
    // Garbage collection of the Pod deletes the Lease while the process is cut off and still leads by its own clock.
    world.replicas[1].cut_until = world.now + 60_000;
    world.delete(&world.member_key(1));
    world.run_until_led(12_000);
    world.run(30_000);
    assert_eq!(world.load()[1], 0);
}

#[test]
fn f_23_a_watch_that_breaks_during_a_handover_loses_nothing() {
    for seed in 0..2 {
        let mut world = fleet(32, 3, seed);
        world.drain(0);
        let gap = world.random.below(40);
        world.run(gap);
        if world.replicas[0].process.is_some() {
            world.break_watch(0, 300);
        }
        world.break_watch(1, 400);
        world.run_until_led(4_000);
        world.run(4_000);
        assert!(world.replicas[0].has_left);
        assert_balanced(&world, &[1, 2]);
    }
}

#[test]
fn f_24_a_next_leader_killed_after_the_transfer_is_replaced() {
    let mut world = fleet(16, 3, 59);
    let had = world.load()[1];
    world.drain(0);
    while world.load()[1] == had {
        world.run(1);
    }
    world.kill(1);
    let after = world.run_until_led(11_000);
    assert!(after <= 10_600, "{after} ms");
    world.run(1_000);
    assert!(world.replicas[0].has_left);
    assert_eq!(world.load(), [0, 0, 16]);
}

#[test]
fn f_26_an_edited_number_of_the_renewal_is_no_other_process() {
    let mut world = fleet(16, 2, 62);
    let key = world.member_key(0);
    for _ in 0..4 {
        world.edit(&key, annotation::RENEWAL, "99999");
        world.run(2_700);
    }
    assert_eq!((world.replicas[0].exits, world.n_moves()), (0, 0));
    assert_ne!(&*world.store.leases[&key].annotations[annotation::RENEWAL], "99999");
}

#[test]
fn f_26_of_two_processes_with_one_identity_one_exits() {
    let mut world = fleet(16, 2, 61);
    let twin = world.replicas[0].clone();
    world.replicas.push(twin);
    world.wake(2);
    // Both processes act until the first renewal reveals the conflict. Other replicas are unaffected.
    world.is_twinned = true;
    world.run(4_000);
    assert_eq!(world.replicas[0].exits + world.replicas[2].exits, 1);
    world.is_twinned = false;
    world.run(10_000);
    assert_eq!(world.leaders().len(), 16);
}

#[test]
fn f_16_a_replica_with_a_doubtful_clock_gives_its_shards_away() {
    let mut world = fleet(16, 2, 73);
    world.input(0, ElectionInput::ClockTrusted(false));
    world.run(1_000);
    assert_eq!(world.load(), [0, 16]);
    world.input(0, ElectionInput::ClockTrusted(true));
    world.run(30_000);
    assert_balanced(&world, &[0, 1]);
}

#[test]
fn f_16_a_doubtful_clock_ends_the_waiting_of_a_drain() {
    let mut world = fleet(16, 2, 73);
    world.replicas[0].seal_delay = 5_000;
    world.input(0, ElectionInput::DrainRequested);
    world.run(1_500);
    let n_led = world.load()[0];
    assert!(n_led > 0, "some shards are still being sealed");
    world.input(0, ElectionInput::ClockTrusted(false));
    world.run(500);
    assert_eq!(world.load(), [0, 16]);
}

/// Admission refuses the writes of the built-in controller while a Lease with the label is fresh, so a replica that starts
/// nothing must not have it.
#[test]
fn a_member_has_the_label_while_it_starts_jobs() {
    let mut world = fleet(64, 1, 23);
    let acting = |world: &World| world.journal.acting.iter().copied().collect::<Vec<_>>();
    world.run(2_500);
    assert_eq!(acting(&world), [0]);
    world.input(0, ElectionInput::ClockTrusted(false));
    world.run(2_500);
    assert_eq!(acting(&world), [0; 0], "its clock is in doubt");
    world.input(0, ElectionInput::ClockTrusted(true));
    world.run(15_000);
    assert_eq!(acting(&world), [0]);
    world.input(0, ElectionInput::MayStart(false));
    world.run(2_500);
    assert_eq!(acting(&world), [0; 0], "it may not create Jobs");
    world.input(0, ElectionInput::MayStart(true));
    world.run(2_500);
    assert_eq!(acting(&world), [0]);
    let second = world.start("pod-1");
    world.run(1_000);
    assert_eq!(acting(&world), [0], "the second has no shard yet");
    world.run(30_000);
    assert_eq!(acting(&world), [0, second]);
    world.input(0, ElectionInput::DrainRequested);
    world.run(10_000);
    assert_eq!(acting(&world), [second]);
}

/// Until the label is stored, the built-in controller and the replica write the same statuses.
#[test]
fn a_member_that_begins_to_start_jobs_says_so_at_once() {
    for seed in 0..8 {
        let mut world = World::new(64, seed);
        let alone = world.start("pod-0");
        while world.journal.leads.is_empty() {
            world.run(1);
        }
        // The shards are taken one by one, and another renewal may be in flight.
        world.run(20);
        assert!(world.journal.acting.contains(&alone), "seed {seed}");
    }
}
