//! Synthetic CronJobs: all alike, or a seeded mix.

mod mix;

use std::path::Path;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::slots::Due;

/// On a small machine, more requests in flight only increase the response time of the API server.
const N_CREATES_IN_FLIGHT: usize = 16;

/// A Job is deleted when the next one has completed, so that the work per minute is the same from the second minute on.
const HISTORY_LIMIT: u32 = 1;

/// The label of every namespace that a run creates. Its value is the id of the run.
pub(crate) const RUN_LABEL: &str = "cronwheel.dev/load-test";

/// A CronJob of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntheticCronJob {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) due: Due,
    /// The run time of a Job.
    pub(crate) job_seconds: u32,
    /// How many completed and how many failed Jobs are kept.
    pub(crate) history_limit: u32,
    /// The zone of the schedule.
    pub(crate) time_zone: &'static str,
    pub(crate) starting_deadline_seconds: Option<u32>,
    /// A suspended CronJob has the schedule `* * * * *`, and is due at no slot.
    pub(crate) suspended: bool,
    pub(crate) concurrency_policy: &'static str,
    pub(crate) fails: bool,
    /// The size of an environment variable, so that templates differ in size.
    pub(crate) padding_bytes: usize,
    pub(crate) spread: Option<String>,
}

/// How the CronJobs of a load differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variety {
    /// All have the same schedule.
    Same(Due),
    /// Schedules, policies, durations, failures and template sizes are drawn from a seed.
    Mixed { seed: u32 },
    /// All are due at every full minute, and a few are suspended. Policies, durations, zones, deadlines, failures and history
    /// limits vary with the number of the CronJob.
    MinutelyMixed,
}

/// The objects to create.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The prefix of all namespaces, so that runs on one API server stay separate.
    pub(crate) run_id: String,
    pub(crate) n_cron_jobs: u32,
    pub(crate) n_namespaces: u32,
    /// The run time of a Job, if all are alike.
    pub(crate) job_seconds: u32,
    /// How many completed and how many failed Jobs of a CronJob are kept.
    pub(crate) history_limit: u32,
    pub(crate) variety: Variety,
    /// The option `spread` of all CronJobs.
    pub(crate) spread: Option<String>,
}

impl Load {
    /// A load of CronJobs that are due at every full minute.
    pub(crate) fn minutely(run_id: String, n_cron_jobs: u32, n_namespaces: u32, job_seconds: u32) -> Load {
        Load {
            run_id,
            n_cron_jobs,
            n_namespaces,
            job_seconds,
            history_limit: HISTORY_LIMIT,
            variety: Variety::Same(Due::EveryMinutes(1)),
            spread: None,
        }
    }

    /// The names of the namespaces.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        (0..self.n_namespaces).map(|number| self.namespace(number)).collect()
    }

    /// The CronJobs, evenly distributed over the namespaces.
    pub(crate) fn cron_jobs(&self) -> Vec<SyntheticCronJob> {
        (0..self.n_cron_jobs).map(|number| self.cron_job(number)).collect()
    }

    /// A manifest of the namespaces.
    pub(crate) fn namespaces_manifest(&self) -> String {
        let namespace = |name: String| {
            json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {RUN_LABEL: self.run_id}}})
        };
        let items: Vec<_> = self.namespaces().into_iter().map(namespace).collect();
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    }

    /// Creates the CronJobs with this kubeconfig.
    pub(crate) async fn create(&self, kubeconfig: &Path) -> anyhow::Result<()> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let create = |cron_job: SyntheticCronJob| {
            let api: Api<CronJob> = Api::namespaced(client.clone(), &cron_job.namespace);
            async move {
                let context = || format!("cannot create {}/{}", cron_job.namespace, cron_job.name);
                let body = cron_job.body().with_context(context)?;
                let created = api.create(&PostParams::default(), &body).await;
                created.map(drop).with_context(context)
            }
        };
        stream::iter(self.cron_jobs())
            .map(create)
            .buffer_unordered(N_CREATES_IN_FLIGHT)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    /// The name of the namespace with this number.
    pub(crate) fn namespace(&self, number: u32) -> String {
        format!("{}-{number}", self.run_id)
    }

    fn cron_job(&self, number: u32) -> SyntheticCronJob {
        let alike = |due| SyntheticCronJob {
            namespace: self.namespace(number % self.n_namespaces),
            name: format!("load-{number:05}"),
            due,
            job_seconds: self.job_seconds,
            history_limit: self.history_limit,
            time_zone: "Etc/UTC",
            starting_deadline_seconds: None,
            suspended: false,
            concurrency_policy: "Allow",
            fails: false,
            padding_bytes: 0,
            spread: self.spread.clone(),
        };
        match self.variety {
            Variety::Same(due) => alike(due),
            Variety::Mixed { seed } => mix::varied(alike(Due::EveryMinutes(1)), seed, number),
            Variety::MinutelyMixed => mix::minutely(alike(Due::EveryMinutes(1)), number),
        }
    }
}

