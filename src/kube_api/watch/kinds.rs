//! The kinds that are listed and watched: their requests, and the conversion of objects to inputs.

use std::sync::Arc;

use super::WatchItem;
use crate::{
    kube_api::{
        objects::decode::{
            Content, CronJobText, Decoder, JobContent, Received, ReceivedCronJob, ReceivedJob, UndecodableCronJob,
        },
        watch::{cron_job_cache::CronJobCache, selection::Selector},
    },
    shard::{Input, ShardCount, ShardSet, Uid, WatchedResource},
};

/// The requests for the objects of some shards, and their conversion to inputs.
pub(super) trait Kind: Send + 'static {
    type Content: Content;

    const RESOURCE: WatchedResource;

    /// The side that selects.
    fn selection(&self) -> Selection;

    /// Returns the selector of these shards.
    fn selector(&self, shards: &ShardSet) -> Selector;

    /// The duration of one watch request, in seconds; `None` leaves it to the API server.
    fn watch_secs(&self) -> Option<u32> {
        None
    }

    /// Whether the watch is of the Jobs without a label. It announces the version of every event and bookmark, as
    /// [`WatchStage::Watching`]. It ends every few seconds, so only the other watches of the replica check after an
    /// interruption whether the API server still has the same history.
    ///
    /// [`WatchStage::Watching`]: crate::shard::input::WatchStage::Watching
    fn is_of_unlabelled(&self) -> bool {
        false
    }

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

/// The selection of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// The selection never changes, and no list runs beside the watch.
    Fixed,
    /// The selection follows the wanted shards, and every API server supports it.
    ByLabel,
    /// The selection follows the wanted shards. An API server that does not support the selector sends everything, so
    /// objects of other shards are passed over.
    ByHash(ShardCount),
}

impl Selection {
    /// Returns the selector of a request for one object, which shows the current version and whether a server would
    /// select. It has no labels: to find an object that no label selector matches, a server might look at all.
    pub(super) fn probe(self) -> Selector {
        let shards = match self {
            Selection::Fixed | Selection::ByLabel => None,
            Selection::ByHash(count) => count.shard_selector(&ShardSet::all(count)),
        };
        Selector {
            labels: String::new(),
            shards,
        }
    }
}

/// Matches no object; a watch with it still receives bookmarks.
fn selector_of_nothing(count: ShardCount) -> Selector {
    Selector {
        labels: format!("{}=none", count.label_key()),
        shards: None,
    }
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

    fn selection(&self) -> Selection {
        match &self.cache {
            None => Selection::Fixed,
            Some(cache) => Selection::ByHash(cache.count),
        }
    }

    fn selector(&self, shards: &ShardSet) -> Selector {
        let Some(cache) = &self.cache else {
            return Selector::default();
        };
        match cache.count.shard_selector(shards) {
            Some(shards) => Selector {
                labels: String::new(),
                shards: Some(shards),
            },
            None => selector_of_nothing(cache.count),
        }
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

/// The watched Jobs.
pub(super) enum Jobs {
    /// All Jobs.
    All,
    /// The Jobs with the label of a wanted shard.
    Labelled(ShardCount),
    /// The Jobs without a label of any shard.
    Unlabelled {
        count: ShardCount,
        /// The duration of one watch request.
        watch_secs: Option<u32>,
    },
}

impl Kind for Jobs {
    type Content = JobContent;

    const RESOURCE: WatchedResource = WatchedResource::Jobs;

    fn selection(&self) -> Selection {
        match self {
            Jobs::All | Jobs::Unlabelled { .. } => Selection::Fixed,
            Jobs::Labelled(_) => Selection::ByLabel,
        }
    }

    fn selector(&self, shards: &ShardSet) -> Selector {
        let labels = match self {
            Jobs::All => String::new(),
            Jobs::Unlabelled { count, .. } => format!("!{}", count.label_key()),
            Jobs::Labelled(count) => match count.label_selector(shards) {
                Some(labels) => labels,
                None => return selector_of_nothing(*count),
            },
        };
        Selector { labels, shards: None }
    }

    fn watch_secs(&self) -> Option<u32> {
        match self {
            Jobs::Unlabelled { watch_secs, .. } => *watch_secs,
            Jobs::All | Jobs::Labelled(_) => None,
        }
    }

    fn is_of_unlabelled(&self) -> bool {
        matches!(self, Jobs::Unlabelled { .. })
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
        match self {
            Jobs::All => Input::JobDeleted(uid),
            // The Job is gone, or its label changed.
            Jobs::Labelled(_) | Jobs::Unlabelled { .. } => Input::JobUnselected(uid),
        }
    }
}
