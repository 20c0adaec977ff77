//! CronJobs that are deleted while their Job runs (B-6.1).

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name},
};

/// Creates `deleted` and `hello`, each with a Job that hangs. Returns the controller that has started them.
async fn with_two_running(namespace: &Namespace) -> Controller {
    for name in ["deleted", "hello"] {
        let changes = json!({"metadata": {"name": name}});
        namespace
            .create_cron_job(json!({"outcome": "hang", "run-for": "0s"}), changes)
            .await;
        namespace.set_last_run(name, namespace.minute(-1)).await;
    }
    let controller = Controller::start_before(namespace, 0);
    controller.wait_for_account(&[("created", 2)]).await;
    for name in ["deleted", "hello"] {
        let job = job_name(name, namespace.minute(0));
        let is_active = |status: &Value| status["active"][0]["name"] == *job;
        namespace
            .wait_for_status_of(name, "the run is recorded", is_active)
            .await;
    }
    controller
}

async fn wait_until_forgotten(controller: &Controller) {
    for kept in ["cronwheel_cron_jobs", "cronwheel_jobs", "cronwheel_wheel_entries"] {
        controller.wait_for_metric(kept, &[], |n_kept| n_kept == 1).await;
    }
}

pub(super) async fn background_deletion_of_a_cron_job_deletes_its_job(namespace: Namespace) {
    let controller = with_two_running(&namespace).await;
    namespace.delete("CronJob", "deleted", DeleteParams::background()).await;
    wait_until_forgotten(&controller).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    controller.wait_for_account(&[("created", 2)]).await;
    // The Job was deleted with its CronJob: there is nothing to report, and no status to write.
    controller.terminate().await;
    assert_eq!(namespace.event_counts("deleted", "MissingJob").await, []);
    let controller = Controller::start_before(&namespace, 1);
    controller.wait_for_account(&[("created", 1)]).await;
    namespace
        .wait_for_jobs(&[namespace.job_name(0), namespace.job_name(1)])
        .await;
    controller.terminate().await;
}

/// In foreground deletion, the CronJob exists as long as its Job, and starts no other Job.
pub(super) async fn cron_job_in_foreground_deletion_starts_no_job(namespace: Namespace) {
    let controller = with_two_running(&namespace).await;
    let job = job_name("deleted", namespace.minute(0));
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    namespace.patch("Job", &job, held).await;
    namespace.delete("CronJob", "deleted", DeleteParams::foreground()).await;
    controller
        .wait_for_metric("cronwheel_wheel_entries", &[], |n_armed| n_armed == 1)
        .await;
    controller.terminate().await;

    let controller = Controller::start_before(&namespace, 1);
    controller.wait_for_account(&[("created", 1)]).await;
    namespace
        .wait_for_jobs(&[job.clone(), namespace.job_name(0), namespace.job_name(1)])
        .await;
    let deleted = namespace.find("CronJob", "deleted").await.expect("it waits");
    assert!(deleted["metadata"]["deletionTimestamp"].is_string(), "{deleted}");
    let released = json!({"metadata": {"finalizers": null}});
    namespace.patch("Job", &job, released).await;
    namespace.wait_until_gone("CronJob", "deleted").await;
    namespace
        .wait_for_jobs(&[namespace.job_name(0), namespace.job_name(1)])
        .await;
    controller.terminate().await;
}
