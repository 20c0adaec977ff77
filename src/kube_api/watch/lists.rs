//! Lists of CronJobs and Jobs, page by page, for shards that are added beside running watches.
//!
//! The caller states how new a list must be, and every page carries the version of the list. If the cache of CronJobs
//! is new enough, CronJobs come from the cache.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream};
use kube::{Client, core::WatchEvent};

use super::{
    collection::{Collection, Freshness, Page, SelectedBy, Selector},
    kinds::ShardFilter,
};
use crate::{
    kube_api::{
        objects::{
            classify::error_text,
            decode::{
                Content, CronJobText, Decoder, JobContent, Received, ReceivedCronJob, ReceivedJob, UndecodableCronJob,
            },
        },
        watch::cron_job_cache::CronJobCache,
    },
    shard::{CronJobRecord, Input, ResourceVersion, Scope, ShardCount, ShardSet, Uid},
};

/// A list failed. The pages that it delivered are not complete.
#[derive(Debug, thiserror::Error)]
#[error("listing the {resource} of {scope}: {message}")]
pub struct ListError {
    /// The listed resource.
    pub resource: &'static str,
    /// The listed scope.
    pub scope: Scope,
    /// The message of the server or of the transport.
    pub message: String,
    /// The HTTP status; `None` if the server did not answer.
    pub code: Option<u16>,
}

/// Maximum number of objects that a caller should process at once: between two parts it starts due Jobs.
pub const PART_SIZE_MAX: usize = 500;

/// Number of cached CronJobs that are decoded at once: some milliseconds of work that delay everything else.
const RECALLED_PART_SIZE: usize = 100;

/// Duration of the watch that shows whether any CronJob has changed, in seconds. The API server sends a bookmark two
/// seconds before the end of a watch, so between 1 and 2.25 seconds after it begins.
const UNCHANGED_WATCH_SECS: u32 = 3;

/// The source of a list and its requirements.
#[derive(Clone)]
pub struct ListSource {
    /// The client of the lists.
    pub client: Client,
    /// The namespaces.
    pub scope: Scope,
    /// How new the list must be.
    pub freshness: Freshness,
}

/// Lists the CronJobs of some shards in a scope. Returns an empty stream for no shards.
pub fn list_cron_jobs(
    source: ListSource,
    decoder: Arc<Decoder>,
    count: ShardCount,
    shards: ShardSet,
) -> impl Stream<Item = Result<Page<Input>, ListError>> + Send {
    let use_of = move |object: ReceivedCronJob| match object.uid() {
        Some(uid) if !shards.contains(count.shard_of(uid)) => Use::PassedOver,
        Some(uid) => Use::Listed(listed(uid, decoder.cron_job(object.text()))),
        None => Use::Nothing,
    };
    let selector = Selector {
        labels: String::new(),
        shards: count.shard_selector(&shards),
    };
    pages(source, selector, use_of)
}

/// Returns the current version of the CronJobs in a scope, from the quorum of etcd.
///
/// # Errors
///
/// [`ListError`] if the server does not answer or does not permit it.
pub async fn current_version(client: Client, scope: &Scope, count: ShardCount) -> Result<ResourceVersion, ListError> {
    probe::<CronJobText>(client, scope, ShardFilter::ByHash(count)).await
}

/// Returns a version such that no CronJob in a scope was created, changed or deleted between `since` and that version. A
/// short watch from `since` shows it: its first event is a bookmark of that version. `None` if the first event is a
/// change, if the watch fails, or if it sends no bookmark within its duration and a second.
pub async fn unchanged_through(client: Client, scope: &Scope, since: ResourceVersion) -> Option<ResourceVersion> {
    let collection = Collection::new::<CronJobText>(client, scope);
    let first_event = async {
        let everything = Selector::default();
        let watch = collection.watch::<CronJobText>(&everything, since, Some(UNCHANGED_WATCH_SECS));
        pin!(watch.await.ok()?).next().await
    };
    // A server that vanishes neither answers nor ends the watch.
    let patience = Duration::from_secs(u64::from(UNCHANGED_WATCH_SECS) + 1);
    match tokio::time::timeout(patience, first_event).await.ok()? {
        Some(Ok(WatchEvent::Bookmark(bookmark))) => Some(ResourceVersion::read(&bookmark.metadata.resource_version)),
        _ => None,
    }
}

