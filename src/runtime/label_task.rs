//! Labels the Jobs of CronJobs that lack the label of their shard: those of the built-in controller, of a replica that was
//! alone, and manual runs. The leader of shard 0 does it for all; whoever leads their shard sees them from then on.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use prometheus::IntCounter;
use tokio::sync::watch;

use super::{
    ask::ask,
    clock::Clock,
    metrics::{ApiCall, ApiMetrics},
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    cluster::{
        Answer, ClusterApi, LabelOutcome, WatchItem,
        watch::{Selection, selected_jobs},
    },
    state::{
        Input, JobRecord, Mandate, Partition, Scope, ShardId,
        sharding::{Leadership, ShardCount, WriteTerms},
    },
};

/// The shard whose leader labels Jobs.
const LABELLING_SHARD: ShardId = ShardId(0);

/// How often it is looked whether we lead that shard.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Before a request that failed is made again: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Requests on the way.
const IN_FLIGHT_MAX: usize = 8;

/// See the module.
#[derive(Clone)]
pub struct LabelTask {
    /// Over which Jobs are watched.
    pub client: kube::Client,
    /// Over which they are labelled.
    pub api: ClusterApi,
    /// What is watched.
    pub scopes: Vec<Scope>,
    /// How CronJobs are shared out.
    pub count: ShardCount,
    /// Which shards we lead.
    pub leadership: watch::Receiver<Leadership>,
    /// The time.
    pub clock: Clock,
    /// Requests and answers.
    pub api_metrics: ApiMetrics,
    /// Jobs that were labelled.
    pub labelled: IntCounter,
    /// When to end.
    pub phase: PhaseReceiver,
}

impl LabelTask {
    /// Works until the intake stops.
    pub async fn run(self) {
        let mut phase = self.phase.clone();
        tokio::select! {
            biased;
            () = phase.reached(Phase::StopIntake) => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        loop {
            while self.terms().is_none() {
                tokio::time::sleep(LOOK_INTERVAL).await;
            }
            let watches = self.scopes.iter().map(|scope| self.label_scope(scope.clone()));
            let all = pin!(futures::future::join_all(watches));
            tokio::select! {
                biased;
                () = self.leads_no_more() => {}
                _ = all => {}
            }
        }
    }

    async fn leads_no_more(&self) {
        while self.terms().is_some() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Under what we label, if we may.
    fn terms(&self) -> Option<WriteTerms> {
        let (leadership, now) = (self.leadership.borrow(), self.clock.boot());
        let mandate: Mandate = leadership.mandate(LABELLING_SHARD, now)?;
        leadership.write_terms(mandate, now)
    }

    async fn label_scope(&self, scope: Scope) {
        let selection = Selection::Unlabelled(self.count);
        let items = selected_jobs(self.client.clone(), scope, selection);
        let jobs = items.filter_map(async |item| match item {
            WatchItem::Input(Input::JobApplied(job)) => job.controller.is_some().then_some(job),
            WatchItem::Input(_)
            | WatchItem::Undecodable { .. }
            | WatchItem::Listed(_)
            | WatchItem::PassedOver
            | WatchItem::KeepsNoMore => None,
            WatchItem::Error { message } => {
                tracing::warn!(
                    error = message,
                    "the watch of Jobs without a label broke, it is begun again"
                );
                None
            }
        });
        jobs.for_each_concurrent(IN_FLIGHT_MAX, async |job| self.label(&job).await)
            .await;
    }

    async fn label(&self, job: &JobRecord) {
        let Some(cron_job) = &job.controller else { return };
        let shard = Partition::Shards(self.count).shard_of(cron_job);
        let (key, value) = (self.count.label_key(), self.count.label_value(shard));
        let mut pause = PAUSE_MIN;
        while let Some(terms) = self.terms() {
            let api = self.api.under(&terms);
            let request = api.label_job(job, &key, &value);
            let (answered, _) = ask(&self.clock, &self.api_metrics, ApiCall::LabelJob, request).await;
            let message = match answered.answer {
                Answer::Outcome(LabelOutcome::Labelled) => return self.labelled.inc(),
                Answer::Outcome(LabelOutcome::Gone) => return,
                Answer::Outcome(LabelOutcome::Failed { message, .. })
                | Answer::Throttled { message, .. }
                | Answer::Unavailable { message, .. } => message,
            };
            let (namespace, name) = (&*job.namespace, &*job.name);
            tracing::debug!(namespace, name, message, "Job not labelled, it is tried again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
