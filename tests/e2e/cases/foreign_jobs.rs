//! Jobs near a CronJob that are not its scheduled runs: manual runs, foreign Jobs with the name of a slot, and Jobs of
//! a namesake.

use std::rc::Rc;

use jiff::SignedDuration;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, merge, own_job, wait},
};

fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

/// Creates a Job with `kubectl create job --from`. It has the CronJob as its controller, and it never ends.
async fn with_manual_run(namespace: &Namespace, policy: &str) -> Controller {
    namespace
        .create_cron_job(hanging(), json!({"spec": {"concurrencyPolicy": policy}}))
        .await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    namespace
        .kubectl(&["create", "job", "by-hand", "--from=cronjob/hello"])
        .await;
    let uid = namespace.cron_job().await["metadata"]["uid"].clone();
    let owner = namespace.jobs().await[0]["metadata"]["ownerReferences"][0].clone();
    assert_eq!((&owner["uid"], &owner["controller"]), (&uid, &json!(true)));

    // The manual run does not delay any other run.
    let first = Controller::start_before(namespace, 0);
    first.wait_for_account(&[("created", 1)]).await;
    let message = "Saw a job that the controller did not create or forgot: by-hand";
    assert_eq!(namespace.wait_for_event_on("hello", "UnexpectedJob").await, message);
    // A change to the Job, to the CronJob, or to another Job makes the controller examine the Job again.
    let touched = json!({"metadata": {"labels": {"touched": "yes"}}});
    namespace.patch("Job", "by-hand", touched).await;
    namespace
        .patch_cron_job(json!({"spec": {"failedJobsHistoryLimit": 2}}))
        .await;
    namespace
        .kubectl(&["create", "job", "by-hand-too", "--from=cronjob/hello"])
        .await;
    let n_unexpected = "cronwheel_unexpected_jobs_total";
    first.wait_for_metric(n_unexpected, &[], |n_seen| n_seen >= 2).await;
    let our_name = namespace.job_name(0);
    let is_ours_alone = |status: &Value| {
        let active = status["active"].as_array();
        active.is_some_and(|active| active.len() == 1 && active[0]["name"] == *our_name)
    };
    namespace
        .wait_for_status("our Job is on the active list alone", is_ours_alone)
        .await;
    assert_eq!(first.metric(n_unexpected, &[]).await, Some(2));
    // On termination, it sends its pending Events first.
    first.terminate().await;
    let expected = [(message.to_owned(), 1), (format!("{message}-too"), 1)];
    assert_eq!(namespace.event_counts("hello", "UnexpectedJob").await, expected);
    Controller::start_before(namespace, 1)
}

fn beside_manual_runs(namespace: &Namespace, minute: i64) -> [String; 3] {
    [
        "by-hand".to_owned(),
        "by-hand-too".to_owned(),
        namespace.job_name(minute),
    ]
}

pub(super) async fn forbid_does_not_count_a_manual_run(namespace: Namespace) {
    let controller = with_manual_run(&namespace, "Forbid").await;
    namespace.wait_for_event("JobAlreadyActive").await;
    assert_eq!(namespace.job_names().await, beside_manual_runs(&namespace, 0));
    namespace.delete_job(&namespace.job_name(0)).await;
    namespace.wait_for_jobs(&beside_manual_runs(&namespace, 1)).await;
    controller.wait_for_account(&[("created", 1)]).await;
    controller.terminate().await;
}

pub(super) async fn replace_leaves_a_manual_run_alone(namespace: Namespace) {
    let controller = with_manual_run(&namespace, "Replace").await;
    let uid = namespace.find("Job", "by-hand").await.expect("it")["metadata"]["uid"].clone();
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&beside_manual_runs(&namespace, 1)).await;
    let by_hand = namespace.find("Job", "by-hand").await.expect("it");
    assert_eq!(by_hand["metadata"]["uid"], uid);
    assert_eq!(by_hand["metadata"]["deletionTimestamp"], Value::Null);
    let deleted = namespace.wait_for_event_on("hello", "SuccessfulDelete").await;
    assert_eq!(deleted, format!("Deleted job {}", namespace.job_name(0)));
    controller.terminate().await;
}

/// A Job with a controller reference to the CronJob belongs to it (B-12.3), so the slot counts as started.
pub(super) async fn manual_run_with_the_name_of_a_slot_is_adopted(namespace: Namespace) {
    namespace.create_cron_job(hanging(), json!({})).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let name = namespace.job_name(0);
    namespace
        .kubectl(&["create", "job", &name, "--from=cronjob/hello"])
        .await;
    let uid = namespace.jobs().await[0]["metadata"]["uid"].clone();
    let controller = Controller::start_before(&namespace, 0);
    controller.wait_for_account(&[("adopted", 1)]).await;
    let slot = namespace.minute(0).to_string();
    let is_adopted = |status: &Value| status["lastScheduleTime"] == *slot && status["active"][0]["uid"] == uid;
    namespace.wait_for_status("it is on the active list", is_adopted).await;
    controller.terminate().await;
    assert_eq!(namespace.job_names().await, [name]);
    assert_eq!(namespace.event_counts("hello", "FailedCreate").await, []);
}

