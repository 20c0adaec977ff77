//! The kinds whose objects are watched by shard, and their differences.

use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;

use super::{
    WatchItem,
    kinds::{CronJobs, Jobs},
};
use crate::{
    kube_api::{
        objects::decode::{SlimJob, UndecodedCronJob},
        watch::{cron_job_cache::CronJobCache, selection::Selector},
    },
    shard::{Input, ShardCount, ShardSet, Uid, input::SelectedKind},
};

/// The requests for the objects of some shards, and their conversion to inputs.
pub(super) trait ShardedKind: Send + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static;

    const KIND: SelectedKind;

    /// Whether every API server selects.
    const IS_SELECTED_ALWAYS: bool;

    fn count(&self) -> ShardCount;

    /// Returns the selector of these shards.
    fn selector(&self, shards: &ShardSet) -> Selector;

    /// Returns a selector that matches nothing and shows whether a server would select.
    fn probe(&self) -> Selector {
        selector_of_nothing(self.count())
    }

    /// The cache of everything that a watch of all shards receives, if there is one.
    fn cache(&self) -> Option<&CronJobCache> {
        None
    }

    /// Caches an object. Returns whether that exceeded the capacity.
    fn keep(&self, _object: &Self::Object) -> bool {
        false
    }

    /// Removes an object from the cache.
    fn forget(&self, _object: &Self::Object) {}

    /// Converts an existing object; `None` if no shard needs it. `is_wanted` tells of which CronJobs objects are
    /// wanted.
    fn applied(&self, object: Self::Object, is_wanted: impl Fn(&Uid) -> bool) -> Option<WatchItem>;

    /// Converts a deleted object.
    fn deleted(&self, object: &Self::Object, is_wanted: impl Fn(&Uid) -> bool) -> Option<WatchItem>;
}

/// Matches no object; a watch with it still receives bookmarks.
fn selector_of_nothing(count: ShardCount) -> Selector {
    Selector {
        labels: format!("{}=none", count.label_key()),
        shards: None,
    }
}

/// Jobs by the label of their shard.
pub(super) struct LabelledJobs {
    pub(super) count: ShardCount,
    /// Whether the watch is of the Jobs without a label of any shard.
    pub(super) is_without: bool,
}

/// CronJobs by the hash of their uid, if the server selects. CronJobs of other shards are not decoded.
///
/// An ignored CronJob is no newer than any list of a shard that is added later, since the watch publishes its version
/// before it reads the wanted shards. It is also cached before it is ignored, so that a shard that is added later finds
/// it.
pub(super) struct HeldCronJobs {
    pub(super) of_all: CronJobs,
    pub(super) count: ShardCount,
    pub(super) cache: CronJobCache,
}

impl ShardedKind for LabelledJobs {
    type Object = SlimJob;

    const KIND: SelectedKind = SelectedKind::Jobs;
    const IS_SELECTED_ALWAYS: bool = true;

    fn count(&self) -> ShardCount {
        self.count
    }

    fn selector(&self, shards: &ShardSet) -> Selector {
        let labels = if self.is_without {
            Some(format!("!{}", self.count.label_key()))
        } else {
            self.count.label_selector(shards)
        };
        match labels {
            Some(labels) => Selector { labels, shards: None },
            None => selector_of_nothing(self.count),
        }
    }

    fn applied(&self, object: SlimJob, _: impl Fn(&Uid) -> bool) -> Option<WatchItem> {
        Some(Jobs::applied(object))
    }

    fn deleted(&self, object: &SlimJob, _: impl Fn(&Uid) -> bool) -> Option<WatchItem> {
        Some(WatchItem::Input(Input::JobUnselected(object.uid()?.clone())))
    }
}

impl ShardedKind for HeldCronJobs {
    type Object = UndecodedCronJob;

    const KIND: SelectedKind = SelectedKind::CronJobs;
    const IS_SELECTED_ALWAYS: bool = false;

    fn count(&self) -> ShardCount {
        self.count
    }

    fn selector(&self, shards: &ShardSet) -> Selector {
        match self.count.shard_selector(shards) {
            Some(shards) => Selector {
                labels: String::new(),
                shards: Some(shards),
            },
            None => selector_of_nothing(self.count),
        }
    }

    fn probe(&self) -> Selector {
        Selector {
            shards: self.count.shard_selector(&ShardSet::all(self.count)),
            ..selector_of_nothing(self.count)
        }
    }

    fn cache(&self) -> Option<&CronJobCache> {
        Some(&self.cache)
    }

    fn keep(&self, object: &UndecodedCronJob) -> bool {
        self.cache.keep(object)
    }

    fn forget(&self, object: &UndecodedCronJob) {
        if let Some(uid) = object.uid() {
            self.cache.forget(uid);
        }
    }

    fn applied(&self, object: UndecodedCronJob, is_wanted: impl Fn(&Uid) -> bool) -> Option<WatchItem> {
        if object.uid().is_some_and(|uid| !is_wanted(uid)) {
            return Some(WatchItem::PassedOver);
        }
        Some(self.of_all.applied(object.decode()?))
    }

    fn deleted(&self, object: &UndecodedCronJob, is_wanted: impl Fn(&Uid) -> bool) -> Option<WatchItem> {
        let uid = object.uid()?;
        if !is_wanted(uid) {
            return Some(WatchItem::PassedOver);
        }
        Some(WatchItem::Input(Input::CronJobDeleted(uid.clone())))
    }
}
