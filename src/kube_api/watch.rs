//! Watch streams of CronJobs and Jobs as inputs, over `kube`'s watcher, which pages lists, resumes watches and lists
//! again after 410.
//!
//! A stream never ends. An object that cannot be decoded is reported as such, and as existing. A CronJob then starts
//! nothing, since its former state no longer holds; a Job keeps its former state, since no other run may start beside
//! it.

mod backoff;
pub mod bounded_pages;
pub mod cron_job_cache;
pub mod history;
mod kinds;
pub mod lists;
mod observed;
pub mod progress;
mod selected;
pub mod selection;
mod sharded;

use std::{pin::Pin, sync::Arc};

use futures::{Stream, StreamExt};
use kube::{
    Api, Client,
    core::Status,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;

pub use self::observed::{WatchObserver, WatchRequest, observed};
use self::{
    backoff::Backoff,
    kinds::{CronJobs, Jobs, Kind},
    progress::{ObservedVersion, WatchProgress},
    selected::watch_shards,
    sharded::{HeldCronJobs, LabelledJobs},
};
use crate::{
    kube_api::{
        objects::{
            classify::{bounded, error_text},
            decode::{DecodeError, Decoder},
        },
        ordered_watch::{OrderedReceiver, OrderedSender},
        watch::selection::SelectedBy,
    },
    shard::{CronJobIdentity, Input, ResourceVersion, Scope, ShardCount, ShardSet},
};

/// An item of a watch stream.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// An input for the shards.
    Input(Input),
    /// An object that cannot be decoded.
    Undecodable {
        /// The field and the problem.
        error: DecodeError,
        /// The CronJob to report it on, in the received version; `None` for a Job.
        cron_job: Option<(Arc<CronJobIdentity>, ResourceVersion)>,
        /// The input for the shard: the object exists. `None` if not even the uid can be decoded.
        input: Option<Input>,
    },
    /// A list of the CronJobs of some shards is complete; who left out other shards.
    Listed(SelectedBy),
    /// A CronJob of a shard that is not held was received.
    PassedOver,
    /// The CronJobs exceeded the cache, which stays empty until the next list.
    CacheFull,
    /// The list or the watch failed; it continues by itself after a back-off.
    Error {
        /// The message of the server or of the transport.
        message: String,
        /// The HTTP status, or the code in a watch event; `None` if the server did not answer.
        code: Option<u16>,
    },
}

/// Lists and watches the CronJobs of a scope.
pub fn cron_jobs(client: Client, scope: Scope, decoder: Arc<Decoder>) -> impl Stream<Item = WatchItem> + Send {
    watch(client, scope, CronJobs { decoder })
}

/// Lists and watches the Jobs of a scope.
pub fn jobs(client: Client, scope: Scope) -> impl Stream<Item = WatchItem> + Send {
    watch(client, scope, Jobs)
}

/// A selection of Jobs.
pub enum Selection {
    /// Those with the label of a wanted shard, with the version that the watch has delivered.
    OfShards(ShardCount, OrderedReceiver<ShardSet>, ObservedVersion),
    /// Those without a label of any shard.
    Unlabelled(ShardCount),
}

/// Lists and watches the Jobs of a scope by label. Never ends.
pub fn selected_jobs(client: Client, scope: Scope, selection: Selection) -> impl Stream<Item = WatchItem> + Send {
    let (count, is_without, wanted, through) = match selection {
        Selection::OfShards(count, wanted, through) => (count, false, wanted, through),
        Selection::Unlabelled(count) => {
            let nothing = OrderedSender::new(ShardSet::EMPTY).subscribe();
            (count, true, nothing, ObservedVersion::default())
        }
    };
    watch_shards(client, scope, LabelledJobs { count, is_without }, wanted, through)
}

/// Lists and watches the CronJobs of the held shards in a scope, and caches all if the server sends all. Never ends.
pub fn held_cron_jobs(
    client: Client,
    decoder: Arc<Decoder>,
    count: ShardCount,
    held: OrderedReceiver<ShardSet>,
    progress: WatchProgress,
) -> impl Stream<Item = WatchItem> + Send {
    let of_all = CronJobs { decoder };
    let WatchProgress {
        scope,
        cache,
        cron_jobs,
        ..
    } = progress;
    watch_shards(client, scope, HeldCronJobs { of_all, count, cache }, held, cron_jobs)
}

