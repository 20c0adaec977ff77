//! Jobs without the label of a shard. When a shard moves, Jobs without a CronJob cause no requests, and the new leader
//! knows the Jobs of its CronJobs.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, Verb};
use cronwheel::coordination::JobsLabelled;
use futures::future::join_all;
use serde_json::{Value, json};

use super::{TAKEN_WITHIN, THREE, begin, taken};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::{Plan, Policy},
    play,
    pod::NAMESPACE,
};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// Creates Jobs that belong to no CronJob and never run.
async fn create_foreign(fleet: &Fleet, n_jobs: usize) {
    let create = async |number: usize| {
        let mut job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": format!("foreign-{number}"), "namespace": NAMESPACE},
            "spec": Plan::plain("foreign").job_spec(),
        });
        job["spec"]["suspend"] = true.into();
        fleet.request("POST", JOBS, &job).await.unwrap();
    };
    join_all((0..n_jobs).map(create)).await;
}

fn n_unlabelled_pages(fleet: &Fleet) -> u64 {
    fleet.records().n_unlabelled_pages
}

/// Drains a replica, kills the second replica until its eviction, and kills the third replica and restarts it at once.
/// Returns the number of requested pages of Jobs without a label, before and during these moves.
fn pages_with(seed: u64, n_foreign: usize) -> (u64, u64) {
    play(seed, Size::default(), async |fleet| {
        create_foreign(fleet, n_foreign).await;
        begin(fleet, &THREE).await;
        fleet.at(1, 20.0).await;
        let before = n_unlabelled_pages(fleet);
        fleet.drain("a").await;
        fleet.all_led(Duration::from_millis(50)).await;
        fleet.start("a");
        fleet.at(2, 20.0).await;

        let killed_at = fleet.now();
        fleet.allow_late(killed_at, 11.0);
        let former = fleet.kill("b").await;
        let held = fleet.records().held_by(former);
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
        (before, n_unlabelled_pages(fleet) - before)
    })
}

#[test]
fn f_30_jobs_without_a_cron_job_cost_nothing_when_shards_move() {
    let (before, meanwhile) = pages_with(301, 0);
    assert!(before > 0, "replicas that start together list the unlabelled Jobs");
    assert_eq!(meanwhile, 0);
    let (before, meanwhile) = pages_with(301, 4_500);
    assert!(before >= 3, "there are three pages: {before}");
    assert_eq!(meanwhile, 0);
}

/// The latest version of a proof in a member Lease.
async fn proved_version(fleet: &Fleet) -> u64 {
    let leases = "/apis/coordination.k8s.io/v1/leases";
    let leases = fleet.request("GET", leases, &Value::Null).await.unwrap();
    let leases = leases["items"].as_array().unwrap().iter();
    let proofs = leases.filter_map(|lease| lease["metadata"]["annotations"]["cronwheel.dev/jobs-labelled"].as_str());
    let versions = proofs.map(|proof| JobsLabelled::parse(proof).unwrap().version.0);
    versions.max().unwrap()
}

/// In a version before the proof, a Job may lack its label.
#[test]
fn f_30_job_list_is_not_older_than_the_proof() {
    play(304, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        // The last event of a Job that the replicas watch is half a minute old.
        fleet.at(1, 55.0).await;
        let version = proved_version(fleet).await;
        let n_before = fleet.records().cached_job_lists.len();
        fleet.drain("a").await;
        fleet.at(3, 20.0).await;
        let lists = fleet.records().cached_job_lists.split_off(n_before);
        assert!(!lists.is_empty());
        assert!(lists.iter().all(|list| *list >= version), "{version}: {lists:?}");
    });
}

