//! The list and watch of the objects of a changing set of shards. `kube`'s watcher has one selector for its lifetime.
//!
//! When a shard is added, the watch is reopened at its current version with the new selection, and announces this. A
//! list of that shard that is no older than the announced version (`observed_version`) is then complete: the watch
//! delivers every later change. Therefore the wanted shards are checked before and after every event. A list of this
//! watch's own is preceded by a request for the version to watch from, since the version of the list itself may be
//! later than that of a list of an added shard. A shard too many does no harm for a while, so removals are delayed.
//!
//! If the server does not select, the watch receives everything and needs no reopening: objects of other shards are
//! ignored, by the shards that are wanted when the object arrives. Whether the server selects is detected with the
//! version before each list, and, until it does, before each opening.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use futures::{Stream, StreamExt};
use kube::{Client, core::WatchEvent};
use tokio::time::Sleep;

use super::{WatchItem, backoff::Backoff, sharded::ShardedKind};
use crate::{
    kube_api::{
        objects::classify::{bounded, error_text},
        ordered_watch::OrderedReceiver,
        watch::{
            cron_job_cache::CronJobCache,
            progress::ObservedVersion,
            selection::{Collection, Freshness, SelectedBy, Selector, is_refusal},
        },
    },
    shard::{
        Input, Partition, ResourceVersion, Scope, ShardSet, Uid,
        input::{Selected, SelectionStage},
    },
};

/// How long shards remain selected after they are no longer wanted.
const NARROWING_DELAY: Duration = Duration::from_secs(10);

/// Lists and watches the wanted objects. Never ends.
pub(super) fn watch_shards<K: ShardedKind>(
    client: Client,
    scope: Scope,
    kind: K,
    wanted: OrderedReceiver<ShardSet>,
    observed_version: ObservedVersion,
) -> impl Stream<Item = WatchItem> + Send {
    let watch = SelectedWatch {
        collection: Collection::new::<K::Object>(client, &scope),
        scope,
        kind,
        wanted,
        observed_version,
        selected: ShardSet::EMPTY,
        selected_by: SelectedBy::Replica,
        narrowing: None,
        stage: WatchStep::Begin,
        ready: VecDeque::new(),
        backoff: Backoff::new(),
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await;
        Some((item, watch))
    })
}

type Events<O> = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<O>>> + Send>>;

/// The selection of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListOf {
    /// The shards that were selected when the list began.
    Selected,
    /// All objects, for the cache.
    All,
}

/// The next step of the watch.
enum WatchStep<O> {
    /// Request the version to watch from, then list.
    Begin,
    /// Request a page of the list, the first or a later one.
    Page {
        next: Option<String>,
        from: String,
        of: ListOf,
    },
    /// Open a watch.
    Open { through: String },
    /// Receive events.
    Events { events: Events<O>, through: String },
}

struct SelectedWatch<K: ShardedKind> {
    collection: Collection,
    scope: Scope,
    kind: K,
    wanted: OrderedReceiver<ShardSet>,
    /// The version up to which the watch has delivered everything, for lists that run beside it.
    observed_version: ObservedVersion,
    /// The selection of the open watch or of the current list.
    selected: ShardSet,
    /// Who leaves out other shards, as far as is known.
    selected_by: SelectedBy,
    /// The delay before unwanted shards are deselected.
    narrowing: Option<Pin<Box<Sleep>>>,
    stage: WatchStep<K::Object>,
    /// Items of the last answer, delivered first.
    ready: VecDeque<WatchItem>,
    backoff: Backoff,
}

/// An occurrence while a watch is open.
enum Heard<O> {
    Selection,
    Narrow,
    Event(Option<kube::Result<Box<WatchEvent<O>>>>),
}

