//! Creates the CronJobs of `--cronjobs` one after the other, while the controller is already running.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{Request, header};
use kube::Client;
use serde_json::Value;
use tokio::task::yield_now;

use super::population::Population;
use crate::kube_api::objects::classify::error_text;

/// An in-process request never waits, so other tasks get a turn after this number.
const TURN: u32 = 16;

/// Creates this number of CronJobs. Refused ones are reported, and the others are still created.
pub(super) async fn fill(client: Client, seed: u64, n_to_fill: Arc<AtomicU32>) {
    let mut population = Population::new(seed);
    let n_cron_jobs = n_to_fill.load(Ordering::Relaxed);
    for number in 1..=n_cron_jobs {
        if let Err(error) = create(&client, &population.draw()).await {
            tracing::warn!(error = error_text(&error), "a CronJob cannot be filled in");
        }
        n_to_fill.fetch_sub(1, Ordering::Relaxed);
        if number.is_multiple_of(TURN) {
            yield_now().await;
        }
    }
    if n_cron_jobs > 0 {
        tracing::info!(n_cron_jobs, "all CronJobs are filled in");
    }
}

async fn create(client: &Client, cron_job: &Value) -> Result<(), kube::Error> {
    let namespace = cron_job["metadata"]["namespace"].as_str().unwrap_or_default();
    let request = Request::post(format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(cron_job.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}
