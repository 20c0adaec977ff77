//! The flags of `cronwheel run`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, value_parser};
use jiff::{SignedDuration, Timestamp};

use super::args::values::{
    parse_clock_offset, parse_clock_skew, parse_flush_interval, parse_freeze_until, parse_installation,
    parse_label_key, parse_listen_anywhere, parse_namespace, parse_pod_name, parse_pod_uid, parse_policy_name,
    parse_zone,
};
use crate::{
    controller::{
        connections::REQUESTS_IN_FLIGHT_MAX,
        event_task::{EventBudget, EventFilter},
        settings::{CronJobMetrics, LogRuns},
    },
    coordination::InstallationName,
    kube_api::NamespaceSelector,
    schedule::Zone,
    shard::{MISSED_RUNS_PER_SECOND_DEFAULT, TemplateMemory},
    telemetry::logging::{LogFormat, LogLevel},
};

/// A request that is sent never waits for a connection.
const IN_FLIGHT_MAX: i64 = REQUESTS_IN_FLIGHT_MAX as i64;

/// More than an API server writes.
const EVENTS_PER_SECOND_MAX: i64 = 10_000;

/// More than any machine has.
const TEMPLATE_MEMORY_MIB_MAX: i64 = 1 << 24;

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
