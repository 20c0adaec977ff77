//! Starts the tasks that watch CronJobs, Jobs, namespaces and calendars.

use std::sync::Arc;

use futures::{StreamExt as _, stream::BoxStream};
use kube::Client;
use tokio::sync::mpsc;

use super::{Session, event_task::EventQueue, shutdown::Phase, tasks::Task, watch_task::WatchChannels};
use crate::{
    kube_api::{
        ApiClient, Decoder,
        latest_value::LatestSender,
        watch::{
            WatchItem, calendars, cron_jobs_with_relists, ended_by_fences, jobs_with_relists, namespaces, observed,
        },
    },
    shard::{Input, Scope, WatchedResource},
    telemetry::metrics::WatchMetrics,
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
}

impl Session {
    fn decoder(&self) -> Decoder {
        Decoder {
            default_zone: self.settings.default_zone.clone(),
            other_controllers: self.metrics.other_controllers.clone(),
            owner_label: self.settings.trouble_label.clone(),
        }
    }

    /// The API client for writes that first read the CronJob.
    pub(super) fn reading_api(&self) -> ApiClient {
        let api = self.connections.writes.clone().with_decoder(self.decoder());
        api.of_installation(&self.settings.membership.full_name())
    }

    /// Starts the watch of the selected namespaces; `None` if all are managed.
    pub(super) fn spawn_namespace_watch(&self, inputs: &mpsc::Sender<Input>, events: &EventQueue) -> Option<Task> {
        let selector = self.settings.namespace_selector.clone()?;
        let metrics = &self.metrics.namespace_watch;
        let (client, channels) = self.begin_watch("namespaces", &Scope::Cluster, metrics, (inputs, events));
        let task = channels.run(namespaces(client, selector));
        Some(self.start_until("namespace watch", Phase::StopIntake, task))
    }

    /// Starts the watches of calendars; none if they are not read.
    pub(super) fn spawn_calendar_watches(&self, inputs: &mpsc::Sender<Input>, events: &EventQueue) -> Vec<Task> {
        let scopes = self.settings.scopes.iter().filter(|_| self.settings.reads_calendars);
        let spawn = |scope: &Scope| {
            let metrics = &self.metrics.calendar_watch;
            let (client, channels) = self.begin_watch("configmaps", scope, metrics, (inputs, events));
            let task = channels.run(calendars(client, scope.clone()));
            self.start_until("calendar watch", Phase::StopIntake, task)
        };
        scopes.map(spawn).collect()
    }

    /// Returns the client and the channels of a watch.
    fn begin_watch(
        &self,
        resource: &'static str,
        scope: &Scope,
        metrics: &WatchMetrics,
        (inputs, events): (&mpsc::Sender<Input>, &EventQueue),
    ) -> (Client, WatchChannels) {
        let healths = &self.metrics.watch_health;
        let health = healths.begin(resource, scope.clone(), self.clock.clone());
        let observed_health = health.clone();
        let on_activity = move || observed_health.note_activity();
        let client = ended_by_fences(self.connections.watches.clone(), self.n_fences.subscribe());
        let client = observed(client, on_activity);
        let channels = WatchChannels {
            inputs: inputs.clone(),
            went_back: self.went_back.clone(),
            events: events.clone(),
            other_controllers: self.metrics.other_controllers.clone(),
            namespaces: self.namespaces.clone(),
            metrics: metrics.clone(),
            health,
        };
        (client, channels)
    }

    /// Starts the watches of CronJobs and Jobs. They begin when the managed namespaces are known, so that what they
    /// deliver is reported for these only.
    pub(super) fn spawn_watches(&self, inputs: &mpsc::Sender<Input>, events: &EventQueue) -> Vec<Task> {
        let decoder = Arc::new(self.decoder());
        let begin = |resource: &'static str, scope: &Scope, metrics: &WatchMetrics| {
            self.begin_watch(resource, scope, metrics, (inputs, events))
        };
        let spawn = |name, channels: WatchChannels, items: BoxStream<'static, WatchItem>| {
            let mut are_known = self.are_namespaces_known.subscribe();
            self.start_until(name, Phase::StopIntake, async move {
                are_known.wait_for(|are_known| *are_known).await;
                channels.run(items).await;
            })
        };
        let spawn_two = |relists: &ScopeRelists| {
            let scope = &relists.scope;
            let [cron_job_relists, job_relists] = relists.n_orders.each_ref().map(LatestSender::subscribe);
            let (cron_job_client, cron_job_channels) = begin("cronjobs", scope, &self.metrics.cron_job_watch);
            let (job_client, job_channels) = begin("jobs", scope, &self.metrics.job_watch);
            let cron_jobs =
                cron_jobs_with_relists(cron_job_client, scope.clone(), Arc::clone(&decoder), cron_job_relists);
            let jobs = jobs_with_relists(job_client, scope.clone(), job_relists);
            [
                spawn("CronJob watch", cron_job_channels, cron_jobs.boxed()),
                spawn("Job watch", job_channels, jobs.boxed()),
            ]
        };
        self.relists.iter().flat_map(spawn_two).collect()
    }
}
