//! Lists the shards that are loaded, with one list at a time for all shards that need one. Unless the list must be
//! consistent, it need be no newer than what the watches have delivered. CronJobs in the cache are not listed at all, if
//! the cache is as new as the list would be. Jobs without the label of a shard are not listed, if there is a recent proof
//! that none of them belongs to a CronJob.
//!
//! A list that fails is restarted after a pause, and the shard task is notified of the restart.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::{
    clock::Clock,
    permissions::FailureLog,
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    coordination::JobsLabelled,
    kube_api::{
        Decoder,
        ordered_watch::OrderedReceiver,
        retry::{LIST_PAUSES, Retry},
        watch::{
            cron_job_cache::CronJobCache,
            delivered_versions::{DeliveredVersion, DeliveredVersions},
            lists::{
                ListError, ListSource, PART_SIZE_MAX, Page, current_version, is_unchanged, list_cron_jobs, list_jobs,
                recall_cron_jobs,
            },
            selection::{Freshness, SelectedBy},
        },
    },
    shard::{ListOrder, Listed, Partition, ResourceVersion, ResourceVersions, Scope, ShardCount, ShardSet},
    telemetry::metrics::SelectionMetrics,
};

/// How long the watch may take to reach the current version before CronJobs are listed as well. A cluster with some tens
/// of changes a second needs less.
const CATCH_UP_WAIT: Duration = Duration::from_millis(100);

/// Interval between two looks.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(5);

/// Progress of a list, for the shard task.
#[derive(Debug)]
pub enum ListNews {
    /// The list failed and starts again.
    Again,
    /// Objects found, only of the listed shards.
    Found(Vec<Listed>),
    /// The API server does not permit the list in a scope, which is left out.
    LeftOut(Scope),
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
    /// The latest proof that every Job of a CronJob has the label of its shard.
    pub jobs_labelled: OrderedReceiver<Option<JobsLabelled>>,
    /// Requests for lists.
    pub wanted: mpsc::Receiver<ListOrder>,
    /// Progress of the lists, for the shard task.
    pub news: mpsc::Sender<ListNews>,
    /// Counters of the side that selects, the API server or this replica.
    pub selection: SelectionMetrics,
    /// Log of lists that are not permitted.
    pub failures: FailureLog,
    /// The clock.
    pub clock: Clock,
    /// Phase of the shutdown; it ends the task.
    pub phase: PhaseReceiver,
}

/// Reasons why a list is not complete.
enum Broken {
    List(ListError),
    /// The receiver of the list is gone.
    Unwanted,
}

impl From<ListError> for Broken {
    fn from(error: ListError) -> Broken {
        Broken::List(error)
    }
}

impl ListTask {
    /// Runs until the intake stops.
    pub async fn run(mut self) {
        let mut phase = self.phase.clone();
        tokio::select! {
            biased;
            () = phase.reached(Phase::StopIntake) => {}
            () = self.serve() => {}
        }
    }

    async fn serve(&mut self) {
        while let Some(order) = self.wanted.recv().await {
            let (mut retry, mut must_be_new) = (Retry::new(LIST_PAUSES), order.is_consistent);
            let n_shards = order.shards.len();
            loop {
                tracing::debug!(n_shards, is_consistent = must_be_new, "list of shards begun");
                let news = match self.list(&order, must_be_new).await {
                    Ok(through) => {
                        tracing::debug!(n_shards, "list of shards complete");
                        ListNews::Complete(through)
                    }
                    Err(Broken::Unwanted) => return,
                    Err(Broken::List(error)) => {
                        self.warn(&error);
                        retry.fail();
                        retry.wait().await;
                        // An API server that is far behind the watched one refuses a `NotOlderThan` list.
                        must_be_new = true;
                        ListNews::Again
                    }
                };
                let is_complete = matches!(news, ListNews::Complete(_));
                if self.news.send(news).await.is_err() {
                    return;
                }
                if is_complete {
                    break;
                }
            }
        }
    }

