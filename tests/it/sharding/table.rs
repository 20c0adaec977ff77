//! The table of measured balance and movement in `docs/spec/sharding.md`, computed from seeds.

use std::fmt::Write as _;

use cronwheel::{coordination::MemberRing, shard::ShardCount};

use super::{Fleet, count};
use crate::pages;

/// The number of fleets per row, and the number of those with a rollout. A rollout computes two placements per member.
const N_FLEETS: u64 = 20;
const N_ROLLOUTS: u64 = 3;

/// The figures of one fleet, in shares or as fractions of all shards.
#[derive(Clone, Copy, Default)]
struct Figures {
    load: f64,
    joined: f64,
    rollout: Option<(f64, f64)>,
    ring_load: f64,
    ring_joined: f64,
}

#[test]
fn page_of_sharding_has_the_measured_table() {
    let mut page = String::from(
        "| Shards | Members | max/mean | bound 1 + N/S | moved N → N+1 | floor(S/(N+1))/S | moved in a rollout | \
         max/mean in a rollout | ring alone: max/mean | ring alone: moved |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for number in [64_u16, 256, 1024] {
        for n_members in [3, 5, 10, 20, 50] {
            let rows: Vec<Figures> = (0..N_FLEETS)
                .map(|seed| measure(count(number.into()), n_members, seed))
                .collect();
            add_row(&mut page, number, n_members, &rows);
        }
    }
    pages::assert_current("docs/spec/sharding.md", &page);
}

#[expect(clippy::cast_precision_loss, reason = "numbers of shards and members are small")]
fn add_row(page: &mut String, number: u16, n_members: usize, rows: &[Figures]) {
    let mean = |figure: fn(&Figures) -> f64| rows.iter().map(figure).sum::<f64>() / rows.len() as f64;
    let worst = |figure: fn(&Figures) -> f64| rows.iter().map(figure).fold(0.0, f64::max);
    let rollouts: Vec<(f64, f64)> = rows.iter().filter_map(|row| row.rollout).collect();
    let joined_bound = (usize::from(number) / (n_members + 1)) as f64 / f64::from(number);
    let _ = writeln!(
        page,
        "| {number} | {n_members} | {:.3} | {:.3} | {:.4} | {joined_bound:.4} | {:.2} | {:.2} | {:.2} | {:.4} |",
        worst(|row| row.load),
        1.0 + n_members as f64 / f64::from(number),
        mean(|row| row.joined),
        rollouts.iter().map(|(moves, _)| moves).sum::<f64>() / rollouts.len() as f64,
        rollouts.iter().map(|(_, load)| *load).fold(0.0, f64::max),
        mean(|row| row.ring_load),
        mean(|row| row.ring_joined),
    );
}

#[expect(clippy::cast_precision_loss, reason = "numbers of shards and members are small")]
fn measure(count: ShardCount, n_members: usize, seed: u64) -> Figures {
    let mut fleet = Fleet::new(count, seed);
    for _ in 0..n_members {
        fleet.join("one");
    }
    fleet.settle();
    let n_shards = f64::from(count.get());
    let mut wider = fleet.clone();
    wider.join("one");
    let (ring_before, ring_after) = (first_choices(&fleet), first_choices(&wider));
    let ring_moved = ring_before
        .iter()
        .zip(&ring_after)
        .filter(|(before, after)| before != after)
        .count();
    let most_on_ring = fleet
        .members
        .iter()
        .map(|member| ring_before.iter().filter(|holder| **holder == member.identity).count());
    let ring_load = most_on_ring.max().unwrap_or(0) as f64 * n_members as f64 / n_shards;
    let load = fleet.load_max(n_members);
    let joined = wider.settle() as f64 / n_shards;
    let rollout = (seed < N_ROLLOUTS).then(|| fleet.roll_out("two"));
    Figures {
        load,
        joined,
        rollout: rollout.map(|rollout| (rollout.moves as f64 / n_shards, rollout.worst_load)),
        ring_load,
        ring_joined: ring_moved as f64 / n_shards,
    }
}

/// The holder of each shard according to the ring alone.
fn first_choices(fleet: &Fleet) -> Vec<String> {
    let members = fleet.members.iter().map(|member| member.identity.as_str().into());
    let ring = MemberRing::new(members.collect(), fleet.count);
    let first = |shard| {
        let member = ring.preference(shard).next()?;
        Some(ring.members()[member].to_string())
    };
    fleet.count.shards().filter_map(first).collect()
}
