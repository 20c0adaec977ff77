//! `loadtest clean`: removes what runs have left on a cluster, also after a crash.

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
    /// An administrator's kubeconfig of the cluster.
    #[arg(long)]
    pub(crate) kubeconfig: PathBuf,
    /// The id of one run; without it what all runs have left.
    #[arg(long)]
    pub(crate) run_id: Option<String>,
}

/// Deletes the namespaces of one run, or of all, with everything in them; how many.
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
