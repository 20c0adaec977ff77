//! Channels between the shard task, the election and the list task.

use tokio::sync::mpsc;

use super::Wakeup;
use crate::{
    controller::list_task::ListProgress,
    kube_api::ordered_watch::OrderedSender,
    shard::{Bucket, Clocks, HeldShards, ListRequest, ShardCommand, ShardReport, ShardSet},
};

/// Capacity of the channel for commands. Per shard: lead, seal, seal earlier and release, for the maximum number of
/// shards. Some more are for commands that concern many shards.
pub const COMMANDS_MAX: usize = 4 * Bucket::COUNT as usize + 16;

/// The channels between the shards and the election.
#[derive(Debug)]
pub struct LifecycleChannels {
    /// Commands of the election.
    pub commands: mpsc::Receiver<ShardCommand>,
    /// Reports to the election.
    pub reports: mpsc::Sender<ShardReport>,
    /// Requests for lists of shards; capacity one.
    pub lists: mpsc::Sender<ListRequest>,
    /// The held shards, which the watches follow. Updated before a list of the shards is requested.
    pub held: OrderedSender<ShardSet>,
    /// Progress of the lists.
    pub list_progress: mpsc::Receiver<ListProgress>,
}

impl LifecycleChannels {
    /// Returns the next command or list progress; never returns if CronJobs are not shared. Cancel safe.
    pub(super) async fn next(channels: Option<&mut LifecycleChannels>) -> Wakeup {
        let Some(channels) = channels else {
            return std::future::pending().await;
        };
        tokio::select! {
            biased;
            Some(command) = channels.commands.recv() => Wakeup::Command(command),
            Some(progress) = channels.list_progress.recv() => Wakeup::List(progress),
            // The election and the list task have ended, and this task ends next.
            else => std::future::pending().await,
        }
    }

    /// Sends the pending list request and reports, as far as the channels have room. The next iteration sends the rest.
    pub(super) fn send_pending(&self, shards: &mut HeldShards, now: Clocks) {
        if self.lists.capacity() > 0
            && let Some(order) = shards.poll_list_request(now)
        {
            // The capacity was checked, and no other task sends. An error means that the list task has ended.
            let _ = self.lists.try_send(order);
        }
        while let Ok(permit) = self.reports.try_reserve()
            && let Some(report) = shards.poll_report()
        {
            permit.send(report);
        }
    }
}
