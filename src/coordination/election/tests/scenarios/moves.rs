//! Replicas that join and leave, and the shards that move in consequence.

use super::{super::world::World, assert_balanced, fleet};
use crate::{coordination::MemberLease, shard::ShardPhase};

#[test]
fn f_27_five_replicas_started_at_once_lead_all_shards_within_two_seconds() {
    for seed in 0..2 {
        let mut world = World::new(64, seed);
        for number in 0..5 {
            world.start(&format!("pod-{number}"));
            let gap = world.random.below(200);
            world.run(gap);
        }
        world.run_until_led(2_000);
        assert!(
            world.store.terms.values().all(|term| term.0 == 1),
            "seed {seed}: each was made once"
        );
        world.run(30_000);
        assert_balanced(&world, &[0, 1, 2, 3, 4]);
    }
}

#[test]
fn an_idle_fleet_writes_only_member_leases() {
    let mut world = fleet(64, 5, 1);
    world.store.n_writes = [0, 0];
    world.run(60_000);
    let [members, shards] = world.store.n_writes;
    assert_eq!(shards, 0);
    assert!((140..=155).contains(&members), "{members} in a minute");
    assert_eq!(world.journal.relists, 0);
}

#[test]
fn f_02_a_rolling_update_moves_each_shard_once() {
    let mut world = fleet(64, 4, 7);
    for former in 0..4 {
        let mut config = world.config(&format!("new-{former}"));
        config.revision = "two".into();
        world.start_with(config);
        world.run(5_000);
        world.drain(former);
        world.run(2_000);
        assert!(world.replicas[former].has_left);
    }
    world.run(30_000);
    assert_eq!(world.n_moves(), 64);
    assert!(
        world.store.moves.values().all(|moves| *moves == 1),
        "{:?}",
        world.store.moves
    );
    assert_balanced(&world, &[4, 5, 6, 7]);
}

#[test]
fn f_02_a_newcomer_that_may_own_shards_already_accepts_handovers() {
    for seed in 0..8 {
        let mut world = fleet(64, 3, seed);
        let newcomer = world.start("new");
        while world.overview(newcomer).no_shards_reason.is_some() {
            world.run(1);
        }
        let member_lease = &world.store.leases[&world.member_key(newcomer)];
        assert!(MemberLease::read(member_lease).takes_shards(), "seed {seed}");
    }
}

#[test]
fn f_03_replicas_that_drain_together_leave_even_shares() {
    let (mut n_uneven, n_seeds) = (0, 60);
    for seed in 0..n_seeds {
        let mut world = fleet(64, 6, seed);
        for leaving in 2..6 {
            world.drain(leaving);
            let gap = world.random.below(20);
            world.run(gap);
        }
        world.run(3_000);
        let difference = world.load()[0].abs_diff(world.load()[1]);
        // Each leaving member chooses next leaders by its own view of the load; an uneven result is balanced later.
        assert!(difference <= 10, "seed {seed}: {:?}", world.load());
        n_uneven += u64::from(difference > 2);
    }
    assert!(n_uneven * 5 <= n_seeds, "{n_uneven} of {n_seeds}");
}

#[test]
fn f_03_scaling_up_and_down_balances_the_shards() {
    let mut world = fleet(64, 1, 3);
    for number in 1..5 {
        world.start(&format!("pod-{number}"));
    }
    world.run(40_000);
    assert_balanced(&world, &[0, 1, 2, 3, 4]);
    assert!((51..=52).contains(&world.n_moves()), "{}", world.n_moves());
    let before = world.n_moves();
    for leaving in 2..5 {
        world.replicas[leaving].seal_delay = 20;
        world.drain(leaving);
    }
    world.run(3_000);
    let n_moves = world.n_moves() - before;
    assert!(
        (38..=39).contains(&n_moves),
        "each of their shards moves once, never to another leaving member"
    );
    // A leaving member does not know the offers of the others; the result is balanced later.
    world.run(30_000);
    assert_balanced(&world, &[0, 1]);
    assert!(world.n_moves() - before <= n_moves + 2);
}

#[test]
fn a_new_member_gets_its_share_after_the_settle_window() {
    let mut world = fleet(64, 4, 5);
    let came = world.now;
    world.start("pod-4");
    world.run(9_000);
    assert_eq!(world.n_moves(), 0);
    world.run(11_000);
    assert_eq!(world.n_moves(), 64 / 5);
    let first = world.journal.leads.iter().map(|(at, ..)| at - came).min().unwrap();
    assert!((10_000..12_000).contains(&first), "{first}");
}

