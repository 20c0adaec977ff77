//! Starts the tasks that watch CronJobs and Jobs.

use std::sync::Arc;

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::{Shell, event_task::EventQueue, shutdown::Phase, tasks::Task, watch_task::WatchChannels};
use crate::{
    kube_api::{
        ApiClient, Decoder, WatchItem,
        watch::{
            Selection, bounded_pages::bounded_pages, cron_jobs, held_cron_jobs, history::checked_history, jobs,
            observed, progress::WatchProgress, selected_jobs,
        },
    },
    shard::{Input, Scope},
    telemetry::metrics::WatchMetrics,
};

impl Shell {
    /// Watches all CronJobs of a scope, or with sharding those of the held shards.
    fn watch_cron_jobs(
        &self,
        client: kube::Client,
        scope: &Scope,
        decoder: Arc<Decoder>,
    ) -> impl Stream<Item = WatchItem> + Send + use<> {
        match (&self.settings.sharding, self.progress_of(scope)) {
            (Some(sharding), Some(progress)) => {
                let held = self.held_shards.subscribe();
                held_cron_jobs(client, decoder, sharding.shard_count, held, progress.clone()).right_stream()
            }
            _ => cron_jobs(client, scope.clone(), decoder).left_stream(),
        }
    }

    /// Watches all Jobs of a scope, or with sharding those of the held shards.
    fn watch_jobs(&self, client: kube::Client, scope: &Scope) -> impl Stream<Item = WatchItem> + Send + use<> {
        match (&self.settings.sharding, self.progress_of(scope)) {
            (Some(sharding), Some(progress)) => {
                let held = self.held_shards.subscribe();
                let selection = Selection::OfShards(sharding.shard_count, held, progress.jobs.clone());
                selected_jobs(client, scope.clone(), selection).right_stream()
            }
            _ => jobs(client, scope.clone()).left_stream(),
        }
    }

    fn progress_of(&self, scope: &Scope) -> Option<&WatchProgress> {
        self.progress.iter().find(|progress| progress.scope == *scope)
    }

    pub(super) fn decoder(&self) -> Arc<Decoder> {
        Arc::new(Decoder {
            default_zone: self.settings.default_zone.clone(),
            shard_count: self.settings.sharding.as_ref().map(|sharding| sharding.shard_count),
        })
    }

    /// The API client for writes that first read the CronJob.
    pub(super) fn reading_api(&self) -> ApiClient {
        self.api.clone().with_decoder(Decoder::clone(&self.decoder()))
    }

    pub(super) fn spawn_watches(&self, inputs: &mpsc::Sender<Input>, events: &EventQueue) -> Vec<Task> {
        let decoder = self.decoder();
        let channels = |resource: &'static str, scope: &Scope, metrics: &WatchMetrics| WatchChannels {
            resource,
            inputs: inputs.clone(),
            events: events.clone(),
            phase: self.phases.subscribe(),
            metrics: metrics.clone(),
            selection: self.metrics.selection.clone(),
            health: self
                .metrics
                .watch_health
                .begin(resource, scope.clone(), self.clock.clone()),
            clock: self.clock.clone(),
        };
        let spawn_two = |scope: &Scope| {
            let cron_job_links = channels("cronjobs", scope, &self.metrics.cron_job_watch);
            let job_links = channels("jobs", scope, &self.metrics.job_watch);
            let checked = || checked_history(self.watch_client.clone(), self.went_back.clone());
            let cron_job_client = bounded_pages(observed(checked(), cron_job_links.observer()));
            let job_client = bounded_pages(observed(checked(), job_links.observer()));
            let cron_jobs = self.watch_cron_jobs(cron_job_client, scope, Arc::clone(&decoder));
            let jobs = self.watch_jobs(job_client, scope);
            [
                self.start("CronJob watch", Phase::StopIntake, cron_job_links.run(cron_jobs)),
                self.start("Job watch", Phase::StopIntake, job_links.run(jobs)),
            ]
        };
        self.settings.scopes.iter().flat_map(spawn_two).collect()
    }
}
