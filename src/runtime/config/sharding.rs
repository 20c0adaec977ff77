//! How a replica shares CronJobs with others, checked once at the start.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use super::surroundings::{PodIdentity, Surroundings, TokenFault};
use crate::{
    cluster::leases::OwnerPod,
    runtime::args::{RunArgs, TimingPreset},
    state::{
        lease::{
            ElectionConfig, Incarnation, Installation, InstallationName, MemberSettings, Preset, ProtocolRange, Timing,
        },
        sharding::ShardCount,
    },
};

/// Why a replica cannot share CronJobs with others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardingError {
    /// Other replicas know this one by its Pod.
    #[error(
        "the Pod's name and uid cannot be read from its token: {fault}; give --pod-name and --pod-uid, or set POD_NAME and \
         POD_UID from the Pod's own fields (`valueFrom.fieldRef`: metadata.name and metadata.uid)"
    )]
    Token {
        /// What is wrong with the token.
        fault: TokenFault,
    },
    /// Both are part of the text by which a Lease names its holder.
    #[error("{flag} must not be empty or have a '/' in it")]
    Text {
        /// The flag.
        flag: &'static str,
    },
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
    /// From flags and from where the process runs. A replica with `--alone` needs no token that names its Pod.
    pub fn from_args(
        args: &RunArgs,
        kube: &kube::Config,
        surroundings: &Surroundings,
    ) -> Result<ShardingSettings, ShardingError> {
        let found = match (&args.pod_name, &args.pod_uid) {
            (Some(name), Some(uid)) => Ok(PodIdentity::given(name, uid)),
            _ => surroundings.identity(),
        };
        let found = match found {
            Err(_) if args.alone => Surroundings::host().identity(),
            found => found,
        };
        let found = found.map_err(|fault| ShardingError::Token { fault })?;
        let pod_name = part("--pod-name", args.pod_name.as_deref().unwrap_or(&found.name))?;
        let pod_uid = part("--pod-uid", args.pod_uid.as_deref().unwrap_or(&found.uid))?;
        let namespace = args.lease_namespace.as_deref().unwrap_or(&kube.default_namespace);
        // An owner that is not there, or is in another namespace, would have the Lease collected as garbage.
        let owner = surroundings.is_pod_in(namespace).then(|| OwnerPod {
            name: pod_name.clone(),
            uid: pod_uid.clone(),
        });
        Ok(ShardingSettings {
            installation: args.installation.clone(),
            namespace: namespace.into(),
            pod_name,
            pod_uid,
            owner,
            revision: args.pod_revision.as_deref().unwrap_or_default().into(),
            shard_count: args.shards,
            protocol: ProtocolRange::OURS,
            timing: preset(args.timing).timing(),
            incarnations: Arc::new(random_number),
        })
    }

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

fn preset(named: TimingPreset) -> Preset {
    match named {
        TimingPreset::Default => Preset::Default,
        TimingPreset::Fast => Preset::Fast,
        TimingPreset::Safe => Preset::Safe,
    }
}

fn part(flag: &'static str, text: &str) -> Result<Box<str>, ShardingError> {
    if text.is_empty() || text.contains('/') {
        return Err(ShardingError::Text { flag });
    }
    Ok(text.into())
}

/// A number that no other process has: what the standard library keys its maps with is drawn from the kernel's randomness.
pub(super) fn random_number() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests;
