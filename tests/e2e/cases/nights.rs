//! Nights in which clocks change, in zones on both sides of Greenwich (B-8.4).
//!
//! The controller's clock is weeks or years away from the API server's. The cursor holds its history.

use jiff::Timestamp;
use kube::api::DeleteParams;
use serde_json::json;

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name},
};

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

async fn create(namespace: &Namespace, name: &str, zone: &str, schedule: &str, last_run: &str) {
    let changes = json!({"metadata": {"name": name}, "spec": {"schedule": schedule, "timeZone": zone}});
    namespace
        .create_cron_job(json!({"outcome": "hang", "run-for": "0s"}), changes)
        .await;
    namespace.set_last_run(name, at(last_run)).await;
}

/// Runs a controller through the instant. Asserts that exactly this many slots become due, and that all of their Jobs
/// are created.
async fn pass(namespace: &Namespace, instant: &str, n_created: u64) {
    let controller = Controller::start_before_instant(namespace, at(instant));
    controller.wait_for_account(&[("created", n_created)]).await;
    controller.terminate().await;
}

/// Checks the Jobs by name, each with the slot in its annotation.
async fn expect_jobs(namespace: &Namespace, expected: &[(&str, &str)]) {
    let jobs = namespace.jobs().await;
    let slot = |job: &serde_json::Value| {
        let annotation = &job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
        (job["metadata"]["name"].clone(), annotation.clone())
    };
    let seen: Vec<_> = jobs.iter().map(slot).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(cron_job, slot)| (json!(job_name(cron_job, at(slot))), json!(slot)))
        .collect();
    assert_eq!(seen, expected, "{}", namespace.name);
}

pub(super) async fn new_york_skips_slots_in_the_gap(namespace: Namespace) {
    let zone = "America/New_York";
    create(&namespace, "in-gap", zone, "30 2 * * *", "2025-03-08T02:30:00-05:00").await;
    create(&namespace, "later", zone, "30 3 * * *", "2025-03-08T03:30:00-05:00").await;
    create(&namespace, "hourly", zone, "0 * * * *", "2025-03-09T01:00:00-05:00").await;
    pass(&namespace, "2025-03-09T03:00:00-04:00", 1).await;
    let hourly = ("hourly", "2025-03-09T03:00:00-04:00");
    expect_jobs(&namespace, &[hourly]).await;
    namespace.delete("CronJob", "hourly", DeleteParams::orphan()).await;
    namespace.wait_until_gone("CronJob", "hourly").await;
    // Half past two would have been at this instant.
    pass(&namespace, "2025-03-09T03:30:00-04:00", 1).await;
    let later = ("later", "2025-03-09T03:30:00-04:00");
    expect_jobs(&namespace, &[hourly, later]).await;
    pass(&namespace, "2025-03-10T02:30:00-04:00", 1).await;
    let in_gap = ("in-gap", "2025-03-10T02:30:00-04:00");
    expect_jobs(&namespace, &[hourly, in_gap, later]).await;
}

pub(super) async fn new_york_runs_twice_in_the_overlap(namespace: Namespace) {
    let zone = "America/New_York";
    create(&namespace, "daily", zone, "30 1 * * *", "2025-11-01T01:30:00-04:00").await;
    pass(&namespace, "2025-11-02T01:30:00-04:00", 1).await;
    pass(&namespace, "2025-11-02T01:30:00-05:00", 1).await;
    let expected = [
        ("daily", "2025-11-02T01:30:00-04:00"),
        ("daily", "2025-11-02T01:30:00-05:00"),
    ];
    expect_jobs(&namespace, &expected).await;
}

/// The gap is at midnight: a schedule that has to step onto that day skips the whole day.
pub(super) async fn cairo_loses_the_friday_whose_midnight_is_missing(namespace: Namespace) {
    let zone = "Africa/Cairo";
    create(&namespace, "fridays", zone, "0 12 * * 5", "2025-04-18T12:00:00+02:00").await;
    create(&namespace, "noon", zone, "0 12 * * *", "2025-04-24T12:00:00+02:00").await;
    pass(&namespace, "2025-04-25T12:00:00+03:00", 1).await;
    expect_jobs(&namespace, &[("noon", "2025-04-25T12:00:00+03:00")]).await;
    namespace.delete("CronJob", "noon", DeleteParams::orphan()).await;
    namespace.wait_until_gone("CronJob", "noon").await;
    pass(&namespace, "2025-05-02T12:00:00+03:00", 1).await;
    let expected = [
        ("fridays", "2025-05-02T12:00:00+03:00"),
        ("noon", "2025-04-25T12:00:00+03:00"),
    ];
    expect_jobs(&namespace, &expected).await;
}

pub(super) async fn cairo_runs_twice_before_midnight_in_the_overlap(namespace: Namespace) {
    let zone = "Africa/Cairo";
    create(&namespace, "daily", zone, "30 23 * * *", "2025-10-29T23:30:00+03:00").await;
    pass(&namespace, "2025-10-30T23:30:00+03:00", 1).await;
    pass(&namespace, "2025-10-30T23:30:00+02:00", 1).await;
    let expected = [
        ("daily", "2025-10-30T23:30:00+03:00"),
        ("daily", "2025-10-30T23:30:00+02:00"),
    ];
    expect_jobs(&namespace, &expected).await;
}
