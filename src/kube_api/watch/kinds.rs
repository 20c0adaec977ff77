//! The kinds that are listed and watched: their requests, and the conversion of objects to inputs.

use std::sync::Arc;

use super::WatchItem;
use crate::{
    kube_api::{
        objects::decode::{
            Content, CronJobText, Decoder, JobContent, Received, ReceivedCronJob, ReceivedJob, UndecodableCronJob,
        },
        watch::{collection::Selector, cron_job_cache::CronJobCache},
    },
    shard::{Input, ShardCount, ShardSet, Uid, WatchedResource},
};

/// The objects that are listed and watched, and their conversion to inputs.
pub(super) trait Kind: Send + 'static {
    type Content: Content;

    const RESOURCE: WatchedResource;

    /// Which objects are wanted.
    fn shard_filter(&self) -> ShardFilter;

    /// The cache of everything that a watch of all shards receives, if there is one.
    fn cache(&self) -> Option<&CronJobCache> {
        None
    }

    /// Caches an object. Returns whether that exceeded the capacity.
    fn cache_object(&self, _object: &Received<Self::Content>) -> bool {
        false
    }

    /// Converts an existing object.
    fn applied(&self, object: Received<Self::Content>) -> WatchItem;

    /// Converts a deleted object with this uid.
    fn deleted(&self, uid: Uid) -> Input;
}

/// Which objects are wanted, and how the API server is asked to leave out those of other shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShardFilter {
    /// All objects are wanted.
    All,
    /// The objects without a label of any shard are wanted, and no list runs beside the watch. It announces the version
    /// of every event and bookmark, as [`WatchStage::Watching`]. It reopens too often to check the history each time; the
    /// other watches check it.
    ///
    /// [`WatchStage::Watching`]: crate::shard::input::WatchStage::Watching
    Unlabelled { count: ShardCount, watch_secs: Option<u32> },
    /// The objects of the wanted shards, by label. Every API server supports it.
    ByLabel(ShardCount),
    /// The objects of the wanted shards, by the hash of the uid. An API server that does not support this selector sends
    /// everything, so objects of other shards are passed over.
    ByHash(ShardCount),
}

impl ShardFilter {
    /// Whether the wanted objects never change.
    pub(super) fn is_fixed(self) -> bool {
        matches!(self, ShardFilter::All | ShardFilter::Unlabelled { .. })
    }

    /// The duration of one watch request, in seconds; `None` leaves it to the API server.
    pub(super) fn watch_secs(self) -> Option<u32> {
        match self {
            ShardFilter::Unlabelled { watch_secs, .. } => watch_secs,
            ShardFilter::All | ShardFilter::ByLabel(_) | ShardFilter::ByHash(_) => None,
        }
    }

    /// Returns the selector of these shards.
    pub(super) fn selector(self, shards: &ShardSet) -> Selector {
        match self {
            ShardFilter::All => Selector::default(),
            ShardFilter::Unlabelled { count, .. } => Selector::by_label(format!("!{}", count.label_key())),
            ShardFilter::ByLabel(count) => count
                .label_selector(shards)
                .map_or_else(|| nothing(count), Selector::by_label),
            ShardFilter::ByHash(count) => count
                .shard_selector(shards)
                .map_or_else(|| nothing(count), Selector::by_hash),
        }
    }

    /// Returns the selector of a request for one object, which shows the current version and whether a server would
    /// select. It has no labels: to find an object that no label selector matches, a server might look at all.
    pub(super) fn probe(self) -> Selector {
        match self {
            ShardFilter::All | ShardFilter::Unlabelled { .. } | ShardFilter::ByLabel(_) => Selector::default(),
            ShardFilter::ByHash(count) => self.selector(&ShardSet::all(count)),
        }
    }
}

/// Matches no object; a watch with it still receives bookmarks.
fn nothing(count: ShardCount) -> Selector {
    Selector::by_label(format!("{}=none", count.label_key()))
}

/// CronJobs: all, or those of some shards, by the hash of their uid if the server selects. CronJobs of other shards are
/// not decoded.
pub(super) struct CronJobs {
    pub(super) decoder: Arc<Decoder>,
    /// The cache of the CronJobs of all shards; `None` without shards.
    pub(super) cache: Option<CronJobCache>,
}

impl Kind for CronJobs {
    type Content = CronJobText;

    const RESOURCE: WatchedResource = WatchedResource::CronJobs;

    fn shard_filter(&self) -> ShardFilter {
        let cache = self.cache.as_ref();
        cache.map_or(ShardFilter::All, |cache| ShardFilter::ByHash(cache.count))
    }

    fn cache(&self) -> Option<&CronJobCache> {
        self.cache.as_ref()
    }

    fn cache_object(&self, object: &ReceivedCronJob) -> bool {
        self.cache().is_some_and(|cache| cache.insert(object))
    }

    fn applied(&self, object: ReceivedCronJob) -> WatchItem {
        match self.decoder.cron_job(object.text()) {
            Ok(record) => WatchItem::Input(Input::CronJobApplied(Box::new(record))),
            Err(UndecodableCronJob { error, cron_job }) => WatchItem::Undecodable {
                error,
                cron_job,
                input: object.uid().cloned().map(Input::CronJobUndecodable),
            },
        }
    }

    fn deleted(&self, uid: Uid) -> Input {
        Input::CronJobDeleted(uid)
    }
}

/// Jobs.
pub(super) struct Jobs(pub(super) ShardFilter);

impl Kind for Jobs {
    type Content = JobContent;

    const RESOURCE: WatchedResource = WatchedResource::Jobs;

    fn shard_filter(&self) -> ShardFilter {
        self.0
    }

    fn applied(&self, object: ReceivedJob) -> WatchItem {
        let uid = object.uid().cloned();
        match object.into_record() {
            Ok(record) => WatchItem::Input(Input::JobApplied(Box::new(record))),
            Err(error) => WatchItem::Undecodable {
                error,
                cron_job: None,
                // If the Job counted as deleted, another run could start beside it (B-10.3).
                input: uid.map(Input::JobUndecodable),
            },
        }
    }

    fn deleted(&self, uid: Uid) -> Input {
        if self.0 == ShardFilter::All {
            Input::JobDeleted(uid)
        } else {
            // The Job is gone, or its label changed.
            Input::JobUnselected(uid)
        }
    }
}
