//! Labels the Jobs of CronJobs that lack the label of their shard: those of the built-in controller, of a replica that was
//! alone, and manual runs. The leader of shard 0 does it for all; whoever leads their shard sees them from then on.
//!
//! A Job whose label is refused, as by an admission policy, waits for its next attempt and holds up no other.

mod refused;

use std::{pin::pin, time::Duration};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use prometheus::IntCounter;
use tokio::sync::watch;

use self::refused::{PAUSE_MAX, Refused, RefusedJobs};
use super::{
    ask::ask,
    clock::Clock,
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    coordination::{Leadership, WriteTerms},
    kube_api::{
        Answer, ApiClient, LabelOutcome, WatchItem,
        watch::{Selection, selected_jobs},
    },
    shard::{BootInstant, Input, JobRecord, Partition, Scope, ShardCount, ShardId, ShardTerm},
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// The shard whose leader labels Jobs.
const LABELLING_SHARD: ShardId = ShardId(0);

/// How often it is looked whether we lead that shard.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The log says at most so often that Jobs are refused.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// Requests on the way.
const IN_FLIGHT_MAX: usize = 8;

/// See the module.
#[derive(Clone)]
pub struct LabelTask {
    /// Over which Jobs are watched.
    pub client: kube::Client,
    /// Over which they are labelled.
    pub api: ApiClient,
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
    /// Jobs that found the queue of refused ones full.
    pub dropped: IntCounter,
    /// When to end.
    pub phase: PhaseReceiver,
}

/// What came of one attempt to label a Job.
enum Attempt {
    /// It has the label, or is gone, or is no longer ours to label.
    Settled,
    /// To be tried again.
    Refused(Refused),
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
        let shard_term: ShardTerm = leadership.shard_term(LABELLING_SHARD, now)?;
        leadership.write_terms(shard_term, now)
    }

    /// Labels the Jobs of a scope, for ever.
    async fn label_scope(&self, scope: Scope) {
        loop {
            self.label_listed(scope.clone()).await;
        }
    }

    /// Labels what one list and the watch after it show. Where Jobs were dropped a new list is needed: when no other waits, or
    /// after [`PAUSE_MAX`].
    async fn label_listed(&self, scope: Scope) {
        let selection = Selection::Unlabelled(self.count);
        let mut items = pin!(selected_jobs(self.client.clone(), scope, selection));
        let mut in_flight: FuturesUnordered<BoxFuture<'_, Attempt>> = FuturesUnordered::new();
        let mut refused = RefusedJobs::default();
        let mut n_dropped: u64 = 0;
        let mut reported = None;
        let list_again_at = self.clock.boot() + PAUSE_MAX;
        loop {
            let is_idle = refused.len() == 0 && in_flight.is_empty();
            if n_dropped > 0 && (is_idle || self.clock.boot() >= list_again_at) {
                return;
            }
            let has_room = in_flight.len() < IN_FLIGHT_MAX;
            let pause = refused.next_at().map(|at| at.since(self.clock.boot()));
            tokio::select! {
                biased;
                Some(attempt) = in_flight.next() => {
                    if let Attempt::Refused(job) = attempt
                        && !refused.put(job, self.clock.boot())
                    {
                        n_dropped += 1;
                        self.dropped.inc();
                    }
                    self.report(refused.len(), n_dropped, &mut reported);
                }
                item = items.next(), if has_room => {
                    let Some(item) = item else { return };
                    if let Some(job) = self.wanted(item) {
                        let n_refusals = refused.take(&job.uid);
                        in_flight.push(Box::pin(self.attempt(Refused { job: *job, n_refusals })));
                    }
                }
                () = tokio::time::sleep(pause.unwrap_or_default()), if has_room && pause.is_some() => {
                    if let Some(job) = refused.pop_due(self.clock.boot()) {
                        in_flight.push(Box::pin(self.attempt(job)));
                    }
                }
            }
        }
    }

    /// Says that Jobs wait for their label, at most once in [`REPORT_INTERVAL`].
    fn report(&self, n_waiting: usize, n_dropped: u64, reported: &mut Option<BootInstant>) {
        let now = self.clock.boot();
        if n_waiting == 0 || reported.is_some_and(|at| now.since(at) < REPORT_INTERVAL) {
            return;
        }
        *reported = Some(now);
        tracing::warn!(
            n_waiting,
            n_dropped,
            "Jobs could not be given the label of their shard, they are tried again"
        );
    }

    /// Labels a Job once.
    async fn attempt(&self, Refused { job, n_refusals }: Refused) -> Attempt {
        let (Some(cron_job), Some(terms)) = (&job.controller, self.terms()) else {
            return Attempt::Settled;
        };
        let shard = Partition::Shards(self.count).shard_of(cron_job);
        let (key, value) = (self.count.label_key(), self.count.label_value(shard));
        let api = self.api.under(&terms);
        let request = api.label_job(&job, &key, &value);
        let (answered, _) = ask(&self.clock, &self.api_metrics, ApiCall::LabelJob, request).await;
        let message = match answered.answer {
            Answer::Outcome(LabelOutcome::Labelled) => {
                self.labelled.inc();
                return Attempt::Settled;
            }
            Answer::Outcome(LabelOutcome::Gone) => return Attempt::Settled,
            Answer::Outcome(LabelOutcome::Failed { message, .. })
            | Answer::Throttled { message, .. }
            | Answer::Unavailable { message, .. } => message,
        };
        let (namespace, name) = (&*job.namespace, &*job.name);
        tracing::debug!(namespace, name, message, "Job not labelled, it is tried again");
        let n_refusals = n_refusals.saturating_add(1);
        Attempt::Refused(Refused { job, n_refusals })
    }

    /// The Job of a CronJob in an item of the watch, if there is one.
    fn wanted(&self, item: WatchItem) -> Option<Box<JobRecord>> {
        match item {
            WatchItem::Input(Input::JobApplied(job)) => job.controller.is_some().then_some(job),
            WatchItem::Input(_)
            | WatchItem::Undecodable { .. }
            | WatchItem::Listed(_)
            | WatchItem::PassedOver
            | WatchItem::KeepsNoMore => None,
            WatchItem::Error {
                message,
                code: Some(code @ (401 | 403)),
            } => {
                let right = ApiCall::WatchJobs.labels();
                self.api_metrics.refusals.note(right, code, &message, self.clock.boot());
                None
            }
            WatchItem::Error { message, .. } => {
                tracing::warn!(
                    error = message,
                    "the watch of Jobs without a label broke, it is begun again"
                );
                None
            }
        }
    }
}
