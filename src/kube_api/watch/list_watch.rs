//! Lists and watches CronJobs or Jobs. It lists page by page and watches from a version. It resumes an interrupted watch
//! at its last version, and lists again if that version is too old (410) or after a [`restore`] of etcd.
//!
//! The watch selects the objects of the wanted shards. These change, so `kube`'s watcher, whose selector is fixed, is not
//! used.
//!
//! - When a shard is added, the watch is reopened at its current version with the new selector, and `list_task` lists
//!   the shard at `delivered_version` or later. The watch delivers every change after `delivered_version`, so the two
//!   together miss none. For this, the watch publishes the version of an event before it reads the wanted shards.
//! - While no shard is wanted, nothing is listed, and the watch begins at the requested version.
//! - When a shard is removed, the open watch still delivers its objects, and they are ignored. The next watch leaves them
//!   out. The API server ends a watch after five minutes at most.
//! - The watch begins at a version that is requested before the list. The version of the list can be later than that of
//!   a list of an added shard, and the watch would miss the changes between the two. If the wanted objects never
//!   change, the watch begins at the version of its list.
//!
//! If the server does not select, the watch receives all objects and is not reopened. Objects of shards that are not
//! wanted when they arrive are ignored. The request for the version also detects whether the server selects. It is sent
//! before:
//!
//! - each list, if the wanted objects can change,
//! - each watch after an interruption, except a watch of the Jobs without a label,
//! - each watch while the server does not select.

mod failures;
mod objects;
mod restore;

use std::{collections::VecDeque, pin::Pin};

use futures::{Stream, StreamExt};
use kube::{Client, core::WatchEvent};

use super::{
    WatchItem,
    kinds::{Kind, ShardFilter},
};
use crate::{
    kube_api::{
        objects::decode::{Content, Received},
        ordered_watch::OrderedReceiver,
        retry::{INTERRUPTED_DELAY_MAX, Retry, WATCH_DELAYS},
        watch::{
            collection::{Collection, Freshness, Pager, SelectedBy, Selector, is_selector_rejected},
            cron_job_cache::CronJobCache,
            delivered_versions::DeliveredVersion,
        },
    },
    shard::{
        Input, ResourceVersion, Scope, ShardSet,
        input::{WatchStage, WatchUpdate},
    },
};

/// Lists and watches the wanted objects, or watches them from a version. Never ends.
pub(super) fn list_and_watch<K: Kind>(
    client: Client,
    scope: Scope,
    kind: K,
    wanted: OrderedReceiver<ShardSet>,
    delivered_version: DeliveredVersion,
    from: Option<ResourceVersion>,
) -> impl Stream<Item = WatchItem> + Send {
    let watch = ListWatch {
        collection: Collection::new::<K::Content>(client, &scope),
        scope,
        kind,
        wanted,
        delivered_version,
        latest_version: ResourceVersion::default(),
        selected: ShardSet::EMPTY,
        selected_by: SelectedBy::Replica,
        next_step: from.map_or(WatchStep::Begin, |version| WatchStep::Open { version }),
        ready: VecDeque::new(),
        retry: Retry::new(WATCH_DELAYS),
        is_interrupted: false,
        is_silent: false,
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await;
        Some((item, watch))
    })
}

type Events<C> = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<Received<C>>>> + Send>>;

/// A step of the watch.
enum WatchStep<C> {
    /// Request the version to watch from if one is needed, then list.
    Begin,
    /// Request a page of the list, the first or a later one.
    Page {
        pages: Box<Pager>,
        /// The version to watch from; `None` for that of the list.
        from: Option<ResourceVersion>,
    },
    /// Open a watch at a version up to which everything was delivered.
    Open { version: ResourceVersion },
    /// Open a watch after an interruption, if the API server still has the same history.
    Resume { version: ResourceVersion },
    /// Receive events.
    Events {
        events: Events<C>,
        version: ResourceVersion,
    },
}

struct ListWatch<K: Kind> {
    collection: Collection,
    scope: Scope,
    kind: K,
    wanted: OrderedReceiver<ShardSet>,
    /// The version up to which the watch has delivered everything, for lists that run beside it.
    delivered_version: DeliveredVersion,
    /// The latest version that a watch was opened at or has delivered.
    latest_version: ResourceVersion,
    /// The selection of the open watch or of the current list.
    selected: ShardSet,
    /// The side that leaves out objects of other shards, by the last answer.
    selected_by: SelectedBy,
    next_step: WatchStep<K::Content>,
    /// Items of the last answer, delivered first.
    ready: VecDeque<WatchItem>,
    retry: Retry,
    /// Whether [`WatchStage::Interrupted`] was announced, and no watch has been opened and no list has ended since.
    is_interrupted: bool,
    /// Whether the watch has delivered nothing since it was opened.
    is_silent: bool,
}

