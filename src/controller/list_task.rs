//! Lists the shards that are taken up, one list at a time for all that want one. Where a shard is only loaded, the list
//! need be no newer than what our watches have shown, and CronJobs that they have shown are recalled instead.
//!
//! A list that breaks off is begun again after a pause, and whoever waits for it is told that it begins again.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::{
    clock::Clock,
    permissions::RefusalLog,
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    kube_api::{
        Decoder,
        watch::{
            lists::{ListError, ListSource, PART_SIZE_MAX, Page, list_cron_jobs, list_jobs, recall_cron_jobs},
            progress::{ObservedVersion, WatchProgress},
            selection::{Freshness, SelectedBy},
        },
    },
    shard::{ListOrder, Listed, Partition, ResourceVersion, ResourceVersions, Scope, ShardCount, ShardSet},
    telemetry::metrics::SelectionMetrics,
};

/// Before a list that broke off is begun again: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a list has to say.
#[derive(Debug)]
pub enum ListNews {
    /// It broke off and begins again.
    Again,
    /// What it found; only of the shards that it is of.
    Found(Vec<Listed>),
    /// The API server does not permit it in a scope, which is left out.
    LeftOut(Scope),
    /// That was all that was written up to these versions.
    Complete(ResourceVersions),
}

/// See the module.
pub struct ListTask {
    /// Over which lists go.
    pub client: kube::Client,
    /// How objects are read.
    pub decoder: Arc<Decoder>,
    /// What the watches have shown.
    pub progress: Vec<WatchProgress>,
    /// How CronJobs are shared out.
    pub count: ShardCount,
    /// Which shards to list.
    pub wanted: mpsc::Receiver<ListOrder>,
    /// Where to tell.
    pub news: mpsc::Sender<ListNews>,
    /// Who selects.
    pub selection: SelectionMetrics,
    /// Where lists are logged that are not permitted.
    pub refusals: RefusalLog,
    /// The time.
    pub clock: Clock,
    /// When to end.
    pub phase: PhaseReceiver,
}

/// Why a list is not complete.
enum Broken {
    List(ListError),
    /// Nobody listens any more.
    Unwanted,
}

impl From<ListError> for Broken {
    fn from(error: ListError) -> Broken {
        Broken::List(error)
    }
}

impl ListTask {
    /// Works until the intake stops.
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
            let (mut pause, mut must_be_new) = (PAUSE_MIN, order.is_consistent);
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
                        self.warn(&error, n_shards);
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
                        // An API server that is far behind the one that we watch refuses what is no older.
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

    fn warn(&self, error: &ListError, n_shards: usize) {
        if let Some(code @ (401 | 403)) = error.code {
            let right = ["list", error.resource];
            self.refusals.note(right, code, &error.to_string(), self.clock.boot());
        } else {
            tracing::warn!(%error, n_shards, "list broke off, it is begun again");
        }
    }

    /// The versions of the oldest lists in it.
    async fn list(&self, order: &ListOrder, must_be_new: bool) -> Result<ResourceVersions, Broken> {
        let (mut oldest, mut refused): (Option<ResourceVersions>, _) = (None, None);
        for progress in &self.progress {
            match self.list_scope(order, must_be_new, progress).await {
                Ok(through) => oldest = Some(oldest.map_or(through, |oldest| oldest.min(&through))),
                // Where something else is permitted, this scope holds no other up.
                Err(Broken::List(error)) if error.code == Some(403) && self.progress.len() > 1 => {
                    self.warn(&error, order.shards.len());
                    progress.cron_jobs.want_list();
                    progress.jobs.want_list();
                    let news = ListNews::LeftOut(progress.scope.clone());
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

    /// The versions of the oldest lists of a scope.
    async fn list_scope(
        &self,
        order: &ListOrder,
        must_be_new: bool,
        progress: &WatchProgress,
    ) -> Result<ResourceVersions, Broken> {
        let shards = &order.shards;
        // Those of others, and those that nobody has labelled yet: they may be of these shards.
        let unlabelled = format!("!{}", self.count.label_key());
        let labelled = self.count.label_selector(shards).unwrap_or_else(|| unlabelled.clone());
        // No watch of ours shows one without a label gone, where it goes before it has one.
        let source = self.source(must_be_new, progress, &progress.jobs);
        let jobs = |labels| self.forward(shards, list_jobs(source.clone(), labels));
        // Side by side, since each may wait for the server to know that it is not behind; what is recalled last, since
        // that is work of ours while the server does its own.
        let lists = tokio::try_join!(
            biased;
            jobs(labelled),
            jobs(unlabelled),
            self.cron_jobs(order, must_be_new, progress)
        );
        let ((jobs, _), _, cron_jobs) = lists?;
        Ok(ResourceVersions { cron_jobs, jobs })
    }

    /// The shards are held by now: what comes after what a watch has shown, it will show of them too.
    fn source(&self, must_be_new: bool, progress: &WatchProgress, through: &ObservedVersion) -> ListSource {
        let through = through.get().filter(|_| !must_be_new);
        ListSource {
            client: self.client.clone(),
            scope: progress.scope.clone(),
            freshness: through.map_or(Freshness::Consistent, Freshness::NotOlderThan),
        }
    }

    /// Recalls the CronJobs where that will do and all are kept, and lists them where not.
    async fn cron_jobs(
        &self,
        order: &ListOrder,
        must_be_new: bool,
        progress: &WatchProgress,
    ) -> Result<ResourceVersion, Broken> {
        let (shards, decoder) = (&order.shards, || Arc::clone(&self.decoder));
        let recalled = (!order.is_consistent).then(|| recall_cron_jobs(&progress.cache, decoder(), shards));
        if let Some(pages) = recalled.flatten() {
            let pages = futures::stream::unfold(pages, |mut pages| async {
                // The requests that were just made go out first, which is the work of other tasks of this thread.
                tokio::task::yield_now().await;
                pages.next().map(|page| (Ok(page), pages))
            });
            return Ok(self.forward(shards, pages).await?.0);
        }
        let source = self.source(must_be_new, progress, &progress.cron_jobs);
        let list = list_cron_jobs(source, decoder(), self.count, *shards);
        let (version, selected_by) = self.forward(shards, list).await?;
        self.selection.note_list(selected_by);
        Ok(version)
    }

    /// Passes on what a list finds; says which version it shows, and who selected all of it.
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
