//! The command line: flags to typed configuration. Invalid values are refused with the flag and the remedy.

pub(super) mod values;

use std::{
    env,
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::PossibleValuesParser,
    error::{ContextKind, ContextValue},
    value_parser,
};
use clap_complete::Shell;
use jiff::{SignedDuration, Timestamp};

use self::values::{
    parse_clock_offset, parse_clock_skew, parse_flush_interval, parse_freeze_until, parse_installation,
    parse_label_key, parse_listen_anywhere, parse_namespace, parse_pod_name, parse_pod_uid, parse_policy_name,
    parse_zone,
};
#[cfg(feature = "dev")]
use super::dev::DevArgs;
use super::{
    backfill::BackfillArgs,
    check::CheckArgs,
    explain::ExplainArgs,
    freeze::{FreezeArgs, ThawArgs},
    missed::MissedArgs,
    next::NextArgs,
    report::ReportArgs,
    shards::ShardsArgs,
    trigger::TriggerArgs,
    ui::UiArgs,
};
use crate::{
    controller::{
        connections::REQUESTS_IN_FLIGHT_MAX,
        event_task::{EventBudget, EventFilter},
        settings::{CronJobMetrics, LogRuns},
    },
    coordination::InstallationName,
    kube_api::NamespaceSelector,
    schedule::{Zone, zone::tzdb_version},
    shard::{MISSED_RUNS_PER_SECOND_DEFAULT, TemplateMemory},
    telemetry::logging::{LogFormat, LogLevel},
};

/// A request that is sent never waits for a connection.
const IN_FLIGHT_MAX: i64 = REQUESTS_IN_FLIGHT_MAX as i64;

/// More than an API server writes.
const EVENTS_PER_SECOND_MAX: i64 = 10_000;

/// More than any machine has.
const TEMPLATE_MEMORY_MIB_MAX: i64 = 1 << 24;

/// The commit of a release build, or the one in the variable `CRONWHEEL_COMMIT` of any build.
const COMMIT: &str = match option_env!("CRONWHEEL_BUILD_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, data) = (env!("CARGO_PKG_VERSION"), tzdb_version());
    format!("{version} (commit {COMMIT}, time zone data {data})")
});

/// The file name with which kubectl finds the program as its plugin.
const PLUGIN: &str = "kubectl-cronwheel";

/// A CronJob controller for Kubernetes that starts every Job on time.
#[derive(Debug, Parser)]
#[command(name = "cronwheel", version = VERSION.as_str(), max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments of this process. A wrong argument ends the process with the reason and a remedy.
    pub fn of_process() -> Cli {
        Cli::of(env::args_os().collect()).unwrap_or_else(|error| with_remedy(error).exit())
    }

    /// Parses a command line that starts with the path of the program. The help of a kubectl plugin shows the command that
    /// its user types.
    fn of(line: Vec<OsString>) -> Result<Cli, clap::Error> {
        let mut command = Cli::command();
        let program = line.first().and_then(|path| Path::new(path).file_stem());
        if program.is_some_and(|name| name == PLUGIN) {
            command = command.bin_name("kubectl cronwheel");
        }
        let mut matches = command.try_get_matches_from_mut(line)?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// The remedy for `--alone`, which early builds had.
const ALONE_REMEDY: &str = "leave it out: a replica without others runs every CronJob. It needs the Role cronwheel-leases \
                            of deploy/manifests/rbac.yaml in the namespace of its Leases (--lease-namespace)";

fn with_remedy(mut error: clap::Error) -> clap::Error {
    let is_alone = |argument: &ContextValue| matches!(argument, ContextValue::String(text) if text == "--alone");
    if error.get(ContextKind::InvalidArg).is_some_and(is_alone) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![ALONE_REMEDY.into()]),
        );
    }
    error
}

