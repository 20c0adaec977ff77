//! Measures creates through the service on one core, and the memory of 100,000 CronJobs and 400,000 Jobs.
//!
//! Targets: at least 20,000 creates a second, at most 2 GiB. `--test` creates a hundredth.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench measures and prints"
)]

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

use apisim::{Api, ApiService, Options, Resource, WallClock};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

fn main() {
    let divisor = if std::env::args().any(|argument| argument == "--test") {
        100
    } else {
        1
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(run(100_000 / divisor));
}

async fn run(n_cron_jobs: usize) {
    let before = resident_kib();
    let api = Api::new(
        Options::default(),
        WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()),
    );
    let client = api.client("bench");
    let begun = processor_time();
    let mut uids = Vec::with_capacity(n_cron_jobs);
    for at in 0..n_cron_jobs {
        uids.push(create(&client, "cronjobs", cron_job(at)).await);
    }
    report("CronJobs", n_cron_jobs, begun);
    let begun = processor_time();
    for at in 0..4 * n_cron_jobs {
        create(&client, "jobs", job(at, &uids[at / 4])).await;
    }
    report("Jobs", 4 * n_cron_jobs, begun);
    let resident = resident_kib() - before;
    assert_eq!(api.count(Resource::Job), 4 * n_cron_jobs);
    println!(
        "{} MiB resident for {n_cron_jobs} CronJobs and {} Jobs",
        resident / 1024,
        4 * n_cron_jobs
    );
}

fn report(what: &str, n_objects: usize, begun: Duration) {
    let seconds = processor_time().saturating_sub(begun).as_secs_f64();
    let n_objects = f64::from(u32::try_from(n_objects).unwrap());
    println!(
        "{n_objects} {what} in {seconds:.2} s of a core, {:.0} a second",
        n_objects / seconds
    );
}

/// Returns the processor time of this thread, so that other processes do not affect the result. Falls back to the
/// elapsed time where Linux does not provide it.
fn processor_time() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split_whitespace().next().and_then(|text| text.parse().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

/// Creates an object. Returns its uid.
async fn create(client: &ApiService, plural: &str, object: Value) -> String {
    let body = Bytes::from(serde_json::to_vec(&object).unwrap());
    let request = Request::post(format!("/apis/batch/v1/namespaces/default/{plural}"));
    let request = request
        .header("Content-Type", "application/json")
        .body(Full::new(body))
        .unwrap();
    let response = client.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 201);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let (_, uid) = text.rsplit_once("\"uid\":\"").unwrap();
    uid[..36].to_owned()
}

fn cron_job(at: usize) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": format!("backup-{at}"), "labels": {"app": "backup"}},
        "spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": pod_template()}}}})
}

fn job(at: usize, cron_job: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": format!("backup-{}-{}", at / 4, 29_000_000 + at % 4),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-02T03:04:00Z"},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "controller": true,
                "blockOwnerDeletion": true, "uid": cron_job}]},
        "spec": {"template": pod_template()}})
}

fn pod_template() -> Value {
    json!({"metadata": {"labels": {"app": "backup", "team": "storage"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "backup", "image": "example/backup:1.2.3",
            "args": ["--all", "--verbose"], "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "env": [{"name": "TARGET", "value": "bucket"}, {"name": "LEVEL", "value": "3"}]}]}})
}

/// Returns the resident memory of the process. Returns 0 where Linux does not provide it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse().ok())
        .unwrap_or_default()
}
