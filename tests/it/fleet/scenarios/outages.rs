//! Outages of the API server and of the connections to it.

use std::{sync::atomic::Ordering, time::Duration};

use apisim::{Fault, Resource, Rule, ServiceTimes};
use jiff::SignedDuration;

use super::{FOUR, TAKEN_WITHIN, assert_moved_once, begin, evicted, moves, taken};
use crate::fleet::{Size, cluster::Fleet, play};

fn n_fences(fleet: &Fleet) -> u64 {
    let names = fleet.names();
    names
        .iter()
        .map(|name| fleet.inspect(name, |process| process.metrics.election.fences.get()))
        .sum()
}

#[test]
fn f_08_api_server_outage_moves_no_shard() {
    play(8, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 55.0).await;
        let (from, outage) = (fleet.now(), fleet.add_fault(Rule::new(Fault::Outage)));
        fleet.at(1, 25.0).await;
        assert_eq!((fleet.n_led(), n_fences(fleet)), (0, 4));
        fleet.remove_faults(outage);
        let took = fleet.all_led(Duration::from_secs(3)).await;
        assert!(took <= Duration::from_millis(2_200), "{took:?}");
        fleet.allow_late(from, 34.0);
        fleet.at(3, 20.0).await;
        assert!(moves(fleet, from).is_empty());
        assert_eq!(evicted(fleet), Vec::<String>::new());
    });
}

#[test]
fn f_09_partitioned_replica_fences_before_others_take_its_shards() {
    play(9, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        // A burst is due between the fence of the replica and its eviction.
        fleet.at(0, 52.0).await;
        let (cut_at, number) = (fleet.now(), fleet.number("b"));
        let held = fleet.records().held_by(number);
        fleet.allow_late(cut_at, 11.5);
        let cut = fleet.cut("b");
        fleet.until(cut_at + SignedDuration::from_millis(7_001)).await;
        assert_eq!(fleet.shares()["b"], 0);
        fleet.until(cut_at + SignedDuration::from_secs(30)).await;
        let took = taken(fleet, number, &held, cut_at);
        assert!(took <= TAKEN_WITHIN, "{took:?}");
        assert_moved_once(fleet, &held, cut_at);
        assert!(
            fleet
                .records()
                .writes
                .iter()
                .all(|write| write.process != number || write.at <= cut_at)
        );
        let fenced_at = cut_at + SignedDuration::from_millis(7_001);
        let is_after_fence = |(at, process, _): &&(_, u64, String)| *process == number && *at > fenced_at;
        assert_eq!(
            fleet.records().requested_writes.iter().filter(is_after_fence).count(),
            0,
            "a fenced replica requests no write"
        );
        fleet.heal("b", cut);
        fleet.at(3, 20.0).await;
        assert_eq!(evicted(fleet), ["uid-b"]);
        fleet.all_led(Duration::ZERO).await;
        assert!(fleet.shares()["b"] >= 8, "the returned replica has its share again");
    });
}

#[test]
fn f_10_a_slow_and_throttling_api_server_costs_no_lease() {
    play(10, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        let from = fleet.now();
        for resource in [Resource::Job, Resource::CronJob] {
            let of = |fault: Fault, per_million: u32| Rule {
                resource: Some(resource),
                per_million,
                ..Rule::new(fault)
            };
            let slow = Fault::Delay {
                shortest: Duration::ZERO,
                longest: Duration::from_secs(1),
            };
            let throttled = Fault::Throttle { retry_after_seconds: 1 };
            fleet.add_fault(of(slow, 1_000_000));
            fleet.add_fault(of(throttled, 200_000));
        }
        fleet.allow_late(from, 190.0);
        fleet.at(3, 50.0).await;
        assert!(moves(fleet, from).is_empty());
        assert_eq!((evicted(fleet).len(), n_fences(fleet)), (0, 0));
    });
}

