//! Stored objects that no current API server would accept. Each is reported, and other CronJobs continue (B-6, B-7).

use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name},
};

fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

async fn store(namespace: &Namespace, name: &str, spec: Value) {
    let changes = json!({"metadata": {"name": name}, "spec": spec});
    namespace.store_cron_job(hanging(), changes).await;
    // The API server serves it and accepts writes of its status.
    namespace.set_last_run(name, namespace.minute(-1)).await;
}

/// A CronJob that cannot run, and the Event about it.
struct Garbage {
    name: &'static str,
    spec: Value,
    reason: &'static str,
    message: &'static str,
}

fn unparseable(name: &'static str, schedule: &str, message: &'static str) -> Garbage {
    Garbage {
        name,
        spec: json!({"schedule": schedule}),
        reason: "UnparseableSchedule",
        message,
    }
}

fn unknown_zone(name: &'static str, zone: &str, message: &'static str) -> Garbage {
    Garbage {
        name,
        spec: json!({"timeZone": zone}),
        reason: "UnknownTimeZone",
        message,
    }
}

fn all_garbage() -> Vec<Garbage> {
    vec![
        unparseable(
            "words",
            "whenever you like",
            "unparseable schedule: \"whenever you like\" : expected exactly 5 fields, found 3: [whenever you like]",
        ),
        unparseable(
            "minute-61",
            "61 * * * *",
            "unparseable schedule: \"61 * * * *\" : end of range (61) above maximum (59): 61",
        ),
        unparseable("empty", "", "unparseable schedule: \"\" : empty spec string"),
        // Earlier versions of the built-in controller crashed on this schedule (B-7.9).
        unparseable(
            "zone-alone",
            "TZ=UTC",
            "unparseable schedule: \"TZ=UTC\" : invalid schedule format: runtime error: slice bounds out of range [:-1]",
        ),
        unknown_zone(
            "bad-zone",
            "Mars/Olympus",
            "invalid timeZone: \"Mars/Olympus\": unknown time zone Mars/Olympus",
        ),
        unknown_zone(
            "zone-of-dots",
            "../UTC",
            "invalid timeZone: \"../UTC\": time: invalid location name",
        ),
        Garbage {
            name: "february-31",
            spec: json!({"schedule": "0 0 31 2 *"}),
            reason: "InvalidSchedule",
            message: "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second",
        },
    ]
}

/// Unusual objects that can run, by name.
fn all_unusual() -> Vec<(&'static str, Value)> {
    vec![
        ("empty-zone", json!({"timeZone": ""})),
        (
            "odd-values",
            json!({"concurrencyPolicy": "Sometimes", "startingDeadlineSeconds": -5, "failedJobsHistoryLimit": -1}),
        ),
        ("zone-in-text", json!({"schedule": "TZ=Asia/Tokyo * * * * *"})),
    ]
}

pub(super) async fn stored_garbage_is_reported_and_stops_no_other_cron_job(namespace: Namespace) {
    namespace.create_cron_job(hanging(), json!({})).await;
    // The API server does not validate statuses (B-16.4).
    let active = json!([{"name": "ghost", "uid": "none"}, {"name": "", "uid": "nameless"}, {}]);
    let last = namespace.minute(-1).to_string();
    namespace
        .patch_status(json!({"active": active, "lastScheduleTime": last}))
        .await;
    for garbage in all_garbage() {
        store(&namespace, garbage.name, garbage.spec).await;
    }
    for (name, spec) in all_unusual() {
        store(&namespace, name, spec).await;
    }
    let without_creation_time = json!({"metadata": {"name": "no-creation-time", "creationTimestamp": null}});
    namespace.store_cron_job(hanging(), without_creation_time).await;

    let controller = Controller::start_before(&namespace, 0);
    controller.wait_for_account(&[("created", 4)]).await;
    let slot = namespace.minute(0);
    let runs = ["empty-zone", "hello", "odd-values", "zone-in-text"].map(|name| job_name(name, slot));
    namespace.wait_for_jobs(&runs).await;
    let is_ours_alone = |status: &Value| {
        let active = status["active"].as_array();
        active.is_some_and(|active| active.len() == 1 && active[0]["name"] == *runs[1])
    };
    namespace
        .wait_for_status("our Job is on the active list alone", is_ours_alone)
        .await;
    for garbage in all_garbage() {
        let message = namespace.wait_for_event_on(garbage.name, garbage.reason).await;
        assert_eq!(message, garbage.message);
    }
    let message = namespace
        .wait_for_event_on("no-creation-time", "UndecodableCronJob")
        .await;
    assert!(message.contains("metadata.creationTimestamp"), "{message}");
    let message = namespace.wait_for_event_on("zone-in-text", "UnsupportedSchedule").await;
    let quoted = "CRON_TZ or TZ used in schedule \"TZ=Asia/Tokyo * * * * *\" is not officially supported, see ";
    assert!(message.starts_with(quoted), "{message}");
    let message = namespace.wait_for_event_on("hello", "MissingJob").await;
    assert_eq!(message, "Active job went missing: ghost");
    process_again(&namespace, &controller).await;
    // On termination, it sends its pending Events first.
    controller.terminate().await;
    for Garbage {
        name, reason, message, ..
    } in all_garbage()
    {
        assert_eq!(namespace.event_counts(name, reason).await, [(message.to_owned(), 1)]);
    }
}

