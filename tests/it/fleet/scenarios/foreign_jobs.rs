//! Many Jobs that no CronJob controls (F30).

use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{TAKEN_WITHIN, THREE, begin, taken};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::Plan,
    play,
    pod::NAMESPACE,
    records::{Records, WriteKind},
};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Creates Jobs that never run, half of them without a controller, and half of them with a controller of another kind.
async fn create_foreign(fleet: &Fleet, n_jobs: usize) {
    let create = async |number: usize| {
        let workflow = json!([{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "w", "uid": "uid-w",
            "controller": true}]);
        let mut job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": format!("foreign-{number}"), "namespace": NAMESPACE},
            "spec": Plan::plain("foreign").job_spec(),
        });
        if number.is_multiple_of(2) {
            job["metadata"]["ownerReferences"] = workflow;
        }
        job["spec"]["suspend"] = true.into();
        fleet.request("POST", JOBS, &job).await.unwrap();
    };
    join_all((0..n_jobs).map(create)).await;
}

/// Changes foreign Jobs, which the watches then deliver.
async fn touch_foreign(fleet: &Fleet, n_jobs: usize) {
    let change = json!({"metadata": {"annotations": {"at": fleet.now().to_string()}}});
    let touch = async |number: usize| {
        let path = format!("{JOBS}/foreign-{number}");
        fleet.request("PATCH", &path, &change).await.unwrap();
    };
    join_all((0..n_jobs).map(touch)).await;
}

/// Asserts that each of these replicas keeps every Job of a CronJob and no other Job.
async fn assert_only_jobs_of_cron_jobs_kept(fleet: &Fleet, names: &[&str]) {
    let jobs = fleet.request("GET", JOBS, &Value::Null).await.unwrap();
    let jobs = jobs["items"].as_array().unwrap().iter();
    let owned = jobs.filter(|job| job["metadata"]["ownerReferences"][0]["kind"] == "CronJob");
    let n_owned = owned.count();
    assert!(n_owned >= 20, "{n_owned}");
    for name in names {
        let n_kept = fleet.inspect(name, |process| process.metric("cronwheel_jobs ").unwrap());
        assert_eq!(n_kept, n_owned.to_string(), "{name}");
    }
}

fn n_job_lists(fleet: &Fleet) -> u64 {
    fleet.records().n_job_lists
}

/// Drains a replica, kills the second one until its eviction, and kills the third one and restarts it at once. Changes
/// foreign Jobs meanwhile. Returns the number of lists of Jobs during these moves, of which three are those of the
/// processes that started.
fn lists_with(seed: u64, n_foreign: usize) -> u64 {
    play(seed, Size::default(), async |fleet| {
        create_foreign(fleet, n_foreign).await;
        begin(fleet, &THREE).await;
        fleet.at(1, 20.0).await;
        assert_only_jobs_of_cron_jobs_kept(fleet, &THREE).await;
        let before = n_job_lists(fleet);
        touch_foreign(fleet, n_foreign).await;
        fleet.drain("a").await;
        fleet.all_led(Duration::from_millis(50)).await;
        fleet.start("a");
        fleet.at(2, 20.0).await;

        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 11.0);
        let former = fleet.kill("b").await;
        let held = fleet.records().held_by(former);
        touch_foreign(fleet, n_foreign).await;
        fleet.all_led(Duration::from_secs(11)).await;
        let took = taken(fleet, former, &held, killed_at);
        assert!(took <= TAKEN_WITHIN, "{took:?}");
        fleet.start("b");
        fleet.at(3, 20.0).await;

        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 3.0);
        fleet.kill("c").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        fleet.start("c");
        fleet.all_led(Duration::from_secs(3)).await;
        fleet.at(4, 20.0).await;
        assert_only_jobs_of_cron_jobs_kept(fleet, &THREE).await;
        n_job_lists(fleet) - before
    })
}

#[test]
fn f_30_jobs_without_a_cron_job_cost_no_memory_and_no_list_when_shards_move() {
    assert_eq!(lists_with(301, 0), 3);
    assert_eq!(lists_with(301, 200), 3);
}

/// Returns the time from a kill until the first create of each survivor for a shard of the killed replica. The kill happens
/// just before a slot that is due when the shards are taken over.
fn first_creates_after_a_kill(seed: u64, n_foreign: usize) -> Duration {
    play(seed, Size::default(), async |fleet| {
        create_foreign(fleet, n_foreign).await;
        begin(fleet, &THREE).await;
        fleet.at(1, 52.0).await;
        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 12.0);
        let former = fleet.kill("b").await;
        let held = fleet.records().held_by(former);
        fleet.at(3, 20.0).await;
        let records = fleet.records();
        let is_of_held = |records: &Records, cron_job: &str| held.contains(&records.cron_jobs[cron_job].shard);
        let creates = records.writes.iter().filter(|write| {
            write.kind == WriteKind::Create && write.at > killed_at && is_of_held(&records, &write.cron_job)
        });
        let first = creates.map(|write| write.at).min().unwrap();
        first.duration_since(killed_at).try_into().unwrap()
    })
}

/// Nothing but foreign Jobs changes between the last slot and the takeover, so a second watch must prove that the first one
/// is current.
#[test]
fn f_30_jobs_without_a_cron_job_delay_no_run_after_a_crash() {
    let (without, with) = (first_creates_after_a_kill(302, 0), first_creates_after_a_kill(302, 200));
    assert!(with <= without + Duration::from_millis(100), "{with:?} and {without:?}");
}