/// The commands with a man page of their own.
const COMMANDS: &[&str] = &[
    "run",
    #[cfg(feature = "dev")]
    "dev",
    "next",
    "explain",
    "check",
    "shards",
    "ui",
    "report",
    "missed",
    "backfill",
    "trigger",
    "freeze",
    "thaw",
];

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the CronJobs of a cluster
    Run(RunArgs),
    /// Run cronwheel on an API server in memory, for kubectl: no cluster needed
    #[cfg(feature = "dev")]
    Dev(DevArgs),
    /// Print the next activations of a schedule
    Next(NextArgs),
    /// Explain what the controller would do with a CronJob now
    Explain(ExplainArgs),
    /// Check an installation, a cluster before the switch and its CronJobs, or that the built-in controller is stopped
    ///
    /// Prints one line for each check: ✓ is fine, ! is to be read, ✗ has failed. Exit code 1 means that a check failed.
    /// For a running installation, the account needs list on leases, namespaces, cronjobs, jobs, validatingadmissionpolicies
    /// and validatingadmissionpolicybindings, of the last two at least get on those of the release; with --canary, create and
    /// delete on namespaces, create and list on cronjobs, and list on jobs, events and leases. A check names the right that its
    /// account lacks
    Check(CheckArgs),
    /// List replicas, shards and their leaders, and other controllers of the same CronJobs
    Shards(ShardsArgs),
    /// Serve a page with the CronJobs of a cluster: what ran, what is late, failed or lost and why, what is due
    ///
    /// It works beside any controller and only reads: the account needs get, list and watch on cronjobs and jobs. With the
    /// same on namespaces and configmaps, it knows freezes, defaults of namespaces and calendars. A namespace of --namespace
    /// that the account may not read is named, and the others are shown
    Ui(UiArgs),
    /// Print how punctual the CronJobs of a cluster were, what was lost and failed, and what could be better
    ///
    /// It works beside any controller, from the Jobs that exist: without --history, what is older than the Jobs that the
    /// cluster keeps is unknown. It only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
    /// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars
    Report(ReportArgs),
    /// List the slots without a Job and why, with the command that starts them
    ///
    /// It works beside any controller, from the Jobs that exist: without --history, what is older than the Jobs that the
    /// cluster keeps is unknown. It only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
    /// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars
    Missed(MissedArgs),
    /// Start the slots of one CronJob that have no Job
    ///
    /// Each Job is the one that the controller would have created: name, annotation, template and owner. So a slot never
    /// starts twice while its Job exists, and the command can be interrupted and repeated. It works beside any controller.
    /// The account needs get, list and watch on cronjobs and jobs, and create on jobs, in the namespace
    Backfill(BackfillArgs),
    /// Start one run of a CronJob now, beside its schedule
    ///
    /// The command sets the annotation cronwheel.dev/run-now of the CronJob, and cronwheel creates the Job, which counts as
    /// active and for the history limits. Forbid refuses the run while a Job runs, Replace deletes that Job first, and a
    /// suspended CronJob runs too. The command waits until the Job is created or refused, for at most ten seconds, and with
    /// --wait until the Job has ended. Exit code 1 means that the run was refused, not taken up, or failed. The account needs
    /// get and patch on cronjobs, and get on jobs; list on events, so that the command prints the reason of a refusal
    Trigger(TriggerArgs),
    /// Let nothing start in a namespace before an instant
    ///
    /// No CronJob is changed, and Jobs that run already go on. The command sets the annotations cronwheel.dev/freeze-until
    /// and freeze-reason of the namespace. Replicas read them if they select namespaces by label (--namespace-selector),
    /// which is the default of the chart; otherwise the freeze has no effect. The account needs patch on namespaces
    Freeze(FreezeArgs),
    /// End the freeze of a namespace
    ///
    /// The command removes the annotations cronwheel.dev/freeze-until and freeze-reason of the namespace. The annotation
    /// cronwheel.dev/on-resume of each CronJob determines what starts then; without it, cronwheel.dev/missed-runs; without both, its latest slot starts at once. The
    /// account needs get and patch on namespaces
    Thaw(ThawArgs),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page of cronwheel or of one command
    Man {
        /// The command
        #[arg(value_parser = PossibleValuesParser::new(COMMANDS))]
        command: Option<String>,
    },
}

