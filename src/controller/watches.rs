//! The watches of CronJobs, Jobs, namespaces and calendars: what they share, and how each begins.

use std::sync::Arc;

use futures::{Stream, future::BoxFuture};
use kube::Client;
use tokio::sync::mpsc;

use super::{clock::Clock, event_task::EventQueue, watch_task::WatchChannels};
use crate::{
    kube_api::{
        Decoder, NamespaceSelector,
        latest_value::{LatestReceiver, LatestSender},
        watch::{
            RelistOrders, WatchItem, calendars, cron_jobs_with_relists, ended_by_fences, jobs_with_relists, namespaces,
            observed,
        },
    },
    shard::{Input, ManagedNamespaces, Scope, WatchedResource},
    telemetry::metrics::{Metrics, WatchMetrics},
};

/// How often each watch of a scope was told to list again. Clones share the numbers.
#[derive(Clone, Debug)]
pub struct ScopeRelists {
    scope: Scope,
    /// One number for each [`WatchedResource`].
    n_orders: [LatestSender<u64>; 2],
}

impl ScopeRelists {
    /// Creates an instance for watches of a scope that were told nothing.
    pub fn new(scope: Scope) -> ScopeRelists {
        ScopeRelists {
            scope,
            n_orders: [LatestSender::new(0), LatestSender::new(0)],
        }
    }

    /// Tells a watch to list again.
    pub fn order(all: &[ScopeRelists], scope: &Scope, resource: WatchedResource) {
        for of_scope in all.iter().filter(|of_scope| of_scope.scope == *scope) {
            of_scope.n_orders[resource as usize].update(|n_orders| n_orders + 1);
        }
    }

    fn orders(&self, resource: WatchedResource) -> RelistOrders {
        self.n_orders[resource as usize].subscribe()
    }
}

/// What all watches of a run share. Each method begins a watch and returns its task.
pub(super) struct Watches {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) events: EventQueue,
    pub(super) n_fences: LatestReceiver<u64>,
    pub(super) went_back: LatestSender<bool>,
    pub(super) namespaces: ManagedNamespaces,
    pub(super) are_namespaces_known: LatestReceiver<bool>,
}

impl Watches {
    /// The watch of the selected namespaces.
    pub(super) fn of_namespaces(&self, selector: NamespaceSelector) -> BoxFuture<'static, ()> {
        let metrics = &self.metrics.namespace_watch;
        let (client, channels) = self.begin("namespaces", &Scope::Cluster, metrics);
        Box::pin(channels.run(namespaces(client, selector)))
    }

    /// The watch of the calendars of a scope.
    pub(super) fn of_calendars(&self, scope: Scope) -> BoxFuture<'static, ()> {
        let (client, channels) = self.begin("configmaps", &scope, &self.metrics.calendar_watch);
        Box::pin(channels.run(calendars(client, scope)))
    }

    /// The watch of the CronJobs of a scope.
    pub(super) fn of_cron_jobs(&self, relists: &ScopeRelists, decoder: Arc<Decoder>) -> BoxFuture<'static, ()> {
        let (scope, orders) = (&relists.scope, relists.orders(WatchedResource::CronJobs));
        let (client, channels) = self.begin("cronjobs", scope, &self.metrics.cron_job_watch);
        self.of_managed(channels, cron_jobs_with_relists(client, scope.clone(), decoder, orders))
    }

    /// The watch of the Jobs of a scope.
    pub(super) fn of_jobs(&self, relists: &ScopeRelists) -> BoxFuture<'static, ()> {
        let (scope, orders) = (&relists.scope, relists.orders(WatchedResource::Jobs));
        let (client, channels) = self.begin("jobs", scope, &self.metrics.job_watch);
        self.of_managed(channels, jobs_with_relists(client, scope.clone(), orders))
    }

    /// Waits until the managed namespaces are known, so that what the watch delivers is reported for these only.
    fn of_managed(
        &self,
        channels: WatchChannels,
        items: impl Stream<Item = WatchItem> + Send + 'static,
    ) -> BoxFuture<'static, ()> {
        let mut are_known = self.are_namespaces_known.clone();
        Box::pin(async move {
            are_known.wait_for(|are_known| *are_known).await;
            channels.run(items).await;
        })
    }

    /// Returns the client and the channels of a watch.
    fn begin(&self, resource: &'static str, scope: &Scope, metrics: &WatchMetrics) -> (Client, WatchChannels) {
        let healths = &self.metrics.watch_health;
        let health = healths.begin(resource, scope.clone(), self.clock.clone());
        let observed_health = health.clone();
        let client = ended_by_fences(self.client.clone(), self.n_fences.clone());
        let client = observed(client, move || observed_health.note_activity());
        let channels = WatchChannels {
            inputs: self.inputs.clone(),
            went_back: self.went_back.clone(),
            events: self.events.clone(),
            other_controllers: self.metrics.other_controllers.clone(),
            namespaces: self.namespaces.clone(),
            metrics: metrics.clone(),
            health,
        };
        (client, channels)
    }
}
