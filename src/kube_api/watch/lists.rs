//! Lists of CronJobs and of Jobs, page by page, for shards that are taken up beside watches that go on.
//!
//! They are as new as whoever asks needs them, and say at which version they are. Where what a watch has shown will do,
//! CronJobs are recalled.

use std::sync::Arc;

use futures::{Stream, stream};
use kube::{Client, core::NamespaceResourceScope};
use serde::de::DeserializeOwned;

use super::selection::{Collection, Freshness, ListPage, SelectedBy, Selector};
use crate::{
    kube_api::{
        objects::{
            classify::error_text,
            decode::{Decoder, SlimJob, UndecodedCronJob},
        },
        watch::cron_job_cache::CronJobCache,
    },
    shard::{Listed, Partition, ResourceVersion, Scope, ShardCount, ShardSet},
};

/// A list broke off; what it gave so far is not all that there is.
#[derive(Debug, thiserror::Error)]
#[error("listing the {resource} of {scope}: {message}")]
pub struct ListError {
    /// What was listed.
    pub resource: &'static str,
    /// Where.
    pub scope: Scope,
    /// The server's text, or the transport's.
    message: String,
    /// The HTTP status; none where the server did not answer.
    pub code: Option<u16>,
}

/// What a page holds.
#[derive(Debug)]
pub struct Page {
    /// The version that the whole list shows.
    pub version: ResourceVersion,
    /// The objects that were asked for.
    pub found: Vec<Listed>,
    /// Who left out the others, of CronJobs.
    pub selected_by: SelectedBy,
    /// CronJobs of other shards that came all the same.
    pub n_passed_over: u64,
}

/// So many objects should be taken in at a time: whoever does has shards to fire between two.
pub const PART_SIZE_MAX: usize = 500;

/// So many of those that are recalled are decoded at a time, which takes some milliseconds in which nothing else is done.
const RECALLED_PART_SIZE: usize = 100;

/// Where is listed, and what is to be in it.
#[derive(Clone)]
pub struct ListSource {
    /// Over which lists go.
    pub client: Client,
    /// Of which namespaces.
    pub scope: Scope,
    /// How new.
    pub freshness: Freshness,
}

/// Lists the CronJobs of some shards in a scope. Nothing where there are no shards.
pub fn list_cron_jobs(
    source: ListSource,
    decoder: Arc<Decoder>,
    count: ShardCount,
    shards: ShardSet,
) -> impl Stream<Item = Result<Page, ListError>> + Send {
    let partition = Partition::Shards(count);
    let take = move |object: UndecodedCronJob| match object.uid() {
        Some(uid) if !shards.contains(partition.shard_of(uid)) => Taken::PassedOver,
        _ => understand(&object, &decoder).map_or(Taken::Nothing, Taken::Listed),
    };
    let selector = Selector {
        labels: String::new(),
        shards: count.shard_selector(&shards),
    };
    pages(source, "cronjobs", selector, take)
}

/// The CronJobs of some shards as the watch of a scope has shown them, in pages as of a list; none where not all are kept.
pub fn recall_cron_jobs(
    cache: &CronJobCache,
    decoder: Arc<Decoder>,
    shards: &ShardSet,
) -> Option<impl Iterator<Item = Page> + Send + use<>> {
    let (version, objects) = cache.of_shards(shards)?;
    // One page at least, for its version.
    let n_pages = objects.len().div_ceil(RECALLED_PART_SIZE).max(1);
    Some((0..n_pages).map(move |number| {
        let objects = objects
            .iter()
            .skip(number * RECALLED_PART_SIZE)
            .take(RECALLED_PART_SIZE);
        Page {
            version,
            found: objects.filter_map(|object| understand(object, &decoder)).collect(),
            selected_by: SelectedBy::Replica,
            n_passed_over: 0,
        }
    }))
}

/// A CronJob as it is listed; none where nobody can say which it is.
fn understand(object: &UndecodedCronJob, decoder: &Decoder) -> Option<Listed> {
    let uid = object.uid()?.clone();
    Some(match object.decode()?.into_record(decoder) {
        Ok(record) => Listed::CronJob(Box::new(record)),
        Err(_) => Listed::UndecodableCronJob(uid),
    })
}

/// Lists the Jobs of a scope that a label selector takes and that a CronJob controls.
pub fn list_jobs(source: ListSource, labels: String) -> impl Stream<Item = Result<Page, ListError>> + Send {
    let take = |object: SlimJob| {
        let Ok(job) = object.into_record() else {
            return Taken::Nothing;
        };
        let Some(cron_job) = job.controller.clone() else {
            return Taken::Nothing;
        };
        Taken::Listed(Listed::Job {
            cron_job,
            job: Box::new(job),
        })
    };
    let selector = Selector { labels, shards: None };
    pages(source, "jobs", selector, take)
}

/// What an object comes to.
enum Taken {
    Listed(Listed),
    /// Nobody's.
    Nothing,
    /// Of a shard that was not asked for.
    PassedOver,
}

/// Where a list goes on.
enum Next {
    First,
    From(String),
    End,
}

fn pages<O>(
    source: ListSource,
    resource: &'static str,
    selector: Selector,
    take: impl Fn(O) -> Taken + Clone + Send,
) -> impl Stream<Item = Result<Page, ListError>> + Send
where
    O: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + DeserializeOwned + Send + 'static,
{
    let ListSource {
        client,
        scope,
        freshness,
    } = source;
    let collection = Collection::new::<O>(client, &scope);
    stream::try_unfold(Next::First, move |next| {
        let (collection, scope, take) = (collection.clone(), scope.clone(), take.clone());
        let selector = selector.clone();
        async move {
            let next = match &next {
                Next::First => None,
                Next::From(token) => Some(token.as_str()),
                Next::End => return Ok(None),
            };
            let page = collection.list(&selector, next, freshness).await;
            let page = page.map_err(|error| ListError {
                resource,
                scope,
                message: error_text(&error),
                code: if let kube::Error::Api(status) = &error {
                    Some(status.code)
                } else {
                    None
                },
            })?;
            Ok(Some(sift(page, take)))
        }
    })
}

fn sift<O>(page: ListPage<O>, take: impl Fn(O) -> Taken) -> (Page, Next) {
    let mut sifted = Page {
        version: ResourceVersion::read(&page.version),
        found: Vec::new(),
        selected_by: page.selected_by,
        n_passed_over: 0,
    };
    for object in page.items {
        match take(object) {
            Taken::Listed(listed) => sifted.found.push(listed),
            Taken::Nothing => {}
            Taken::PassedOver => sifted.n_passed_over += 1,
        }
    }
    (sifted, page.next.map_or(Next::End, Next::From))
}
