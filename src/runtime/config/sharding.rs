//! How a replica shares CronJobs with others, checked once at the start.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use crate::{
    cluster::leases::OwnerPod,
    runtime::args::{RunArgs, TimingPreset},
    state::{
        lease::{ElectionConfig, Incarnation, Installation, MemberSettings, Preset, ProtocolRange, Timing},
        sharding::{ShardCount, Weight},
    },
};

/// Why a replica cannot share CronJobs with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardingError {
    /// Members are known by their pods.
    #[error(
        "--shards: {flag} is not known; give it, or set {variable} from the pod's own fields (`valueFrom.fieldRef`: {field})"
    )]
    Pod {
        /// The flag.
        flag: &'static str,
        /// Its variable.
        variable: &'static str,
        /// The field of the pod.
        field: &'static str,
    },
    /// Identities are parts of one text.
    #[error("--shards: {flag} must not be empty or have a '/' in it")]
    Text {
        /// The flag.
        flag: &'static str,
    },
}

/// How CronJobs are shared out, and who this replica is.
#[derive(Clone)]
pub struct ShardingSettings {
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
    /// From flags; none without `--shards`.
    ///
    /// `own_namespace` is that of our pod, if we are in one.
    pub fn from_args(
        args: &RunArgs,
        kube: &kube::Config,
        own_namespace: Option<&str>,
    ) -> Result<Option<ShardingSettings>, ShardingError> {
        let Some(shard_count) = args.shards else {
            return Ok(None);
        };
        let pod_name = known(args.pod_name.as_deref(), "--pod-name", "POD_NAME", "metadata.name")?;
        let pod_uid = known(args.pod_uid.as_deref(), "--pod-uid", "POD_UID", "metadata.uid")?;
        let namespace = args.lease_namespace.as_deref().unwrap_or(&kube.default_namespace);
        // An owner that is not there, or is in another namespace, would have the Lease collected as garbage.
        let owner = (own_namespace == Some(namespace)).then(|| OwnerPod {
            name: pod_name.clone(),
            uid: pod_uid.clone(),
        });
        Ok(Some(ShardingSettings {
            namespace: namespace.into(),
            pod_name,
            pod_uid,
            owner,
            revision: args.pod_revision.as_deref().unwrap_or_default().into(),
            shard_count,
            protocol: ProtocolRange::OURS,
            timing: preset(args.timing).timing(),
            incarnations: Arc::new(random_number),
        }))
    }

    /// The configuration of an election, for a replica with these settings.
    pub fn election(&self, settings: MemberSettings) -> ElectionConfig {
        ElectionConfig {
            pod_name: self.pod_name.clone(),
            pod_uid: self.pod_uid.clone(),
            incarnation: Incarnation((self.incarnations)()),
            revision: self.revision.clone(),
            weight: Weight::default(),
            protocol: self.protocol,
            installation: Installation::of(self.shard_count),
            settings,
            timing: self.timing,
        }
    }
}

fn preset(named: TimingPreset) -> Preset {
    match named {
        TimingPreset::Default => Preset::Default,
        TimingPreset::Fast => Preset::Fast,
        TimingPreset::Safe => Preset::Safe,
    }
}

fn known(
    value: Option<&str>,
    flag: &'static str,
    variable: &'static str,
    field: &'static str,
) -> Result<Box<str>, ShardingError> {
    let text = value.ok_or(ShardingError::Pod { flag, variable, field })?;
    if text.is_empty() || text.contains('/') {
        return Err(ShardingError::Text { flag });
    }
    Ok(text.into())
}

/// A number that no other life has: what the standard library keys its maps with is drawn from the kernel's randomness.
fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests;