#[test]
fn no_shard_is_pulled_while_two_revisions_are_live() {
    let mut world = fleet(64, 4, 5);
    let mut config = world.config("new");
    config.revision = "two".into();
    world.start_with(config);
    world.run(30_000);
    assert_eq!(world.n_moves(), 0);
}

#[test]
fn f_20_random_membership_changes_settle_with_few_moves() {
    for seed in 0..2 {
        let mut world = fleet(32, 4, seed);
        let mut live: Vec<usize> = (0..4).collect();
        let mut bound = 0;
        for change in 0..50 {
            let shards = usize::from(world.count.get());
            if live.len() < 2 || live.len() < 8 && world.random.below(2) == 0 {
                live.push(world.start(&format!("more-{change}")));
            } else {
                let at = usize::try_from(world.random.below(live.len() as u64)).unwrap();
                let leaving = live.remove(at);
                bound += world.load()[leaving].max(shards.div_ceil(live.len() + 1));
                world.drain(leaving);
            }
            world.run(1_200);
        }
        let before = world.n_moves();
        assert!(before <= bound + 8 * 4, "seed {seed}: {before} of {bound}");
        world.run(11_000 + 2_000);
        assert_balanced(&world, &live);
        let settled = world.n_moves();
        assert!(settled - before <= 32, "seed {seed}");
        world.run(60_000);
        assert_eq!(world.n_moves(), settled, "seed {seed}: no oscillation");
    }
}

#[test]
fn a_newcomer_that_lists_slowly_gets_its_share_afterwards() {
    let mut world = fleet(16, 2, 5);
    let config = world.config("new");
    let newcomer = world.create(config);
    world.replicas[newcomer].sync_delay = 20_000;
    world.boot(newcomer);
    world.run(29_000);
    assert_eq!(world.n_moves(), 0);
    world.run(10_000);
    assert_balanced(&world, &[0, 1, newcomer]);
    assert_eq!(world.n_moves(), 5);
}

#[test]
fn a_member_hands_over_at_most_eight_shards_at_a_time() {
    let mut world = fleet(64, 1, 89);
    world.start("pod-1");
    world.replicas[0].seal_delay = 2_000;
    let mut most = 0;
    for _ in 0..4_000 {
        world.run(10);
        let led = world.overview(0).led;
        let n_moving = led.values().filter(|(_, phase)| *phase != ShardPhase::Leading).count();
        most = n_moving.max(most);
    }
    assert_eq!((most, world.n_moves()), (8, 32));
}

#[test]
fn a_silent_member_gets_no_shard_until_it_renews() {
    let mut world = fleet(64, 1, 89);
    let silent = world.start("pod-1");
    world.run(5_900);
    // The settle window ends after ten seconds, and the member has then been silent for more than two renewals.
    world.replicas[silent].cut_until = world.now + 6_500;
    for _ in 0..640 {
        world.run(10);
        assert_eq!(world.load(), [64, 0]);
    }
    world.run(10_000);
    assert_balanced(&world, &[0, silent]);
    assert_eq!(world.n_moves(), 32);
}

/// A leader does not know the moves of the others in progress. So two leaders may choose the same one of several newcomers,
/// which then gives a shard to another newcomer.
#[test]
fn f_03_several_leaders_give_newcomers_their_shares_with_few_moves() {
    for seed in 0..12 {
        let n_leaders = 2 + usize::try_from(seed % 4).unwrap();
        let n_newcomers = 1 + usize::try_from(seed % 3).unwrap();
        let mut world = fleet(64, n_leaders, seed);
        for number in 0..n_newcomers {
            world.start(&format!("new-{number}"));
        }
        for replica in &mut world.replicas {
            replica.seal_delay = 500 * (seed % 5);
        }
        world.run(50_000);
        let all: Vec<usize> = (0..n_leaders + n_newcomers).collect();
        assert_balanced(&world, &all);
        let n_taken: usize = world.load()[n_leaders..].iter().sum();
        let n_more = world.n_moves() - n_taken;
        let n_more_max = if n_newcomers == 1 { 0 } else { n_taken / 8 };
        assert!(n_more <= n_more_max, "seed {seed}: {n_more} more than {n_taken}");
    }
}
