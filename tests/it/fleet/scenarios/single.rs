//! An installation with one replica: how soon it leads every shard after each kind of start, and what others change.

use std::time::Duration;

use super::THREE;
use crate::fleet::{Size, cluster::Fleet, play};

/// As many shards as an installation has.
const ALL: Size = Size {
    n_cron_jobs: 12,
    n_shards: 256,
};

/// Starts the replica in a new installation.
async fn begin_with_one(fleet: &mut Fleet) {
    fleet.start("single");
    fleet.all_led(Duration::from_secs(1)).await;
}

#[test]
fn f_27_single_replica_leads_every_shard_of_a_new_installation_within_a_second() {
    play(233, ALL, async |fleet| {
        begin_with_one(fleet).await;
        assert_eq!(fleet.takes_no_shards("single"), None);
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_05_single_replica_that_is_killed_and_restarted_in_its_pod_leads_at_once() {
    play(234, ALL, async |fleet| {
        begin_with_one(fleet).await;
        fleet.at(1, 59.0).await;
        fleet.allow_late(fleet.now(), 4.0);
        fleet.kill("single").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet.start("single");
        fleet.all_led(Duration::from_secs(1)).await;
        fleet.at(4, 20.0).await;
    });
}

#[test]
fn f_01_single_replica_that_returns_after_it_left_leads_at_once() {
    play(235, ALL, async |fleet| {
        begin_with_one(fleet).await;
        fleet.at(1, 58.0).await;
        fleet.allow_late(fleet.now(), 5.0);
        fleet.drain("single").await;
        fleet.start("next");
        fleet.all_led(Duration::from_secs(1)).await;
        fleet.at(4, 20.0).await;
    });
}

#[test]
fn f_05_killed_replica_is_replaced_by_one_of_another_pod_after_ten_seconds() {
    play(236, ALL, async |fleet| {
        begin_with_one(fleet).await;
        fleet.at(1, 55.0).await;
        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 14.0);
        fleet.kill("single").await;
        fleet.start("next");
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(fleet.n_led(), 0, "the killed one may live");
        fleet.all_led(Duration::from_millis(2_500)).await;
        fleet.at(4, 20.0).await;
    });
}

#[test]
fn f_03_update_from_one_replica_to_three_misses_no_run() {
    play(237, Size::default(), async |fleet| {
        begin_with_one(fleet).await;
        fleet.at(1, 20.0).await;
        fleet.start_all(&THREE);
        for name in THREE {
            assert_eq!(fleet.n_without_leader(name), 0, "before its first list");
        }
        fleet.at(1, 50.0).await;
        fleet.drain("single").await;
        assert_eq!(fleet.shares().get("single"), None, "{:?}", fleet.shares());
        fleet.at(4, 20.0).await;
    });
}
