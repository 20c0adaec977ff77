//! The CronJobs of innocent tenants, with every policy, with Jobs that succeed, fail and overlap, and with limited
//! histories.

use std::collections::BTreeSet;

use futures::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, INNOCENT},
    received::Received,
};

/// Name, schedule, concurrency policy, run time and outcome.
const CRON_JOBS: [(&str, &str, &str, &str, &str); 5] = [
    ("allow", "* * * * *", "Allow", "20s", "succeed"),
    ("fail", "* * * * *", "Allow", "5s", "fail"),
    ("forbid", "* * * * *", "Forbid", "50s", "succeed"),
    ("overlap", "* * * * *", "Forbid", "75s", "succeed"),
    ("replace", "*/2 * * * *", "Replace", "130s", "succeed"),
];

/// Returns the manifest of a CronJob.
pub(super) fn cron_job(name: &str, schedule: &str, policy: &str, job_template: &Value) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {
            "schedule": schedule,
            "concurrencyPolicy": policy,
            "successfulJobsHistoryLimit": 2,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": job_template,
        },
    })
}

/// Returns a `jobTemplate` whose Jobs run for this time and have this outcome.
pub(super) fn job_template(run_for: &str, outcome: &str) -> Value {
    json!({"spec": job_spec(run_for, outcome)})
}

pub(super) fn job_spec(run_for: &str, outcome: &str) -> Value {
    json!({
        "backoffLimit": 0,
        "template": {
            "metadata": {"annotations": {"run-for": run_for, "outcome": outcome}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]},
        },
    })
}

/// Creates the CronJobs of all innocent tenants.
pub(super) async fn create(cluster: &Cluster) {
    let of_all = INNOCENT.into_iter().flat_map(|namespace| {
        CRON_JOBS.map(|(name, schedule, policy, run_for, outcome)| {
            let object = cron_job(name, schedule, policy, &job_template(run_for, outcome));
            async move { cluster.create_cron_job(namespace, &object).await }
        })
    });
    join_all(of_all).await;
}

/// Runs a CronJob manually. A Warning reports the Job to the owner, regardless of other tenants.
pub(super) async fn run_manually(cluster: &Cluster) {
    let path = format!("/apis/batch/v1/namespaces/{}/cronjobs/allow", INNOCENT[2]);
    let cron_job = cluster.request("GET", &path, &Value::Null).await;
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "by-hand",
            "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "allow", "uid": cron_job["metadata"]["uid"],
                "controller": true,
            }],
        },
        "spec": job_spec("30s", "succeed"),
    });
    cluster.create_job(INNOCENT[2], &job).await;
}

/// Asserts that every slot of a CronJob without overlaps has its Job, and that the only Warning reports the Job of
/// [`run_manually`].
pub(super) fn assert_complete(received: &Received, length: SignedDuration) {
    let n_minutes = usize::try_from(length.as_mins()).unwrap();
    for namespace in INNOCENT {
        for (name, _, policy, _, _) in CRON_JOBS {
            let n_runs = received.runs_of(namespace, name);
            let expected = match (name, policy) {
                ("overlap", _) => n_minutes / 2..=n_minutes,
                (_, "Replace") => n_minutes / 2..=n_minutes / 2,
                _ => n_minutes..=n_minutes,
            };
            assert!(expected.contains(&n_runs), "{namespace}/{name}: {n_runs} runs");
        }
    }
    let reasons: BTreeSet<&str> = received.warnings().collect();
    assert_eq!(
        reasons,
        BTreeSet::from(["UnexpectedJob"]),
        "the Warning reports the manual Job"
    );
}
