//! Jobs that belong to no CronJob. An API server reads each of them for every list of Jobs by label.

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::batch::v1::Job;
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};

use crate::generator::RUN_LABEL;

/// On a small machine, more requests in flight only increase the response time of the API server.
const N_CREATES_IN_FLIGHT: usize = 32;

/// The namespace of the Jobs. It is none of the load's namespaces, because those are listed for the verdict.
fn namespace(run_id: &str) -> String {
    format!("{run_id}-foreign")
}

/// A manifest of the namespace of the Jobs.
pub(super) fn namespace_manifest(run_id: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace(run_id), "labels": {RUN_LABEL: run_id}}})
    .to_string()
}

/// Creates the Jobs. None of them runs.
pub(super) async fn create(client: Client, run_id: &str, n_jobs: u32) -> anyhow::Result<()> {
    let api: Api<Job> = Api::namespaced(client, &namespace(run_id));
    let create = |number: u32| {
        let api = api.clone();
        async move {
            let job = serde_json::from_value(body(number)).context("the body of a Job does not decode")?;
            let created = api.create(&PostParams::default(), &job).await;
            created
                .map(drop)
                .with_context(|| format!("cannot create foreign Job {number}"))
        }
    };
    let creates = stream::iter(0..n_jobs).map(create);
    creates
        .buffer_unordered(N_CREATES_IN_FLIGHT)
        .try_for_each(|()| async { Ok(()) })
        .await
}

/// A suspended Job that kwok does not change.
fn body(number: u32) -> Value {
    json!({
        "metadata": {"name": format!("foreign-{number:06}")},
        "spec": {"suspend": true, "backoffLimit": 0, "template": {
            "metadata": {"annotations": {"outcome": "hang"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "work", "image": "work", "command": ["true"]}],
            },
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_job_has_no_owner_and_is_suspended() {
        let job: Job = serde_json::from_value(body(7)).unwrap();
        assert_eq!(job.metadata.name.as_deref(), Some("foreign-000007"));
        assert_eq!(job.metadata.owner_references, None);
        assert_eq!(job.spec.unwrap().suspend, Some(true));
    }
}
