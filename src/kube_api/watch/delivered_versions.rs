//! The versions that the watches of a scope have delivered, for lists of shards that are added.
//!
//! A watch publishes its version before it reads the wanted shards. So a caller that adds a shard and then reads the
//! version receives every later change of that shard from the watch, and needs no newer list.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    kube_api::watch::cron_job_cache::CronJobCache,
    shard::{ResourceVersion, Scope, ShardCount},
};

/// The versions that the watches of one scope have delivered, and the cache of their objects. Clones share them.
#[derive(Clone, Debug)]
pub struct DeliveredVersions {
    /// The watched scope.
    pub scope: Scope,
    /// The number of shards that the watches select from.
    pub count: ShardCount,
    /// The cache of all CronJobs, if the watch receives all.
    pub cache: CronJobCache,
    /// The version that the watch of CronJobs has delivered.
    pub cron_jobs: DeliveredVersion,
    /// The version that the watch of Jobs has delivered.
    pub jobs: DeliveredVersion,
}

impl DeliveredVersions {
    /// Creates an instance for watches that have delivered nothing, with a cache of at most this many bytes.
    pub fn new(scope: Scope, count: ShardCount, bytes_max: usize) -> DeliveredVersions {
        DeliveredVersions {
            scope,
            count,
            cache: CronJobCache::new(count, bytes_max),
            cron_jobs: DeliveredVersion::default(),
            jobs: DeliveredVersion::default(),
        }
    }
}

/// The version up to which a watch has delivered all events of the wanted shards. Clones share it.
///
/// Writes and reads are in one order with those of the wanted shards, as the module requires.
#[derive(Clone, Debug, Default)]
pub struct DeliveredVersion(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    version: AtomicU64,
    /// Whether a list of some shards omitted this scope.
    is_list_requested: AtomicBool,
}

impl DeliveredVersion {
    /// Returns the version; `None` until the first version of the watch is known.
    pub fn get(&self) -> Option<ResourceVersion> {
        Some(ResourceVersion(self.0.version.load(Ordering::SeqCst))).filter(|version| *version > ResourceVersion(0))
    }

    /// Advances the version. A reopened watch replays the past, so the version never decreases.
    pub(super) fn advance_to(&self, version: ResourceVersion) {
        self.0.version.fetch_max(version.0, Ordering::SeqCst);
    }

    /// Resets the version. The watch lost its place and may have missed events, so versions read before are no longer valid.
    pub(super) fn reset(&self) {
        self.0.is_list_requested.store(false, Ordering::SeqCst);
        self.0.version.store(0, Ordering::SeqCst);
    }

    /// Requests a list from the watch, because a list of some shards omitted this scope.
    pub fn request_list(&self) {
        self.0.is_list_requested.store(true, Ordering::SeqCst);
    }

    /// Whether a list was requested and none has begun since. Checked at each event; a bookmark arrives about once a
    /// minute.
    pub(super) fn is_list_requested(&self) -> bool {
        self.0.is_list_requested.load(Ordering::SeqCst)
    }
}
