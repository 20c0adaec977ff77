//! API servers with and without support for shard selectors.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, Verb};
use jiff::SignedDuration;
use serde_json::json;

use super::{FOUR, TAKEN_WITHIN, THREE, begin, moves, taken};
use crate::fleet::{Size, cluster::Fleet, load::Plan, play, pod::NAMESPACE};

/// Returns counts of a replica: lists of CronJobs that the API server filtered, other lists of CronJobs, and received
/// CronJobs of other replicas.
fn selected(fleet: &Fleet, name: &str) -> (u64, u64, u64) {
    fleet.inspect(name, |process| {
        let selection = &process.metrics.selection;
        (
            selection.lists_by_server.get(),
            selection.lists_by_replica.get(),
            selection.passed_over.get(),
        )
    })
}

/// Distributes replicas alternately over two API servers.
fn spread(fleet: &mut Fleet, names: &[&str]) {
    for (number, name) in names.iter().enumerate() {
        fleet.add(name);
        fleet.change(name, |pod| pod.front_end = number % 2);
    }
}

/// Drains a replica and restarts it, then kills another replica.
async fn restart_replicas(fleet: &mut Fleet) {
    fleet.at(1, 30.0).await;
    fleet.allow_late(fleet.instant(1, 55.0), 15.0);
    fleet.drain("a").await;
    fleet.at(2, 30.0).await;
    fleet.all_led(Duration::ZERO).await;
    fleet.start("a");
    fleet.at(3, 20.0).await;
    let (killed_at, number) = (fleet.now(), fleet.number("b"));
    let held = fleet.records().held_by(number);
    fleet.allow_late(killed_at, 11.5);
    fleet.kill("b").await;
    fleet.until(killed_at + SignedDuration::from_secs(30)).await;
    let took = taken(fleet, number, &held, killed_at);
    assert!(took <= TAKEN_WITHIN, "{took:?}");
    fleet.all_led(Duration::ZERO).await;
    fleet.at(5, 20.0).await;
}

#[test]
fn f_13_one_of_two_api_servers_ignores_the_shard_selector() {
    play(13, Size::default(), async |fleet| {
        fleet.api.set_serves_shard_selectors(0, true);
        spread(fleet, &FOUR);
        begin(fleet, &FOUR).await;
        restart_replicas(fleet).await;
        for name in ["a", "c"] {
            let (by_server, by_replica, passed_over) = selected(fleet, name);
            assert!(by_server >= 2, "{name}: {by_server}");
            assert_eq!((by_replica, passed_over > 100), (0, false), "{name}: {passed_over}");
        }
        let (by_server, by_replica, passed_over) = selected(fleet, "d");
        assert_eq!(by_server, 0);
        assert!(by_replica >= 2 && passed_over > 200, "{by_replica}, {passed_over}");
    });
}

#[test]
fn f_13_shard_selector_support_may_change_under_open_watches() {
    play(113, Size::default(), async |fleet| {
        for front_end in 0..2 {
            fleet.api.set_serves_shard_selectors(front_end, true);
        }
        spread(fleet, &FOUR);
        begin(fleet, &FOUR).await;
        // While watches are open, both servers drop the support. One of them regains it later.
        for front_end in 0..2 {
            fleet.api.set_serves_shard_selectors(front_end, false);
        }
        let from = fleet.now();
        let once = |fault: Fault| Rule {
            resource: Some(Resource::CronJob),
            verbs: vec![Verb::Watch],
            times_max: Some(1),
            ..Rule::new(fault)
        };
        for name in ["c", "d"] {
            fleet.add_fault_for(name, once(Fault::CloseWatch));
            fleet.add_fault_for(name, once(Fault::Expired));
        }
        restart_replicas(fleet).await;
        assert!(!moves(fleet, from).is_empty());
        let (_, by_replica, _) = selected(fleet, "c");
        assert!(by_replica >= 1, "{by_replica}");
        fleet.api.set_serves_shard_selectors(0, true);
        fleet.start("b");
        fleet.at(6, 30.0).await;
        let (by_server, ..) = selected(fleet, "b");
        assert_eq!(by_server, 0, "the server of this replica has no support");
        fleet.at(7, 20.0).await;
    });
}

/// The number of lists of all CronJobs by a replica.
fn n_full_lists(fleet: &Fleet, name: &str) -> u64 {
    selected(fleet, name).1
}

#[test]
fn rolling_update_lists_all_cron_jobs_once_per_replica() {
    play(213, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let before: u64 = THREE.iter().map(|name| n_full_lists(fleet, name)).sum();
        let mut n_lists = 0;
        for (old, new) in [("a", "x"), ("b", "y"), ("c", "z")] {
            fleet.add(new);
            fleet.start(new);
            tokio::time::sleep(Duration::from_secs(14)).await;
            n_lists += n_full_lists(fleet, old);
            fleet.drain(old).await;
            fleet.all_led(Duration::from_millis(50)).await;
        }
        fleet.at(2, 50.0).await;
        n_lists += ["x", "y", "z"]
            .iter()
            .map(|name| n_full_lists(fleet, name))
            .sum::<u64>();
        assert_eq!(n_lists - before, 3);
    });
}

/// Kills one of three replicas while a CronJob changes at the given interval in milliseconds. Returns the number of
/// lists of all CronJobs by the other replicas afterwards.
fn lists_after_a_kill(seed: u64, change_interval_millis: Option<u64>) -> u64 {
    play(seed, Size::default(), async |fleet| {
        fleet.create_cron_job(Plan::plain("changed")).await;
        begin(fleet, &THREE).await;
        fleet.at(1, 30.0).await;
        let before: u64 = ["a", "c"].iter().map(|name| n_full_lists(fleet, name)).sum();
        let (killed_at, number) = (fleet.now(), fleet.number("b"));
        let held = fleet.records().held_by(number);
        fleet.allow_late(killed_at, 11.5);
        fleet.kill("b").await;
        let end = killed_at + SignedDuration::from_secs(20);
        while let Some(millis) = change_interval_millis.filter(|_| fleet.now() < end) {
            let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/changed");
            let change = json!({"metadata": {"annotations": {"at": fleet.now().to_string()}}});
            fleet.request("PATCH", &path, &change).await.unwrap();
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
        fleet.until(end).await;
        let took = taken(fleet, number, &held, killed_at);
        assert!(took <= TAKEN_WITHIN, "{took:?}");
        fleet.at(3, 20.0).await;
        let after: u64 = ["a", "c"].iter().map(|name| n_full_lists(fleet, name)).sum();
        after - before
    })
}

#[test]
fn takeover_after_a_kill_lists_no_cron_jobs_where_the_watch_is_current() {
    assert_eq!(lists_after_a_kill(214, Some(20)), 0);
}

#[test]
fn takeover_after_a_kill_lists_all_cron_jobs_where_nothing_changes() {
    let n_lists = lists_after_a_kill(215, None);
    // One list for each of two replicas. The next list covers shards that a replica takes during a list.
    assert!((2..=4).contains(&n_lists), "{n_lists}");
}