    fn warn(&self, error: &ListError) {
        if let Some(code @ (401 | 403)) = error.code {
            let right = ["list", error.resource];
            self.failures
                .refused(right, code, &error.to_string(), self.clock.boot());
        } else {
            self.failures
                .failed(&format!("list {}", error.resource), &error.message, self.clock.boot());
        }
    }

    /// Lists every scope. Returns the versions of the oldest lists.
    async fn list(&self, order: &ListOrder, must_be_new: bool) -> Result<ResourceVersions, Broken> {
        let (mut oldest, mut refused): (Option<ResourceVersions>, _) = (None, None);
        for delivered in &self.delivered {
            match self.list_scope(order, must_be_new, delivered).await {
                Ok(through) => oldest = Some(oldest.map_or(through, |oldest| oldest.min(&through))),
                // If other scopes are permitted, this scope does not delay them.
                Err(Broken::List(error)) if error.code == Some(403) && self.delivered.len() > 1 => {
                    self.warn(&error);
                    delivered.cron_jobs.request_list();
                    delivered.jobs.request_list();
                    let news = ListNews::LeftOut(delivered.scope.clone());
                    self.news.send(news).await.map_err(|_| Broken::Unwanted)?;
                    refused = Some(error);
                }
                Err(broken) => return Err(broken),
            }
        }
        match (oldest, refused) {
            (None, Some(error)) => Err(Broken::List(error)),
            (oldest, _) => Ok(oldest.unwrap_or_default()),
        }
    }

