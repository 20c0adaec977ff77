//! Jobs of the CronJobs that have ended, as history limits keep them.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};

use crate::slots::Slot;

/// On a small machine, more requests in flight only increase the response time of the API server.
const N_REQUESTS_IN_FLIGHT: usize = 32;

/// The size of a page of CronJobs.
const PAGE_LIMIT: u32 = 5_000;

/// Creates `n_each` completed Jobs for each CronJob of the namespaces, of the minutes before now.
pub(super) async fn create(client: &Client, namespaces: &[String], n_each: u32) -> anyhow::Result<()> {
    for namespace in namespaces {
        let cron_jobs: Api<CronJob> = Api::namespaced(client.clone(), namespace);
        let jobs: Api<Job> = Api::namespaced(client.clone(), namespace);
        let mut page = ListParams::default().limit(PAGE_LIMIT);
        loop {
            let list = cron_jobs.list(&page).await.context("cannot list CronJobs")?;
            let token = list.metadata.continue_.filter(|token| !token.is_empty());
            create_for(&jobs, &list.items, n_each).await?;
            match token {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
    }
    Ok(())
}

async fn create_for(jobs: &Api<Job>, cron_jobs: &[CronJob], n_each: u32) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let bodies = cron_jobs.iter().flat_map(|cron_job| {
        (1..=i64::from(n_each)).map(move |minutes_ago| {
            let slot = Slot::at_or_after(now).before(minutes_ago);
            body(cron_job, slot)
        })
    });
    stream::iter(bodies)
        .map(|body| create_one(jobs, body))
        .buffer_unordered(N_REQUESTS_IN_FLIGHT)
        .try_for_each(|()| async { Ok(()) })
        .await
}

/// Creates one Job, and writes its status as the Job controller does.
async fn create_one(jobs: &Api<Job>, body: Value) -> anyhow::Result<()> {
    let job = serde_json::from_value(body).context("the body of a Job does not decode")?;
    let mut created = jobs
        .create(&PostParams::default(), &job)
        .await
        .context("cannot create a Job")?;
    created.status = Some(serde_json::from_value(completed(Timestamp::now()))?);
    // The write holds whatever a controller has changed since the create.
    created.metadata.resource_version = None;
    let name = created.metadata.name.clone().unwrap_or_default();
    let stored = jobs.replace_status(&name, &PostParams::default(), &created).await;
    stored.map(drop).with_context(|| format!("cannot complete Job {name}"))
}

/// kwok does not change a suspended Job.
fn body(cron_job: &CronJob, slot: Slot) -> Value {
    let name = cron_job.metadata.name.as_deref().unwrap_or_default();
    let spec = cron_job.spec.job_template.spec.as_ref();
    json!({
        "metadata": {
            "name": slot.job_name(name),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.start().to_string()},
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": name,
                "uid": cron_job.metadata.uid, "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {"suspend": true, "backoffLimit": 0, "template": spec.map(|spec| &spec.template)},
    })
}

fn completed(now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    json!({
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_the_name_and_owner_of_its_slot() {
        let cron_job: CronJob = serde_json::from_value(json!({
            "metadata": {"name": "load-00001", "uid": "u"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}}},
        }))
        .unwrap();
        let slot = Slot::at_or_after("2026-11-27T10:00:00Z".parse().unwrap());
        let job: Job = serde_json::from_value(body(&cron_job, slot)).unwrap();
        assert_eq!(job.metadata.name, Some(slot.job_name("load-00001")));
        let owner = &job.metadata.owner_references.unwrap()[0];
        assert_eq!((&owner.uid[..], owner.controller), ("u", Some(true)));
        assert!(job.spec.unwrap().template.spec.is_some());
    }
}
