//! Jobs that are deleted as soon as they finish, and templates of the maximum size.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, cron_job, merge},
};

fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

/// While it exists, the Job blocks its slot. The cursor passes the slot before the Job is deleted, with any flush
/// interval (B-13.1).
pub(super) async fn job_with_a_ttl_of_zero_runs_its_slot_once(namespace: Namespace) {
    let changes = json!({"spec": {"jobTemplate": {"spec": {"ttlSecondsAfterFinished": 0}}}});
    namespace.create_cron_job(json!({"run-for": "0s"}), changes).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let first = Controller::start(&namespace, 0, &["--status-flush-interval", "60s"]);
    let slot = namespace.minute(0).to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
    namespace.wait_for_status("the slot is stored at once", is_stored).await;
    namespace.wait_for_jobs(&[]).await;
    namespace.wait_for_event("SuccessfulCreate").await;
    first.kill();

    // The second controller starts in the same minute.
    let after = namespace.minute(0) + SignedDuration::from_secs(20);
    let second = Controller::start_at(&namespace, after, &[]);
    second.wait_until_ready().await;
    second
        .wait_for_metric("cronwheel_wheel_entries", &[], |n_armed| n_armed == 1)
        .await;
    second.wait_for_account(&[]).await;
    second.terminate().await;
    let created = (format!("Created job {}", namespace.job_name(0)), 1);
    assert_eq!(namespace.event_counts("hello", "SuccessfulCreate").await, [created]);
}

/// The history limit deletes a Job only once the cursor has passed its slot. A deleted Job is not reported as completed
/// (B-4.6).
pub(super) async fn history_limit_of_zero_keeps_no_job_and_loses_no_slot(namespace: Namespace) {
    let spec = json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0});
    let lives = [
        ("good", json!({"run-for": "0s"})),
        ("bad", json!({"run-for": "0s", "outcome": "fail"})),
    ];
    for (name, life) in lives {
        namespace
            .create_cron_job(life, json!({"metadata": {"name": name}, "spec": spec}))
            .await;
        namespace.set_last_run(name, namespace.minute(-1)).await;
    }
    // A regular flush would be too late.
    let controller = Controller::start(&namespace, 0, &["--status-flush-interval", "60s"]);
    let slot = namespace.minute(0).to_string();
    for name in ["good", "bad"] {
        namespace.wait_for_event_on(name, "SuccessfulDelete").await;
        let is_stored = |status: &Value| status["lastScheduleTime"] == *slot;
        let status = namespace.find("CronJob", name).await.expect("it")["status"].clone();
        assert!(
            is_stored(&status),
            "{name}: its Job was deleted before its slot was stored: {status}"
        );
    }
    namespace.wait_for_jobs(&[]).await;
    controller.wait_for_account(&[("created", 2)]).await;
    controller.terminate().await;
    let succeeded = namespace.find("CronJob", "good").await.expect("it")["status"].clone();
    assert!(succeeded["lastSuccessfulTime"].is_string(), "{succeeded}");
    for name in ["good", "bad"] {
        assert_eq!(namespace.event_counts(name, "SawCompletedJob").await, []);
        assert_eq!(namespace.event_counts(name, "FailedDelete").await, []);
    }
}

/// The default maximum size of a request to etcd.
const STORED_MAX_BYTES: usize = 3 << 19;

/// A CronJob with an argument of this many bytes, of varying characters.
fn with_argument(n_bytes: usize) -> Value {
    let argument: String = ('a'..='z').cycle().take(n_bytes).collect();
    let containers = json!([{"name": "work", "image": "work", "args": [argument]}]);
    json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": containers}}}}}})
}

pub(super) async fn template_over_one_mebibyte_becomes_a_job(namespace: Namespace) {
    let changes = with_argument(STORED_MAX_BYTES - (16 << 10));
    namespace.create_cron_job(hanging(), changes).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let controller = Controller::start_before(&namespace, 0);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let argument = "/spec/template/spec/containers/0/args/0";
    let job = namespace.jobs().await.remove(0);
    let template = namespace.cron_job().await["spec"]["jobTemplate"].clone();
    assert!(job.pointer(argument).is_some() && job.pointer(argument) == template.pointer(argument));
    let name = namespace.job_name(0);
    let is_recorded = |status: &Value| status["active"][0]["name"] == *name;
    namespace.wait_for_status("the run is recorded", is_recorded).await;
    controller.wait_for_account(&[("created", 1)]).await;
    controller.terminate().await;
}