    /// Lists a scope. Returns the versions of the lists.
    async fn list_scope(
        &self,
        order: &ListOrder,
        must_be_new: bool,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersions, Broken> {
        let shards = &order.shards;
        let proof = self.jobs_labelled.get();
        let proof = proof.filter(|proof| proof.counts_at(self.clock.now()));
        // The watches select by label: they do not report the deletion of a Job that is deleted before it is labelled.
        let mut source = self.source(must_be_new, delivered, &delivered.jobs);
        if let (Some(proof), Freshness::NotOlderThan(version)) = (proof, &mut source.freshness) {
            // In an older version, a Job may lack the label that the proof is about.
            *version = proof.version.max(*version);
        }
        let jobs = |labels| self.forward(shards, list_jobs(source.clone(), labels));
        let unlabelled = format!("!{}", self.count.label_key());
        let labelled = self.count.label_selector(shards).unwrap_or_else(|| unlabelled.clone());
        // Without a proof, Jobs without the label may belong to these shards as well.
        let unlabelled = async {
            match proof {
                Some(_) => Ok(()),
                None => jobs(unlabelled).await.map(drop),
            }
        };
        // Concurrently, since each list may wait until the server knows that it is not behind. The CronJobs come last:
        // reading the cache is work for this process while the server prepares the Jobs.
        let lists = tokio::try_join!(
            biased;
            jobs(labelled),
            unlabelled,
            self.cron_jobs(order, must_be_new, delivered)
        );
        let ((jobs, _), (), cron_jobs) = lists?;
        Ok(ResourceVersions { cron_jobs, jobs })
    }

    /// The shards are held already, so the watches deliver every later change of them.
    fn source(&self, must_be_new: bool, delivered: &DeliveredVersions, through: &DeliveredVersion) -> ListSource {
        let through = through.get().filter(|_| !must_be_new);
        ListSource {
            client: self.client.clone(),
            scope: delivered.scope.clone(),
            freshness: through.map_or(Freshness::Consistent, Freshness::NotOlderThan),
        }
    }

    /// Ends once the cache contains every write from before this call. Returns the version that it provably contains,
    /// which was read from the quorum. In a busy cluster, the next change of a CronJob moves the cache to that version.
    /// In a quiet cluster, a second watch shows that no CronJob has changed. Does not end without a complete cache, or
    /// if the version cannot be read.
    async fn cache_is_current(&self, delivered: &DeliveredVersions) -> ResourceVersion {
        let cache = &delivered.cache;
        if let Some(before) = cache.version() {
            let current = current_version(self.client.clone(), &delivered.scope, self.count).await;
            // A failure of the list is reported. A lower version is one of another history of etcd.
            if let Some(current) = current.ok().filter(|current| *current >= before) {
                let is_current = tokio::select! {
                    biased;
                    true = reaches(cache, current) => true,
                    true = is_unchanged(self.client.clone(), &delivered.scope, before, current) => {
                        // A list may have begun meanwhile.
                        cache.version() >= Some(before)
                    }
                    else => false,
                };
                if is_current {
                    return current;
                }
            }
        }
        std::future::pending().await
    }

    /// Reads the CronJobs from the cache if it is complete and as new as the order requires, or becomes so before a list
    /// is complete; otherwise lists them.
    async fn cron_jobs(
        &self,
        order: &ListOrder,
        must_be_new: bool,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersion, Broken> {
        let mut proven = None;
        if order.is_consistent {
            let mut current = pin!(self.cache_is_current(delivered));
            proven = tokio::time::timeout(CATCH_UP_WAIT, &mut current).await.ok();
            if proven.is_none() {
                proven = tokio::select! {
                    biased;
                    current = current => Some(current),
                    listed = Box::pin(self.list_cron_jobs(order, must_be_new, delivered)) => return listed,
                };
            }
        }
        match self.recall(order, delivered).await {
            Some(recalled) => recalled.map(|version| proven.map_or(version, |proven| proven.max(version))),
            None => Box::pin(self.list_cron_jobs(order, must_be_new, delivered)).await,
        }
    }

    /// Reads the CronJobs from the cache; `None` if the cache is incomplete.
    async fn recall(
        &self,
        order: &ListOrder,
        delivered: &DeliveredVersions,
    ) -> Option<Result<ResourceVersion, Broken>> {
        let pages = recall_cron_jobs(&delivered.cache, Arc::clone(&self.decoder), &order.shards)?;
        let pages = futures::stream::unfold(pages, |mut pages| async {
            // Yields first, so that other tasks of this thread can send the requests that were just made.
            tokio::task::yield_now().await;
            pages.next().map(|page| (Ok(page), pages))
        });
        Some(self.forward(&order.shards, pages).await.map(|(version, _)| version))
    }

    async fn list_cron_jobs(
        &self,
        order: &ListOrder,
        must_be_new: bool,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersion, Broken> {
        let source = self.source(must_be_new, delivered, &delivered.cron_jobs);
        let list = list_cron_jobs(source, Arc::clone(&self.decoder), self.count, order.shards);
        let (version, selected_by) = self.forward(&order.shards, list).await?;
        self.selection.note_list(selected_by);
        Ok(version)
    }

    /// Forwards the pages of a list. Returns the version of the list and the side that selected its objects.
    async fn forward(
        &self,
        shards: &ShardSet,
        pages: impl Stream<Item = Result<Page, ListError>> + Send,
    ) -> Result<(ResourceVersion, SelectedBy), Broken> {
        let partition = Partition::Shards(self.count);
        let mut pages = pin!(pages);
        let (mut version, mut selected_by) = (ResourceVersion(0), SelectedBy::Server);
        while let Some(page) = pages.next().await {
            let mut page = page?;
            version = page.version;
            selected_by = selected_by.and(page.selected_by);
            self.selection.passed_over.inc_by(page.n_passed_over);
            page.found
                .retain(|listed| shards.contains(partition.shard_of(listed.cron_job())));
            let mut found = page.found.into_iter();
            loop {
                let part: Vec<Listed> = found.by_ref().take(PART_SIZE_MAX).collect();
                if part.is_empty() {
                    break;
                }
                if self.news.send(ListNews::Found(part)).await.is_err() {
                    return Err(Broken::Unwanted);
                }
            }
        }
        Ok((version, selected_by))
    }
}

/// Ends with `true` once the cache has reached a version, or with `false` if it is no longer complete.
async fn reaches(cache: &CronJobCache, target: ResourceVersion) -> bool {
    while let Some(version) = cache.version() {
        if version >= target {
            return true;
        }
        tokio::time::sleep(CATCH_UP_INTERVAL).await;
    }
    false
}