impl SyntheticCronJob {
    fn body(&self) -> anyhow::Result<CronJob> {
        let mut container = json!({"name": "work", "image": "work", "command": ["true"]});
        if self.padding_bytes > 0 {
            container["env"] = json!([{"name": "PADDING", "value": "x".repeat(self.padding_bytes)}]);
        }
        let schedule = if self.suspended {
            Due::EveryMinutes(1).schedule()
        } else {
            self.due.schedule()
        };
        let options = self
            .spread
            .as_ref()
            .map(|window| json!({ "cronwheel.dev/spread": window }));
        let body = json!({
            "metadata": { "name": self.name, "namespace": self.namespace, "annotations": options },
            "spec": {
                "schedule": schedule,
                "timeZone": self.time_zone,
                "startingDeadlineSeconds": self.starting_deadline_seconds,
                "suspend": self.suspended,
                "concurrencyPolicy": self.concurrency_policy,
                "successfulJobsHistoryLimit": self.history_limit,
                "failedJobsHistoryLimit": self.history_limit,
                "jobTemplate": { "spec": { "backoffLimit": 0, "template": {
                    "metadata": { "annotations": self.annotations() },
                    "spec": { "restartPolicy": "Never", "containers": [container] },
                }}},
            },
        });
        serde_json::from_value(body).context("the body of a synthetic CronJob does not decode")
    }

    /// The annotations with which the test bed and the in-memory server control Jobs.
    fn annotations(&self) -> Value {
        let mut annotations = json!({ "run-for": format!("{}s", self.job_seconds) });
        if self.fails {
            annotations["outcome"] = json!("fail");
        }
        annotations
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn load() -> Load {
        Load::minutely("load".into(), 7, 3, 3)
    }

    #[test]
    fn cron_jobs_are_distinct_and_spread_over_namespaces() {
        let cron_jobs = load().cron_jobs();
        let distinct: BTreeSet<_> = cron_jobs.iter().map(|one| (&one.namespace, &one.name)).collect();
        assert_eq!((cron_jobs.len(), distinct.len()), (7, 7));
        for namespace in load().namespaces() {
            let n_inside = cron_jobs.iter().filter(|one| one.namespace == namespace).count();
            assert!((2..=3).contains(&n_inside), "{namespace}: {n_inside}");
        }
    }

    #[test]
    fn body_has_the_annotations_for_kwok() {
        let mut cron_job = load().cron_jobs().swap_remove(4);
        (cron_job.fails, cron_job.padding_bytes) = (true, 100);
        cron_job.spread = Some("50s".to_owned());
        let body = cron_job.body().unwrap();
        assert_eq!(body.metadata.namespace.as_deref(), Some("load-1"));
        assert_eq!(body.metadata.annotations.unwrap()["cronwheel.dev/spread"], "50s");
        let spec = body.spec;
        assert_eq!(spec.schedule, "* * * * *");
        let template = spec.job_template.spec.unwrap().template;
        let annotations = template.metadata.unwrap().annotations.unwrap();
        assert_eq!(
            (&annotations["run-for"][..], &annotations["outcome"][..]),
            ("3s", "fail")
        );
        let variables = template.spec.unwrap().containers[0].env.clone().unwrap();
        assert_eq!(variables[0].value.as_ref().unwrap().len(), 100);
    }

    #[test]
    fn namespaces_carry_the_id_of_the_run() {
        let manifest: Value = serde_json::from_str(&load().namespaces_manifest()).unwrap();
        assert_eq!(manifest["items"][2]["metadata"]["labels"][RUN_LABEL], "load");
    }
}
