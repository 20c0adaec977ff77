//! Replicas that are added and removed by rollouts and scaling.

use std::time::Duration;

use super::{THREE, begin, moves};
use crate::fleet::{Size, cluster::Fleet, play, records::Job};

/// Asserts that the shards are evenly distributed.
fn assert_even(fleet: &Fleet) {
    let shares = fleet.shares();
    let (least, most) = (shares.values().min().unwrap(), shares.values().max().unwrap());
    assert!(most - least <= 1, "{shares:?}");
}

#[test]
fn f_02_a_rolling_update_moves_every_shard_once() {
    play(2, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let before = fleet.now();
        for (old, new) in [("a", "x"), ("b", "y"), ("c", "z")] {
            fleet.add(new);
            fleet.change(new, |pod| pod.revision = "2".to_owned());
            fleet.start(new);
            // Longer than the settle window, after which a member without shards gets some.
            tokio::time::sleep(Duration::from_secs(14)).await;
            fleet.drain(old).await;
            fleet.all_led(Duration::from_millis(50)).await;
        }
        fleet.at(2, 50.0).await;
        let moves = moves(fleet, before);
        assert_eq!(moves.len(), 32, "{moves:?}");
        assert!(moves.values().all(|n_moves| *n_moves == 1), "{moves:?}");
        assert_even(fleet);
        let mut late: Vec<_> = {
            let records = fleet.records();
            // Runs that wait for another run do not count as late.
            let is_free = |job: &&Job| records.cron_jobs[&job.owner].plan.run_seconds < 60;
            let jobs = records.jobs.values().filter(is_free);
            jobs.filter_map(|job| Some(job.created.duration_since(job.slot?).as_millis()))
                .collect()
        };
        late.sort_unstable();
        let p99 = late[late.len() * 99 / 100];
        assert!(p99 < 250, "{p99} ms");
    });
}

#[test]
fn f_03_scaling_moves_the_fewest_shards_and_leaves_them_even() {
    play(
        3,
        Size {
            n_cron_jobs: 30,
            n_shards: 32,
        },
        async |fleet| {
            let n_shards = 32_usize;
            begin(fleet, &["a"]).await;
            for _ in 0..2 {
                let before = fleet.now();
                for name in ["b", "c", "d", "e"] {
                    fleet.start(name);
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                tokio::time::sleep(Duration::from_secs(25)).await;
                assert_even(fleet);
                let n_moves: usize = moves(fleet, before).values().sum();
                let fewest = n_shards - n_shards.div_ceil(5);
                assert!((fewest..=fewest + 1).contains(&n_moves), "{n_moves}");
                let before = fleet.now();
                for name in ["c", "d", "e"] {
                    fleet.drain(name).await;
                }
                tokio::time::sleep(Duration::from_secs(12)).await;
                assert_even(fleet);
                let n_moves: usize = moves(fleet, before).values().sum();
                // Each drain also moves the shards that the previous drain moved there.
                assert!(n_moves <= n_shards + 4, "{n_moves}");
                let before = fleet.now();
                fleet.drain("b").await;
                let n_moves: usize = moves(fleet, before).values().sum();
                assert_eq!(n_moves, 16);
            }
        },
    );
}

#[test]
fn f_20_shards_settle_after_fifty_member_changes_in_a_minute() {
    play(
        20,
        Size {
            n_cron_jobs: 60,
            n_shards: 16,
        },
        async |fleet| {
            begin(fleet, &["a", "b"]).await;
            // At least one replica always runs. The shards of a killed replica have no leader for a while.
            fleet.allow_late(fleet.instant(0, 50.0), 75.0);
            let names: Vec<String> = (0..6).map(|number| format!("p{number}")).collect();
            for _ in 0..50 {
                tokio::time::sleep(Duration::from_millis(500 + fleet.random.next() % 1_000)).await;
                let name = &names[fleet.random.below(names.len())];
                let is_running = fleet.names().contains(name);
                match (is_running, fleet.random.is_one_in(2)) {
                    (false, _) => drop(fleet.start(name)),
                    (true, true) => drop(fleet.kill(name).await),
                    (true, false) => drop(fleet.drain(name).await),
                }
            }
            tokio::time::sleep(Duration::from_secs(11)).await;
            fleet.all_led(Duration::ZERO).await;
            // The evictions of the last killed replicas, the settle window, and a second.
            tokio::time::sleep(Duration::from_secs(11)).await;
            assert_even(fleet);
            let settled = fleet.now();
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert!(moves(fleet, settled).is_empty(), "{:?}", moves(fleet, settled));
        },
    );
}
