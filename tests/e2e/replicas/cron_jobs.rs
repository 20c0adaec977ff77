//! The CronJobs of each case.

use futures::{StreamExt as _, stream};
use serde_json::json;

use crate::kubernetes::Namespace;

/// The kinds of CronJobs: name, number, policy and run time. All are due every minute.
const CRON_JOBS: [(&str, u32, &str, &str); 4] = [
    ("allow", 24, "Allow", "2s"),
    ("forbid", 24, "Forbid", "2s"),
    ("replace", 6, "Replace", "90s"),
    // Still running at the next slot, whose Job must wait.
    ("busy", 6, "Forbid", "75s"),
];

/// The kind whose Job waits for the end of the previous one.
pub(super) const WAITS: &str = "busy";

/// The names of all CronJobs.
pub(super) fn cron_jobs() -> impl Iterator<Item = String> {
    CRON_JOBS
        .into_iter()
        .flat_map(|(kind, count, _, _)| (0..count).map(move |number| format!("{kind}-{number:02}")))
}

/// More Jobs than any case starts for one CronJob.
const HISTORY_LIMIT: u32 = 50;

/// Creates all CronJobs.
pub(super) async fn create_all(namespace: &Namespace) {
    let kinds = CRON_JOBS.into_iter();
    let creates = kinds.flat_map(|(kind, count, policy, run_for)| {
        (0..count).map(move |number| {
            let changes = json!({
                "metadata": {"name": format!("{kind}-{number:02}")},
                "spec": {"concurrencyPolicy": policy, "successfulJobsHistoryLimit": HISTORY_LIMIT},
            });
            namespace.create_cron_job(json!({"run-for": run_for}), changes)
        })
    });
    stream::iter(creates).buffer_unordered(20).collect::<Vec<()>>().await;
}