fn watch<K: Kind>(client: Client, scope: Scope, kind: K) -> impl Stream<Item = WatchItem> + Send {
    let watch = Watch {
        events: events(&client, &scope),
        client,
        scope,
        kind,
        ready: None,
        backoff: Backoff::new(),
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await;
        Some((item, watch))
    })
}

type Events<O> = Pin<Box<dyn Stream<Item = watcher::Result<Event<O>>> + Send>>;

fn events<O>(client: &Client, scope: &Scope) -> Events<O>
where
    O: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<O> = match scope {
        Scope::Cluster => Api::all(client.clone()),
        Scope::Namespace(namespace) => Api::namespaced(client.clone(), namespace),
    };
    Box::pin(watcher(api, watcher::Config::default().page_size(PAGE_SIZE)))
}

/// Number of objects in a page of a list, as in the built-in controllers.
const PAGE_SIZE: u32 = 500;

struct Watch<K: Kind> {
    client: Client,
    scope: Scope,
    kind: K,
    events: Events<K::Object>,
    /// The second item of the last event, delivered first.
    ready: Option<WatchItem>,
    backoff: Backoff,
}

impl<K: Kind> Watch<K> {
    async fn next(&mut self) -> WatchItem {
        loop {
            if let Some(item) = self.ready.take() {
                return item;
            }
            self.backoff.wait().await;
            match self.events.next().await {
                Some(Ok(event)) => self.take(event),
                Some(Err(error)) => self.fail(&error),
                // The watcher never ends; if it does, it is replaced.
                None => self.restart(),
            }
        }
    }

    fn take(&mut self, event: Event<K::Object>) {
        let item = match event {
            // Announced before the list is requested: objects that are created meanwhile are not in the list. A failed
            // list is repeated, and does not show that the server answers.
            Event::Init => {
                self.ready = Some(WatchItem::Input(self.kind.relist_begun(self.scope.clone())));
                return;
            }
            Event::InitApply(object) | Event::Apply(object) => self.kind.applied(object),
            Event::InitDone => Some(WatchItem::Input(self.kind.relist_done(self.scope.clone()))),
            Event::Delete(object) => self.kind.deleted(&object).map(WatchItem::Input),
        };
        self.backoff.reset();
        self.ready = item;
    }

    fn fail(&mut self, error: &watcher::Error) {
        if is_too_old(error) {
            self.backoff.lose_place();
        } else {
            self.backoff.fail();
        }
        if loses_events(error) {
            self.restart();
        }
        self.ready = Some(WatchItem::Error {
            message: error_message(error),
            code: api_status(error).map(|status| status.code),
        });
    }

    fn restart(&mut self) {
        self.events = events(&self.client, &self.scope);
    }
}

/// Whether the watcher would continue although an event was lost: an event that could not be parsed, or a version that
/// is too old, answered with a status instead of an event.
fn loses_events(error: &watcher::Error) -> bool {
    let is_start = matches!(error, watcher::Error::WatchStartFailed(_));
    (is_start && is_too_old(error)) || matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_)))
}

/// Whether the version to watch from is too old (410): the server is healthy, and a list is needed.
fn is_too_old(error: &watcher::Error) -> bool {
    matches!(
        error,
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) | watcher::Error::WatchError(status)
            if status.code == 410
    )
}

fn error_message(error: &watcher::Error) -> String {
    api_status(error).map_or_else(
        || error_text(error),
        |status| bounded(&format!("{} ({})", status.message, status.code)),
    )
}

/// The server's status, if it sent one.
fn api_status(error: &watcher::Error) -> Option<&Status> {
    if let watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))
    | watcher::Error::WatchFailed(kube::Error::Api(status))
    | watcher::Error::WatchError(status) = error
    {
        Some(status)
    } else {
        None
    }
}
