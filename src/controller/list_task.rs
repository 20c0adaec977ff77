//! Lists the shards that are loaded, with one list at a time for all shards that need one. Unless the list must be
//! consistent, it need be no newer than what the watches have delivered. CronJobs in the cache are not listed at all, if
//! the cache is as new as the list would be. Jobs without the label of a shard are not listed, if there is a recent proof
//! that none of them belongs to a CronJob.
//!
//! Shortly before a member is evicted, a short watch begins to check whether CronJobs have changed, so that the cache can
//! serve the takeover sooner.
//!
//! A list that fails is restarted after a pause, and the shard task is notified of the restart.

mod cron_jobs;
mod jobs;

use std::{pin::pin, sync::Arc};

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::{clock::Clock, latest_proof::LatestProof, permissions::FailureLog};
use crate::{
    coordination::JobsLabelled,
    kube_api::{
        Decoder,
        ordered_watch::{OrderedReceiver, OrderedSender},
        retry::{LIST_PAUSES, Retry},
        watch::{
            collection::{Freshness, Page, SelectedBy},
            delivered_versions::{DeliveredVersion, DeliveredVersions},
            lists::{ListError, ListSource, PART_SIZE_MAX},
        },
    },
    shard::{BootInstant, Input, ListRequest, ResourceVersion, ResourceVersions, Scope, ShardCount, ShardSet},
    telemetry::metrics::SelectionMetrics,
};

/// Progress of a list, for the shard task.
#[derive(Debug)]
pub enum ListProgress {
    /// The list failed and starts again.
    Restarted,
    /// Objects found, only of the listed shards.
    Found(Vec<Input>),
    /// The list skips a scope, because the API server does not permit it.
    ScopeSkipped(Scope),
    /// The list is complete and includes every write up to these versions.
    Complete(ResourceVersions),
}

/// The task that lists shards.
pub struct ListTask {
    /// Client for lists.
    pub client: kube::Client,
    /// Decoder of the objects.
    pub decoder: Arc<Decoder>,
    /// What the watches have delivered, per scope.
    pub delivered: Vec<DeliveredVersions>,
    /// Number of shards.
    pub count: ShardCount,
    /// The latest proof of any replica that every Job of a CronJob has the label of its shard.
    pub latest_proof: LatestProof,
    /// Receives the proofs of this replica.
    pub proofs: OrderedSender<Option<JobsLabelled>>,
    /// The instant of the next eviction of a member, unless its Lease is renewed.
    pub next_eviction: OrderedReceiver<Option<BootInstant>>,
    /// Progress of the lists, for the shard task.
    pub progress: mpsc::Sender<ListProgress>,
    /// Counters of the side that selects, the API server or this replica.
    pub selection: SelectionMetrics,
    /// Log of lists that are not permitted.
    pub failures: FailureLog,
    /// The clock.
    pub clock: Clock,
}

/// A list that is complete.
struct Forwarded {
    version: ResourceVersion,
    /// The side that selected its objects.
    selected_by: SelectedBy,
    /// Number of CronJobs, or of Jobs of CronJobs, that were found for any shard.
    n_found: usize,
}

impl ListTask {
    /// Makes the lists that are ordered, one after another, and prepares those of takeovers.
    pub async fn run(self, wanted: mpsc::Receiver<ListRequest>) {
        tokio::select! {
            biased;
            () = self.make_lists(wanted) => {}
            () = self.advance_before_evictions() => {}
        }
    }

    async fn make_lists(&self, mut wanted: mpsc::Receiver<ListRequest>) {
        while let Some(mut order) = wanted.recv().await {
            let mut retry = Retry::new(LIST_PAUSES);
            let n_shards = order.shards.len();
            let through = loop {
                let is_consistent = order.is_consistent;
                tracing::debug!(n_shards, is_consistent, "list of shards begun");
                match self.list(&order).await {
                    Ok(through) => break through,
                    Err(error) => {
                        self.warn(&error);
                        retry.fail();
                        retry.wait().await;
                        // An API server that is far behind the watched one refuses a `NotOlderThan` list.
                        order.is_consistent = true;
                        self.send(ListProgress::Restarted).await;
                    }
                }
            };
            tracing::debug!(n_shards, "list of shards complete");
            self.send(ListProgress::Complete(through)).await;
        }
    }

    /// Sends progress to the shard task, which outlives this task unless the process fails.
    async fn send(&self, progress: ListProgress) {
        let _ = self.progress.send(progress).await;
    }

    fn warn(&self, error: &ListError) {
        let right = ["list", error.resource];
        self.failures
            .note(right, error.code, &error.to_string(), self.clock.boot());
    }

    /// Lists every scope. Returns the versions of the oldest lists.
    async fn list(&self, order: &ListRequest) -> Result<ResourceVersions, ListError> {
        let (mut oldest, mut refused): (Option<ResourceVersions>, _) = (None, None);
        for delivered in &self.delivered {
            match self.list_scope(order, delivered).await {
                Ok(through) => oldest = Some(oldest.map_or(through, |oldest| oldest.min(&through))),
                // If other scopes are permitted, this scope does not delay them.
                Err(error) if error.code == Some(403) && self.delivered.len() > 1 => {
                    self.warn(&error);
                    delivered.cron_jobs.request_list();
                    delivered.jobs.request_list();
                    self.send(ListProgress::ScopeSkipped(delivered.scope.clone())).await;
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match (oldest, refused) {
            (None, Some(error)) => Err(error),
            (oldest, _) => Ok(oldest.unwrap_or_default()),
        }
    }

    /// Lists a scope. Returns the versions of the lists.
    async fn list_scope(
        &self,
        order: &ListRequest,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersions, ListError> {
        // Concurrently, since each list may wait until the server knows that it is not behind. The CronJobs come last:
        // reading the cache is work for this process while the server prepares the Jobs.
        let (jobs, cron_jobs) = tokio::try_join!(
            biased;
            self.jobs(order, delivered),
            self.cron_jobs(order, delivered)
        )?;
        Ok(ResourceVersions { cron_jobs, jobs })
    }

    /// The shards are held already, so the watches deliver every later change of them.
    fn source(&self, order: &ListRequest, delivered: &DeliveredVersions, through: &DeliveredVersion) -> ListSource {
        let through = through.get().filter(|_| !order.is_consistent);
        ListSource {
            client: self.client.clone(),
            scope: delivered.scope.clone(),
            freshness: through.map_or(Freshness::Consistent, Freshness::NotOlderThan),
        }
    }

    /// Forwards the pages of a list.
    async fn forward(
        &self,
        shards: &ShardSet,
        pages: impl Stream<Item = Result<Page<Input>, ListError>> + Send,
    ) -> Result<Forwarded, ListError> {
        let mut pages = pin!(pages);
        let mut listed = Forwarded {
            version: ResourceVersion(0),
            selected_by: SelectedBy::Server,
            n_found: 0,
        };
        while let Some(page) = pages.next().await {
            let mut page = page?;
            listed.version = page.version;
            listed.selected_by = listed.selected_by.and(page.selected_by);
            listed.n_found += page.items.len();
            self.selection.passed_over.inc_by(page.n_passed_over);
            page.items.retain(|found| {
                found
                    .cron_job()
                    .is_some_and(|cron_job| shards.contains(self.count.shard_of(cron_job)))
            });
            let mut found = page.items.into_iter();
            loop {
                let part: Vec<Input> = found.by_ref().take(PART_SIZE_MAX).collect();
                if part.is_empty() {
                    break;
                }
                self.send(ListProgress::Found(part)).await;
            }
        }
        Ok(listed)
    }
}

#[cfg(test)]
mod tests;
