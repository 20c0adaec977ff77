//! The watch of the Jobs of some shards, while these change: `kube`'s watcher has one selector for life.
//!
//! When a shard is added the watch is opened anew from the version that it had come to, and says so. A list of that shard
//! that is sent after the addition is then complete: what it does not have, this watch shows. For that an addition is
//! looked for before every event, and a list of our own is preceded by the version to watch from, since its own version
//! may be later than that of a list of a shard that was added meanwhile. A shard too many does no harm for a while, so
//! removals wait.

use std::{collections::VecDeque, pin::Pin, time::Duration};

use futures::{Stream, StreamExt};
use kube::{
    Api, Client,
    api::{ListParams, WatchParams},
    core::WatchEvent,
};
use tokio::{sync::watch, time::Sleep};

use super::{
    PAGE_SIZE, WatchItem,
    backoff::Backoff,
    kinds::{Jobs, Kind},
};
use crate::{
    cluster::{
        classify::{bounded, error_text},
        decode::SlimJob,
    },
    state::{
        Input, ResourceVersion, Scope,
        input::{Selected, SelectedKind, SelectionStage},
        sharding::{ShardCount, ShardSet},
    },
};

/// How long shards stay selected that are not wanted any more.
const NARROWING_DELAY: Duration = Duration::from_secs(10);

/// Which Jobs to watch.
pub enum Selection {
    /// Those with the label of a shard that is wanted.
    OfShards(ShardCount, watch::Receiver<ShardSet>),
    /// Those without the label of any.
    Unlabelled(ShardCount),
}

/// Lists and watches Jobs of a scope by their labels. Never ends.
pub fn selected_jobs(client: Client, scope: Scope, selection: Selection) -> impl Stream<Item = WatchItem> + Send {
    let api = match &scope {
        Scope::Cluster => Api::all(client),
        Scope::Namespace(namespace) => Api::namespaced(client, namespace),
    };
    let watch = SelectedWatch {
        api,
        scope,
        selection,
        selected: ShardSet::EMPTY,
        narrowing: None,
        stage: Stage::Begin,
        ready: VecDeque::new(),
        backoff: Backoff::new(),
    };
    futures::stream::unfold(watch, |mut watch| async move {
        let item = watch.next().await;
        Some((item, watch))
    })
}

