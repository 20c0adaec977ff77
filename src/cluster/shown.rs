//! What the watches of a scope have shown, for lists of shards that are added to them.
//!
//! A watch tells where it has come to before it looks which shards are wanted. So whoever wants one more shard and reads
//! that version then has everything of it shown that came later, and needs no list that is newer.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::kept::KeptCronJobs;
use crate::state::{ResourceVersion, Scope, sharding::ShardCount};

/// The watches of one scope. Clones are one.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What is watched.
    pub scope: Scope,
    /// The CronJobs, where all are shown.
    pub kept: KeptCronJobs,
    /// How far the watch of CronJobs has come.
    pub cron_jobs: ShownThrough,
    /// How far the watch of Jobs has.
    pub jobs: ShownThrough,
}

impl Shown {
    /// Nothing yet, of so many shards, and never more than so many bytes of it kept.
    pub fn new(scope: Scope, count: ShardCount, bytes_max: usize) -> Shown {
        Shown {
            scope,
            kept: KeptCronJobs::new(count, bytes_max),
            cron_jobs: ShownThrough::default(),
            jobs: ShownThrough::default(),
        }
    }
}

/// Up to which version a watch has shown everything that was wanted of it. Clones are one.
///
/// Told and read in one order with the shards that are wanted, for what the module promises.
#[derive(Clone, Debug, Default)]
pub struct ShownThrough(Arc<AtomicU64>);

impl ShownThrough {
    /// The version; none before the watch knows from where on it will show everything.
    pub fn get(&self) -> Option<ResourceVersion> {
        Some(ResourceVersion(self.0.load(Ordering::SeqCst))).filter(|version| *version > ResourceVersion(0))
    }

    /// A watch that is opened anew repeats the past: what was told stays.
    pub(super) fn come_to(&self, version: ResourceVersion) {
        self.0.fetch_max(version.0, Ordering::SeqCst);
    }

    /// The watch lost its place: what it will show begins later than whatever was read before.
    pub(super) fn begin_anew(&self) {
        self.0.store(0, Ordering::SeqCst);
    }
}
