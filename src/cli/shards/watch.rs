//! Reads Leases and CronJobs and follows their changes.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};

use super::{ANSWER_TIMEOUT, Known, ShardsError};
use crate::{
    cli::plan::Plan,
    kube_api::{Decoder, LeaseApi, LeaseError, LeaseEvent, WatchItem, objects::classify::error_text, watch},
    schedule::Zone,
    shard::{Input, Scope, input::WatchStage},
};

/// Pause before a retry.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of CronJob items per change. A change costs a listing of everything, so items of a burst share one.
const ITEMS_MAX: usize = 512;

pub(super) struct Gathering {
    pub(super) known: Known,
    api: LeaseApi,
    leases: BoxStream<'static, Result<LeaseEvent, LeaseError>>,
    cron_jobs: BoxStream<'static, Vec<WatchItem>>,
}

impl Gathering {
    /// Reads everything once.
    pub(super) async fn begin(
        api: LeaseApi,
        client: kube::Client,
        default_zone: Zone,
        mut known: Known,
    ) -> Result<Gathering, ShardsError> {
        let list = api.list(ANSWER_TIMEOUT).await?;
        known.list_leases(list.leases);
        let decoder = Arc::new(Decoder {
            default_zone,
            shard_count: None,
            other_controllers: known.other_controllers.clone(),
        });
        let mut cron_jobs = watch::cron_jobs(client, Scope::Cluster, decoder, None).boxed();
        while let Some(item) = cron_jobs.next().await {
            if let WatchItem::Error { message, code } = item {
                let right = if code == Some(403) {
                    "; the account needs list and watch on cronjobs in all namespaces"
                } else {
                    ""
                };
                return Err(ShardsError::CronJobs { right, message });
            }
            let is_complete = matches!(
                &item,
                WatchItem::Input(Input::WatchUpdated(update)) if update.stage == WatchStage::ListDone
            );
            take_cron_job(&mut known, item);
            if is_complete {
                break;
            }
        }
        Ok(Gathering {
            known,
            leases: api.watch(list.resource_version, ANSWER_TIMEOUT).fuse().boxed(),
            cron_jobs: cron_jobs.ready_chunks(ITEMS_MAX).boxed(),
            api,
        })
    }

    /// Waits for the next change. Returns an error message if it was a failure.
    pub(super) async fn next(&mut self) -> Option<String> {
        tokio::select! {
            event = self.leases.next() => self.take_lease(event).await,
            Some(items) = self.cron_jobs.next() => {
                let mut trouble = None;
                for item in items {
                    trouble = take_cron_job(&mut self.known, item).or(trouble);
                }
                trouble
            }
        }
    }

    async fn take_lease(&mut self, event: Option<Result<LeaseEvent, LeaseError>>) -> Option<String> {
        let failure = match event {
            Some(Ok(LeaseEvent::Applied(record))) => {
                self.known.leases.insert(record.key.clone(), record);
                return None;
            }
            Some(Ok(LeaseEvent::Deleted(key, _))) => {
                self.known.leases.remove(&key);
                return None;
            }
            Some(Ok(LeaseEvent::Bookmark(_))) => return None,
            Some(Err(error)) => Some(error_text(&error)),
            None => None,
        };
        tokio::time::sleep(PAUSE).await;
        // If the list fails, the finished watch returns None again at once, so the list is retried after the pause.
        let listed = self.list_leases().await;
        failure.or(listed.err().map(|error| error_text(&error)))
    }

    /// Lists the Leases, and watches from there.
    async fn list_leases(&mut self) -> Result<(), LeaseError> {
        let list = self.api.list(ANSWER_TIMEOUT).await?;
        self.known.list_leases(list.leases);
        self.leases = self.api.watch(list.resource_version, ANSWER_TIMEOUT).fuse().boxed();
        Ok(())
    }
}

/// Applies an item. Returns an error message if it was a failure.
fn take_cron_job(known: &mut Known, item: WatchItem) -> Option<String> {
    match item {
        WatchItem::Input(Input::CronJobApplied(record)) => {
            known.put_cron_job(&record.identity.uid, Some(Plan::of(&record)));
        }
        WatchItem::Input(Input::CronJobDeleted(uid)) => known.remove_cron_job(&uid),
        WatchItem::Undecodable {
            input: Some(Input::CronJobUndecodable(uid)),
            ..
        } => known.put_cron_job(&uid, None),
        WatchItem::Input(Input::WatchUpdated(update)) => match update.stage {
            WatchStage::ListBegun => known.begin_relist(),
            WatchStage::ListDone => known.end_relist(),
            WatchStage::Watching(_) | WatchStage::NotPermitted | WatchStage::Interrupted => {}
        },
        WatchItem::Error { message, .. } => return Some(format!("watching CronJobs: {message}")),
        // CronJob watches have no other items.
        WatchItem::Input(_)
        | WatchItem::Undecodable { .. }
        | WatchItem::Listed(_)
        | WatchItem::PassedOver
        | WatchItem::CacheFull
        | WatchItem::HistoryWentBack { .. } => {}
    }
    None
}
