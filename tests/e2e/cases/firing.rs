//! A run, from its minute to the history.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{controller::Controller, kubernetes::Namespace};

fn time(value: &Value) -> Timestamp {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no time: {value}"))
        .parse()
        .expect("a time")
}

pub(super) async fn a_cron_job_fires_on_the_minute_and_its_job_completes(namespace: Namespace) {
    namespace
        .create_cron_job(json!({"run-for": "1s"}), json!({"spec": {"timeZone": "Asia/Tokyo"}}))
        .await;
    let slot = namespace.minute(0);
    let begun = Timestamp::now();
    let controller = Controller::start_before(&namespace, 0);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;

    let job = namespace.jobs().await.remove(0);
    let cron_job = namespace.cron_job().await;
    let annotation = &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(time(annotation), slot);
    assert!(annotation.as_str().expect("a text").ends_with("+09:00"), "{annotation}");
    let owner = json!([{
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "hello",
        "uid": cron_job["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    }]);
    assert_eq!(job["metadata"]["ownerReferences"], owner);
    // By its clock, the controller's minute began 2.5 s after its start. The API server's timestamps have whole
    // seconds.
    let created = time(&job["metadata"]["creationTimestamp"]);
    let late = created.duration_since(begun);
    assert!(
        late > SignedDuration::from_secs(1) && late < SignedDuration::from_secs(8),
        "{late}"
    );

    let expected_last = slot.to_string();
    let is_stored = |status: &Value| {
        status["lastScheduleTime"] == *expected_last
            && status["lastSuccessfulTime"].is_string()
            && status["active"].is_null()
    };
    namespace.wait_for_status("the run is recorded", is_stored).await;
    namespace.wait_for_event("SuccessfulCreate").await;
    namespace.wait_for_event("SawCompletedJob").await;
    controller.terminate().await;
}

pub(super) async fn history_keeps_to_its_limits(namespace: Namespace) {
    let limits = json!({"spec": {"successfulJobsHistoryLimit": 1}});
    namespace.create_cron_job(json!({"run-for": "0s"}), limits).await;
    for minute in 0..3 {
        let controller = Controller::start_before(&namespace, minute);
        let slot = namespace.minute(minute).to_string();
        let is_recorded = |status: &Value| status["lastScheduleTime"] == *slot && status["active"].is_null();
        namespace.wait_for_status("the run is recorded", is_recorded).await;
        namespace.wait_for_jobs(&[namespace.job_name(minute)]).await;
        controller.terminate().await;
    }
    namespace.wait_for_event("SuccessfulDelete").await;
}

pub(super) async fn a_suspended_cron_job_starts_its_latest_slot_when_resumed(namespace: Namespace) {
    namespace
        .create_cron_job(json!({"run-for": "1s"}), json!({"spec": {"suspend": true}}))
        .await;
    let before = namespace.minute(-10).to_string();
    namespace.patch_status(json!({"lastScheduleTime": before})).await;
    let controller = Controller::start_before(&namespace, 0);
    controller
        .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == 1)
        .await;
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
    namespace.patch_cron_job(json!({"spec": {"suspend": false}})).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    controller.terminate().await;
}

/// An interval counts from the last run, not from the start of the controller.
pub(super) async fn a_suspended_interval_keeps_its_grid(namespace: Namespace) {
    let spec = json!({"schedule": "@every 1h", "suspend": true});
    namespace
        .create_cron_job(json!({"run-for": "1s"}), json!({"spec": spec}))
        .await;
    namespace.set_last_run("hello", namespace.minute(-60)).await;
    let controller = Controller::start_before(&namespace, 0);
    controller
        .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == 1)
        .await;
    namespace.patch_cron_job(json!({"spec": {"suspend": false}})).await;
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let slot = namespace.minute(0).to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
    namespace.wait_for_status("the slot is on the grid", is_stored).await;
    controller.terminate().await;
}
