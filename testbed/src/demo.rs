//! Runs cronwheel on its own control plane, in the foreground, until interrupted.

use std::{
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command},
    time::Duration,
};

use anyhow::{Context as _, bail};
use testbed::{Options, Testbed, cargo, terminate};
use tokio::signal::unix::{SignalKind, signal};

/// The service account and its permissions.
const RBAC: &str = include_str!("../../deploy/manifests/rbac.yaml");
const EXAMPLE: &str = include_str!("../../examples/hello.yaml");

/// Interval of the check that the controller still runs.
const POLL: Duration = Duration::from_millis(200);

/// Builds cronwheel, starts a control plane, applies the example and runs cronwheel until interrupted.
pub(crate) fn run(name: String, listen: &str) -> anyhow::Result<()> {
    let program = build_cronwheel()?;
    let testbed = Testbed::start(Options {
        name: Some(name),
        ..Options::default()
    })?;
    testbed.kubectl().apply(RBAC)?;
    testbed.kubectl().apply(EXAMPLE)?;
    let kubeconfig = testbed.token_kubeconfig("kube-system", "cronwheel")?;
    super::print_usage(&testbed);
    println!("Metrics: http://{listen}/metrics. Ctrl-C stops everything.\n");
    let controller = Command::new(program)
        .args([
            "run",
            "--lease-namespace",
            "kube-system",
            "--listen",
            listen,
            "--kubeconfig",
        ])
        .arg(kubeconfig)
        // A terminal sends SIGINT to the whole process group, and a second signal would cut the shutdown short. In its
        // own group, the controller gets only ours.
        .process_group(0)
        .spawn()
        .context("cannot start cronwheel")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(wait(controller));
    testbed.stop()?;
    outcome
}

/// Waits for an interrupt, then for the controller to shut down. It is an error if the controller exits on its own.
async fn wait(mut controller: Child) -> anyhow::Result<()> {
    let mut terminations = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            biased;
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminations.recv() => {}
            () = tokio::time::sleep(POLL) => match controller.try_wait()? {
                Some(status) => bail!("cronwheel ended by itself ({status})"),
                None => continue,
            },
        }
        terminate(&controller)?;
        controller.wait()?;
        return Ok(());
    }
}

fn build_cronwheel() -> anyhow::Result<PathBuf> {
    let status = cargo()
        .args([
            "build",
            "--quiet",
            "--release",
            "--package",
            "cronwheel",
            "--bin",
            "cronwheel",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cronwheel does not build");
    }
    let own = std::env::current_exe().context("where is this program?")?;
    let target = own
        .parent()
        .and_then(std::path::Path::parent)
        .context("this program is not in a target folder")?;
    Ok(target.join("release/cronwheel"))
}
