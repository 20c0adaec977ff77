//! The membership of a replica, validated once at the start.

use std::sync::Arc;

use super::surroundings::{PodIdentity, Surroundings, random_number};
use crate::{
    cli::{error::CommandError, run_args::RunArgs},
    controller::settings::Membership,
    coordination::{PROTOCOL_VERSION, Timing},
    kube_api::leases::OwnerPod,
    shard::ShardCount,
};

/// Combines flags and surroundings.
pub(super) fn membership_of(
    args: &RunArgs,
    kube: &kube::Config,
    surroundings: &Surroundings,
) -> Result<Membership, CommandError> {
    let found = match (&args.pod_name, &args.pod_uid) {
        (Some(name), Some(uid)) => Ok(PodIdentity::given(name, uid)),
        _ => surroundings.identity(),
    };
    let found = found.map_err(|fault| {
        format!(
            "the Pod's name and uid cannot be read from its token: {fault}; give --pod-name and --pod-uid, or set \
             POD_NAME and POD_UID from the Pod's own fields (`valueFrom.fieldRef`: metadata.name and metadata.uid)"
        )
    })?;
    let pod_name: Box<str> = args.pod_name.as_deref().unwrap_or(&found.name).into();
    let pod_uid: Box<str> = args.pod_uid.as_deref().unwrap_or(&found.uid).into();
    let namespace = args.lease_namespace.as_deref().unwrap_or(&kube.default_namespace);
    // With an owner that does not exist or is in another namespace, the garbage collector would delete the Lease.
    let owner = surroundings.is_pod_in(namespace).then(|| OwnerPod {
        name: pod_name.clone(),
        uid: pod_uid.clone(),
    });
    Ok(Membership {
        installation: args.installation.clone(),
        namespace: namespace.into(),
        pod_name,
        pod_uid,
        owner,
        revision: args.pod_revision.as_deref().unwrap_or_default().into(),
        shard_count: ShardCount::default(),
        protocol: PROTOCOL_VERSION,
        timing: Timing::DEFAULT,
        incarnations: Arc::new(random_number),
    })
}

#[cfg(test)]
mod tests;
