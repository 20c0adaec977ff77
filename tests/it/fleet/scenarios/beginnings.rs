//! The first start of an installation, and migrations from other controllers.

use std::time::Duration;

use futures::future::join_all;
use jiff::SignedDuration;
use serde_json::json;

use super::{FOUR, begin};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::{Plan, Policy},
    play,
    records::{Job, WriteKind},
};

#[test]
fn f_27_five_replicas_started_at_once_lead_all_shards() {
    let size = Size {
        n_shards: 64,
        ..Size::default()
    };
    play(27, size, async |fleet| {
        fleet.start_all(&["a", "b", "c", "d", "e"]);
        let took = fleet.all_led(Duration::from_secs(2)).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        {
            let records = fleet.records();
            assert_eq!(records.shards.len(), 64);
            assert!(
                records
                    .shards
                    .values()
                    .all(|changes| changes.len() == 1 && changes[0].term == Some(1))
            );
        }
        fleet.at(1, 20.0).await;
    });
}

#[test]
fn f_25_runs_of_the_built_in_controller_are_not_started_again() {
    play(25, Size::default(), async |fleet| {
        fleet.at(1, 0.1).await;
        let slot = fleet.instant(1, 0.0);
        let mut started = Vec::new();
        let plans: Vec<_> = fleet
            .records()
            .cron_jobs
            .values()
            .map(|cron_job| cron_job.plan.clone())
            .collect();
        for plan in plans.into_iter().filter(|plan| plan.minutes == 1) {
            let path = format!("/apis/batch/v1/namespaces/default/cronjobs/{}", plan.name);
            let cron_job = fleet.request("GET", &path, &json!(null)).await.unwrap();
            let job = json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": plan.job_name(slot),
                    "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.to_string()},
                    "ownerReferences": [{
                        "apiVersion": "batch/v1", "kind": "CronJob", "name": plan.name,
                        "uid": cron_job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
                    }],
                },
                "spec": plan.job_spec(),
            });
            fleet
                .request("POST", "/apis/batch/v1/namespaces/default/jobs", &job)
                .await
                .unwrap();
            // In half of the cases, the built-in controller stops before it writes the status.
            if fleet.random.is_one_in(2) {
                let status = json!({"status": {"lastScheduleTime": slot.to_string()}});
                fleet
                    .request("PATCH", &format!("{path}/status"), &status)
                    .await
                    .unwrap();
            }
            started.push(plan.job_name(slot));
        }
        // The other slots of this time have no controller.
        fleet.allow_late(fleet.start, 50.0);
        fleet.at(1, 15.0).await;
        fleet.start_all(&FOUR);
        fleet.at(3, 20.0).await;
        let records = fleet.records();
        assert!(started.len() >= 20);
        assert!(
            records
                .writes
                .iter()
                .all(|write| { write.kind != WriteKind::Create || !started.contains(&write.object) })
        );
    });
}

#[test]
fn f_07_only_the_latest_slot_starts_after_ten_minutes_without_replicas() {
    play(
        7,
        Size {
            n_cron_jobs: 60,
            n_shards: 16,
        },
        async |fleet| {
            begin(fleet, &FOUR).await;
            fleet.at(1, 30.0).await;
            let (from, until) = (fleet.now(), fleet.instant(11, 30.0));
            fleet.allow_skipped(from, until + SignedDuration::from_secs(5));
            for name in FOUR {
                fleet.kill(name).await;
            }
            fleet.until(until).await;
            fleet.start_all(&FOUR);
            fleet.at(13, 20.0).await;
            let records = fleet.records();
            for cron_job in records.cron_jobs.values() {
                let of = records.jobs.values().filter(|job| job.owner == cron_job.plan.name);
                let missed = of.filter(|job| job.slot.is_some_and(|slot| (from..until).contains(&slot)));
                assert_eq!(missed.count(), 1, "{}", cron_job.plan.name);
            }
        },
    );
}