/// With a memory limit of 1 MiB, a namespace may keep half a mebibyte. Neither the template nor the metadata fits.
pub(super) async fn cron_job_over_the_memory_limit_runs_and_keeps_its_metadata(namespace: Namespace) {
    const N_LABELS: usize = 8_000;
    let value = "x".repeat(63);
    let labels: Value = (0..N_LABELS)
        .map(|number| (format!("l{number:04}"), json!(value)))
        .collect();
    let mut changes = with_argument(100 << 10);
    merge(&mut changes, json!({"metadata": {"labels": labels}}));
    namespace.create_cron_job(json!({"run-for": "0s"}), changes).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let controller = Controller::start(&namespace, 0, &["--max-template-memory", "1"]);
    namespace.wait_for_event_on("hello", "TemplateNotKept").await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let slot = namespace.minute(0).to_string();
    let is_ended = |status: &Value| status["lastScheduleTime"] == *slot && status["lastSuccessfulTime"].is_string();
    namespace.wait_for_status("the run has ended", is_ended).await;
    let metadata = namespace.cron_job().await["metadata"].clone();
    assert_eq!(metadata["labels"].as_object().expect("labels").len(), N_LABELS);
    controller
        .wait_for_metric("cronwheel_templates_not_kept", &[], |n_not_kept| n_not_kept == 1)
        .await;
    controller.wait_for_account(&[("created", 1)]).await;
    controller.terminate().await;
}

/// Creates `hello` with a template and an annotation that together nearly reach the maximum size.
async fn create_at_the_limit(namespace: &Namespace, n_note_bytes: usize) {
    let note = json!({"metadata": {"annotations": {"note": "n".repeat(n_note_bytes)}}});
    for n_bytes in (STORED_MAX_BYTES - 2048..STORED_MAX_BYTES - 256).rev().step_by(64) {
        let mut object = cron_job(hanging());
        merge(&mut object, with_argument(n_bytes - n_note_bytes));
        merge(&mut object, note.clone());
        if namespace.try_create(object).await.is_ok() {
            return;
        }
    }
    panic!("no such CronJob fits");
}

/// The largest template that fits into a CronJob does not fit into a Job, which has more metadata. The error message of
/// the API server varies, so the case checks only that the create was refused.
pub(super) async fn job_too_large_to_be_stored_does_not_disarm_the_next_slot(namespace: Namespace) {
    create_at_the_limit(&namespace, 0).await;
    let controller = Controller::start_before(&namespace, 0);
    let message = namespace.wait_for_event_on("hello", "FailedCreate").await;
    assert!(message.starts_with("Error creating job: "), "{message}");
    // A webhook could be the cause of the size, so the slot stays open while it is the latest. The next slot and the
    // next attempt are armed.
    let open = "cronwheel_instants_open";
    controller.wait_for_metric(open, &[], |n_open| n_open == 1).await;
    let armed = "cronwheel_wheel_entries";
    controller.wait_for_metric(armed, &[], |n_armed| n_armed == 2).await;
    controller.terminate().await;
    assert_eq!(namespace.event_counts("hello", "FailedCreate").await, [(message, 1)]);
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
}

/// The CronJob exceeds the limit with its status, so no cursor is stored. Its Jobs are kept, because they block their
/// slots.
pub(super) async fn status_too_large_to_be_stored_doubles_no_run(namespace: Namespace) {
    create_at_the_limit(&namespace, 200 << 10).await;
    let failed_writes = [("resource", "cronjobs/status"), ("code", "500")];
    for minute in [0, 1] {
        let controller = Controller::start_before(&namespace, minute);
        let jobs: Vec<String> = (0..=minute).map(|minute| namespace.job_name(minute)).collect();
        namespace.wait_for_jobs(&jobs).await;
        controller
            .wait_for_metric("cronwheel_api_requests_total", &failed_writes, |n_failed| n_failed >= 1)
            .await;
        controller.kill();
    }
    assert_eq!(namespace.status().await, json!({}));
    let uids: Vec<Value> = namespace
        .jobs()
        .await
        .iter()
        .map(|job| job["metadata"]["uid"].clone())
        .collect();

    // Once the CronJob is smaller, its status records both runs.
    let controller = Controller::start_before(&namespace, 2);
    namespace
        .patch_cron_job(json!({"metadata": {"annotations": {"note": null}}, "spec": {"suspend": true}}))
        .await;
    let slot = namespace.minute(1).to_string();
    let is_known = |status: &Value| {
        let active = status["active"].as_array();
        status["lastScheduleTime"] == *slot && active.is_some_and(|active| active.len() == 2)
    };
    namespace.wait_for_status("both are on the active list", is_known).await;
    let kept: Vec<Value> = namespace
        .jobs()
        .await
        .iter()
        .map(|job| job["metadata"]["uid"].clone())
        .collect();
    assert_eq!(kept, uids);
    controller.terminate().await;
}