/// Returns the current version of the Jobs in a scope, from the quorum of etcd.
///
/// # Errors
///
/// [`ListError`] if the server does not answer or does not permit it.
pub async fn current_job_version(client: Client, scope: &Scope) -> Result<ResourceVersion, ListError> {
    probe::<JobContent>(client, scope, ShardFilter::All).await
}

async fn probe<C: Content>(client: Client, scope: &Scope, filter: ShardFilter) -> Result<ResourceVersion, ListError> {
    match Collection::new::<C>(client, scope).probe(filter.probe()).await {
        Ok((version, _)) => Ok(version),
        Err(error) => Err(list_error::<C>(scope.clone(), &error)),
    }
}

/// Returns the CronJobs of some shards from the cache, in pages like those of a list; `None` if the cache is
/// incomplete.
pub fn recall_cron_jobs(
    cache: &CronJobCache,
    decoder: Arc<Decoder>,
    shards: &ShardSet,
) -> Option<impl Iterator<Item = Page<Input>> + Send + use<>> {
    let (version, objects) = cache.of_shards(shards)?;
    // At least one page, for its version.
    let n_pages = objects.len().div_ceil(RECALLED_PART_SIZE).max(1);
    Some((0..n_pages).map(move |number| {
        let objects = objects
            .iter()
            .skip(number * RECALLED_PART_SIZE)
            .take(RECALLED_PART_SIZE);
        Page {
            version,
            items: objects
                .filter_map(|(uid, object)| Some(listed(uid, object.decode(&decoder)?)))
                .collect(),
            selected_by: SelectedBy::Replica,
            n_passed_over: 0,
        }
    }))
}

fn listed(uid: &Uid, decoded: Result<CronJobRecord, UndecodableCronJob>) -> Input {
    match decoded {
        Ok(record) => Input::CronJobApplied(Box::new(record)),
        Err(_) => Input::CronJobUndecodable(uid.clone()),
    }
}

/// Lists the Jobs of a scope that match a label selector and have a CronJob as controller.
pub fn list_jobs(source: ListSource, labels: String) -> impl Stream<Item = Result<Page<Input>, ListError>> + Send {
    let use_of = |object: ReceivedJob| match object.into_record() {
        Ok(job) if job.controller.is_some() => Use::Listed(Input::JobApplied(Box::new(job))),
        Ok(_) | Err(_) => Use::Nothing,
    };
    pages(source, Selector::by_label(labels), use_of)
}

/// The use of a listed object.
enum Use {
    Listed(Input),
    /// No shard needs it.
    Nothing,
    /// It belongs to a shard that was not requested.
    PassedOver,
}

fn pages<C: Content>(
    source: ListSource,
    selector: Selector,
    use_of: impl Fn(Received<C>) -> Use + Send,
) -> impl Stream<Item = Result<Page<Input>, ListError>> + Send {
    let ListSource {
        client,
        scope,
        freshness,
    } = source;
    let pager = Collection::new::<C>(client, &scope).list(selector, freshness);
    let received = stream::try_unfold(Some(pager), |pager| async move {
        let Some(mut pager) = pager else { return Ok(None) };
        let page = pager.next_page::<Received<C>>().await?;
        let rest = pager.next.is_some().then_some(pager);
        Ok(Some((page, rest)))
    });
    received.map(move |page| match page {
        Ok(page) => Ok(keep_requested(page, &use_of)),
        Err(error) => Err(list_error::<C>(scope.clone(), &error)),
    })
}

fn list_error<C: Content>(scope: Scope, error: &kube::Error) -> ListError {
    ListError {
        resource: C::PLURAL,
        scope,
        message: error_text(error),
        code: if let kube::Error::Api(status) = error {
            Some(status.code)
        } else {
            None
        },
    }
}

/// The requested objects of a page, each in the form in which a watch delivers it.
fn keep_requested<O>(page: Page<O>, use_of: impl Fn(O) -> Use) -> Page<Input> {
    let (mut items, mut n_passed_over) = (Vec::new(), 0);
    for object in page.items {
        match use_of(object) {
            Use::Listed(listed) => items.push(listed),
            Use::Nothing => {}
            Use::PassedOver => n_passed_over += 1,
        }
    }
    Page {
        items,
        version: page.version,
        selected_by: page.selected_by,
        n_passed_over,
    }
}
