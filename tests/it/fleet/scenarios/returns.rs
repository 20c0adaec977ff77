//! A replica that leads a shard again, after another replica led it (F32). It has kept the shard on standby.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{assert_history_kept, begin, moves};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::{Plan, Policy},
    play,
    records::WriteKind,
};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

/// The kinds of changes while the other replica leads.
const N_KINDS: usize = 4;

fn name(number: usize) -> String {
    format!("changed-{number:02}")
}

/// Changes a CronJob of each number: suspends it, deletes it, makes it run every two minutes, or deletes its running Job.
async fn change(fleet: &Fleet, number: usize) {
    let (name, path) = (name(number), format!("{CRON_JOBS}/{}", name(number)));
    let end = |fleet: &Fleet| {
        let now = fleet.now();
        fleet
            .records()
            .cron_jobs
            .get_mut(&name)
            .unwrap()
            .ended
            .get_or_insert(now);
    };
    match number % N_KINDS {
        0 => {
            let suspend = json!({"spec": {"suspend": true}});
            fleet.request("PATCH", &path, &suspend).await.unwrap();
            end(fleet);
        }
        1 => {
            fleet.request("DELETE", &path, &json!({})).await.unwrap();
            end(fleet);
        }
        2 => {
            let never = json!({"spec": {"schedule": "0 0 1 1 *"}});
            fleet.request("PATCH", &path, &never).await.unwrap();
            end(fleet);
        }
        _ => {
            let jobs = fleet.request("GET", JOBS, &Value::Null).await.unwrap();
            let jobs = jobs["items"].as_array().unwrap().iter();
            let names = jobs.filter_map(|job| job["metadata"]["name"].as_str());
            for job in names.filter(|job| job.starts_with(&name)) {
                let path = format!("{JOBS}/{job}");
                fleet.request("DELETE", &path, &json!({})).await.unwrap();
            }
        }
    }
}

/// Lets a replica lead all shards, then another one half of them, and then the first one all of them again. Users change
/// CronJobs and Jobs while the other replica leads. Returns the time at which `leave` began.
fn lead_again(seed: u64, late_seconds: f64, leave: impl AsyncFnOnce(&mut Fleet)) {
    play(seed, Size::default(), async |fleet| {
        for number in 0..24 {
            let is_held_back = number % N_KINDS == 3;
            let plan = Plan {
                policy: if is_held_back { Policy::Forbid } else { Policy::Allow },
                run_seconds: if is_held_back { 3_600 } else { 20 },
                ..Plan::plain(&name(number))
            };
            fleet.create_cron_job(plan).await;
        }
        begin(fleet, &["a"]).await;
        fleet.at(1, 20.0).await;
        let before = fleet.now();
        fleet.start("b");
        fleet.at(1, 50.0).await;
        let moved: Vec<u16> = moves(fleet, before).into_keys().collect();
        assert_eq!(moved.len(), 16, "half of the shards");
        // The other replica starts the slot of 12:02 and stores it.
        fleet.at(2, 20.0).await;
        for number in 0..24 {
            change(fleet, number).await;
        }
        let left_at = fleet.now();
        fleet.allow_late(left_at, late_seconds);
        leave(fleet).await;
        fleet.all_led(Duration::ZERO).await;
        let returned: Vec<u16> = moves(fleet, left_at).into_keys().collect();
        assert_eq!(returned, moved, "all of them return");
        fleet.at(5, 55.0).await;
        assert_history_kept(fleet).await;
        let of_kind = |since: Timestamp, is_meant: fn(usize) -> bool| created_since(fleet, since, is_meant);
        assert_eq!(
            of_kind(fleet.instant(2, 20.0), |kind| kind == 3),
            6,
            "each deletion admits the slot of 12:02"
        );
        assert_eq!(of_kind(fleet.instant(3, 0.0), |_| true), 0);
    });
}

/// The number of creates since an instant for the changed CronJobs of some kinds.
fn created_since(fleet: &Fleet, from: Timestamp, is_meant: impl Fn(usize) -> bool) -> usize {
    let records = fleet.records();
    let creates = records
        .writes
        .iter()
        .filter(|write| write.kind == WriteKind::Create && write.at >= from);
    let numbers = creates.filter_map(|write| write.cron_job.strip_prefix("changed-")?.parse::<usize>().ok());
    numbers.filter(|number| is_meant(number % N_KINDS)).count()
}

#[test]
fn f_32_shards_that_return_after_a_drain_act_on_the_present_state() {
    lead_again(321, 1.0, async |fleet| {
        fleet.drain("b").await;
    });
}

#[test]
fn f_32_shards_that_return_after_a_crash_act_on_the_present_state() {
    lead_again(322, 11.5, async |fleet| {
        fleet.kill("b").await;
        fleet.all_led(Duration::from_secs(11)).await;
    });
}
