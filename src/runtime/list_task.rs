//! Lists the shards that are taken up, one list at a time for all that want one. CronJobs that a watch has shown are
//! recalled instead, where a shard is only loaded.
//!
//! A list that breaks off is begun again after a pause, and whoever waits for it is told that it begins again.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::{
    metrics::SelectionMetrics,
    shutdown::{Phase, PhaseReceiver},
};
use crate::{
    cluster::{
        Decoder,
        kept::KeptCronJobs,
        lists::{ListError, Page, list_cron_jobs, list_jobs, recall_cron_jobs},
        selection::SelectedBy,
    },
    state::{
        ListOrder, Listed, Partition, ResourceVersion, Scope,
        sharding::{ShardCount, ShardSet, WrittenThrough},
    },
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
    /// That was all that was written up to these versions.
    Complete(WrittenThrough),
}

/// See the module.
pub struct ListTask {
    /// Over which lists go.
    pub client: kube::Client,
    /// How objects are read.
    pub decoder: Arc<Decoder>,
    /// What is watched, and where what it shows is kept.
    pub scopes: Vec<(Scope, KeptCronJobs)>,
    /// How CronJobs are shared out.
    pub count: ShardCount,
    /// Which shards to list.
    pub wanted: mpsc::Receiver<ListOrder>,
    /// Where to tell.
    pub news: mpsc::Sender<ListNews>,
    /// Who selects.
    pub selection: SelectionMetrics,
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
            let mut pause = PAUSE_MIN;
            loop {
                let news = match self.list(&order).await {
                    Ok(through) => ListNews::Complete(through),
                    Err(Broken::Unwanted) => return,
                    Err(Broken::List(error)) => {
                        tracing::warn!(%error, n_shards = order.shards.len(), "list broke off, it is begun again");
                        tokio::time::sleep(pause).await;
                        pause = (pause * 2).min(PAUSE_MAX);
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

    /// The versions of the oldest lists in it.
    async fn list(&self, order: &ListOrder) -> Result<WrittenThrough, Broken> {
        let shards = &order.shards;
        let mut oldest: Option<WrittenThrough> = None;
        for (scope, kept) in &self.scopes {
            // Those of others, and those that nobody has labelled yet: they may be of these shards.
            let unlabelled = format!("!{}", self.count.label_key());
            let labelled = self.count.label_selector(shards).unwrap_or_else(|| unlabelled.clone());
            let jobs = |labels| self.forward(shards, list_jobs(self.client.clone(), scope.clone(), labels));
            let cron_jobs = self.cron_jobs(order, scope, kept);
            // Side by side, since each waits for the server to know that it is not behind.
            let (cron_jobs, (jobs, _), _) = tokio::try_join!(cron_jobs, jobs(labelled), jobs(unlabelled))?;
            let through = WrittenThrough { cron_jobs, jobs };
            oldest = Some(oldest.map_or(through, |oldest| oldest.min(&through)));
        }
        Ok(oldest.unwrap_or_default())
    }

    /// Recalls the CronJobs where that will do and all are kept, and lists them where not.
    async fn cron_jobs(
        &self,
        order: &ListOrder,
        scope: &Scope,
        kept: &KeptCronJobs,
    ) -> Result<ResourceVersion, Broken> {
        let shards = &order.shards;
        let recalled = (!order.is_consistent).then(|| recall_cron_jobs(kept, Arc::clone(&self.decoder), shards));
        if let Some(pages) = recalled.flatten() {
            return Ok(self.forward(shards, futures::stream::iter(pages.map(Ok))).await?.0);
        }
        let (client, decoder) = (self.client.clone(), Arc::clone(&self.decoder));
        let list = list_cron_jobs(client, scope.clone(), decoder, self.count, *shards);
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
            if !page.found.is_empty() && self.news.send(ListNews::Found(page.found)).await.is_err() {
                return Err(Broken::Unwanted);
            }
        }
        Ok((version, selected_by))
    }
}
