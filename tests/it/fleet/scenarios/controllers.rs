//! Jobs that users give to another CronJob, or take away from theirs (F13).

use std::time::Duration;

use serde_json::{Value, json};

use super::{THREE, begin};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::{Plan, Policy},
    play,
    pod::NAMESPACE,
};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Creates CronJobs whose Jobs run for an hour and hold back the next run. Returns their names.
async fn create_long(fleet: &Fleet, n_cron_jobs: usize) -> Vec<String> {
    let names: Vec<String> = (0..n_cron_jobs).map(|number| format!("long-{number:02}")).collect();
    for name in &names {
        let plan = Plan {
            policy: Policy::Forbid,
            run_seconds: 3_600,
            ..Plan::plain(name)
        };
        fleet.create_cron_job(plan).await;
    }
    names
}

/// The paths of the Jobs of the slot 12:01, in the order of their CronJobs.
fn first_jobs(fleet: &Fleet, names: &[String]) -> Vec<String> {
    let slot = fleet.instant(1, 0.0).as_second() / 60;
    names.iter().map(|name| format!("{JOBS}/{name}-{slot}")).collect()
}

/// Makes a CronJob the controller of a Job, or takes its controller away.
async fn give(fleet: &Fleet, job: &str, to: Option<&str>) {
    let owner = match to {
        Some(name) => {
            let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{name}");
            let cron_job = fleet.request("GET", &path, &Value::Null).await.unwrap();
            json!([{"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": cron_job["metadata"]["uid"],
                "controller": true}])
        }
        None => Value::Null,
    };
    let change = json!({"metadata": {"ownerReferences": owner}});
    fleet.request("PATCH", job, &change).await.unwrap();
}

/// The CronJob that follows in this order and belongs to another shard.
fn of_another_shard<'a>(fleet: &Fleet, names: &'a [String], at: usize) -> &'a str {
    let records = fleet.records();
    let shard = |name: &str| records.cron_jobs[name].shard;
    let mut others = names.iter().cycle().skip(at + 1);
    others.find(|other| shard(other) != shard(&names[at])).unwrap()
}

/// The number of Jobs that a CronJob has started.
fn n_started(fleet: &Fleet, name: &str) -> usize {
    let records = fleet.records();
    records.jobs.values().filter(|job| job.owner == name).count()
}

/// Gives half of the Jobs to CronJobs of other shards and takes the controller away from the others, `seconds` after
/// 12:01. Then lets `meanwhile` happen. Asserts that the released CronJobs start their next slot.
fn release(seed: u64, meanwhile: impl AsyncFnOnce(&mut Fleet)) {
    play(seed, Size::default(), async |fleet| {
        let names = create_long(fleet, 12).await;
        begin(fleet, &THREE).await;
        fleet.at(1, 5.0).await;
        let jobs = first_jobs(fleet, &names);
        for (at, job) in jobs.iter().enumerate() {
            let to = at.is_multiple_of(2).then(|| of_another_shard(fleet, &names, at));
            give(fleet, job, to).await;
        }
        meanwhile(fleet).await;
        fleet.at(2, 20.0).await;
        for name in &names {
            assert_eq!(n_started(fleet, name), 2, "{name}");
        }
        fleet.at(3, 20.0).await;
    });
}

#[test]
fn f_13_job_with_another_controller_or_none_holds_back_no_run() {
    release(131, async |_| {});
}

/// The next leader has the Jobs from its own watch.
#[test]
fn f_13_next_leader_has_released_the_jobs_too() {
    release(132, async |fleet| {
        fleet.drain("a").await;
        fleet.all_led(Duration::from_millis(50)).await;
    });
}

#[test]
fn f_13_deletion_of_a_released_job_changes_nothing() {
    release(133, async |fleet| {
        let jobs = fleet.request("GET", JOBS, &Value::Null).await.unwrap();
        for job in jobs["items"].as_array().unwrap() {
            let name = job["metadata"]["name"].as_str().unwrap();
            if name.starts_with("long-") {
                fleet
                    .request("DELETE", &format!("{JOBS}/{name}"), &json!({}))
                    .await
                    .unwrap();
            }
        }
    });
}

/// The Job comes back in time: it holds back the next run as if it had never left.
#[test]
fn f_13_job_that_gets_its_controller_back_holds_back_the_next_run() {
    play(134, Size::default(), async |fleet| {
        let names = create_long(fleet, 6).await;
        begin(fleet, &THREE).await;
        fleet.at(1, 5.0).await;
        let jobs = first_jobs(fleet, &names);
        for (at, job) in jobs.iter().enumerate() {
            let to = at.is_multiple_of(2).then(|| of_another_shard(fleet, &names, at));
            give(fleet, job, to).await;
        }
        fleet.at(1, 30.0).await;
        for (name, job) in names.iter().zip(&jobs) {
            give(fleet, job, Some(name)).await;
        }
        fleet.at(3, 20.0).await;
        for name in &names {
            assert_eq!(n_started(fleet, name), 1, "{name}");
        }
    });
}
