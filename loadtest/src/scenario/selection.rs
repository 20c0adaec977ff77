//! How much replicas save if the API server selects CronJobs by shard (feature gate `ShardedListAndWatch`).

mod costs;
mod drains;
mod report;

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use cronwheel::{
    kube_api::{ApiServer, Decoder, other_controllers::OtherControllers, watch_client},
    schedule::Zone,
    shard::ShardCount,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use testbed::{JobLife, Options, Testbed};

pub(crate) use self::report::SelectionReport;
use crate::measure;

const N_IN_FLIGHT: usize = 16;
const GATE: &str = "ShardedListAndWatch=true";

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Selection<'a> {
    pub(crate) n_cron_jobs: usize,
    /// The executable of cronwheel.
    pub(crate) program: &'a Path,
}

impl Selection<'_> {
    /// Measures lists and watches on one control plane, then drains on one with the feature gate and on one without.
    pub(crate) async fn run(&self) -> anyhow::Result<SelectionReport> {
        let testbed = control_plane(true)?;
        super::progress(&format!("{} CronJobs, lists and watches", self.n_cron_jobs));
        let costs = costs::measured(&testbed.kubeconfig(), self.n_cron_jobs).await?;
        testbed.stop()?;
        // Without selection by the server, each of five processes lists all CronJobs repeatedly.
        let n_cron_jobs_drained = self.n_cron_jobs / 4;
        let mut drain_seconds = Vec::new();
        for has_gate in [false, true] {
            super::progress(&format!("{n_cron_jobs_drained} CronJobs, drains, gate: {has_gate}"));
            let testbed = control_plane(has_gate)?;
            create(&cron_jobs(&testbed.kubeconfig()).await?, n_cron_jobs_drained).await?;
            drain_seconds.push(drains::seconds(self.program, &testbed.kubeconfig()).await?);
            testbed.stop()?;
        }
        Ok(SelectionReport {
            command: measure::command(),
            revision: measure::revision(),
            n_cron_jobs: self.n_cron_jobs,
            costs,
            n_cron_jobs_drained,
            drain_seconds,
        })
    }
}

fn control_plane(has_gate: bool) -> anyhow::Result<Testbed> {
    Ok(Testbed::start(Options {
        jobs: JobLife::None,
        feature_gates: has_gate.then(|| GATE.to_owned()).into_iter().collect(),
        ..Options::default()
    })?)
}

/// Creates the client that cronwheel uses for its watches.
async fn client(kubeconfig: &Path) -> anyhow::Result<Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(watch_client(&ApiServer::open(&config).await?)?)
}

async fn cron_jobs(kubeconfig: &Path) -> anyhow::Result<Api<CronJob>> {
    Ok(Api::default_namespaced(client(kubeconfig).await?))
}

fn decoder(count: ShardCount) -> Arc<Decoder> {
    Arc::new(Decoder {
        default_zone: Zone::utc(),
        shard_count: Some(count),
        other_controllers: OtherControllers::default(),
    })
}

/// Creates CronJobs of the usual size that never fire. Returns their names.
async fn create(api: &Api<CronJob>, n_cron_jobs: usize) -> anyhow::Result<Vec<String>> {
    let create = |number| async move {
        let made = api.create(&PostParams::default(), &cron_job(number)?).await?;
        made.metadata.name.context("a CronJob has no name")
    };
    stream::iter(0..n_cron_jobs)
        .map(create)
        .buffer_unordered(N_IN_FLIGHT)
        .try_collect()
        .await
}

fn cron_job(number: usize) -> anyhow::Result<CronJob> {
    let object = json!({
        "metadata": {"name": format!("selected-{number:05}"), "labels": {"app": "selected", "team": "load"}},
        "spec": {"schedule": "* * * * *", "suspend": true, "jobTemplate": {"spec": {"template": {
            "metadata": {"annotations": {"run-for": "3s"}},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": "work", "image": "registry/work:1.2.3", "command": ["work", "--once"]},
            ]},
        }}}},
    });
    serde_json::from_value(object).context("the body of a CronJob does not decode")
}
