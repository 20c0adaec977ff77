//! The floor: at every full minute one create per CronJob, with the body that a controller would send, and nothing
//! else. It runs as a separate process.

use std::path::PathBuf;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{Api, api::ListParams};
use serde_json::json;

use super::super::{client, sleep_until};
use crate::{
    bare_client::{BareClient, PreparedJob},
    slots::Slot,
};

/// How long before the minute the CronJobs are listed and the bodies are prepared.
const PREPARATION: SignedDuration = SignedDuration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct BareCreatesArguments {
    /// Kubeconfig of the client.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Requests to keep in flight.
    #[arg(long)]
    in_flight: usize,
}

/// Sends creates until the process is killed.
pub(crate) async fn run(arguments: BareCreatesArguments) -> anyhow::Result<()> {
    let bare = BareClient::connect(&arguments.kubeconfig).await?;
    let cron_jobs: Api<CronJob> = Api::all(client(&arguments.kubeconfig).await?);
    loop {
        let slot = Slot::at_or_after(Timestamp::now() + PREPARATION);
        sleep_until(slot.start() - PREPARATION).await;
        let list = cron_jobs.list(&ListParams::default()).await?;
        let prepare = |cron_job: &CronJob| prepared(cron_job, slot);
        let jobs = list.items.iter().map(prepare).collect::<anyhow::Result<Vec<_>>>()?;
        sleep_until(slot.start()).await;
        bare.create(&jobs, arguments.in_flight).await?;
        // All creates may be done within the same second. Wait so that the next slot is the next minute in any case.
        sleep_until(slot.start() + PREPARATION).await;
    }
}

fn prepared(cron_job: &CronJob, slot: Slot) -> anyhow::Result<PreparedJob> {
    let metadata = &cron_job.metadata;
    let name = metadata.name.as_deref().context("a CronJob has no name")?;
    let template = &cron_job.spec.job_template;
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": metadata.uid,
        "controller": true, "blockOwnerDeletion": true});
    let body = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": slot.job_name(name),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.start().to_string()},
            "ownerReferences": [owner],
        },
        "spec": template.spec,
    });
    Ok(PreparedJob {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        body: Bytes::from(body.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_body_is_the_job_of_the_slot() {
        let cron_job: CronJob = serde_json::from_value(json!({
            "metadata": {"name": "load-00001", "namespace": "load-1", "uid": "u"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}}}}},
        }))
        .unwrap();
        let slot = Slot::at_or_after(Timestamp::from_second(1_795_257_360).unwrap());
        let job = prepared(&cron_job, slot).unwrap();
        assert_eq!(job.namespace, "load-1");
        let body: serde_json::Value = serde_json::from_slice(&job.body).unwrap();
        assert_eq!(body["metadata"]["name"], "load-00001-29920956");
        assert_eq!(body["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(body["spec"]["template"]["spec"]["containers"][0]["image"], "work");
    }
}