/// Runs the CronJobs of a cluster, in place of the controller in kube-controller-manager.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Namespace to work in; can be repeated. Default: all namespaces
    #[arg(short, long = "namespace", value_name = "NAME", value_parser = parse_namespace)]
    pub namespaces: Vec<String>,

    /// Label selector of the namespaces to work in, as for kubectl, e.g. cronwheel.dev/managed=true. cronwheel follows the
    /// labels while it runs. Default: all namespaces
    #[arg(long, value_name = "SELECTOR", conflicts_with = "namespaces")]
    pub namespace_selector: Option<NamespaceSelector>,

    /// Address and port of /healthz, /readyz and /metrics. A port alone stands for all addresses
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", value_parser = parse_listen_anywhere)]
    pub listen: SocketAddr,

    /// Time zone of CronJobs without spec.timeZone, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    pub default_time_zone: Zone,

    /// How long status changes of a CronJob are collected before they are written, from 0s to 1m
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_flush_interval, allow_hyphen_values = true)]
    pub status_flush_interval: Duration,

    /// Maximum number of Job requests in flight. cronwheel sends fewer if the API server throttles. Namespaces with
    /// slow admission webhooks share half as many in addition, up to 320 in all
    #[arg(long, value_name = "COUNT", default_value_t = 128, value_parser = value_parser!(u32).range(1..=IN_FLIGHT_MAX))]
    pub max_inflight: u32,

    /// Memory for Job templates and metadata of CronJobs in this replica, in MiB. 100,000 CronJobs of 5 KiB take 500
    /// MiB. A CronJob that does not fit still runs, at the cost of one more request per run. No namespace takes more
    /// than what stays free
    #[arg(long, value_name = "MIB", default_value_t = TemplateMemory::MIB_DEFAULT, value_parser = value_parser!(u32).range(1..=TEMPLATE_MEMORY_MIB_MAX))]
    pub max_template_memory: u32,

    /// Missed runs that the installation starts in a second, for CronJobs with the annotation
    /// cronwheel.dev/missed-runs or cronwheel.dev/on-resume and the value all
    #[arg(long, value_name = "NUMBER", default_value_t = MISSED_RUNS_PER_SECOND_DEFAULT, value_parser = value_parser!(u32).range(1..=1000))]
    pub missed_runs_per_second: u32,

    /// Let nothing start before this instant, in RFC 3339, e.g. 2026-12-27T06:00:00Z. Freezes of namespaces that end later
    /// hold on. An instant that has passed has no effect
    #[arg(long, value_name = "INSTANT", value_parser = parse_freeze_until)]
    pub freeze_until: Option<Timestamp>,

    /// Why nothing may start, for the log
    #[arg(long, value_name = "TEXT", requires = "freeze_until")]
    pub freeze_reason: Option<String>,

    /// Read the calendars that CronJobs name in the annotation cronwheel.dev/not-on: the ConfigMaps with the label
    /// cronwheel.dev/calendar=true. The account needs list and watch on configmaps
    #[arg(long)]
    pub calendars: bool,

    /// Name of an admission policy that keeps the built-in controller out, and of its binding; can be repeated. A replica
    /// reports one that is missing. The account needs get on both objects
    #[arg(long = "built-in-policy", value_name = "NAME", value_parser = parse_policy_name)]
    pub built_in_policies: Vec<Box<str>>,

    /// Which Events about CronJobs are written
    #[arg(long, value_enum, default_value_t)]
    pub events: EventFilter,

    /// Maximum number of Event writes per second, of all replicas together. Warnings and new Events come first, and
    /// namespaces share the budget fairly
    #[arg(long, value_name = "COUNT", default_value_t = EventBudget::PER_SECOND_DEFAULT, value_parser = value_parser!(u32).range(1..=EVENTS_PER_SECOND_MAX))]
    pub max_events_per_second: u32,

    /// Which metrics name CronJobs and their namespaces. Every reader of /metrics sees these names
    #[arg(long, value_enum, default_value_t)]
    pub cron_job_metrics: CronJobMetrics,

    /// Label of CronJobs whose value the metric of CronJobs in trouble has as owner, e.g. team. Each replica exports at most
    /// a hundred different values, and other for the rest. Default: no owner
    #[arg(long, value_name = "LABEL", value_parser = parse_label_key)]
    pub trouble_label: Option<Box<str>>,

    /// Which runs have a line in the log, at most a hundred in a second
    #[arg(long, value_enum, default_value_t)]
    pub log_runs: LogRuns,

    /// Maximum difference from the API server's clock, from 1s. With a greater difference, no Job starts
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_clock_skew, allow_hyphen_values = true)]
    pub max_clock_skew: SignedDuration,

    /// Offset of the controller's time from the machine's, for tests of schedules; can be negative
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = parse_clock_offset, allow_hyphen_values = true)]
    pub clock_offset: SignedDuration,

    /// Name of the installation. Replicas with the same name share CronJobs, and their Leases begin with it.
    /// Installations for different namespaces need different names
    #[arg(long, value_name = "NAME", value_parser = parse_installation, default_value_t)]
    pub installation: InstallationName,

    /// Namespace of the Leases. Default: that of the Pod, or of the context
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", value_parser = parse_namespace)]
    pub lease_namespace: Option<String>,

    /// Name of this replica's Pod. Default: the one in the Pod's token; outside a Pod, the host name
    #[arg(long, value_name = "NAME", env = "POD_NAME", value_parser = parse_pod_name)]
    pub pod_name: Option<String>,

    /// Uid of this replica's Pod, by which other replicas recognise it after a restart. Default: the one in the Pod's
    /// token; outside a Pod, a random one
    #[arg(long, value_name = "UID", env = "POD_UID", value_parser = parse_pod_uid)]
    pub pod_uid: Option<String>,

    /// Revision of this replica's Pod template, such as its pod-template-hash. Shards are not rebalanced while replicas
    /// differ in it
    #[arg(long, value_name = "TEXT", env = "POD_REVISION")]
    pub pod_revision: Option<String>,

    /// Format of the log
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Minimum level of the log
    #[arg(long, value_enum, default_value_t)]
    pub log_level: LogLevel,
}

#[cfg(test)]
mod tests;
