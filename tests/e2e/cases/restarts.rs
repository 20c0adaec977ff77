//! Crashes and absences: no run is lost and none is doubled.

use serde_json::{Value, json};

use crate::{controller::Controller, kubernetes::Namespace};

pub(super) async fn kill_between_create_and_status_write_doubles_no_run(namespace: Namespace) {
    namespace
        .create_cron_job(json!({"outcome": "hang", "run-for": "0s"}), json!({}))
        .await;
    let first = Controller::start(&namespace, 0, &["--status-flush-interval", "60s"]);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    first.kill();
    assert!(namespace.status().await["lastScheduleTime"].is_null());
    let uid = namespace.jobs().await[0]["metadata"]["uid"].clone();

    // According to the stored status, the first slot is still due when the next controller starts.
    let second = Controller::start_before(&namespace, 1);
    namespace
        .wait_for_jobs(&[namespace.job_name(0), namespace.job_name(1)])
        .await;
    let slot = namespace.minute(1).to_string();
    let is_adopted = |status: &Value| status["lastScheduleTime"] == *slot && status["active"][0]["uid"] == uid;
    namespace
        .wait_for_status("the Job of the killed controller is adopted", is_adopted)
        .await;
    assert_eq!(namespace.jobs().await[0]["metadata"]["uid"], uid);
    second.terminate().await;
}

pub(super) async fn slots_missed_during_downtime_are_caught_up_by_one_job(namespace: Namespace) {
    namespace
        .create_cron_job(json!({"outcome": "hang", "run-for": "0s"}), json!({}))
        .await;
    namespace
        .patch_status(json!({"lastScheduleTime": namespace.minute(-30).to_string()}))
        .await;
    let controller = Controller::start_before(&namespace, 0);
    // The slot before the minute that the clock is ahead of, then that minute.
    namespace
        .wait_for_jobs(&[namespace.job_name(-1), namespace.job_name(0)])
        .await;
    let slot = namespace.minute(0).to_string();
    namespace
        .wait_for_status("the cursor stands at the last", |status| {
            status["lastScheduleTime"] == *slot
        })
        .await;
    controller.terminate().await;
}
