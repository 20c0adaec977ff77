//! Forwards the events of a watch to the shard task, and reports objects that cannot be decoded. A full channel delays
//! the watch.

use std::pin::pin;

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::event_task::EventQueue;
use crate::{
    kube_api::{DecodeError, WatchItem, ordered_watch::OrderedSender, watch::collection::SelectedBy},
    shard::{CronJobEvent, CronJobIdentity, EventReason, Input, ResourceVersion, input::WatchStage},
    telemetry::metrics::{SelectionMetrics, WatchHealth, WatchMetrics},
};

/// The channels of a watch.
#[derive(Debug)]
pub struct WatchChannels {
    /// Inputs of the shard task.
    pub inputs: mpsc::Sender<Input>,
    /// Receives that the API server returned to an older history.
    pub went_back: OrderedSender<bool>,
    /// Queue of Events about objects that cannot be decoded.
    pub events: EventQueue,
    /// Counters of the side that selects CronJobs, the API server or this replica.
    pub selection: SelectionMetrics,
    /// Metrics of the watch.
    pub metrics: WatchMetrics,
    /// Health of the watch, for probes.
    pub health: WatchHealth,
}

impl WatchChannels {
    /// Forwards the items of a watch.
    pub async fn run(self, items: impl Stream<Item = WatchItem> + Send) {
        let mut items = pin!(items);
        let mut last_logged = None;
        while let Some(item) = items.next().await {
            if let WatchItem::Listed(selected_by) = item
                && last_logged.replace(selected_by) != Some(selected_by)
            {
                log_selection(selected_by);
            }
            let Some(input) = self.take(item) else { continue };
            if self.inputs.send(input).await.is_err() {
                return;
            }
        }
    }

    fn take(&self, item: WatchItem) -> Option<Input> {
        let WatchChannels { metrics, health, .. } = self;
        let resource = health.resource;
        match item {
            WatchItem::Input(input) => {
                self.note_relist(&input);
                Some(input)
            }
            WatchItem::Undecodable { error, cron_job, input } => {
                metrics.undecodable.inc();
                tracing::debug!(resource, %error, "object not understood");
                if let Some((identity, version)) = cron_job {
                    let event = undecodable_event(identity, version, &error);
                    self.events.push(event, health.clock.now());
                }
                input
            }
            WatchItem::Listed(selected_by) => {
                self.selection.note_list(selected_by);
                None
            }
            WatchItem::PassedOver => {
                self.selection.passed_over.inc();
                None
            }
            WatchItem::CacheFull => {
                self.selection.cache_overflows.inc();
                tracing::info!(
                    "the cache of CronJobs is full: shards that are taken over are listed until the next complete list"
                );
                None
            }
            WatchItem::HistoryWentBack { newest, current } => {
                tracing::warn!(
                    resource,
                    %newest,
                    %current,
                    "the API server returned to an older history, as after a restore of etcd"
                );
                self.went_back.set(true);
                None
            }
            WatchItem::Error { verb, message, code } => {
                metrics.errors.inc();
                let failures = &metrics.failures;
                failures.note([verb, resource], code, &message, health.clock.boot());
                health.failed(message);
                None
            }
        }
    }

    fn note_relist(&self, input: &Input) {
        let Input::WatchUpdated(update) = input else {
            return;
        };
        let (resource, scope) = (self.health.resource, &update.scope);
        match update.stage {
            WatchStage::ListBegun => {
                self.metrics.relists.inc();
                tracing::info!(resource, ?scope, "list begun");
            }
            WatchStage::ListDone => tracing::info!(resource, ?scope, "list complete"),
            stage @ (WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted) => {
                let n_shards = update.shards.len();
                tracing::debug!(resource, n_shards, ?stage, "watch stage");
            }
        }
    }
}

/// Logs the side that selects CronJobs: at start and at every change.
fn log_selection(selected_by: SelectedBy) {
    match selected_by {
        SelectedBy::Server => tracing::info!("the API server selects CronJobs by shard"),
        SelectedBy::Replica => tracing::info!(
            "the API server has no ShardedListAndWatch and sends the CronJobs of all shards: those of other shards \
             are ignored"
        ),
    }
}

fn undecodable_event(
    cron_job: std::sync::Arc<CronJobIdentity>,
    resource_version: ResourceVersion,
    error: &DecodeError,
) -> CronJobEvent {
    CronJobEvent {
        cron_job,
        resource_version,
        reason: EventReason::UndecodableCronJob,
        message: error.to_string(),
    }
}

#[cfg(test)]
mod tests;
