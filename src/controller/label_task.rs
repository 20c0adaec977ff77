//! Labels Jobs that lack the label of their shard: Jobs created by the built-in controller, by a replica with
//! `--alone`, or manually. The leader of shard 0 labels for all shards. The leader of a Job's shard observes the Job
//! from then on.
//!
//! Every few seconds the task tries to prove that every Job of a CronJob has its label. The member Leases carry the
//! proof to all replicas. A replica that takes shards then lists no Jobs without a label, and one that takes shard 0
//! watches them from the version of the proof.

mod unlabelled;

use std::{pin::pin, time::Duration};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use prometheus::IntCounter;
use tokio::sync::watch;

use self::unlabelled::UnlabelledJobs;
use super::{clock::Clock, latest_proof::LatestProof, recorded_send::send_recorded};
use crate::{
    coordination::{JobsLabelled, Leadership, WriteLimits},
    kube_api::{
        Answer, ApiClient, LabelOutcome, WatchItem,
        ordered_watch::OrderedSender,
        other_controllers::OtherControllers,
        watch::{lists::current_job_version, unlabelled_jobs},
    },
    shard::{BootInstant, Input, JobRecord, ResourceVersion, Scope, ShardCount, ShardId, ShardTerm, Uid},
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// The shard whose leader labels Jobs.
const LABELLING_SHARD: ShardId = ShardId(0);

/// Interval of checks whether this replica leads that shard.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Interval of attempts to prove that every Job of a CronJob has its label, and duration of a watch request, in seconds.
/// A quiet watch gets a bookmark two seconds before its end, unless the API server is too busy. Then the next watch gets
/// one.
const PROOF_SECS: u32 = 5;

/// Minimum interval between two warnings about refused Jobs.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum number of requests in flight.
const LABELS_IN_FLIGHT_MAX: usize = 8;

/// The task that labels Jobs.
#[derive(Clone)]
pub struct LabelTask {
    /// Client for the watch of Jobs without a label.
    pub client: kube::Client,
    /// Client for patches.
    pub api: ApiClient,
    /// Watched namespaces.
    pub scopes: Vec<Scope>,
    /// Number of shards.
    pub count: ShardCount,
    /// The shards and terms in which this replica may write.
    pub leadership: watch::Receiver<Leadership>,
    /// The clock.
    pub clock: Clock,
    /// Metrics of requests and answers.
    pub api_metrics: ApiMetrics,
    /// Receives the proofs that every Job of a CronJob has its label.
    pub proofs: OrderedSender<Option<JobsLabelled>>,
    /// The latest proof of any replica.
    pub latest_proof: LatestProof,
    /// Receives Jobs that another controller created.
    pub other_controllers: OtherControllers,
    /// Counter of labelled Jobs.
    pub labelled: IntCounter,
    /// Counts the deliveries of Jobs beyond the maximum of known Jobs.
    pub overflows: IntCounter,
}

impl LabelTask {
    /// Labels Jobs while this replica leads the labelling shard.
    pub async fn run(self) {
        loop {
            while self.limits().is_none() {
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
        while self.limits().is_some() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    /// Returns the limits of label patches, if this replica leads the labelling shard.
    fn limits(&self) -> Option<WriteLimits> {
        let (leadership, now) = (self.leadership.borrow(), self.clock.boot());
        let shard_term: ShardTerm = leadership.shard_term(LABELLING_SHARD, now)?;
        leadership.write_limits(shard_term, now, Duration::ZERO)
    }

    /// Whether this replica tries to prove that every Job of a CronJob has its label. The watches of several namespaces
    /// reach no common version.
    fn proves(&self) -> bool {
        self.scopes.len() == 1
    }

    /// Labels the Jobs of a scope; never returns.
    async fn label_scope(&self, scope: Scope) {
        loop {
            let proof = self.latest_proof.get().filter(|_| self.proves());
            self.label_listed(scope.clone(), proof.map(|proof| proof.version)).await;
        }
    }

    /// Reads the current version of the Jobs in a scope after a pause. Returns `None` if that fails, or while the clock
    /// is in doubt.
    async fn next_target(&self, scope: &Scope) -> Option<JobsLabelled> {
        if !self.proves() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(PROOF_SECS.into())).await;
        let at = self.clock.now();
        if !self.clock.is_fine() {
            return None;
        }
        let version = current_job_version(self.client.clone(), scope).await.ok()?;
        Some(JobsLabelled { at, version })
    }

    /// Labels the Jobs that one list and the watch after it deliver, or the watch from a version. Returns if another list
    /// is needed, or if a proof makes the rest of the list unnecessary.
    async fn label_listed(&self, scope: Scope, from: Option<ResourceVersion>) {
        let (client, watch_secs) = (self.client.clone(), self.proves().then_some(PROOF_SECS));
        let mut items = pin!(unlabelled_jobs(client, scope.clone(), self.count, from, watch_secs));
        let mut in_flight: FuturesUnordered<BoxFuture<'_, (Uid, bool)>> = FuturesUnordered::new();
        let mut unlabelled = UnlabelledJobs::new(self.overflows.clone(), self.clock.boot());
        let mut next_target = pin!(self.next_target(&scope));
        let mut proven = pin!(self.latest_proof.arrives());
        let (begun, mut reported) = (self.clock.now(), None);
        loop {
            let needs_list = unlabelled.needs_list(self.clock.boot());
            if needs_list && in_flight.is_empty() {
                return;
            }
            let has_room = !needs_list && in_flight.len() < LABELS_IN_FLIGHT_MAX;
            let is_listing = from.is_none() && self.proves() && !unlabelled.is_complete();
            let pause = unlabelled.next_attempt().map(|at| at.since(self.clock.boot()));
            tokio::select! {
                biased;
                Some((uid, is_labelled)) = in_flight.next() => {
                    unlabelled.note_attempt(&uid, is_labelled, self.clock.boot());
                    self.report(&unlabelled, &mut reported);
                }
                item = items.next(), if has_room => {
                    let Some(item) = item else { return };
                    if let Some(proof) = unlabelled.observe(&item) {
                        self.proofs.set(Some(proof));
                    }
                    if let Some(job) = self.wanted(item) {
                        self.other_controllers.note_unlabelled(&job, begun, self.clock.now());
                        if unlabelled.deliver(&job) {
                            in_flight.push(Box::pin(self.attempt(*job)));
                        }
                    }
                }
                () = tokio::time::sleep(pause.unwrap_or_default()), if has_room && pause.is_some() => {
                    if let Some(job) = unlabelled.begin_attempt(self.clock.boot()) {
                        in_flight.push(Box::pin(self.attempt(job)));
                    }
                }
                () = &mut proven, if is_listing => return,
                target = &mut next_target => {
                    if let Some(target) = target {
                        unlabelled.aim_at(target);
                    }
                    next_target.set(self.next_target(&scope));
                }
            }
        }
    }

    /// Logs that Jobs wait for their label, at most once in [`REPORT_INTERVAL`].
    fn report(&self, unlabelled: &UnlabelledJobs, reported: &mut Option<BootInstant>) {
        let now = self.clock.boot();
        if reported.is_some_and(|at| now.since(at) < REPORT_INTERVAL) {
            return;
        }
        let n_waiting = unlabelled.n_refused();
        if n_waiting > 0 {
            *reported = Some(now);
            tracing::warn!(n_waiting, "Jobs could not be labelled with their shard and are retried");
        }
    }

    /// Makes one attempt to label a Job. Returns whether it succeeded, or the Job is gone.
    async fn attempt(&self, job: JobRecord) -> (Uid, bool) {
        let is_labelled = self.label(&job).await;
        (job.uid, is_labelled)
    }

    async fn label(&self, job: &JobRecord) -> bool {
        // Without leadership the task ends soon, unless the leadership returns before.
        let (Some(cron_job), Some(limits)) = (&job.controller, self.limits()) else {
            return false;
        };
        let shard = self.count.shard_of(cron_job);
        let (key, value) = (self.count.label_key(), self.count.label_value(shard));
        let api = self.api.with_limits(&limits);
        let request = api.label_job(job, &key, &value);
        let (answered, _) = send_recorded(&self.clock, &self.api_metrics, ApiCall::LabelJob, request).await;
        let message = match answered.answer {
            Answer::Outcome(LabelOutcome::Labelled) => {
                self.labelled.inc();
                return true;
            }
            Answer::Outcome(LabelOutcome::Gone) => return true,
            Answer::Outcome(LabelOutcome::Failed { message, .. })
            | Answer::Throttled { message, .. }
            | Answer::Unavailable { message, .. } => message,
        };
        let (namespace, name) = (&*job.namespace, &*job.name);
        tracing::debug!(namespace, name, message, "Job not labelled, it is tried again");
        false
    }

    /// Returns the Job in an item of the watch, if a CronJob controls it.
    fn wanted(&self, item: WatchItem) -> Option<Box<JobRecord>> {
        if let WatchItem::Error { verb, message, code } = &item {
            let failures = &self.api_metrics.failures;
            failures.note([*verb, "jobs"], *code, message, self.clock.boot());
        }
        let WatchItem::Input(Input::JobApplied(job)) = item else {
            return None;
        };
        job.controller.is_some().then_some(job)
    }
}

#[cfg(test)]
mod tests;
