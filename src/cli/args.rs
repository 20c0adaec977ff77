//! The command line: flags to typed configuration. What cannot work is refused here, naming the flag and the remedy.

pub(super) mod values;

use std::{net::SocketAddr, path::PathBuf, sync::LazyLock, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use clap_complete::Shell;
use jiff::SignedDuration;

use self::values::{
    parse_clock_offset, parse_clock_skew, parse_flush_interval, parse_installation, parse_namespace, parse_shards,
    parse_zone,
};
#[cfg(feature = "dev")]
use super::dev::DevArgs;
use super::{explain::ExplainArgs, next::NextArgs, shards::ShardsArgs};
use crate::{
    controller::event_task::{EventBudget, EventFilter},
    coordination::InstallationName,
    schedule::{Zone, zone::tzdb_version},
    shard::{ShardCount, TemplateMemory},
    telemetry::logging::{LogFormat, LogLevel},
};

/// What so many connections can carry, less a tenth for statuses and probes: a request never waits for a connection
/// after it was decided to send it.
const INFLIGHT_MAX: i64 = 320;

/// More than an API server writes.
const EVENTS_PER_SECOND_MAX: i64 = 10_000;

/// More than any machine has.
const TEMPLATE_MEMORY_MIB_MAX: i64 = 1 << 24;

static VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{} (time zone data {})", env!("CARGO_PKG_VERSION"), tzdb_version()));

/// A CronJob controller for Kubernetes that fires at the instant.
#[derive(Debug, Parser)]
#[command(name = "cronwheel", version = VERSION.as_str(), max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the CronJobs of a cluster
    Run(RunArgs),
    /// Run an API server in memory for kubectl, with cronwheel on it: no cluster needed
    #[cfg(feature = "dev")]
    Dev(DevArgs),
    /// Print when a schedule fires next
    Next(NextArgs),
    /// Say what the controller would do with a CronJob now, and why
    Explain(ExplainArgs),
    /// Show who leads which shard
    Shards(ShardsArgs),
    /// Print the script by which a shell completes our command lines
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Runs the CronJobs of a cluster, in place of the controller in kube-controller-manager.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The kubeconfig to reach the API server by; without it and --context the Pod's service account, where there is
    /// one, else KUBECONFIG, else ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, of KUBECONFIG or ~/.kube/config without --kubeconfig; the current one without it
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// A namespace to work in; may be given several times; all namespaces without it
    #[arg(long = "namespace", value_name = "NAME", value_parser = parse_namespace)]
    pub namespaces: Vec<String>,

    /// Address and port of /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// The time zone of schedules that name none, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    pub default_time_zone: Zone,

    /// How long changes of a CronJob's status gather before they are written, from 0s to 1m
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_flush_interval, allow_hyphen_values = true)]
    pub status_flush_interval: Duration,

    /// The most requests about Jobs on the way at a time; fewer when the API server is slow or throttles
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = value_parser!(u32).range(1..=INFLIGHT_MAX))]
    pub max_inflight: u32,

    /// Memory for the templates and the metadata of the CronJobs of this replica, in MiB; a namespace uses at most as much
    /// as stays free, half of it if it is the only one; a CronJob that does not fit still runs, its template is read from
    /// the API server for each run; 100,000 CronJobs of 5 KiB take 500 MiB
    #[arg(long, value_name = "MIB", default_value_t = TemplateMemory::MIB_DEFAULT, value_parser = value_parser!(u32).range(1..=TEMPLATE_MEMORY_MIB_MAX))]
    pub max_template_memory: u32,

    /// Which Events about CronJobs are posted
    #[arg(long, value_enum, default_value_t)]
    pub events: EventFilter,

    /// The most writes of Events in a second, by all replicas together; Warnings and what is new come first, and no
    /// namespace takes the place of another
    #[arg(long, value_name = "COUNT", default_value_t = EventBudget::PER_SECOND_DEFAULT, value_parser = value_parser!(u32).range(1..=EVENTS_PER_SECOND_MAX))]
    pub max_events_per_second: u32,

    /// How far our clock may be from the API server's before nothing is fired any more, from 1s
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_clock_skew, allow_hyphen_values = true)]
    pub max_clock_skew: SignedDuration,

    /// By how much the controller's time runs ahead of the machine's, negative for behind; for tests of schedules
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_clock_offset, allow_hyphen_values = true)]
    pub clock_offset: SignedDuration,

    /// Run every CronJob from this one process, without the label of a shard on Jobs; it starts nothing while it sees
    /// another replica that is active
    #[arg(long, conflicts_with_all = ["shards", "timing"])]
    pub alone: bool,

    /// The number of shards that the replicas share the CronJobs out over: a power of two from 16 to 1024, the same for all
    /// and fixed at installation
    #[arg(long, value_name = "COUNT", value_parser = parse_shards, default_value = "256")]
    pub shards: ShardCount,

    /// How soon a replica that is silent loses its shards, and how often each writes its Lease; may differ between replicas
    #[arg(long, value_enum, default_value_t)]
    pub timing: TimingPreset,

    /// The name of the installation: replicas of the same name share the CronJobs out, and Leases and ConfigMap begin with
    /// it; give installations for different namespaces different names
    #[arg(long, value_name = "NAME", value_parser = parse_installation, default_value_t)]
    pub installation: InstallationName,

    /// The namespace of the Leases; without it that of the Pod, or of the kubeconfig's context
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", value_parser = parse_namespace)]
    pub lease_namespace: Option<String>,

    /// The name of this replica's Pod, for people; without it the one that the Pod's token names, outside a Pod the host's
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pub pod_name: Option<String>,

    /// The uid of this replica's Pod, by which other replicas know it, also after a restart; without it the one that the
    /// Pod's token names, outside a Pod a random one
    #[arg(long, value_name = "UID", env = "POD_UID")]
    pub pod_uid: Option<String>,

    /// The revision of this replica's pod template, such as its pod-template-hash: shards are not evened out while replicas
    /// differ in it
    #[arg(long, value_name = "TEXT", env = "POD_REVISION")]
    pub pod_revision: Option<String>,

    /// How a line of the log looks
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Which lines the log has
    #[arg(long, value_enum, default_value_t)]
    pub log_level: LogLevel,
}

/// Constants of the Lease protocol that go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimingPreset {
    /// A dead node's shards are led again after 8 to 10.5 s
    #[default]
    Default,
    /// After 5 to 6.5 s, at nearly twice the Lease writes
    Fast,
    /// After 12 to 16 s, for API servers that are slow to write
    Safe,
}

#[cfg(test)]
mod tests;
