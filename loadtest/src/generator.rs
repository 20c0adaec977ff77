//! Synthetic `CronJobs`, all due at every whole minute.

use std::path::Path;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;

/// Beyond this many the API server on a small machine only answers later.
const N_CREATES_IN_FLIGHT: usize = 16;

/// What one Job leaves is deleted when the next one has ended, so that a minute's work is the same from the second one on.
const SUCCESSFUL_JOBS_HISTORY_LIMIT: u32 = 1;

/// Which `CronJob`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CronJobName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Marks everything that is made, so that two runs on one API server keep apart.
    pub(crate) run_id: String,
    pub(crate) n_cron_jobs: u32,
    pub(crate) n_namespaces: u32,
    /// How long a Job runs.
    pub(crate) job_seconds: u32,
}

impl Load {
    /// The namespaces.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        (0..self.n_namespaces).map(|number| self.namespace(number)).collect()
    }

    /// The `CronJobs`, spread evenly over the namespaces.
    pub(crate) fn cron_jobs(&self) -> Vec<CronJobName> {
        let name = |number: u32| CronJobName {
            namespace: self.namespace(number % self.n_namespaces),
            name: format!("load-{number:05}"),
        };
        (0..self.n_cron_jobs).map(name).collect()
    }

    /// A manifest of the namespaces.
    pub(crate) fn namespaces_manifest(&self) -> String {
        let namespace = |name: String| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let items: Vec<_> = self.namespaces().into_iter().map(namespace).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    }

    /// Creates the `CronJobs`, as whom the kubeconfig says.
    pub(crate) async fn create(&self, kubeconfig: &Path) -> anyhow::Result<()> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let create = |cron_job: CronJobName| {
            let api: Api<CronJob> = Api::namespaced(client.clone(), &cron_job.namespace);
            let body = self.body(&cron_job);
            async move {
                let context = || format!("cannot create {}/{}", cron_job.namespace, cron_job.name);
                api.create(&PostParams::default(), &body?)
                    .await
                    .map(drop)
                    .with_context(context)
            }
        };
        stream::iter(self.cron_jobs())
            .map(create)
            .buffer_unordered(N_CREATES_IN_FLIGHT)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    fn namespace(&self, number: u32) -> String {
        format!("{}-{number}", self.run_id)
    }

    fn body(&self, cron_job: &CronJobName) -> anyhow::Result<CronJob> {
        let body = json!({
            "metadata": { "name": cron_job.name, "namespace": cron_job.namespace },
            "spec": {
                "schedule": "* * * * *",
                "successfulJobsHistoryLimit": SUCCESSFUL_JOBS_HISTORY_LIMIT,
                "jobTemplate": { "spec": { "template": {
                    "metadata": { "annotations": { "run-for": format!("{}s", self.job_seconds) } },
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{ "name": "work", "image": "work", "command": ["true"] }],
                    },
                }}},
            },
        });
        serde_json::from_value(body).context("the body of a synthetic CronJob does not decode")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn load() -> Load {
        Load {
            run_id: "load".into(),
            n_cron_jobs: 7,
            n_namespaces: 3,
            job_seconds: 3,
        }
    }

    #[test]
    fn cron_jobs_are_spread_over_the_namespaces_and_none_is_there_twice() {
        let cron_jobs = load().cron_jobs();
        let distinct: BTreeSet<_> = cron_jobs.iter().map(|one| (&one.namespace, &one.name)).collect();
        assert_eq!((cron_jobs.len(), distinct.len()), (7, 7));
        for namespace in load().namespaces() {
            let n_inside = cron_jobs.iter().filter(|one| one.namespace == namespace).count();
            assert!((2..=3).contains(&n_inside), "{namespace}: {n_inside}");
        }
    }

    #[test]
    fn a_body_decodes_and_tells_kwok_how_long_its_job_runs() {
        let load = load();
        let body = load.body(&load.cron_jobs()[4]).unwrap();
        assert_eq!(body.metadata.namespace.as_deref(), Some("load-1"));
        let template = body.spec.unwrap().job_template.spec.unwrap().template;
        assert_eq!(template.metadata.unwrap().annotations.unwrap()["run-for"], "3s");
    }
}