/// Adds a CronJob with policy Forbid whose Jobs run for an hour, waits for its first Job, and returns the Job's path.
async fn long_job(fleet: &Fleet) -> String {
    let plan = Plan {
        policy: Policy::Forbid,
        run_seconds: 3_600,
        ..Plan::plain("long")
    };
    fleet.create_cron_job(plan).await;
    fleet.at(1, 20.0).await;
    let jobs = fleet.request("GET", JOBS, &Value::Null).await.unwrap();
    let names = jobs["items"].as_array().unwrap().iter();
    let mut names = names.filter_map(|job| job["metadata"]["name"].as_str());
    format!("{JOBS}/{}", names.find(|name| name.starts_with("long-")).unwrap())
}

/// Makes every patch of a Job fail from now on.
fn refuse_labels(fleet: &Fleet) {
    fleet.add_fault(Rule {
        resource: Some(Resource::Job),
        verbs: vec![Verb::Patch],
        ..Rule::new(Fault::Unavailable)
    });
}

/// Removes the label of a Job, and the Job from the active list of its CronJob.
async fn hide(fleet: &Fleet, job: &str) {
    let no_label = json!({"metadata": {"labels": null}});
    fleet.request("PATCH", job, &no_label).await.unwrap();
    let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/long/status");
    let no_entry = json!({"status": {"active": null}});
    fleet.request("PATCH", &path, &no_entry).await.unwrap();
}

/// A new leader that trusted the proof would start an overlapping Job.
#[test]
fn f_30_proof_from_before_an_outage_of_all_replicas_is_not_trusted() {
    play(302, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let job = long_job(fleet).await;
        let from = fleet.now();
        for name in THREE {
            fleet.kill(name).await;
        }
        hide(fleet, &job).await;
        refuse_labels(fleet);
        fleet.at(2, 40.0).await;
        let before = n_unlabelled_pages(fleet);
        fleet.start_all(&THREE);
        fleet.at(3, 20.0).await;
        assert!(n_unlabelled_pages(fleet) > before);
        fleet.allow_skipped(from, fleet.instant(3, 10.0));
        fleet.at(4, 20.0).await;
        let n_long = fleet.records().jobs.values().filter(|job| job.owner == "long").count();
        assert_eq!(n_long, 1);
    });
}

/// Removes the label of a Job for good. Returns the version of this write.
async fn lose_label(fleet: &Fleet, job: &str) -> u64 {
    refuse_labels(fleet);
    let no_label = json!({"metadata": {"labels": null}});
    let job = fleet.request("PATCH", job, &no_label).await.unwrap();
    let version = job["metadata"]["resourceVersion"].as_str().unwrap();
    version.parse().unwrap()
}

#[test]
fn f_30_new_leader_lists_all_unlabelled_jobs_while_a_label_is_missing() {
    play(303, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let job = long_job(fleet).await;
        lose_label(fleet, &job).await;
        // The last proof is older than it may be.
        fleet.at(2, 20.0).await;
        let before = n_unlabelled_pages(fleet);
        fleet.drain("a").await;
        assert!(n_unlabelled_pages(fleet) > before);
        fleet.at(4, 20.0).await;
    });
}

/// Each list finds the Job, also a list for shards to which its CronJob does not belong.
#[test]
fn f_30_unlabelled_job_of_any_shard_prevents_a_proof() {
    play(305, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let job = long_job(fleet).await;
        let removed_at = lose_label(fleet, &job).await;
        fleet.at(2, 20.0).await;
        let (before, killed_at) = (n_unlabelled_pages(fleet), fleet.now());
        fleet.allow_late(killed_at, 11.5);
        fleet.kill("b").await;
        fleet.at(3, 20.0).await;
        assert!(n_unlabelled_pages(fleet) >= before + 2, "both survivors list");
        assert!(proved_version(fleet).await < removed_at);
    });
}

#[test]
fn f_30_drain_without_a_proof_beside_many_foreign_jobs() {
    play(306, Size::default(), async |fleet| {
        create_foreign(fleet, 4_500).await;
        begin(fleet, &THREE).await;
        let job = long_job(fleet).await;
        lose_label(fleet, &job).await;
        fleet.at(2, 20.0).await;
        fleet.drain("a").await;
        fleet.all_led(Duration::from_secs(1)).await;
        fleet.at(3, 20.0).await;
    });
}
