//! Starts the tasks that watch CronJobs and Jobs.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Session, event_task::EventQueue, shutdown::Phase, tasks::Task, watch_task::WatchChannels};
use crate::{
    kube_api::{
        ApiClient, Decoder,
        watch::{WatchedShards, cron_jobs, ended_by_fences, jobs, observed},
    },
    shard::{Input, Scope},
    telemetry::metrics::WatchMetrics,
};

impl Session {
    /// The shards whose objects the watches of a scope select; `None` if this replica has everything.
    fn watched_shards(&self, scope: &Scope) -> Option<WatchedShards> {
        let delivered = self.delivered.iter().find(|delivered| delivered.scope == *scope)?;
        Some(WatchedShards {
            wanted: self.held_shards.subscribe(),
            delivered: delivered.clone(),
        })
    }

    pub(super) fn decoder(&self) -> Arc<Decoder> {
        Arc::new(Decoder {
            default_zone: self.settings.default_zone.clone(),
            shard_count: self.settings.sharing().map(|membership| membership.shard_count),
            other_controllers: self.metrics.other_controllers.clone(),
        })
    }

    /// The API client for writes that first read the CronJob.
    pub(super) fn reading_api(&self) -> ApiClient {
        let decoder = Decoder::clone(&self.decoder());
        self.connections.writes.clone().with_decoder(decoder)
    }

    pub(super) fn spawn_watches(&self, inputs: &mpsc::Sender<Input>, events: &EventQueue) -> Vec<Task> {
        let decoder = self.decoder();
        let begin = |resource: &'static str, scope: &Scope, metrics: &WatchMetrics| {
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
                selection: self.metrics.selection.clone(),
                metrics: metrics.clone(),
                health,
            };
            (client, channels)
        };
        let spawn_two = |scope: &Scope| {
            let (cron_job_client, cron_job_channels) = begin("cronjobs", scope, &self.metrics.cron_job_watch);
            let (job_client, job_channels) = begin("jobs", scope, &self.metrics.job_watch);
            let shards = self.watched_shards(scope);
            let cron_jobs = cron_jobs(cron_job_client, scope.clone(), Arc::clone(&decoder), shards.clone());
            let jobs = jobs(job_client, scope.clone(), shards);
            [
                self.start_until("CronJob watch", Phase::StopIntake, cron_job_channels.run(cron_jobs)),
                self.start_until("Job watch", Phase::StopIntake, job_channels.run(jobs)),
            ]
        };
        self.settings.scopes.iter().flat_map(spawn_two).collect()
    }
}