impl<K: Kind> ListWatch<K> {
    async fn next(&mut self) -> WatchItem {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return item;
            }
            self.retry.wait().await;
            match std::mem::replace(&mut self.next_step, WatchStep::Begin) {
                WatchStep::Begin => self.begin().await,
                WatchStep::Page { pages, from } => self.list(pages, from).await,
                WatchStep::Open { version } if self.is_selected_by_server() => self.open(version).await,
                WatchStep::Open { version } | WatchStep::Resume { version } => self.resume(version).await,
                WatchStep::Events { events, version } => self.wait_for_event(events, version).await,
            }
        }
    }

    /// Whether the API server leaves out objects of other shards.
    fn is_selected_by_server(&self) -> bool {
        match self.kind.shard_filter() {
            ShardFilter::All | ShardFilter::Unlabelled { .. } | ShardFilter::ByLabel(_) => true,
            ShardFilter::ByHash(_) => self.selected_by == SelectedBy::Server,
        }
    }

    /// Whether a wanted shard is not selected.
    fn lacks_wanted_shards(&self) -> bool {
        self.is_selected_by_server() && !self.wanted.get().is_within(&self.selected)
    }

    /// Returns the current version, and detects which side selects.
    async fn probe(&mut self) -> kube::Result<ResourceVersion> {
        let selector = self.kind.shard_filter().probe();
        let (version, selected_by) = self.collection.probe(selector).await?;
        self.selected_by = selected_by;
        Ok(version)
    }

    /// Requests the version to watch from, if one is needed. Then begins the list.
    async fn begin(&mut self) {
        self.delivered_version.reset();
        let mut from = None;
        if !self.kind.shard_filter().is_fixed() {
            match self.probe().await {
                Ok(version) if self.restart_if_history_is_older(version) => return,
                Ok(version) => {
                    self.delivered_version.advance_to(version);
                    from = Some(version);
                }
                Err(error) => return self.fail("list", &error, WatchStep::Begin),
            }
        }
        self.begin_list(from);
    }

    fn begin_list(&mut self, from: Option<ResourceVersion>) {
        // Clear the cache before reading the wanted shards: this list then covers all shards loaded from the old cache.
        let is_of_all = !self.is_selected_by_server();
        match self.kind.cache() {
            Some(cache) if is_of_all => cache.begin(),
            Some(cache) => cache.clear(),
            None => {}
        }
        self.selected = self.wanted.see();
        // Announce the list before requesting it: the relist must not remove objects that are created meanwhile.
        self.announce(WatchStage::ListBegun, self.selected);
        if let Some(version) = from
            && !is_of_all
            && self.selected.is_empty()
        {
            // Even to find no object, the API server would compare all of them.
            return self.end_list(version);
        }
        let selector = if is_of_all {
            Selector::default()
        } else {
            self.kind.shard_filter().selector(&self.selected)
        };
        let pages = Box::new(self.collection.list(selector, Freshness::Consistent));
        self.next_step = WatchStep::Page { pages, from };
    }

    async fn list(&mut self, mut pages: Box<Pager>, from: Option<ResourceVersion>) {
        let page = match pages.next_page().await {
            Ok(page) => page,
            Err(error) => return self.fail("list", &error, WatchStep::Begin),
        };
        if self.restart_if_history_is_older(page.version) {
            return;
        }
        if pages.selector.shards.is_some() {
            self.selected_by = self.selected_by.and(page.selected_by);
        }
        let listed = self.selected;
        for object in page.items {
            self.take_applied(object, &listed);
        }
        // No shard needs the rest of the list, and neither does a full cache.
        let is_useless = self.selected.is_empty() && self.kind.cache().is_some_and(CronJobCache::is_full);
        if pages.next.is_some() && !is_useless {
            self.next_step = WatchStep::Page { pages, from };
            return;
        }
        self.end_list(from.unwrap_or(page.version));
    }

    /// The list is complete. A watch from this version follows.
    fn end_list(&mut self, version: ResourceVersion) {
        self.retry.reset();
        self.is_interrupted = false;
        if let Some(cache) = self.kind.cache() {
            cache.complete(version);
        }
        self.announce(WatchStage::ListDone, self.selected);
        if let ShardFilter::ByHash(_) = self.kind.shard_filter() {
            self.ready.push_back(WatchItem::Listed(self.selected_by));
        }
        self.next_step = WatchStep::Open { version };
    }

    /// Opens a watch of the wanted shards at the version of the last one.
    async fn open(&mut self, version: ResourceVersion) {
        self.note_version(version);
        self.selected = self.wanted.see();
        let (selector, covered) = if self.is_selected_by_server() {
            (self.kind.shard_filter().selector(&self.selected), self.selected)
        } else {
            (Selector::default(), ShardSet::EVERY)
        };
        let watch_secs = self.kind.shard_filter().watch_secs();
        match self.collection.watch(&selector, version, watch_secs).await {
            Ok(events) => {
                if let Some(cache) = self.kind.cache().filter(|_| self.is_selected_by_server()) {
                    cache.clear();
                }
                (self.is_interrupted, self.is_silent) = (false, true);
                self.announce(WatchStage::Watching(version), covered);
                self.next_step = WatchStep::Events {
                    events: Box::pin(events),
                    version,
                }
            }
            Err(error) => {
                if is_selector_rejected(&error) {
                    self.selected_by = SelectedBy::Replica;
                }
                let next = self.interrupted(version);
                self.fail("watch", &error, next);
            }
        }
    }

    fn announce(&mut self, stage: WatchStage, shards: ShardSet) {
        let update = WatchUpdate {
            resource: K::RESOURCE,
            scope: self.scope.clone(),
            shards,
            stage,
        };
        let input = Input::WatchUpdated(Box::new(update));
        self.ready.push_back(WatchItem::Input(input));
    }

    async fn wait_for_event(&mut self, mut events: Events<K::Content>, version: ResourceVersion) {
        let event = tokio::select! {
            biased;
            () = self.wanted.changed() => {
                self.next_step = if self.lacks_wanted_shards() {
                    WatchStep::Open { version }
                } else {
                    WatchStep::Events { events, version }
                };
                return;
            }
            event = events.next() => event,
        };
        match event {
            None => {
                // A server that ends every watch at once would get requests without a pause.
                if self.is_silent {
                    self.retry.fail_within(INTERRUPTED_DELAY_MAX);
                }
                self.next_step = self.interrupted(version);
            }
            Some(Ok(WatchEvent::Error(status))) => self.fail_watch(&kube::Error::Api(status), version),
            Some(Ok(event)) => self.handle_event(event, events, version),
            Some(Err(error)) => self.fail_watch(&error, version),
        }
    }

    /// Reports the failure of an open watch. An event that cannot be decoded is lost, so a list follows.
    fn fail_watch(&mut self, error: &kube::Error, version: ResourceVersion) {
        let is_undecodable = matches!(error, kube::Error::SerdeError(_));
        let next = if is_undecodable {
            WatchStep::Begin
        } else {
            self.interrupted(version)
        };
        self.fail("watch", error, next);
    }

    fn handle_event(
        &mut self,
        event: WatchEvent<Received<K::Content>>,
        events: Events<K::Content>,
        before: ResourceVersion,
    ) {
        let version = version_of(&event).unwrap_or(before);
        self.retry.reset();
        self.is_silent = false;
        // Publish the version before reading the wanted shards, as `DeliveredVersion` requires.
        self.note_version(version);
        self.delivered_version.advance_to(version);
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => self.take_applied(object, &ShardSet::EMPTY),
            WatchEvent::Deleted(object) => {
                if let Some(uid) = object.uid() {
                    self.take_deleted(uid);
                }
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
        }
        if let Some(cache) = self.kind.cache() {
            cache.advance_to(version);
        }
        if let ShardFilter::Unlabelled { .. } = self.kind.shard_filter() {
            self.announce(WatchStage::Watching(version), self.selected);
        }
        self.next_step = if self.delivered_version.is_list_requested() {
            WatchStep::Begin
        } else if self.lacks_wanted_shards() {
            // `list_task` may have read the former version for a shard that was added meanwhile.
            WatchStep::Open { version: before }
        } else {
            WatchStep::Events { events, version }
        };
    }
}

/// The version of an event; `None` if it has none.
fn version_of<C: Content>(event: &WatchEvent<Received<C>>) -> Option<ResourceVersion> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            object.resource_version()
        }
        WatchEvent::Bookmark(bookmark) => bookmark.metadata.resource_version.parse().ok().map(ResourceVersion),
        WatchEvent::Error(_) => None,
    }
}
