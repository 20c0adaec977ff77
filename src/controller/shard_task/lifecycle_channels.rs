//! Channels between the shard task, the election and the version task.

use tokio::sync::mpsc;

use super::Wakeup;
use crate::{
    controller::{version_task::VersionAnswer, watches::ScopeRelists},
    shard::{HeldShards, ShardCommand, ShardReport, VersionRequest},
};

/// The channels between the shards and the election.
#[derive(Debug)]
pub struct LifecycleChannels {
    /// Commands of the election.
    pub commands: mpsc::Receiver<ShardCommand>,
    /// Reports to the election.
    pub reports: mpsc::Sender<ShardReport>,
    /// Requests for the current versions; capacity one.
    pub version_requests: mpsc::Sender<VersionRequest>,
    /// Answers of the version task.
    pub version_answers: mpsc::Receiver<VersionAnswer>,
    /// The orders to the watches to list again.
    pub relists: Vec<ScopeRelists>,
}

impl LifecycleChannels {
    /// Returns the next command or answer. Cancel safe.
    pub(super) async fn next(&mut self) -> Wakeup {
        tokio::select! {
            biased;
            Some(command) = self.commands.recv() => Wakeup::Command(command),
            Some(answer) = self.version_answers.recv() => Wakeup::Versions(answer),
            // The election and the version task have ended, and this task ends next.
            else => std::future::pending().await,
        }
    }

    /// Sends the pending requests and reports, as far as the channels have room. The next iteration sends the rest.
    pub(super) fn send_pending(&self, shards: &mut HeldShards) {
        if let Ok(permit) = self.version_requests.try_reserve()
            && let Some(request) = shards.poll_version_request()
        {
            permit.send(request);
        }
        while let Some((scope, resource)) = shards.poll_relist() {
            tracing::info!(%scope, ?resource, "the watch is behind a takeover and lists again");
            ScopeRelists::order(&self.relists, &scope, resource);
        }
        while let Ok(permit) = self.reports.try_reserve()
            && let Some(report) = shards.poll_report()
        {
            permit.send(report);
        }
    }
}
