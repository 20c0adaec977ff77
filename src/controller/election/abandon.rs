//! Gives up the membership when a task of the process has failed.

use std::time::Duration;

use crate::{
    controller::clock::Clock,
    coordination::{LeaseAnswer, LeaseKey, LeaseWrite, MemberIdentity},
    kube_api::leases::LeaseApi,
};

/// The time for which a process with a failed task tries to give up its membership.
const ABANDON_TIMEOUT: Duration = Duration::from_millis(500);

/// Gives up the membership after a task failed, so that other replicas take the shards at once instead of after the
/// eviction timeout. Best effort within [`ABANDON_TIMEOUT`].
pub async fn abandon_membership(api: &LeaseApi, identity: &MemberIdentity, clock: &Clock) {
    match tokio::time::timeout(ABANDON_TIMEOUT, abandon(api, identity, clock)).await {
        Ok(true) => {
            tracing::warn!("a task failed: the membership was given up, so that other replicas take the shards");
        }
        Ok(false) | Err(_) => {
            tracing::warn!("a task failed: other replicas take the shards when the member Lease expires");
        }
    }
}

/// Returns whether the member Lease has no holder any more.
async fn abandon(api: &LeaseApi, identity: &MemberIdentity, clock: &Clock) -> bool {
    let key = LeaseKey::Member(identity.pod_uid.clone());
    let LeaseAnswer::Done(record) = api.read(&key, ABANDON_TIMEOUT).await.answer else {
        return false;
    };
    if *record.holder != *identity.to_string() {
        return false;
    }
    // Not a drain: if a shard caused the failure, this end counts as a crash of its leader.
    let write = LeaseWrite::without_holder(key);
    let version = record.resource_version;
    let reply = api.patch(&write, version, clock.now(), ABANDON_TIMEOUT).await;
    matches!(reply.answer, LeaseAnswer::Done(_))
}