impl Selection {
    /// Returns when another set of shards is wanted; may be dropped and called again.
    async fn changed(&mut self) {
        let is_final = match self {
            Selection::OfShards(_, wanted) => wanted.changed().await.is_err(),
            Selection::Unlabelled(_) => true,
        };
        if is_final {
            std::future::pending::<()>().await;
        }
    }
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<SlimJob>>> + Send>>;

/// What comes next.
enum Stage {
    /// A list, and before it the version to watch from.
    Begin,
    /// A page of it, the first or a later one.
    Page { next: Option<String>, from: String },
    /// Opening a watch.
    Open { through: String },
    /// What it shows.
    Events { events: Events, through: String },
}

struct SelectedWatch {
    api: Api<SlimJob>,
    scope: Scope,
    selection: Selection,
    /// What the watch that is open, or the list that goes on, is of.
    selected: ShardSet,
    /// Until shards that are not wanted any more are left out.
    narrowing: Option<Pin<Box<Sleep>>>,
    stage: Stage,
    /// What the last answer brought; next in turn.
    ready: VecDeque<WatchItem>,
    backoff: Backoff,
}

/// What has come while a watch is open.
enum Heard {
    Selection,
    Narrow,
    Event(Option<kube::Result<Box<WatchEvent<SlimJob>>>>),
}

impl SelectedWatch {
    async fn next(&mut self) -> WatchItem {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return item;
            }
            self.backoff.wait().await;
            match std::mem::replace(&mut self.stage, Stage::Begin) {
                Stage::Begin => self.begin().await,
                Stage::Page { next, from } => self.list(next, from).await,
                Stage::Open { through } => self.open(through).await,
                Stage::Events { events, through } => self.hear(events, through).await,
            }
        }
    }

    /// The selector of what is wanted now.
    fn select(&mut self) -> String {
        self.narrowing = None;
        if let Selection::OfShards(_, wanted) = &mut self.selection {
            self.selected = *wanted.borrow_and_update();
        }
        self.selector()
    }

    /// The selector of what is selected. With no shard it takes no Job, and the watch keeps up with the versions.
    fn selector(&self) -> String {
        match &self.selection {
            Selection::OfShards(count, _) => {
                let of_shards = count.label_selector(&self.selected);
                of_shards.unwrap_or_else(|| self.selector_of_nothing())
            }
            Selection::Unlabelled(count) => format!("!{}", count.label_key()),
        }
    }

    fn selector_of_nothing(&self) -> String {
        let (Selection::OfShards(count, _) | Selection::Unlabelled(count)) = &self.selection;
        format!("{}=none", count.label_key())
    }

    async fn begin(&mut self) {
        let nothing = ListParams::default().limit(1).labels(&self.selector_of_nothing());
        let from = match self.api.list(&nothing).await {
            Ok(page) => page.metadata.resource_version.unwrap_or_default(),
            Err(error) => return self.fail(&error, Stage::Begin),
        };
        self.select();
        // Said before the list is asked for, which it has to be: what is created meanwhile is not in the list.
        self.announce(SelectionStage::ListBegun);
        self.stage = Stage::Page { next: None, from };
    }

    /// Lists a page of what was selected when the list began.
    async fn list(&mut self, next: Option<String>, from: String) {
        let params = ListParams::default().limit(PAGE_SIZE).labels(&self.selector());
        let params = match &next {
            Some(next) => params.continue_token(next),
            None => params,
        };
        let page = match self.api.list(&params).await {
            Ok(page) => page,
            Err(error) => return self.fail(&error, Stage::Begin),
        };
        self.backoff.reset();
        self.ready
            .extend(page.items.into_iter().filter_map(|job| Jobs.applied(job)));
        let next = page.metadata.continue_.filter(|next| !next.is_empty());
        self.stage = if next.is_some() {
            Stage::Page { next, from }
        } else {
            self.announce(SelectionStage::ListDone);
            Stage::Open { through: from }
        };
    }

    /// Opens a watch of what is wanted now, from where the last one had come to.
    async fn open(&mut self, through: String) {
        let params = WatchParams::default().labels(&self.select());
        match self.api.watch(&params, &through).await {
            Ok(events) => {
                let version = through.parse().map_or(ResourceVersion(0), ResourceVersion);
                self.announce(SelectionStage::Watching(version));
                self.stage = Stage::Events {
                    events: Box::pin(events),
                    through,
                }
            }
            Err(error) => self.fail(&error, Stage::Open { through }),
        }
    }

    fn announce(&mut self, stage: SelectionStage) {
        let selected = Selected {
            kind: SelectedKind::Jobs,
            scope: self.scope.clone(),
            shards: self.selected,
            stage,
        };
        let input = Input::Selected(Box::new(selected));
        self.ready.push_back(WatchItem::Input(input));
    }

    async fn hear(&mut self, mut events: Events, through: String) {
        let narrowing = &mut self.narrowing;
        let narrow = async {
            match narrowing {
                Some(sleep) => sleep.await,
                None => std::future::pending().await,
            }
        };
        let heard = tokio::select! {
            biased;
            () = self.selection.changed() => Heard::Selection,
            event = events.next() => Heard::Event(event.map(|event| event.map(Box::new))),
            () = narrow => Heard::Narrow,
        };
        match heard {
            Heard::Selection if self.lacks_nothing() => self.stage = Stage::Events { events, through },
            Heard::Selection | Heard::Narrow | Heard::Event(None) => self.stage = Stage::Open { through },
            Heard::Event(Some(Ok(event))) => self.take(*event, events, through),
            Heard::Event(Some(Err(error))) => {
                let is_lost = matches!(error, kube::Error::SerdeError(_));
                let next = if is_lost { Stage::Begin } else { Stage::Open { through } };
                self.fail(&error, next);
            }
        }
    }

    /// Whether what is wanted now is selected already; what is too much is left out later.
    fn lacks_nothing(&mut self) -> bool {
        let Selection::OfShards(_, wanted) = &self.selection else {
            return true;
        };
        let wanted = *wanted.borrow();
        let lacks_nothing = wanted.iter().all(|shard| self.selected.contains(shard));
        if lacks_nothing && wanted != self.selected {
            self.narrowing = Some(Box::pin(tokio::time::sleep(NARROWING_DELAY)));
        }
        lacks_nothing
    }

    fn take(&mut self, event: WatchEvent<SlimJob>, events: Events, through: String) {
        self.backoff.reset();
        let version = |job: &SlimJob| kube::Resource::meta(job).resource_version.clone();
        let (through, item) = match event {
            WatchEvent::Added(job) | WatchEvent::Modified(job) => (version(&job).unwrap_or(through), Jobs.applied(job)),
            WatchEvent::Deleted(job) => {
                let item = Jobs.deleted(&job).map(WatchItem::Input);
                (version(&job).unwrap_or(through), item)
            }
            WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version, None),
            WatchEvent::Error(status) => return self.refuse(&status.message, status.code, Stage::Open { through }),
        };
        self.ready.extend(item);
        self.stage = Stage::Events { events, through };
    }

    fn fail(&mut self, error: &kube::Error, next: Stage) {
        let kube::Error::Api(status) = error else {
            return self.tell(error_text(error), next);
        };
        self.refuse(&status.message, status.code, next);
    }

    /// A version that is too old (410) is no sign of a server that is unwell: a list follows soon.
    fn refuse(&mut self, message: &str, code: u16, next: Stage) {
        let is_too_old = code == 410;
        let next = if is_too_old { Stage::Begin } else { next };
        self.tell(bounded(&format!("{message} ({code})")), next);
        if is_too_old {
            self.backoff.lose_place();
        }
    }

    fn tell(&mut self, message: String, next: Stage) {
        self.backoff.fail();
        self.ready.push_back(WatchItem::Error { message });
        self.stage = next;
    }
}