impl<K: ShardedKind> SelectedWatch<K> {
    async fn next(&mut self) -> WatchItem {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return item;
            }
            self.backoff.wait().await;
            match std::mem::replace(&mut self.stage, WatchStep::Begin) {
                WatchStep::Begin => self.begin().await,
                WatchStep::Page { next, from, of } => self.list(next, from, of).await,
                WatchStep::Open { through } => self.open(through).await,
                WatchStep::Events { events, through } => self.hear(events, through).await,
            }
        }
    }

    /// Selects the shards that are wanted now.
    fn select(&mut self) {
        self.narrowing = None;
        self.selected = self.wanted.see();
    }

    fn is_selected(&self) -> bool {
        K::IS_SELECTED_ALWAYS || self.selected_by == SelectedBy::Server
    }

    /// Whether a CronJob is wanted now, or by the current list.
    fn is_wanted(&self, is_listing: bool) -> impl Fn(&Uid) -> bool + use<K> {
        let partition = Partition::Shards(self.kind.count());
        let (wanted, listed) = (self.wanted.get(), self.selected);
        move |cron_job| {
            let shard = partition.shard_of(cron_job);
            wanted.contains(shard) || (is_listing && listed.contains(shard))
        }
    }

    /// Returns the current version, and detects who selects.
    async fn probe(&mut self) -> kube::Result<String> {
        let probed = self.collection.probe::<K::Object>(&self.kind.probe()).await;
        let (version, selected_by) = probed?;
        self.selected_by = selected_by;
        Ok(version)
    }

    async fn begin(&mut self) {
        self.observed_version.begin_anew();
        let from = match self.probe().await {
            Ok(from) => from,
            Err(error) => return self.fail(&error, WatchStep::Begin),
        };
        self.observed_version.come_to(ResourceVersion::read(&from));
        // Before the wanted shards are checked: the list shows every change to what was taken from the cache until now.
        let of = match self.kind.cache() {
            Some(cache) if !self.is_selected() => {
                cache.begin();
                ListOf::All
            }
            Some(cache) => {
                cache.forget_all();
                ListOf::Selected
            }
            None => ListOf::Selected,
        };
        self.select();
        // Announced before the list is requested: objects that are created meanwhile are not in the list.
        self.announce(SelectionStage::ListBegun, self.selected);
        self.stage = WatchStep::Page { next: None, from, of };
    }

    /// Requests a page of the selection with which the list began, or of everything.
    async fn list(&mut self, next: Option<String>, from: String, of: ListOf) {
        let selector = match of {
            ListOf::Selected => self.kind.selector(&self.selected),
            ListOf::All => Selector::default(),
        };
        let page = match self
            .collection
            .list(&selector, next.as_deref(), Freshness::Consistent)
            .await
        {
            Ok(page) => page,
            Err(error) => return self.fail(&error, WatchStep::Begin),
        };
        self.backoff.reset();
        if selector.shards.is_some() {
            self.selected_by = self.selected_by.and(page.selected_by);
        }
        for object in &page.items {
            self.keep(object);
        }
        let is_wanted = self.is_wanted(true);
        let taken = page
            .items
            .into_iter()
            .filter_map(|object| self.kind.applied(object, &is_wanted));
        self.ready.extend(taken);
        let is_in_vain = self.selected.is_empty() && self.kind.cache().is_some_and(CronJobCache::is_full);
        let next = page.next.filter(|_| !is_in_vain);
        self.stage = if next.is_some() {
            WatchStep::Page { next, from, of }
        } else {
            if let Some(cache) = self.kind.cache() {
                cache.complete(ResourceVersion::read(&from));
            }
            self.end_list();
            WatchStep::Open { through: from }
        };
    }

    /// Caches an object before the wanted shards are checked, so that a shard that is added later finds it.
    fn keep(&mut self, object: &K::Object) {
        if self.kind.keep(object) {
            self.ready.push_back(WatchItem::CacheFull);
        }
    }

    fn end_list(&mut self) {
        self.announce(SelectionStage::ListDone, self.selected);
        if !K::IS_SELECTED_ALWAYS {
            self.ready.push_back(WatchItem::Listed(self.selected_by));
        }
    }

    /// Opens a watch of the wanted shards at the version of the last one.
    async fn open(&mut self, through: String) {
        if !self.is_selected()
            && let Err(error) = self.probe().await
        {
            return self.fail(&error, WatchStep::Open { through });
        }
        self.select();
        let (selector, shown) = if self.is_selected() {
            (self.kind.selector(&self.selected), self.selected)
        } else {
            (Selector::default(), ShardSet::all(self.kind.count()))
        };
        match self.collection.watch(&selector, &through).await {
            Ok(events) => {
                if let Some(cache) = self.kind.cache().filter(|_| self.is_selected()) {
                    cache.forget_all();
                }
                self.announce(SelectionStage::Watching(ResourceVersion::read(&through)), shown);
                self.stage = WatchStep::Events {
                    events: Box::pin(events),
                    through,
                }
            }
            Err(error) => {
                if is_refusal(&error) {
                    self.selected_by = SelectedBy::Replica;
                }
                self.fail(&error, WatchStep::Open { through });
            }
        }
    }

    fn announce(&mut self, stage: SelectionStage, shards: ShardSet) {
        let selected = Selected {
            kind: K::KIND,
            scope: self.scope.clone(),
            shards,
            stage,
        };
        let input = Input::Selected(Box::new(selected));
        self.ready.push_back(WatchItem::Input(input));
    }

    async fn hear(&mut self, mut events: Events<K::Object>, through: String) {
        let (wanted, narrowing) = (&mut self.wanted, &mut self.narrowing);
        let changed = async {
            if wanted.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let narrow = async {
            match narrowing {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            biased;
            () = changed => Heard::Selection,
            event = events.next() => Heard::Event(event.map(|event| event.map(Box::new))),
            () = narrow => Heard::Narrow,
        };
        match heard {
            Heard::Selection if self.lacks_nothing() => self.stage = WatchStep::Events { events, through },
            Heard::Selection | Heard::Narrow | Heard::Event(None) => self.stage = WatchStep::Open { through },
            Heard::Event(Some(Ok(event))) => self.take(*event, events, through),
            Heard::Event(Some(Err(error))) => {
                let is_lost = matches!(error, kube::Error::SerdeError(_));
                let next = if is_lost {
                    WatchStep::Begin
                } else {
                    WatchStep::Open { through }
                };
                self.fail(&error, next);
            }
        }
    }

    /// Whether a wanted shard is not selected.
    fn lacks_any(&self) -> bool {
        self.is_selected() && !self.wanted.get().is_within(&self.selected)
    }

    /// Whether all wanted shards are selected. Superfluous shards are deselected later.
    fn lacks_nothing(&mut self) -> bool {
        let lacks_nothing = !self.lacks_any();
        if lacks_nothing && self.is_selected() && self.wanted.get() != self.selected {
            self.narrowing = Some(Box::pin(tokio::time::sleep(NARROWING_DELAY)));
        }
        lacks_nothing
    }

    fn take(&mut self, event: WatchEvent<K::Object>, events: Events<K::Object>, before: String) {
        self.backoff.reset();
        let through = match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                let version = kube::Resource::meta(object).resource_version.as_ref();
                version.unwrap_or(&before).clone()
            }
            WatchEvent::Bookmark(bookmark) => bookmark.metadata.resource_version.clone(),
            WatchEvent::Error(status) => {
                return self.refuse(&status.message, status.code, WatchStep::Open { through: before });
            }
        };
        // Before the wanted shards are checked.
        let version = ResourceVersion::read(&through);
        self.observed_version.come_to(version);
        let taken = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.keep(&object);
                self.kind.applied(object, self.is_wanted(false))
            }
            WatchEvent::Deleted(object) => {
                self.kind.forget(&object);
                self.kind.deleted(&object, self.is_wanted(false))
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        };
        if let Some(cache) = self.kind.cache() {
            cache.come_to(version);
        }
        self.ready.extend(taken);
        // A caller that added a shard meanwhile may have read the former version: the watch continues from there.
        self.stage = if self.observed_version.is_list_wanted() {
            WatchStep::Begin
        } else if self.lacks_any() {
            WatchStep::Open { through: before }
        } else {
            WatchStep::Events { events, through }
        };
    }

    fn fail(&mut self, error: &kube::Error, next: WatchStep<K::Object>) {
        let kube::Error::Api(status) = error else {
            return self.tell(error_text(error), None, next);
        };
        self.refuse(&status.message, status.code, next);
    }

    /// A version that is too old (410) does not indicate an unhealthy server: a list follows soon.
    fn refuse(&mut self, message: &str, code: u16, next: WatchStep<K::Object>) {
        if code == 403 {
            self.announce(SelectionStage::NotPermitted, ShardSet::EMPTY);
        }
        let is_too_old = code == 410;
        let next = if is_too_old { WatchStep::Begin } else { next };
        self.tell(bounded(&format!("{message} ({code})")), Some(code), next);
        if is_too_old {
            self.backoff.lose_place();
        }
    }

    fn tell(&mut self, message: String, code: Option<u16>, next: WatchStep<K::Object>) {
        self.backoff.fail();
        self.ready.push_back(WatchItem::Error { message, code });
        self.stage = next;
    }
}
