//! The CronJobs of each case.

use futures::{StreamExt as _, stream};
use serde_json::json;

use crate::kubernetes::Namespace;

/// Of each kind of CronJob how many there are, and what is special about them. All are due every minute.
const CRON_JOBS: [(&str, u32, &str, &str); 4] = [
    ("allow", 24, "Allow", "2s"),
    ("forbid", 24, "Forbid", "2s"),
    ("replace", 6, "Replace", "90s"),
    // Still running at the next slot, whose Job waits.
    ("busy", 6, "Forbid", "75s"),
];

/// Whose Job of a slot waits for the end of the former one.
pub(super) const WAITS: &str = "busy";

/// The names of all CronJobs.
pub(super) fn cron_jobs() -> impl Iterator<Item = String> {
    CRON_JOBS
        .into_iter()
        .flat_map(|(kind, count, _, _)| (0..count).map(move |number| format!("{kind}-{number:02}")))
}

/// More than any case starts of one CronJob.
const HISTORY_LIMIT: u32 = 50;

/// Creates them all.
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
