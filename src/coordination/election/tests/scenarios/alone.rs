//! Replicas with `--alone`, beside each other and beside members that share shards.

use super::{super::world::World, assert_balanced, fleet};
use crate::{
    coordination::{ElectionInput, Installation, MemberSettings},
    shard::{Scope, ShardCount},
};

/// Starts a replica that runs alone.
fn start_alone(world: &mut World, name: &str) -> usize {
    let mut config = world.config(name);
    config.settings = MemberSettings::alone(&config.pod_uid, &[Scope::Cluster], "UTC");
    world.start_with(config)
}

/// Starts a replica that runs alone. Its shard count differs from that of the members, so it reads no shard Leases.
fn start_alone_with_another_count(world: &mut World, name: &str) -> usize {
    let mut config = world.config(name);
    config.settings = MemberSettings::alone(&config.pod_uid, &[Scope::Cluster], "UTC");
    config.installation = Installation::of(ShardCount::default());
    world.start_with(config)
}

/// Whether a replica that runs alone would start Jobs.
fn runs(world: &World, at: usize) -> bool {
    world.replicas[at].process.is_some() && world.overview(at).no_shards_reason.is_none()
}

/// Runs, and asserts that at most one replica with `--alone` is active at a time, and none beside members that lead.
#[track_caller]
fn run_one_at_a_time(world: &mut World, alone: &[usize], millis: u64) {
    for _ in 0..millis / 10 {
        world.run(10);
        let n_running = alone.iter().filter(|at| runs(world, **at)).count();
        let n_led = world.leaders().len();
        assert!(
            n_running <= 1 && (n_running == 0 || n_led == 0),
            "{n_running} run alone and {n_led} shards are led"
        );
    }
}

#[test]
fn a_lone_replica_waits_for_members_and_runs_after_they_stop() {
    let mut world = fleet(16, 2, 91);
    let alone = start_alone(&mut world, "alone");
    // The members start Jobs for two seconds after they begin to drain.
    for member in [0, 1] {
        world.replicas[member].seal_delay = 2_000;
    }
    run_one_at_a_time(&mut world, &[alone], 20_000);
    assert_balanced(&world, &[0, 1]);
    assert_eq!(
        world.overview(alone).no_shards_reason.unwrap().name(),
        "settings_differ"
    );
    for member in [0, 1] {
        world.drain(member);
        run_one_at_a_time(&mut world, &[alone], 12_000);
    }
    assert!(runs(&world, alone), "{:?}", world.overview(alone).no_shards_reason);
}

#[test]
fn a_lone_replica_with_another_count_waits_for_a_member_with_a_doubtful_clock() {
    let mut world = fleet(16, 1, 94);
    let alone = start_alone_with_another_count(&mut world, "alone");
    run_one_at_a_time(&mut world, &[alone], 5_000);
    world.replicas[0].answer_delay = 1_500;
    world.input(0, ElectionInput::ClockTrusted(false));
    run_one_at_a_time(&mut world, &[alone], 20_000);
    assert_eq!(world.leaders().len(), 0);
    assert!(runs(&world, alone), "{:?}", world.overview(alone).no_shards_reason);
}

#[test]
fn members_wait_for_a_lone_replica_and_take_over_after_its_crash() {
    let mut world = World::new(16, 92);
    let alone = start_alone(&mut world, "alone");
    run_one_at_a_time(&mut world, &[alone], 2_000);
    assert!(runs(&world, alone));
    let members = [world.start("a"), world.start("b")];
    run_one_at_a_time(&mut world, &[alone], 20_000);
    assert!(runs(&world, alone));
    assert_eq!(world.leaders().len(), 0);
    for member in members {
        assert_eq!(
            world.overview(member).no_shards_reason.unwrap().name(),
            "settings_differ"
        );
    }
    world.kill(alone);
    world.run(60_000);
    assert_balanced(&world, &members);
}

#[test]
fn lone_replicas_and_members_started_at_once_never_run_together() {
    for seed in 0..40 {
        let mut world = World::new(16, seed);
        let first = start_alone(&mut world, "first");
        let member = (seed % 2 == 0).then(|| world.start("member"));
        let second = start_alone(&mut world, "second");
        run_one_at_a_time(&mut world, &[first, second], 20_000);
        let n_led = world.leaders().len();
        let running = [first, second].iter().filter(|at| runs(&world, **at)).count();
        assert_eq!(running + usize::from(n_led == 16), 1, "seed {seed}, {member:?}");
        world.kill(first);
        run_one_at_a_time(&mut world, &[second], 40_000);
        assert!(runs(&world, second) || world.leaders().len() == 16, "seed {seed}");
    }
}

#[test]
fn a_partitioned_lone_replica_stops_before_another_runs() {
    let mut world = World::new(16, 93);
    let first = start_alone(&mut world, "first");
    world.run(2_000);
    let second = start_alone(&mut world, "second");
    run_one_at_a_time(&mut world, &[first, second], 5_000);
    assert!(runs(&world, first));
    let now = world.now;
    world.replicas[first].cut_until = now + 60_000;
    run_one_at_a_time(&mut world, &[first, second], 30_000);
    assert!(runs(&world, second) && !runs(&world, first));
    run_one_at_a_time(&mut world, &[first, second], 60_000);
    assert!(runs(&world, second) && !runs(&world, first));
}
