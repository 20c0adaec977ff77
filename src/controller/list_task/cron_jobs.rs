//! Lists of the CronJobs of some shards, from the cache where it is as new as the list must be.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::future::join_all;

use super::ListTask;
use crate::{
    kube_api::watch::{
        cron_job_cache::CronJobCache,
        delivered_versions::DeliveredVersions,
        lists::{ListError, current_version, list_cron_jobs, recall_cron_jobs, unchanged_through},
    },
    shard::{ListRequest, ResourceVersion},
};

/// How long the watch may take to reach the current version before CronJobs are listed as well. A cluster with some tens
/// of changes a second needs less.
const CATCH_UP_WAIT: Duration = Duration::from_millis(100);

/// Interval at which the version of the cache is compared with the current version.
const CATCH_UP_INTERVAL: Duration = Duration::from_millis(5);

/// How long before the earliest eviction of a member a second watch begins. Its bookmark arrives 0.5 to 1.75 seconds
/// after the eviction. It counts only if it follows the Lease writes by which shards are taken.
const ADVANCE_LEAD: Duration = Duration::from_millis(500);

impl ListTask {
    /// Begins to advance quiet caches shortly before members are evicted, so that the caches are current soon after the
    /// shards of these members are taken. Never ends.
    pub(super) async fn advance_before_evictions(&self) {
        let mut next_eviction = self.next_eviction.clone();
        loop {
            if let Some(eviction) = next_eviction.see() {
                let pause = eviction.since(self.clock.boot() + ADVANCE_LEAD);
                tokio::select! {
                    biased;
                    () = next_eviction.changed() => continue,
                    () = tokio::time::sleep(pause) => {}
                }
                join_all(self.delivered.iter().map(|delivered| self.advance(delivered))).await;
            }
            next_eviction.changed().await;
        }
    }

    /// Advances a cache to the version up to which a second watch shows that no CronJob has changed.
    async fn advance(&self, DeliveredVersions { scope, cache, .. }: &DeliveredVersions) {
        if let Some(since) = cache.version()
            && let Some(through) = unchanged_through(self.client.clone(), scope, since).await
        {
            cache.advance_unchanged(since, through);
        }
    }

    /// Waits until the cache contains every write from before this call: it has reached the version that the quorum of
    /// etcd has now. In a busy cluster, the next change of a CronJob moves the cache to that version. In a quiet cluster,
    /// a second watch without an event does. Returns `None` without a complete cache, or if the version cannot be read.
    async fn wait_for_current_cache(&self, delivered: &DeliveredVersions) -> Option<()> {
        let cache = &delivered.cache;
        let before = cache.version()?;
        let current = current_version(self.client.clone(), &delivered.scope, self.count).await;
        // A failure of the list is reported. A lower version is one of another history of etcd.
        let current = current.ok().filter(|current| *current >= before)?;
        let mut reached = pin!(reaches(cache, current));
        let is_current = tokio::select! {
            biased;
            is_current = &mut reached => is_current,
            () = self.advance(delivered) => reached.await,
        };
        is_current.then_some(())
    }

    /// Reads the CronJobs from the cache, if it is complete and as new as the request requires. For a consistent list, a
    /// list begins as well if the cache is not current soon, and the first of both counts.
    pub(super) async fn cron_jobs(
        &self,
        order: &ListRequest,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersion, ListError> {
        if order.is_consistent {
            let list_later = Box::pin(async {
                tokio::time::sleep(CATCH_UP_WAIT).await;
                self.list_cron_jobs(order, delivered).await
            });
            tokio::select! {
                biased;
                Some(()) = self.wait_for_current_cache(delivered) => {}
                listed = list_later => return listed,
            }
        }
        match self.recall(order, delivered).await {
            Some(recalled) => recalled,
            None => Box::pin(self.list_cron_jobs(order, delivered)).await,
        }
    }

    /// Reads the CronJobs from the cache; `None` if the cache is incomplete.
    async fn recall(
        &self,
        order: &ListRequest,
        delivered: &DeliveredVersions,
    ) -> Option<Result<ResourceVersion, ListError>> {
        let pages = recall_cron_jobs(&delivered.cache, Arc::clone(&self.decoder), &order.shards)?;
        let pages = futures::stream::unfold(pages, |mut pages| async {
            // Yields first, so that other tasks of this thread can send the requests that were just made.
            tokio::task::yield_now().await;
            pages.next().map(|page| (Ok(page), pages))
        });
        Some(self.forward(&order.shards, pages).await.map(|listed| listed.version))
    }

    async fn list_cron_jobs(
        &self,
        order: &ListRequest,
        delivered: &DeliveredVersions,
    ) -> Result<ResourceVersion, ListError> {
        let source = self.source(order, delivered, &delivered.cron_jobs);
        let list = list_cron_jobs(source, Arc::clone(&self.decoder), self.count, order.shards);
        let listed = self.forward(&order.shards, list).await?;
        self.selection.note_list(listed.selected_by);
        Ok(listed.version)
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
