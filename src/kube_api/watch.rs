//! Watch streams of CronJobs and of Jobs as inputs, over `kube`'s watcher, which pages lists, resumes watches and lists anew after 410.
//!
//! Never ends. An object that cannot be understood is handed over as such, and as one that exists: it is not gone. A
//! CronJob then starts nothing, as it must not run on what it was before; a Job stays what it was, since another must not
//! run beside it.

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

/// What a watch brings.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// A fact.
    Input(Input),
    /// An object that cannot be understood.
    Undecodable {
        /// What is wrong with it.
        error: DecodeError,
        /// The CronJob to report it on, in the version that was seen; none for a Job.
        cron_job: Option<(Arc<CronJobIdentity>, ResourceVersion)>,
        /// What the shard is told: that it exists. None where not even the uid can be read.
        input: Option<Input>,
    },
    /// A list of the CronJobs of some shards is complete: who left out those of others.
    Listed(SelectedBy),
    /// A CronJob came that is of a shard which is not held.
    PassedOver,
    /// More CronJobs came than there is room for: they are not kept any more, until the next list.
    KeepsNoMore,
    /// The list or the watch failed; it goes on by itself after a back-off.
    Error {
        /// The server's text, or the transport's.
        message: String,
        /// The HTTP status, or the code in a watch event; none where the server did not answer.
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

/// Lists and watches Jobs of a scope by their labels. Never ends.
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

/// Lists and watches the CronJobs of the held shards in a scope, and caches all CronJobs if the server sends all. Never ends.
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

/// Objects in one page of a list: as many as the built-in controllers ask for.
const PAGE_SIZE: u32 = 500;

struct Watch<K: Kind> {
    client: Client,
    scope: Scope,
    kind: K,
    events: Events<K::Object>,
    /// What the last event brought; next in turn.
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
                // The watcher never ends; should it, another takes its place.
                None => self.restart(),
            }
        }
    }

    fn take(&mut self, event: Event<K::Object>) {
        let item = match event {
            // Said before the list is asked for, which it has to be: what is created meanwhile is not in the list. A list
            // that fails is begun anew. It is no sign of a server that answers.
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

/// Whether the watcher would go on although an event is lost: one that could not be parsed, or a version too old to
/// watch from that was answered with a status instead of an event.
fn loses_events(error: &watcher::Error) -> bool {
    let is_start = matches!(error, watcher::Error::WatchStartFailed(_));
    (is_start && is_too_old(error)) || matches!(error, watcher::Error::WatchFailed(kube::Error::SerdeError(_)))
}

/// Whether the version to watch from is not known any more (410): the server is well, and a list is wanted.
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

/// The server's own word on why it failed.
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
