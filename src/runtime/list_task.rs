//! Lists the shards that are taken up, one list at a time for all that want one.
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
        lists::{ListError, Page, list_cron_jobs, list_jobs},
        selection::SelectedBy,
    },
    state::{
        Listed, Partition, ResourceVersion, Scope,
        sharding::{ShardCount, ShardSet},
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
    /// That was all, of CronJobs as of this version.
    Complete(ResourceVersion),
}

/// See the module.
pub struct ListTask {
    /// Over which lists go.
    pub client: kube::Client,
    /// How objects are read.
    pub decoder: Arc<Decoder>,
    /// What is watched.
    pub scopes: Vec<Scope>,
    /// How CronJobs are shared out.
    pub count: ShardCount,
    /// Which shards to list.
    pub wanted: mpsc::Receiver<ShardSet>,
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
        while let Some(shards) = self.wanted.recv().await {
            let mut pause = PAUSE_MIN;
            loop {
                let news = match self.list(&shards).await {
                    Ok(version) => ListNews::Complete(version),
                    Err(Broken::Unwanted) => return,
                    Err(Broken::List(error)) => {
                        tracing::warn!(%error, n_shards = shards.len(), "list broke off, it is begun again");
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

    /// The version of the oldest list of CronJobs in it.
    async fn list(&self, shards: &ShardSet) -> Result<ResourceVersion, Broken> {
        let mut oldest = None;
        for scope in &self.scopes {
            let (client, decoder) = (self.client.clone(), Arc::clone(&self.decoder));
            let cron_jobs = list_cron_jobs(client, scope.clone(), decoder, self.count, *shards);
            // Those of others, and those that nobody has labelled yet: they may be of these shards.
            let unlabelled = format!("!{}", self.count.label_key());
            let labelled = self.count.label_selector(shards).unwrap_or_else(|| unlabelled.clone());
            let jobs = |labels| self.forward(shards, list_jobs(self.client.clone(), scope.clone(), labels));
            // Side by side, since each waits for the server to know that it is not behind.
            let ((version, selected_by), _, _) =
                tokio::try_join!(self.forward(shards, cron_jobs), jobs(labelled), jobs(unlabelled))?;
            self.selection.note_list(selected_by);
            oldest = Some(oldest.map_or(version, |oldest: ResourceVersion| oldest.min(version)));
        }
        Ok(oldest.unwrap_or_default())
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
