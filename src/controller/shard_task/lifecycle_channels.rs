//! Whom the shards of a replica are shared by, and how they hear of each other.

use tokio::sync::mpsc;

use crate::{
    controller::list_task::ListNews,
    kube_api::ordered_watch::OrderedSender,
    shard::{Bucket, ListOrder, ShardCommand, ShardLifecycle, ShardReport, ShardSet},
};

/// Commands on their way: for each of the most shards there can be, to lead, to seal, to seal sooner and to let go; and those
/// that are of many shards.
pub const COMMANDS_MAX: usize = 4 * Bucket::COUNT as usize + 16;

/// The ways between the shards and the election.
#[derive(Debug)]
pub struct LifecycleChannels {
    /// What the election wants.
    pub commands: mpsc::Receiver<ShardCommand>,
    /// What it is told.
    pub reports: mpsc::Sender<ShardReport>,
    /// Which shards are to be listed; room for one.
    pub lists: mpsc::Sender<ListOrder>,
    /// Which shards are held, for whoever watches their Jobs: told before a list of them is asked for.
    pub held: OrderedSender<ShardSet>,
    /// What lists find.
    pub news: mpsc::Receiver<ListNews>,
}

/// What a turn is taken for.
#[derive(Debug)]
pub(super) enum LifecycleNews {
    Command(ShardCommand),
    List(ListNews),
}

impl LifecycleChannels {
    /// The next news; none ever where shards are not shared. May be dropped and called again.
    pub(super) async fn next(channels: Option<&mut LifecycleChannels>) -> LifecycleNews {
        let Some(channels) = channels else {
            return std::future::pending().await;
        };
        tokio::select! {
            biased;
            Some(command) = channels.commands.recv() => LifecycleNews::Command(command),
            Some(news) = channels.news.recv() => LifecycleNews::List(news),
            // Both have ended, and this task will.
            else => std::future::pending().await,
        }
    }

    /// Says which shards are held.
    pub(super) fn tell_held(&self, held: &ShardSet) {
        self.held.set(*held);
    }

    /// Passes on what there is to be told, as far as there is room: the rest comes with the next turn.
    pub(super) fn tell(&self, lifecycle: &mut ShardLifecycle) {
        if self.lists.capacity() > 0
            && let Some(order) = lifecycle.poll_list()
        {
            // The place was free, and nobody else takes it; whoever ended needs no lists.
            let _ = self.lists.try_send(order);
        }
        while let Some(report) = lifecycle.poll_report() {
            if self.reports.try_send(report).is_err() {
                lifecycle.put_back(report);
                return;
            }
        }
    }
}
