//! Allow, Forbid and Replace while a Job does not end.

use serde_json::{Value, json};

use crate::{controller::Controller, kubernetes::Namespace};

/// Runs the first minute, whose Job hangs. Returns a controller shortly before the second.
async fn with_hanging_job(namespace: &Namespace, policy: &str) -> Controller {
    namespace
        .create_cron_job(
            json!({"outcome": "hang", "run-for": "0s"}),
            json!({"spec": {"concurrencyPolicy": policy}}),
        )
        .await;
    let first = Controller::start_before(namespace, 0);
    let name = namespace.job_name(0);
    let is_active = |status: &Value| status["active"][0]["name"] == *name;
    namespace.wait_for_status("the first run is active", is_active).await;
    first.terminate().await;
    Controller::start_before(namespace, 1)
}

pub(super) async fn allow_starts_beside_a_running_job(namespace: Namespace) {
    let controller = with_hanging_job(&namespace, "Allow").await;
    namespace
        .wait_for_jobs(&[namespace.job_name(0), namespace.job_name(1)])
        .await;
    let is_both = |status: &Value| status["active"].as_array().is_some_and(|active| active.len() == 2);
    namespace.wait_for_status("both are active", is_both).await;
    controller.terminate().await;
}

pub(super) async fn forbid_waits_for_the_running_job(namespace: Namespace) {
    let controller = with_hanging_job(&namespace, "Forbid").await;
    namespace.wait_for_event("JobAlreadyActive").await;
    controller
        .wait_for_metric("cronwheel_instants_open", &[], |n_open| n_open == 1)
        .await;
    assert_eq!(namespace.job_names().await, [namespace.job_name(0)]);
    namespace.delete_job(&namespace.job_name(0)).await;
    // The delayed slot starts at once, not a minute later.
    namespace.wait_for_jobs(&[namespace.job_name(1)]).await;
    namespace.wait_for_event("MissingJob").await;
    controller.terminate().await;
}

pub(super) async fn replace_deletes_the_running_job_first(namespace: Namespace) {
    let controller = with_hanging_job(&namespace, "Replace").await;
    namespace.wait_for_jobs(&[namespace.job_name(1)]).await;
    let name = namespace.job_name(1);
    let is_replaced = |status: &Value| {
        status["active"]
            .as_array()
            .is_some_and(|active| active.len() == 1 && active[0]["name"] == *name)
    };
    namespace
        .wait_for_status("the second alone is active", is_replaced)
        .await;
    namespace.wait_for_event("SuccessfulDelete").await;
    controller.terminate().await;
}
