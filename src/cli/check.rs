//! The `check` command: whether a cluster is ready for cronwheel (`--pre`), and whether an installation works.
//!
//! Each check is a pure function from facts to a [`Finding`]. The facts that an account may not read turn a check into
//! a warning, and end nothing.

mod annotations;
mod built_in;
mod canary;
mod cluster;
mod finding;
mod freezes;
pub(super) mod installation;
mod options;
mod own_policies;
mod policy;
mod pre;
mod reads;
mod report;
mod requirements;
mod running;
mod switch;

use std::{io::Write, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};

use self::finding::{Finding, Severity};
use super::{
    args::values::{parse_canary_wait, parse_installation, parse_namespace, parse_zone},
    error::CommandError,
};
use crate::{
    controller::clock::Clock,
    coordination::InstallationName,
    kube_api::{JsonApi, NamespaceSelector},
    schedule::Zone,
};

/// Checks a running installation, a cluster before cronwheel is installed (--pre), or whether the built-in controller is
/// stopped (--canary).
///
/// Exit code 1 means that a check failed (✗). Warnings (!) do not fail.
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Check what an installation needs, and what the switch from the built-in controller would do to the CronJobs of the
    /// cluster. Only reads
    #[arg(long)]
    pre: bool,
    /// Show by a CronJob without Pods whether the built-in controller is stopped in a managed namespace and works in
    /// another one. Creates two namespaces and deletes them at the end, also after Ctrl-C. Takes up to 75 seconds.
    /// --canary=NAMESPACE creates the CronJob in this managed namespace instead, and fails unless cronwheel creates its Job
    #[arg(long, value_name = "NAMESPACE", num_args = 0..=1, require_equals = true, default_missing_value = "",
        value_parser = parse_canary_place, conflicts_with = "pre")]
    canary: Option<CanaryPlace>,
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace whose CronJobs --pre checks; can be repeated. Default: all namespaces
    #[arg(short, long = "namespace", value_name = "NAME", value_parser = parse_namespace, requires = "pre")]
    namespaces: Vec<String>,
    /// Namespace of the Leases. Default: that of the context or of the service account, otherwise kube-system; with --pre,
    /// also that of the release, and kube-system by default
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", value_parser = parse_namespace)]
    pub lease_namespace: Option<String>,
    /// Name of the installation, as given to its replicas
    #[arg(long, value_name = "NAME", value_parser = parse_installation, default_value_t)]
    installation: InstallationName,
    /// With --canary without a namespace, the label selector of managed namespaces. Default: that of the replicas; without replicas,
    /// cronwheel.dev/managed=true
    #[arg(long, value_name = "SELECTOR", requires = "canary", conflicts_with = "pre")]
    namespace_selector: Option<NamespaceSelector>,
    /// With --canary, how long to wait after the first run is due, from 1s to 10m. A busy built-in controller may be a
    /// minute late
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_canary_wait, requires = "canary",
        conflicts_with = "pre")]
    wait: Duration,
    /// With --pre, the time zone of CronJobs without spec.timeZone, as the replicas will have it, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone, requires = "pre",
        conflicts_with = "canary")]
    default_time_zone: Zone,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

/// Where the CronJobs of the canary are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CanaryPlace {
    /// In namespaces of its own.
    New,
    /// In this one.
    Existing(String),
}

fn parse_canary_place(text: &str) -> Result<CanaryPlace, String> {
    if text.is_empty() {
        return Ok(CanaryPlace::New);
    }
    parse_namespace(text).map(CanaryPlace::Existing)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people
    Text,
    /// One JSON object
    Json,
}

/// The clients of the command.
pub struct Sources {
    /// The client for objects.
    pub client: kube::Client,
    /// The client for Leases.
    pub leases: kube::Client,
    /// The namespaces to search for Leases; the first one with Leases counts.
    pub lease_namespaces: Vec<String>,
}

impl CheckArgs {
    /// Whether the command writes to the cluster, and must remove what it wrote before it ends.
    pub fn writes(&self) -> bool {
        self.canary.is_some()
    }
}

/// Runs the checks and prints one line for each. `is_terminal` is whether the output shows colours. `interrupted`
/// completes when a command that writes is to end.
pub async fn run(
    args: &CheckArgs,
    sources: Sources,
    clock: &Clock,
    interrupted: impl Future<Output = ()>,
    mut output: impl Write,
    is_terminal: bool,
) -> Result<(), CommandError> {
    if let (Some(CanaryPlace::Existing(namespace)), Some(_)) = (&args.canary, &args.namespace_selector) {
        return Err(
            format!("--namespace-selector has no effect with --canary={namespace}; leave one of them out").into(),
        );
    }
    let (form, findings) = if args.pre {
        let api = JsonApi::new(sources.client);
        ("pre", pre::findings(args, &api, clock).await)
    } else if let Some(place) = &args.canary {
        let findings = match place {
            CanaryPlace::New => canary::findings(args, &sources, clock, interrupted).await,
            CanaryPlace::Existing(namespace) => {
                let api = JsonApi::new(sources.client);
                canary::existing::findings(&api, namespace, args.wait, clock, interrupted).await
            }
        };
        ("canary", findings)
    } else {
        ("installation", running::findings(args, &sources, clock).await)
    };
    let text = match args.output {
        OutputFormat::Text => report::text(&findings, is_terminal),
        OutputFormat::Json => report::document(form, &findings, clock.now()),
    };
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    // The exit code does not depend on a reader of the answer.
    verdict(&findings)?;
    written.map_err(CommandError::Write)
}

/// Fails if a check failed.
fn verdict(findings: &[Finding]) -> Result<(), CommandError> {
    match report::count(findings, Severity::Failed) {
        0 => Ok(()),
        1 => Err("1 check failed".to_owned().into()),
        n => Err(format!("{n} checks failed").into()),
    }
}

#[cfg(test)]
mod tests;
