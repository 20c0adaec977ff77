//! Starts the tasks by which replicas share the CronJobs, and connects them.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    Session,
    election::{ElectionChannels, ElectionTask},
    shard_task::{COMMANDS_MAX, LifecycleChannels},
    shutdown::Phase,
    tasks::Task,
    version_task::VersionTask,
};
use crate::{
    coordination::{LeaseAnswer, LeaseKey, LeaseWrite},
    kube_api::leases::LeaseApi,
    shard::{Bucket, ShardCommand, ShardReport},
};

/// Capacity of the channel for answers of the version task. A full channel delays only that task.
const VERSION_ANSWERS_MAX: usize = 4;

/// Capacity of the channel for reports to the election: per shard one that it is led and one that it is sealed.
const REPORTS_MAX: usize = 2 * Bucket::COUNT as usize;

/// The time for which a process with a failed task tries to give up its membership.
const ABANDON_TIMEOUT: Duration = Duration::from_millis(500);

impl Session {
    /// Starts the election and the task that proves that the watches are current, and returns the channels that connect
    /// them with the shards.
    pub(super) fn spawn_sharing(&self) -> (LifecycleChannels, [Task; 2]) {
        let (commands_in, commands) = mpsc::channel(COMMANDS_MAX);
        let (reports_in, reports) = mpsc::channel(REPORTS_MAX);
        let (version_requests, requests) = mpsc::channel(1);
        let (answers, version_answers) = mpsc::channel(VERSION_ANSWERS_MAX);
        let election = self.spawn_election(commands_in, reports);
        let versions = VersionTask {
            client: self.connections.watches.clone(),
            answers,
            failures: self.metrics.dispatch.api.failures.clone(),
            clock: self.clock.clone(),
        };
        let channels = LifecycleChannels {
            commands,
            reports: reports_in,
            version_requests,
            version_answers,
            relists: self.relists.clone(),
        };
        let versions = self.start_until("current versions", Phase::StopIntake, versions.run(requests));
        (channels, [election, versions])
    }

    /// Gives up the membership after a task failed, so that other replicas take the shards at once instead of after the
    /// eviction timeout. Best effort within [`ABANDON_TIMEOUT`]. No task of the process writes any more.
    pub(super) async fn abandon_membership(&self) {
        let figures = self.metrics.election_snapshot.borrow().clone();
        let Some(figures) = figures else { return };
        self.connections.writes.reset_connections();
        let (api, identity) = (self.lease_api(), figures.overview.identity);
        let key = LeaseKey::Member(identity.pod_uid.clone());
        let abandon = async {
            let LeaseAnswer::Done(record) = api.read(&key, ABANDON_TIMEOUT).await.answer else {
                return false;
            };
            if *record.holder != *identity.to_string() {
                return false;
            }
            // Not a drain: if a shard caused the failure, this end counts as a crash of its leader.
            let write = LeaseWrite::without_holder(key.clone());
            let version = record.resource_version;
            let reply = api.patch(&write, version, self.clock.now(), ABANDON_TIMEOUT).await;
            matches!(reply.answer, LeaseAnswer::Done(_))
        };
        match tokio::time::timeout(ABANDON_TIMEOUT, abandon).await {
            Ok(true) => {
                tracing::warn!("a task failed: the membership was given up, so that other replicas take the shards");
            }
            Ok(false) | Err(_) => {
                tracing::warn!("a task failed: other replicas take the shards when the member Lease expires");
            }
        }
    }

    fn lease_api(&self) -> LeaseApi {
        let membership = &self.settings.membership;
        let (client, owner) = (self.connections.leases.clone(), membership.owner.clone());
        LeaseApi::new(client, &membership.namespace, membership.shard_count, owner)
            .of_installation(membership.installation.clone())
    }

    fn spawn_election(&self, commands: mpsc::Sender<ShardCommand>, reports: mpsc::Receiver<ShardReport>) -> Task {
        let membership = &self.settings.membership;
        let channels = ElectionChannels {
            commands,
            reports,
            leadership: self.leadership.clone(),
            n_fences: self.n_fences.clone(),
            went_back: self.went_back.clone(),
            writes: self.connections.writes.clone(),
            missing_permissions: self.metrics.permissions.subscribe(),
            phase: self.phases.subscribe(),
            snapshot: self.metrics.election_snapshot.clone(),
            metrics: self.metrics.election.clone(),
        };
        let task = ElectionTask::new(
            membership.election(self.settings.of_member()),
            Arc::clone(&membership.incarnations),
            self.lease_api(),
            self.clock.clone(),
            channels,
        );
        self.start("election", Phase::HandOver, task.run())
    }
}