/// Adds CronJobs, and kills the replicas for ten minutes until `seconds` after 12:11. Returns the processes that start then.
async fn stop_for_ten_minutes(fleet: &mut Fleet, seconds: f64, n_late: usize, plan: impl Fn(&str) -> Plan) -> [u64; 2] {
    let plans = (0..n_late).map(|number| plan(&format!("late-{number:04}")));
    join_all(plans.map(|plan| fleet.create_cron_job(plan))).await;
    begin(fleet, &["a", "b"]).await;
    fleet.at(1, 30.0).await;
    let (from, until) = (fleet.now(), fleet.instant(11, seconds));
    fleet.allow_skipped(from, until + SignedDuration::from_secs(5));
    for name in ["a", "b"] {
        fleet.kill(name).await;
    }
    fleet.until(until).await;
    [fleet.start("a"), fleet.start("b")]
}

#[test]
fn f_07_overdue_runs_are_rate_limited_and_yield_to_due_runs() {
    const N_OVERDUE: usize = 2_400;
    /// The bucket size of the rate limit of a replica, and its refill per second.
    const AT_ONCE: u32 = 1_000;
    const PER_SECOND: f64 = 500.0;
    let size = Size {
        n_cron_jobs: 30,
        n_shards: 16,
    };
    play(70, size, async |fleet| {
        let restarted = stop_for_ten_minutes(fleet, 58.9, N_OVERDUE, |name| Plan::every(10, name)).await;
        fleet.at(13, 20.0).await;
        let (missed, due) = (fleet.instant(10, 0.0), fleet.instant(12, 0.0));
        let records = fleet.records();
        let mut n_held_back = 0;
        for process in restarted {
            let creates = records.writes.iter();
            let creates = creates.filter(|write| write.kind == WriteKind::Create && write.process == process);
            let overdue = creates.filter(|write| write.object.starts_with("late-"));
            let at: Vec<_> = overdue.map(|write| write.at).collect();
            for (number, created) in (0_u32..).zip(&at) {
                // A request takes at most 20 ms to arrive.
                let tokens = PER_SECOND * (created.duration_since(at[0]).as_secs_f64() + 0.05);
                let beyond = (number + 1).saturating_sub(AT_ONCE);
                assert!(
                    f64::from(beyond) <= tokens,
                    "{number} of {process} within {tokens} tokens"
                );
            }
            n_held_back += at.iter().filter(|at| **at > due).count();
        }
        assert!(n_held_back >= 100, "{n_held_back} overdue runs after the due slot");
        let late = records.jobs.values().filter(|job| job.name.starts_with("late-"));
        assert_eq!(late.filter(|job| job.slot == Some(missed)).count(), N_OVERDUE);
        // CronJobs whose runs do not wait for other runs.
        let is_free = |job: &&Job| records.cron_jobs[&job.owner].plan.policy == Policy::Allow;
        let at_once = records
            .jobs
            .values()
            .filter(|job| job.slot == Some(due))
            .filter(is_free);
        let at_once: Vec<_> = at_once.map(|job| job.created.duration_since(due)).collect();
        assert!(at_once.len() >= 5, "{}", at_once.len());
        assert!(
            at_once.iter().all(|late| *late < SignedDuration::from_millis(100)),
            "{at_once:?}"
        );
    });
}

#[test]
fn f_07_overdue_runs_are_superseded_by_their_next_slot() {
    const N_OVERDUE: usize = 4_000;
    let size = Size {
        n_cron_jobs: 30,
        n_shards: 16,
    };
    play(71, size, async |fleet| {
        // Where nothing changes, a replica leads up to 2.25 seconds after its start.
        stop_for_ten_minutes(fleet, 57.4, N_OVERDUE, Plan::plain).await;
        fleet.at(13, 20.0).await;
        let (missed, due) = (fleet.instant(11, 0.0), fleet.instant(12, 0.0));
        let records = fleet.records();
        let of_slot = |slot| {
            let of_slot = records.jobs.values().filter(move |job| job.slot == Some(slot));
            of_slot.filter(|job| job.name.starts_with("late-"))
        };
        // The rate limit did not admit all overdue runs before the next slot.
        assert!((1_000..N_OVERDUE - 100).contains(&of_slot(missed).count()));
        assert!(of_slot(missed).all(|job| job.created < due + SignedDuration::from_millis(50)));
        assert_eq!(of_slot(due).count(), N_OVERDUE);
        let latest = of_slot(due).map(|job| job.created.duration_since(due)).max().unwrap();
        assert!(latest < SignedDuration::from_millis(1_000), "{latest:?}");
    });
}
