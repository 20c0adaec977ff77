//! What a controller is told when it begins.

use std::{fmt, net::SocketAddr, sync::Arc, time::Duration};

use super::event_task::EventBudget;
use crate::{
    coordination::{
        ElectionConfig, Incarnation, Installation, InstallationName, MemberSettings, ProtocolRange, Timing,
    },
    kube_api::leases::OwnerPod,
    schedule::Zone,
    shard::{Scope, ShardCount},
};

/// What a run goes by, whatever its way to the API server and its clock are.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// What is watched; never empty, without overlaps.
    pub scopes: Vec<Scope>,
    /// Where the endpoints are.
    pub listen: SocketAddr,
    /// The zone of schedules that name none (B-7.2).
    pub default_zone: Zone,
    /// How long statuses gather.
    pub status_flush_interval: Duration,
    /// The most requests about Jobs on the way.
    pub inflight_max: u32,
    /// The memory for templates and metadata of CronJobs.
    pub template_memory_mib: u32,
    /// What all replicas may spend on Events.
    pub events: EventBudget,
    /// How CronJobs are shared with other replicas; none with `--alone`.
    pub sharding: Option<ShardingSettings>,
    /// How a replica with `--alone` makes itself known to others, and they to it.
    pub alone: Option<ShardingSettings>,
}

/// How CronJobs are shared out, and who this replica is.
#[derive(Clone)]
pub struct ShardingSettings {
    /// The name of the installation.
    pub installation: InstallationName,
    /// The namespace of the Leases.
    pub namespace: Box<str>,
    /// The name of our pod.
    pub pod_name: Box<str>,
    /// The uid of our pod.
    pub pod_uid: Box<str>,
    /// The pod, where it is an object beside our Lease and so can own it.
    pub owner: Option<OwnerPod>,
    /// The revision of its template.
    pub revision: Box<str>,
    /// How many shards.
    pub shard_count: ShardCount,
    /// Which versions of the protocol it can follow.
    pub protocol: ProtocolRange,
    /// How long everything takes.
    pub timing: Timing,
    /// Where the numbers of our lives come from.
    pub incarnations: Incarnations,
}

/// Gives a number that no other life has.
pub type Incarnations = Arc<dyn Fn() -> u64 + Send + Sync>;

impl fmt::Debug for ShardingSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardingSettings {
            installation,
            namespace,
            pod_name,
            pod_uid,
            owner,
            revision,
            shard_count,
            protocol,
            timing,
            incarnations: _,
        } = self;
        f.debug_struct("ShardingSettings")
            .field("installation", installation)
            .field("namespace", namespace)
            .field("pod_name", pod_name)
            .field("pod_uid", pod_uid)
            .field("owner", owner)
            .field("revision", revision)
            .field("shard_count", shard_count)
            .field("protocol", protocol)
            .field("timing", timing)
            .finish_non_exhaustive()
    }
}

impl ShardingSettings {
    /// The configuration of an election, for a replica with these settings.
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
