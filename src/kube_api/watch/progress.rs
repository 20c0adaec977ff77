//! What the watches of a scope have shown, for lists of shards that are added to them.
//!
//! A watch tells where it has come to before it looks which shards are wanted. So whoever wants one more shard and reads
//! that version then has everything of it shown that came later, and needs no list that is newer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use crate::{
    kube_api::watch::cron_job_cache::CronJobCache,
    shard::{ResourceVersion, Scope, ShardCount},
};

/// The watches of one scope. Clones are one.
#[derive(Clone, Debug)]
pub struct WatchProgress {
    /// What is watched.
    pub scope: Scope,
    /// The CronJobs, where all are shown.
    pub cache: CronJobCache,
    /// How far the watch of CronJobs has come.
    pub cron_jobs: ObservedVersion,
    /// How far the watch of Jobs has.
    pub jobs: ObservedVersion,
}

impl WatchProgress {
    /// Nothing yet, of so many shards, and never more than so many bytes of it kept.
    pub fn new(scope: Scope, count: ShardCount, bytes_max: usize) -> WatchProgress {
        WatchProgress {
            scope,
            cache: CronJobCache::new(count, bytes_max),
            cron_jobs: ObservedVersion::default(),
            jobs: ObservedVersion::default(),
        }
    }
}

/// Up to which version a watch has shown everything that was wanted of it. Clones are one.
///
/// Told and read in one order with the shards that are wanted, for what the module promises.
#[derive(Clone, Debug, Default)]
pub struct ObservedVersion(Arc<Place>);

#[derive(Debug, Default)]
struct Place {
    through: AtomicU64,
    /// A list of some shards left the scope out.
    is_list_wanted: AtomicBool,
}

impl ObservedVersion {
    /// The version; none before the watch knows from where on it will show everything.
    pub fn get(&self) -> Option<ResourceVersion> {
        Some(ResourceVersion(self.0.through.load(Ordering::SeqCst))).filter(|version| *version > ResourceVersion(0))
    }

    /// A watch that is opened anew repeats the past: what was told stays.
    pub(super) fn come_to(&self, version: ResourceVersion) {
        self.0.through.fetch_max(version.0, Ordering::SeqCst);
    }

    /// The watch lost its place: what it will show begins later than whatever was read before.
    pub(super) fn begin_anew(&self) {
        self.0.is_list_wanted.store(false, Ordering::SeqCst);
        self.0.through.store(0, Ordering::SeqCst);
    }

    /// Asks the watch to list what is wanted of it, since a list of some shards left the scope out.
    pub fn want_list(&self) {
        self.0.is_list_wanted.store(true, Ordering::SeqCst);
    }

    /// Whether that is asked and no list has begun since. Looked at with each event; a bookmark comes about once a minute.
    pub(super) fn is_list_wanted(&self) -> bool {
        self.0.is_list_wanted.load(Ordering::SeqCst)
    }
}
