//! Forwards the events of a watch to the shard task, and reports objects that cannot be decoded. A full channel delays
//! the watch.

mod undecodable;

use std::pin::pin;

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use self::undecodable::UndecodableCronJobs;
use super::event_task::EventQueue;
use crate::{
    kube_api::{DecodeError, WatchItem, latest_value::LatestSender, other_controllers::OtherControllers},
    shard::{
        CalendarUpdate, CronJobEvent, CronJobIdentity, EventReason, Input, ManagedNamespaces, NamespaceUpdate,
        ResourceVersion, input::WatchStage,
    },
    telemetry::metrics::{WatchHealth, WatchMetrics},
};

/// The channels of a watch.
#[derive(Debug)]
pub struct WatchChannels {
    /// Inputs of the shard task.
    pub inputs: mpsc::Sender<Input>,
    /// Receives that the API server returned to an older history.
    pub went_back: LatestSender<bool>,
    /// Queue of Events about objects that cannot be decoded.
    pub events: EventQueue,
    /// Receives evidence of other controllers.
    pub other_controllers: OtherControllers,
    /// The namespaces whose objects are reported if they cannot be decoded.
    pub namespaces: ManagedNamespaces,
    /// Metrics of the watch.
    pub metrics: WatchMetrics,
    /// Health of the watch, for probes.
    pub health: WatchHealth,
}

impl WatchChannels {
    /// Forwards the items of a watch.
    pub async fn run(self, items: impl Stream<Item = WatchItem> + Send) {
        let mut items = pin!(items);
        let gauge = self.metrics.cron_jobs_undecodable.clone();
        let mut undecodable = UndecodableCronJobs::new(self.namespaces.clone(), gauge);
        while let Some(item) = items.next().await {
            undecodable.follow(&item);
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
                if let Input::JobApplied(job) = &input {
                    self.other_controllers.note_job(job, health.clock.now());
                }
                Some(input)
            }
            WatchItem::Undecodable { error, input, .. } if !self.namespaces.contains(&error.namespace) => {
                tracing::debug!(resource, %error, "object of a namespace that is not managed not understood");
                input
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
        let (resource, scope) = (self.health.resource, &self.health.scope);
        let stage = if let Input::WatchUpdated(update) = input {
            update.stage
        } else if let Input::NamespaceUpdated(NamespaceUpdate::ListBegun) = input {
            WatchStage::ListBegun
        } else if let Input::NamespaceUpdated(NamespaceUpdate::ListDone) = input {
            WatchStage::ListDone
        } else if let Input::CalendarUpdated(update) = input {
            match **update {
                CalendarUpdate::ListBegun(_) => WatchStage::ListBegun,
                CalendarUpdate::ListDone(_) => WatchStage::ListDone,
                CalendarUpdate::Applied { .. } | CalendarUpdate::Removed { .. } => return,
            }
        } else {
            return;
        };
        match stage {
            WatchStage::ListBegun => {
                self.metrics.relists.inc();
                tracing::info!(resource, ?scope, "list begun");
            }
            WatchStage::ListDone => tracing::info!(resource, ?scope, "list complete"),
            stage @ (WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted) => {
                tracing::debug!(resource, ?stage, "watch stage");
            }
            WatchStage::Reached(_) | WatchStage::Unchanged { .. } => {}
        }
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
