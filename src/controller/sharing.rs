//! Starts the tasks of a replica that shares CronJobs with other replicas, and connects them.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    Session,
    election::{ElectionChannels, ElectionTask},
    label_task::LabelTask,
    latest_proof::LatestProof,
    list_task::ListTask,
    overlap_task::OverlapTask,
    shard_task::{COMMANDS_MAX, LifecycleChannels},
    shutdown::Phase,
    tasks::Task,
};
use crate::{
    controller::settings::Membership,
    coordination::{LeaseAnswer, LeaseKey, LeaseWrite, MemberSettings},
    kube_api::leases::LeaseApi,
    shard::{Bucket, ShardCommand, ShardReport},
};

/// Capacity of the channel for list pages to the shard task. When it is full, the list waits and the shards do not.
const LIST_PROGRESS_MAX: usize = 4;

/// Capacity of the channel for reports to the election: per shard one that it is loaded and one that it is sealed.
const REPORTS_MAX: usize = 2 * Bucket::COUNT as usize;

/// The time for which a process with a failed task tries to give up its membership.
const ABANDON_TIMEOUT: Duration = Duration::from_millis(500);

impl Session {
    /// Starts the election, the list task and the label task, and returns the channels that connect them with the
    /// shards. Returns `None` if CronJobs are not shared.
    pub(super) fn spawn_sharing(&self) -> Option<(LifecycleChannels, Vec<Task>)> {
        let membership = self.settings.sharing()?;
        let (commands_in, commands) = mpsc::channel(COMMANDS_MAX);
        let (reports_in, reports) = mpsc::channel(REPORTS_MAX);
        let (lists, wanted) = mpsc::channel(1);
        let (progress, list_progress) = mpsc::channel(LIST_PROGRESS_MAX);
        let latest_proof = LatestProof {
            received: self.latest_proof.subscribe(),
            clock: self.clock.clone(),
        };
        let election = self.spawn_election(membership, commands_in, reports);
        let list = ListTask {
            client: self.connections.watches.clone(),
            decoder: self.decoder(),
            delivered: self.delivered.clone(),
            count: membership.shard_count,
            latest_proof: latest_proof.clone(),
            proofs: self.proofs.clone(),
            next_eviction: self.next_eviction.subscribe(),
            progress,
            selection: self.metrics.selection.clone(),
            failures: self.metrics.dispatch.api.failures.clone(),
            clock: self.clock.clone(),
        };
        let label = LabelTask {
            client: self.connections.watches.clone(),
            api: self.connections.writes.clone(),
            scopes: self.settings.scopes.clone(),
            count: membership.shard_count,
            leadership: self.leadership.subscribe(),
            clock: self.clock.clone(),
            api_metrics: self.metrics.election.api.clone(),
            proofs: self.proofs.clone(),
            latest_proof,
            other_controllers: self.metrics.other_controllers.clone(),
            labelled: self.metrics.election.labelled.clone(),
            overflows: self.metrics.election.label_overflows.clone(),
        };
        let channels = LifecycleChannels {
            commands,
            reports: reports_in,
            lists,
            held: self.held_shards.clone(),
            list_progress,
        };
        let list = self.start_until("shard lists", Phase::StopIntake, list.run(wanted));
        let label = self.start_until("Job labels", Phase::StopIntake, label.run());
        Some((channels, vec![election, list, label]))
    }

    /// Gives up the membership after a task failed, so that other replicas take the shards at once instead of after the
    /// eviction timeout. Best effort within [`ABANDON_TIMEOUT`]. No task of the process writes any more.
    pub(super) async fn abandon_membership(&self) {
        let figures = self.metrics.election_snapshot.borrow().clone();
        let (Some(membership), Some(figures)) = (&self.settings.membership, figures) else {
            return;
        };
        self.connections.writes.reset_connections();
        let (api, identity) = (self.lease_api(membership), figures.overview.identity);
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

    fn lease_api(&self, membership: &Membership) -> LeaseApi {
        let (client, owner) = (self.connections.leases.clone(), membership.owner.clone());
        LeaseApi::new(client, &membership.namespace, membership.shard_count, owner)
            .of_installation(membership.installation.clone())
    }

    /// Starts the election by which a replica with `--alone` and other replicas detect each other; `None` without
    /// `--alone`.
    pub(super) fn spawn_announcement(&self) -> Option<Task> {
        let membership = self.settings.membership.as_ref().filter(|it| it.is_alone)?;
        // This election has no shards to command or to report to it.
        let (commands, _) = mpsc::channel(1);
        let (_, reports) = mpsc::channel(1);
        Some(self.spawn_election(membership, commands, reports))
    }

    /// Starts the search for overlapping installations; `None` if this replica has no member Lease.
    pub(super) fn spawn_overlaps(&self) -> Option<Task> {
        let membership = self.settings.membership.as_ref()?;
        let task = OverlapTask {
            api: self.lease_api(membership),
            settings: MemberSettings::of(&self.settings.scopes, self.settings.default_zone.name()),
            pod_uid: membership.pod_uid.clone(),
            clock: self.clock.clone(),
            leadership: self.leadership.subscribe(),
            overlapping: self.metrics.election.overlapping.clone(),
        };
        Some(self.start_until("overlaps", Phase::StopIntake, task.run()))
    }

    fn spawn_election(
        &self,
        membership: &Membership,
        commands: mpsc::Sender<ShardCommand>,
        reports: mpsc::Receiver<ShardReport>,
    ) -> Task {
        let channels = ElectionChannels {
            commands,
            reports,
            proofs: self.proofs.subscribe(),
            jobs_labelled: self.latest_proof.clone(),
            next_eviction: self.next_eviction.clone(),
            leadership: self.leadership.clone(),
            n_fences: self.n_fences.clone(),
            went_back: self.went_back.clone(),
            writes: self.connections.writes.clone(),
            phase: self.phases.subscribe(),
            snapshot: self.metrics.election_snapshot.clone(),
            metrics: self.metrics.election.clone(),
        };
        let (scopes, zone) = (&self.settings.scopes, self.settings.default_zone.name());
        let task = ElectionTask::new(
            membership.election(scopes, zone),
            Arc::clone(&membership.incarnations),
            self.lease_api(membership),
            self.clock.clone(),
            channels,
        );
        self.start("election", task.ends_in(), task.run())
    }
}
