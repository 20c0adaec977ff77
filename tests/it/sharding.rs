//! Placement in random fleets: properties of balance, movement and stability, and the table in `docs/spec/sharding.md`.

mod fleet;
mod table;

use cronwheel::{
    coordination::Acceptance,
    shard::{ShardCount, ShardId},
};

use super::random::Random;
use fleet::Fleet;

const N_FLEETS: u64 = 40;

fn count(number: u64) -> ShardCount {
    ShardCount::new(number).unwrap()
}

/// Checks a property for random fleets with various sizes and shard counts.
fn for_each_fleet(property: impl Fn(Fleet, &mut Random)) {
    for seed in 0..N_FLEETS {
        let mut random = Random::new(seed);
        let number = random.pick(&[16, 64, 256, 1024]);
        let n_members = 1 + random.below(usize::try_from(number).unwrap().min(24));
        let mut fleet = Fleet::new(count(number), random.next());
        for _ in 0..n_members {
            fleet.join("one");
        }
        fleet.settle();
        property(fleet, &mut random);
    }
}

#[test]
fn shares_of_members_differ_by_at_most_one_shard() {
    for_each_fleet(|fleet, _| {
        let (n_members, n_shards) = (fleet.members.len(), fleet.holders.len());
        let held = fleet.held();
        let bounds = (n_shards / n_members, n_shards.div_ceil(n_members));
        assert!(held.iter().all(|held| (bounds.0..=bounds.1).contains(held)), "{held:?}");
    });
}

#[test]
fn new_member_moves_only_its_own_share() {
    for_each_fleet(|mut fleet, _| {
        let before = fleet.holders.clone();
        let former: Vec<String> = fleet.members.iter().map(|member| member.identity.clone()).collect();
        fleet.join("one");
        let moves = fleet.settle();
        for (before, after) in before.iter().zip(&fleet.holders) {
            let holder = after.as_ref().unwrap();
            assert!(before == after || !former.contains(holder), "moved to {holder}");
        }
        assert_eq!(
            moves,
            fleet.holders.len() / fleet.members.len(),
            "{} members",
            fleet.members.len()
        );
    });
}

#[test]
fn dead_member_moves_only_its_own_shards() {
    for_each_fleet(|mut fleet, random| {
        if fleet.members.len() == 1 {
            return;
        }
        let victim = random.below(fleet.members.len());
        let had = fleet.held()[victim];
        let identity = fleet.members[victim].identity.clone();
        let before = fleet.holders.clone();
        fleet.remove(&identity);
        assert_eq!(fleet.take_free(), had);
        for (before, after) in before.iter().zip(&fleet.holders) {
            assert_eq!(before != after, before.as_ref() == Some(&identity), "{after:?}");
        }
        assert_eq!(fleet.settle(), 0, "the takeover is balanced");
    });
}

#[test]
fn f_02_a_rollout_moves_each_shard_once() {
    for_each_fleet(|mut fleet, _| {
        let rollout = fleet.roll_out("two");
        assert_eq!(rollout.moves, fleet.holders.len(), "{} members", fleet.members.len());
        assert_eq!(rollout.moves_of_one_shard_max, 1);
        assert_eq!(fleet.settle(), 0, "the result of a rollout is balanced");
    });
}

#[test]
fn f_22_rollback_midway_moves_only_the_share_of_replaced_members() {
    for_each_fleet(|mut fleet, random| {
        let n_replaced = random.below(fleet.members.len() + 1);
        let forth = fleet.roll_out_some("two", "one", n_replaced);
        let back = fleet.roll_out_some("three", "two", n_replaced);
        let most = fleet.holders.len().div_ceil(fleet.members.len()) * n_replaced;
        assert!(
            forth.moves <= most && back.moves <= most,
            "{} and {} of {most}",
            forth.moves,
            back.moves
        );
        assert_eq!(fleet.settle(), 0);
    });
}

#[test]
fn placement_moves_the_fewest_shards_from_any_state() {
    for_each_fleet(|mut fleet, random| {
        for holder in &mut fleet.holders {
            *holder = (!random.is_one_in(5))
                .then(|| random.pick(&[0, 0, 0, 1, 2]))
                .filter(|at| *at < fleet.members.len())
                .map(|at| fleet.members[at].identity.clone());
        }
        let held = fleet.held();
        let share = fleet.holders.len() / fleet.members.len();
        let n_with_one_more = fleet.holders.len() % fleet.members.len();
        let mut above: Vec<usize> = held
            .iter()
            .map(|held| held.saturating_sub(share))
            .filter(|above| *above > 0)
            .collect();
        above.sort_unstable_by(|a, b| b.cmp(a));
        let spared = n_with_one_more.min(above.len());
        let n_without_holder = fleet.holders.iter().filter(|holder| holder.is_none()).count();
        let fewest = above.iter().sum::<usize>() - spared + n_without_holder;
        assert_eq!(fleet.settle(), fewest, "{held:?}");
        assert_eq!(fleet.settle(), 0);
    });
}

#[test]
fn f_20_placement_settles_after_each_of_fifty_random_changes() {
    for_each_fleet(|mut fleet, random| {
        if !random.is_one_in(3) {
            return;
        }
        let (mut moves, mut fewest) = (0, 0);
        for _ in 0..50 {
            let n_members = fleet.members.len();
            if random.is_one_in(2) || n_members == 1 {
                fleet.join("one");
                fewest += fleet.holders.len() / fleet.members.len();
            } else {
                let victim = random.below(n_members);
                fewest += fleet.held()[victim];
                let identity = fleet.members[victim].identity.clone();
                fleet.remove(&identity);
            }
            moves += fleet.settle();
            assert_eq!(fleet.settle(), 0);
        }
        assert_eq!(moves, fewest);
    });
}

#[test]
fn draining_member_gives_all_its_shards_away() {
    for_each_fleet(|mut fleet, random| {
        let leaver = random.below(fleet.members.len());
        fleet.members[leaver].acceptance = Acceptance::No;
        let is_alone = fleet.members.len() == 1;
        let had = fleet.held()[leaver];
        assert_eq!(fleet.take_free(), if is_alone { 0 } else { had });
        let left = fleet.held()[leaver];
        assert_eq!(left, if is_alone { had } else { 0 }, "shards of the only member stay");
    });
}

#[test]
fn new_member_gets_no_shards_while_none_may_be_pulled() {
    for_each_fleet(|mut fleet, _| {
        fleet.join("one");
        assert_eq!(fleet.take_free(), 0);
    });
}

#[test]
fn every_member_has_its_turn_to_adopt_a_shard() {
    for_each_fleet(|fleet, _| {
        let turns = fleet.adoption_turns(ShardId(3));
        let mut sorted: Vec<usize> = turns.iter().map(|turn| turn.unwrap()).collect();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..fleet.members.len()), "{turns:?}");
    });
}
