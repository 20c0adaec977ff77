//! Lists and watches CronJobs, Jobs, namespaces or calendars. It lists page by page and watches from the version of the list. It resumes an
//! interrupted watch at its last version, and lists again if that version is too old (410), after a [`restore`] of etcd,
//! or when it is told to.
//!
//! `kube`'s watcher is not used: it does not report the versions of bookmarks, which prove that a watch is current, it
//! does not limit the size of a page, and it does not detect a restore of etcd.

mod failures;
mod restore;

use std::{collections::VecDeque, pin::Pin};

use futures::{Stream, StreamExt};
use kube::{Client, core::WatchEvent};

use super::{RelistOrders, WatchItem, kinds::Kind};
use crate::{
    kube_api::{
        objects::decode::{Content, Received},
        retry::{INTERRUPTED_DELAY_MAX, Retry, WATCH_DELAYS},
        watch::collection::{Collection, Pager},
    },
    shard::{Input, ResourceVersion, Scope, input::WatchStage},
};

/// Lists and watches the objects of a kind. Never ends.
pub(super) fn list_and_watch<K: Kind>(
    client: Client,
    scope: Scope,
    kind: K,
    relists: RelistOrders,
) -> impl Stream<Item = WatchItem> + Send {
    let watch = ListWatch {
        collection: kind.collection(client, &scope),
        scope,
        kind,
        relists,
        latest_version: ResourceVersion::default(),
        next_step: WatchStep::Begin,
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
    /// Begin a list.
    Begin,
    /// Request a page of the list, the first or a later one.
    Page { pages: Box<Pager> },
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
    relists: RelistOrders,
    /// The latest version that a watch was opened at or has delivered.
    latest_version: ResourceVersion,
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
                WatchStep::Begin => self.begin_list(),
                WatchStep::Page { pages } => self.list(pages).await,
                WatchStep::Open { version } => self.open(version).await,
                WatchStep::Resume { version } => self.resume(version).await,
                WatchStep::Events { events, version } => self.wait_for_event(events, version).await,
            }
        }
    }

    fn begin_list(&mut self) {
        self.relists.see();
        // Announce the list before requesting it: the relist must not remove objects that are created meanwhile.
        self.announce(WatchStage::ListBegun);
        let pages = Box::new(self.collection.list());
        self.next_step = WatchStep::Page { pages };
    }

    async fn list(&mut self, mut pages: Box<Pager>) {
        let page = match pages.next_page().await {
            Ok(page) => page,
            Err(error) => return self.fail("list", &error, WatchStep::Begin),
        };
        if self.restart_if_history_is_older(page.version) {
            return;
        }
        let items = page.items.into_iter();
        self.ready.extend(items.filter_map(|object| self.kind.applied(object)));
        self.next_step = if pages.next.is_some() {
            WatchStep::Page { pages }
        } else {
            self.retry.reset();
            self.is_interrupted = false;
            self.announce(WatchStage::ListDone);
            WatchStep::Open { version: page.version }
        };
    }

    /// Opens a watch at the version of a list, or at the last version of a watch.
    async fn open(&mut self, version: ResourceVersion) {
        self.note_version(version);
        match self.collection.watch(version, None).await {
            Ok(events) => {
                (self.is_interrupted, self.is_silent) = (false, true);
                self.announce(WatchStage::Watching(version));
                self.next_step = WatchStep::Events {
                    events: Box::pin(events),
                    version,
                }
            }
            Err(error) => self.fail("watch", &error, WatchStep::Resume { version }),
        }
    }

    fn announce(&mut self, stage: WatchStage) {
        let input = K::stage_reached(&self.scope, stage);
        self.ready.extend(input.map(WatchItem::Input));
    }

    async fn wait_for_event(&mut self, mut events: Events<K::Content>, version: ResourceVersion) {
        let event = tokio::select! {
            biased;
            () = self.relists.changed() => return self.begin_list(),
            event = events.next() => event,
        };
        match event {
            None => {
                // A server that ends every watch at once would get requests without a pause.
                if self.is_silent {
                    self.retry.fail_within(INTERRUPTED_DELAY_MAX);
                }
                self.next_step = WatchStep::Resume { version };
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
            WatchStep::Resume { version }
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
        self.note_version(version);
        let item = match event {
            WatchEvent::Added(object) => self.kind.applied(object),
            WatchEvent::Modified(object) => self.kind.modified(object),
            WatchEvent::Deleted(object) => self.kind.deleted(object),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        };
        let has_version = item.as_ref().is_some_and(has_version);
        self.ready.extend(item);
        if !has_version {
            self.announce(WatchStage::Reached(version));
        }
        self.next_step = WatchStep::Events { events, version };
    }
}

/// Whether an item shows the version that the watch has reached.
fn has_version(item: &WatchItem) -> bool {
    matches!(
        item,
        WatchItem::Input(Input::CronJobApplied(_) | Input::JobApplied(_) | Input::JobModified(_))
    )
}

/// The version of an event; `None` if it has none.
pub(super) fn version_of<C: Content>(event: &WatchEvent<Received<C>>) -> Option<ResourceVersion> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            object.resource_version()
        }
        WatchEvent::Bookmark(bookmark) => bookmark.metadata.resource_version.parse().ok().map(ResourceVersion),
        WatchEvent::Error(_) => None,
    }
}