/// Slots three seconds apart on both sides of a full minute have different names, so the result of the next one is
/// visible at once.
pub(super) async fn foreign_job_blocks_only_the_slot_of_its_name(namespace: Namespace) {
    namespace
        .create_cron_job(hanging(), json!({"spec": {"schedule": "@every 3s"}}))
        .await;
    let (foreign, next) = (namespace.job_name(-1), namespace.job_name(0));
    let secs = SignedDuration::from_secs;
    namespace.set_last_run("hello", namespace.minute(0) - secs(6)).await;
    namespace.create(own_job(&foreign, hanging())).await;
    let controller = Controller::start_at(&namespace, namespace.minute(0) - secs(5), &[]);
    let message = namespace.wait_for_event_on("hello", "FailedCreate").await;
    assert_eq!(
        message,
        format!("Error creating job: jobs.batch \"{foreign}\" already exists")
    );
    namespace.wait_for_jobs(&[foreign.clone(), next.clone()]).await;
    let ours = namespace.find("Job", &next).await.expect("it");
    assert_eq!(ours["metadata"]["ownerReferences"][0]["name"], "hello");
    let is_alone = |status: &Value| status["active"].as_array().is_some_and(|active| active.len() == 1);
    namespace.wait_for_status("ours alone is active", is_alone).await;
    let ended = |outcome| [("outcome", outcome)];
    let outcomes = "cronwheel_instant_outcomes_total";
    for outcome in ["foreign_job", "created"] {
        assert_eq!(controller.metric(outcomes, &ended(outcome)).await, Some(1), "{outcome}");
    }
    assert_eq!(namespace.event_counts("hello", "FailedCreate").await, [(message, 1)]);
    // The controller has not changed the foreign Job.
    let other = namespace.find("Job", &foreign).await.expect("it");
    assert_eq!(other["metadata"]["ownerReferences"], Value::Null);
    controller.terminate().await;
}

/// The garbage collector deletes a Job whose owner is not in its namespace. Here a finalizer keeps it.
pub(super) async fn job_in_another_namespace_stops_no_run_of_its_claimed_owner(namespace: Namespace) {
    let name = "hello-63115200";
    let other = Namespace::create_for("of_another_namespace", Rc::clone(&namespace.control_plane)).await;
    let forbid = json!({"spec": {"concurrencyPolicy": "Forbid"}});
    namespace.create_cron_job(json!({"run-for": "1s"}), forbid).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let uid = namespace.cron_job().await["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "hello", "uid": uid, "controller": true});
    let mut job = own_job(name, hanging());
    merge(
        &mut job,
        json!({"metadata": {"ownerReferences": [owner], "finalizers": ["example.com/kept"],
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2090-01-01T00:00:00Z"}}}),
    );
    other.create(job).await;
    let is_kept = async || {
        let job = other.find("Job", name).await;
        job.is_some_and(|job| job["metadata"]["deletionTimestamp"].is_string())
    };
    assert!(wait(is_kept).await, "the garbage collector leaves it");

    let controller = Controller::start(&namespace, 0, &["--namespace", &other.name]);
    controller.wait_for_account(&[("created", 1)]).await;
    let message = namespace.wait_for_event_on("hello", "UnexpectedJob").await;
    assert!(message.ends_with(&format!(" {}/{name}", other.name)), "{message}");
    let slot = namespace.minute(0).to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
    namespace.wait_for_status("the cursor is our slot", is_stored).await;
    controller.terminate().await;
    other
        .patch("Job", name, json!({"metadata": {"finalizers": null}}))
        .await;
}

/// The Jobs of the deleted CronJob remain for a while (B-3.2). A running Job neither delays the new CronJob nor counts
/// as its own. A Job with the name of a slot is foreign.
pub(super) async fn recreated_cron_job_does_not_own_the_jobs_of_its_predecessor(namespace: Namespace) {
    let policy = || json!({"spec": {"concurrencyPolicy": "Forbid"}});
    namespace.create_cron_job(hanging(), policy()).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let controller = Controller::start_before(&namespace, 0);
    let (old, new) = (namespace.job_name(0), namespace.job_name(1));
    namespace.wait_for_jobs(std::slice::from_ref(&old)).await;
    // A finalizer keeps the Job, because the garbage collector deletes it as soon as its owner is gone.
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    namespace.patch("Job", &old, held).await;
    namespace.delete("CronJob", "hello", DeleteParams::background()).await;
    namespace.wait_until_gone("CronJob", "hello").await;
    controller
        .wait_for_metric("cronwheel_cron_jobs", &[], |n_kept| n_kept == 0)
        .await;
    controller.terminate().await;

    namespace.create_cron_job(hanging(), policy()).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let controller = Controller::start_before(&namespace, 1);
    controller.wait_for_account(&[("foreign_job", 1), ("created", 1)]).await;
    namespace.wait_for_jobs(&[old.clone(), new.clone()]).await;
    let is_own_alone = |status: &Value| {
        let active = status["active"].as_array();
        active.is_some_and(|active| active.len() == 1 && active[0]["name"] == *new)
    };
    namespace
        .wait_for_status("its own Job alone is active", is_own_alone)
        .await;
    assert_eq!(namespace.event_counts("hello", "FailedCreate").await.len(), 1);
    assert_eq!(namespace.event_counts("hello", "UnexpectedJob").await, []);
    controller.terminate().await;
    let released = json!({"metadata": {"finalizers": null}});
    namespace.patch("Job", &old, released).await;
}

/// Unwritten status changes of the deleted CronJob are not written to the new one of the same name.
pub(super) async fn pending_status_is_not_written_to_a_recreated_cron_job(namespace: Namespace) {
    namespace.create_cron_job(hanging(), json!({})).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let controller = Controller::start(&namespace, 0, &["--status-flush-interval", "60s"]);
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.delete("CronJob", "hello", DeleteParams::background()).await;
    namespace.wait_until_gone("CronJob", "hello").await;
    namespace
        .create_cron_job(hanging(), json!({"spec": {"suspend": true}}))
        .await;
    namespace.wait_until_gone("Job", &namespace.job_name(0)).await;
    // On termination, it writes pending statuses first.
    controller.terminate().await;
    assert_eq!(namespace.status().await, json!({}));
}
