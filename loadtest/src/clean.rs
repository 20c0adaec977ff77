//! `loadtest clean`: removes the leftovers of runs from a cluster, even after a crash.

use std::path::{Path, PathBuf};

use clap::Args;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};

use crate::{generator::RUN_LABEL, scenario::client};

#[derive(Debug, Args)]
pub(crate) struct CleanArguments {
    /// Kubeconfig of a cluster administrator.
    #[arg(long)]
    pub(crate) kubeconfig: PathBuf,
    /// Id of the run to clean up. By default, all runs.
    #[arg(long)]
    pub(crate) run_id: Option<String>,
}

/// Deletes the namespaces of one run, or of all, with their contents. Returns their number.
pub(crate) async fn run(kubeconfig: &Path, run_id: Option<&str>) -> anyhow::Result<usize> {
    let namespaces: Api<Namespace> = Api::all(client(kubeconfig).await?);
    let selector = run_id.map_or_else(|| RUN_LABEL.to_owned(), |run_id| format!("{RUN_LABEL}={run_id}"));
    let ours = namespaces
        .list_metadata(&ListParams::default().labels(&selector))
        .await?;
    let names: Vec<String> = ours.items.into_iter().filter_map(|one| one.metadata.name).collect();
    for name in &names {
        namespaces.delete(name, &DeleteParams::background()).await?;
    }
    Ok(names.len())
}