/// Makes the controller process all invalid objects once more. The deletion of a valid object marks the end.
async fn process_again(namespace: &Namespace, controller: &Controller) {
    let n_armed = |expected: u64| controller.wait_for_metric("cronwheel_wheel_entries", &[], move |n| n == expected);
    n_armed(4).await;
    let touched = json!({"lastSuccessfulTime": namespace.minute(0).to_string()});
    for garbage in all_garbage() {
        namespace.patch_status_of(garbage.name, touched.clone()).await;
    }
    namespace
        .delete("CronJob", "odd-values", DeleteParams::background())
        .await;
    n_armed(3).await;
}

/// B-2.2: the change itself is reported with its own wording. A corrected schedule runs again.
pub(super) async fn unparseable_schedule_is_reported_and_runs_again_once_corrected(namespace: Namespace) {
    namespace.create_cron_job(hanging(), json!({})).await;
    namespace.set_last_run("hello", namespace.minute(0)).await;
    let controller = Controller::start_before(&namespace, 1);
    namespace.wait_for_jobs(&[namespace.job_name(1)]).await;
    namespace
        .change_stored_cron_job(json!({"spec": {"schedule": "* * * *"}}))
        .await;
    let changed = namespace.wait_for_event_on("hello", "UnParseableCronJobSchedule").await;
    assert_eq!(changed, "unparseable schedule for cronjob: * * * *");
    let reported = namespace.wait_for_event_on("hello", "UnparseableSchedule").await;
    assert_eq!(
        reported,
        "unparseable schedule: \"* * * *\" : expected exactly 5 fields, found 4: [* * * *]"
    );
    let n_armed = |expected: u64| controller.wait_for_metric("cronwheel_wheel_entries", &[], move |n| n == expected);
    n_armed(0).await;
    namespace
        .patch_cron_job(json!({"spec": {"schedule": "*/1 * * * *"}}))
        .await;
    n_armed(1).await;
    controller.terminate().await;
    let controller = Controller::start_before(&namespace, 2);
    namespace
        .wait_for_jobs(&[namespace.job_name(1), namespace.job_name(2)])
        .await;
    controller.terminate().await;
}

/// CronJobs can be older than the limit of 52 characters. The Job's name is sent unchanged, and its refusal is reported
/// once.
pub(super) async fn overlong_job_name_is_sent_unchanged_and_its_refusal_reported(namespace: Namespace) {
    namespace.create_cron_job(hanging(), json!({})).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let [fits, too_long, longest] = [52, 55, 63].map(|length| "n".repeat(length));
    for name in [&fits, &too_long, &longest] {
        store(&namespace, name, json!({})).await;
    }
    let controller = Controller::start_before(&namespace, 0);
    // Refused slots stay open while they are the latest.
    let (due, open) = ("cronwheel_due_instants_total", "cronwheel_instants_open");
    controller.wait_for_metric(due, &[], |n_due| n_due == 4).await;
    controller.wait_for_metric(open, &[], |n_open| n_open == 2).await;
    let slot = namespace.minute(0);
    namespace
        .wait_for_jobs(&[namespace.job_name(0), job_name(&fits, slot)])
        .await;
    for name in [&too_long, &longest] {
        let message = namespace.wait_for_event_on(name, "FailedCreate").await;
        let job = job_name(name, slot);
        assert!(
            message.starts_with(&format!("Error creating job: Job.batch \"{job}\" is invalid: ")),
            "{message}"
        );
        assert!(message.contains("must be no more than 63"), "{message}");
        assert_eq!(namespace.event_counts(name, "FailedCreate").await, [(message, 1)]);
    }
    controller.terminate().await;
}
