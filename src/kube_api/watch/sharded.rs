//! The kinds of which the objects of some shards are watched, and what differs between them.

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

/// How the objects of some shards are asked for, and what is made of them.
pub(super) trait ShardedKind: Send + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static;

    const KIND: SelectedKind;

    /// Whether every API server leaves out what is not asked for.
    const IS_SELECTED_ALWAYS: bool;

    fn count(&self) -> ShardCount;

    /// How those of these shards are asked for.
    fn selector(&self, shards: &ShardSet) -> Selector;

    /// How to ask for nothing, and learn whether a server would select.
    fn probe(&self) -> Selector {
        selector_of_nothing(self.count())
    }

    /// Where everything is kept that a watch of all shards shows, if it is.
    fn cache(&self) -> Option<&CronJobCache> {
        None
    }

    /// Keeps an object; whether that was too much.
    fn keep(&self, _object: &Self::Object) -> bool {
        false
    }

    /// Keeps it no more.
    fn forget(&self, _object: &Self::Object) {}

    /// An object is there; nothing where it concerns nobody. `is_wanted` says of which CronJobs.
    fn applied(&self, object: Self::Object, is_wanted: impl Fn(&Uid) -> bool) -> Option<WatchItem>;

    /// It is gone.
    fn deleted(&self, object: &Self::Object, is_wanted: impl Fn(&Uid) -> bool) -> Option<WatchItem>;
}

/// Takes no object, and keeps a watch up with the versions.
fn selector_of_nothing(count: ShardCount) -> Selector {
    Selector {
        labels: format!("{}=none", count.label_key()),
        shards: None,
    }
}

/// Jobs by the label of their shard.
pub(super) struct LabelledJobs {
    pub(super) count: ShardCount,
    /// Whether those without the label of any shard are meant, which may be of any.
    pub(super) is_without: bool,
}

/// CronJobs by the hash of their uid, if the server selects; those of others are not even understood.
///
/// What is passed over is no newer than any list of a shard that is added later: it is told how far the watch has come before
/// it is looked whether it is wanted. And it is kept before it is passed over, so that it is in what is recalled after that.
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