#[test]
fn f_11_burst_of_jobs_delays_no_renewal() {
    play(
        11,
        Size {
            n_cron_jobs: 600,
            n_shards: 64,
        },
        async |fleet| {
            begin(fleet, &FOUR).await;
            // The API server handles a thousand writes a second. At the even minute, there are some 400 Jobs and their
            // statuses.
            fleet.api.set_service_times(ServiceTimes {
                write: Duration::from_millis(1),
                read: Duration::from_micros(200),
                in_flight_max: None,
            });
            fleet.allow_late(fleet.instant(1, 55.0), 10.0);
            fleet.allow_late(fleet.instant(0, 55.0), 10.0);
            fleet.at(2, 10.0).await;
            let records = fleet.records();
            for (pod_uid, changes) in &records.members {
                let changes: Vec<_> = changes
                    .iter()
                    .filter(|change| change.at >= fleet.instant(0, 50.0))
                    .collect();
                for pair in changes.windows(2) {
                    let pause = pair[1].at.duration_since(pair[0].at);
                    assert!(
                        pause <= SignedDuration::from_millis(2_700),
                        "{pod_uid}: {pause:?} to {}",
                        pair[1].at
                    );
                }
            }
            drop(records);
            assert_eq!(n_fences(fleet), 0);
        },
    );
}

#[test]
fn f_12_no_shard_has_two_leaders_behind_a_lagging_api_server() {
    play(12, Size::default(), async |fleet| {
        for (name, front_end) in [("a", 0), ("b", 0), ("c", 1), ("d", 1)] {
            fleet.add(name);
            fleet.change(name, |pod| pod.front_end = front_end);
        }
        begin(fleet, &FOUR).await;
        fleet.api.set_lag(1, Duration::from_secs(5));
        fleet.at(0, 57.0).await;
        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 22.0);
        fleet.kill("a").await;
        fleet.at(1, 17.0).await;
        // The current replica has most shards and moves some to the lagging ones, which observe this five seconds later.
        fleet.all_led(Duration::from_secs(7)).await;
        // The remaining current replica terminates, so that the lagging replicas take over all shards.
        fleet.at(1, 30.0).await;
        fleet.allow_late(fleet.instant(1, 55.0), 20.0);
        fleet.drain("b").await;
        fleet.at(1, 55.0).await;
        fleet.all_led(Duration::ZERO).await;
        fleet.api.set_lag(1, Duration::ZERO);
        fleet.at(3, 20.0).await;
    });
}

#[test]
fn f_06_the_fence_counts_from_the_send_of_a_renewal() {
    play(600, Size::default(), async |fleet| {
        fleet.add("b");
        fleet.change("b", |pod| pod.front_end = 1);
        begin(fleet, &FOUR).await;
        let delay = |fleet: &Fleet, millis: u64| {
            fleet.change("b", |pod| {
                pod.lease_response_delay_millis.store(millis, Ordering::Relaxed);
            });
            fleet.api.set_lag(1, Duration::from_millis(millis));
        };
        delay(fleet, 1_300);
        fleet.at(1, 10.0).await;
        // Wait until a renewal is stored, acknowledged and observed, and no other renewal is in flight.
        let renewed = |fleet: &Fleet| fleet.records().members["uid-b"].last().unwrap().at;
        let former = renewed(fleet);
        while renewed(fleet) == former {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(1_400)).await;
        assert_eq!(fleet.shares()["b"], 8);
        let (cut_at, renewed_at) = (fleet.now(), renewed(fleet));
        fleet.allow_late(cut_at, 12.0);
        let cut = fleet.cut("b");
        while fleet.shares()["b"] > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let acted_for = fleet.since(renewed_at);
        assert!(
            acted_for <= Duration::from_millis(7_020),
            "{acted_for:?} after its last renewal"
        );
        fleet.until(cut_at + SignedDuration::from_secs(13)).await;
        delay(fleet, 0);
        fleet.heal("b", cut);
        fleet.at(3, 20.0).await;
    });
}
