//! Settings of a controller, fixed at start.

use std::{sync::Arc, time::Duration};

use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};

use super::event_task::EventBudget;
use crate::{
    coordination::{ElectionConfig, Incarnation, Installation, InstallationName, MemberSettings, Timing},
    kube_api::{Decoder, LeaseApi, NamespaceSelector, leases::OwnerPod, other_controllers::OtherControllers},
    schedule::{Zone, options::Freeze},
    shard::{Calendars, HeldShards, LoggedRuns, ManagedNamespaces, Scope, ShardCount},
};

/// Settings of a run, apart from its connections and its clock.
#[derive(Clone)]
pub struct RunSettings {
    /// The watched namespaces; never empty, without overlaps.
    pub scopes: Vec<Scope>,
    /// Selects the managed namespaces by their labels; all watched ones are if `None`.
    pub namespace_selector: Option<NamespaceSelector>,
    /// Time zone of schedules that name none (B-7.2).
    pub default_zone: Zone,
    /// The time for which status updates are collected before they are written.
    pub status_flush_interval: Duration,
    /// Maximum number of requests in flight in the lane for Jobs.
    pub in_flight_max: u32,
    /// Memory for templates and metadata of CronJobs, in MiB.
    pub template_memory_mib: u32,
    /// The number of missed runs that the installation starts in a second.
    pub missed_runs_per_second: u32,
    /// Budget for Events, shared by all replicas.
    pub events: EventBudget,
    /// Until when nothing starts.
    pub freeze: Option<Freeze>,
    /// Whether ConfigMaps are read, for the option `not-on`.
    pub reads_calendars: bool,
    /// The names of the admission policies that keep the built-in controller out, and of their bindings.
    pub built_in_policies: Vec<Box<str>>,
    /// The metrics that name CronJobs.
    pub cron_job_metrics: CronJobMetrics,
    /// The label of CronJobs in trouble that their metric repeats as `owner`.
    pub trouble_label: Option<Box<str>>,
    /// The runs that are logged.
    pub log_runs: LogRuns,
    /// The membership by which this replica and others share CronJobs.
    pub membership: Membership,
}

impl RunSettings {
    /// Returns the managed namespaces, of which none is known yet if a selector selects them.
    pub(super) fn namespaces(&self) -> ManagedNamespaces {
        match &self.namespace_selector {
            Some(_) => ManagedNamespaces::selected(),
            None => ManagedNamespaces::default(),
        }
    }

    /// Returns how CronJobs are decoded.
    pub(super) fn decoder(&self, other_controllers: OtherControllers) -> Decoder {
        Decoder {
            default_zone: self.default_zone.clone(),
            other_controllers,
            owner_label: self.trouble_label.clone(),
        }
    }

    /// Returns all shards of the installation, on standby.
    pub(super) fn shards(
        &self,
        namespaces: ManagedNamespaces,
        clock_skew_max: SignedDuration,
        now: Timestamp,
    ) -> HeldShards {
        let count = self.membership.shard_count;
        let mut shards = HeldShards::new(count, self.scopes.clone(), clock_skew_max, now);
        let template_bytes_max = u64::from(self.template_memory_mib) << 20;
        shards.template_memory().set_bytes_max(template_bytes_max);
        shards.catch_up_pace().set_per_second(self.missed_runs_per_second);
        shards.survey_cron_jobs(self.cron_job_metrics == CronJobMetrics::Trouble);
        shards.manage_only(namespaces);
        shards.log_runs(self.log_runs.into());
        shards.freeze(self.freeze.as_ref());
        if self.reads_calendars {
            shards.read_calendars(Calendars::of_scopes(&self.scopes));
        }
        shards
    }

    /// Returns what other members compare with their own settings.
    pub(super) fn of_member(&self) -> MemberSettings {
        let zone = self.default_zone.name();
        match &self.namespace_selector {
            Some(selector) => MemberSettings::selecting(&selector.to_string(), zone),
            None => MemberSettings::of(&self.scopes, zone),
        }
    }
}

/// The metrics that name CronJobs and their namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CronJobMetrics {
    /// CronJobs in trouble
    #[default]
    Trouble,
    /// No metric names a CronJob
    None,
}

/// The runs that have a line in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogRuns {
    /// Runs that end without their Job although they should have started
    #[default]
    Lost,
    /// Lost runs, and one line for each Job
    All,
    /// No run
    None,
}

impl From<LogRuns> for LoggedRuns {
    fn from(log_runs: LogRuns) -> LoggedRuns {
        match log_runs {
            LogRuns::Lost => LoggedRuns::Lost,
            LogRuns::All => LoggedRuns::All,
            LogRuns::None => LoggedRuns::None,
        }
    }
}

/// The identity of this replica, and the settings of its installation.
#[derive(Clone)]
pub struct Membership {
    /// Name of the installation.
    pub installation: InstallationName,
    /// Namespace of the Leases.
    pub namespace: Box<str>,
    /// Name of this replica's Pod.
    pub pod_name: Box<str>,
    /// Uid of this replica's Pod.
    pub pod_uid: Box<str>,
    /// The Pod as owner of the member Lease, if both are in the same cluster and namespace.
    pub owner: Option<OwnerPod>,
    /// Revision of the Pod template.
    pub revision: Box<str>,
    /// Number of shards.
    pub shard_count: ShardCount,
    /// This replica's version of the sharding protocol.
    pub protocol: u16,
    /// Timing of the election.
    pub timing: Timing,
    /// Source of incarnation numbers.
    pub incarnations: Incarnations,
}

/// Returns a number that no other incarnation has.
pub type Incarnations = Arc<dyn Fn() -> u64 + Send + Sync>;

impl Membership {
    /// The installation by the namespace of its Leases and its name, as the Jobs that it creates name it.
    pub fn full_name(&self) -> Box<str> {
        format!("{}/{}", self.namespace, self.installation).into()
    }

    /// Returns the client for the Leases of the installation.
    pub(super) fn lease_api(&self, client: kube::Client) -> LeaseApi {
        LeaseApi::new(client, &self.namespace, self.shard_count, self.owner.clone())
            .of_installation(self.installation.clone())
    }

    /// Returns the configuration of an election, with a new incarnation.
    pub fn election(&self, settings: MemberSettings) -> ElectionConfig {
        ElectionConfig {
            pod_name: self.pod_name.clone(),
            pod_uid: self.pod_uid.clone(),
            incarnation: Incarnation((self.incarnations)()),
            revision: self.revision.clone(),
            protocol: self.protocol,
            installation: Installation::of(self.shard_count),
            settings,
            timing: self.timing,
        }
    }
}
