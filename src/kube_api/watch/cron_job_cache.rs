//! A cache of all CronJobs of a scope as text, so that loading a shard needs no list of every CronJob.
//!
//! If the API server does not select, a replica receives all CronJobs anyway. It decodes those of its own shards and
//! caches all of them as compressed text. The cache holds the state at one version, completely or not at all. It is unusable
//! while a watch lists again, while the server selects, and after the CronJobs exceeded its capacity, until the next list of
//! everything is complete.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::compressed_cron_job::{CompressedCronJob, Dictionary, version};
use crate::{
    kube_api::objects::decode::ReceivedCronJob,
    shard::{ResourceVersion, ShardCount, ShardId, ShardSet, Uid},
};

/// Capacity of the caches of one replica: some 90,000 CronJobs of three kilobytes, which compress to a sixth. Larger
/// clusters list a shard when it is taken over.
pub const CACHE_BYTES_MAX: usize = 64 << 20;

/// Memory of a cached object beyond its text, in bytes, rounded up.
const OVERHEAD_BYTES: usize = 200;

/// The cached CronJobs of one scope. Clones share the cache.
#[derive(Clone, Debug)]
pub struct CronJobCache {
    /// The number of shards.
    pub(super) count: ShardCount,
    bytes_max: usize,
    /// Held for one change or one read, never across an await.
    contents: Arc<Mutex<Contents>>,
}

#[derive(Debug, Default)]
struct Contents {
    shards: BTreeMap<ShardId, BTreeMap<Uid, CompressedCronJob>>,
    n_bytes: usize,
    dictionary: Dictionary,
    state: CacheState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CacheState {
    /// The received objects are not complete.
    #[default]
    Nothing,
    /// A list of everything is in progress.
    Listing,
    /// The cache is complete up to this version.
    Everything(ResourceVersion),
    /// The capacity was exceeded; the cache stays empty until the next list.
    Full,
}

impl CronJobCache {
    /// Creates an empty cache of at most this many bytes.
    pub fn new(count: ShardCount, bytes_max: usize) -> CronJobCache {
        CronJobCache {
            count,
            bytes_max,
            contents: Arc::default(),
        }
    }

    /// Returns the CronJobs of these shards and the version of the cache; `None` if the cache is incomplete.
    pub fn of_shards(&self, shards: &ShardSet) -> Option<(ResourceVersion, Vec<(Uid, CompressedCronJob)>)> {
        let contents = self.contents();
        let CacheState::Everything(through) = contents.state else {
            return None;
        };
        let of_shards = shards.iter().filter_map(|shard| contents.shards.get(&shard)).flatten();
        let objects = of_shards.map(|(uid, object)| (uid.clone(), object.clone()));
        Some((through, objects.collect()))
    }

    /// The version of the cache; `None` if it is incomplete.
    pub fn version(&self) -> Option<ResourceVersion> {
        if let CacheState::Everything(through) = self.contents().state {
            Some(through)
        } else {
            None
        }
    }

    /// Whether the capacity was exceeded.
    pub(super) fn is_full(&self) -> bool {
        self.contents().state == CacheState::Full
    }

    /// Stores an object. Returns whether the capacity was exceeded.
    pub(super) fn insert(&self, object: &ReceivedCronJob) -> bool {
        let Some(uid) = object.uid() else { return false };
        let shard = self.count.shard_of(uid);
        let mut contents = self.contents();
        if let CacheState::Nothing | CacheState::Full = contents.state {
            return false;
        }
        let dictionary = contents.dictionary.clone();
        let of_shard = contents.shards.entry(shard).or_default();
        let former = of_shard.get(uid);
        // A watch replays events that a list has already included in a later version.
        if former.is_some_and(|former| former.version() > version(object)) {
            return false;
        }
        let n_bytes_before = former.map_or(0, n_bytes);
        let compressed = CompressedCronJob::new(object, &dictionary);
        let n_bytes_after = n_bytes(&compressed);
        of_shard.insert(uid.clone(), compressed);
        contents.n_bytes = contents.n_bytes - n_bytes_before + n_bytes_after;
        if let Some(extended) = dictionary.extended(object) {
            contents.dictionary = extended;
        }
        if contents.n_bytes <= self.bytes_max {
            return false;
        }
        *contents = Contents {
            state: CacheState::Full,
            ..Contents::default()
        };
        true
    }

    /// Removes a deleted object.
    pub(super) fn remove(&self, uid: &Uid) {
        let shard = self.count.shard_of(uid);
        let mut contents = self.contents();
        if let Some(former) = contents
            .shards
            .get_mut(&shard)
            .and_then(|of_shard| of_shard.remove(uid))
        {
            contents.n_bytes -= n_bytes(&former);
        }
    }

    /// Discards everything: from now on the received objects are not complete.
    pub(super) fn clear(&self) {
        *self.contents() = Contents::default();
    }

    /// Starts again, with a list of everything.
    pub(super) fn begin(&self) {
        *self.contents() = Contents {
            state: CacheState::Listing,
            ..Contents::default()
        };
    }

    /// Completes the list, whose objects are of this version or later.
    pub(super) fn complete(&self, at: ResourceVersion) {
        let mut contents = self.contents();
        if contents.state == CacheState::Listing {
            contents.state = CacheState::Everything(at);
        }
    }

    /// Advances the cache to the version that the watch has delivered.
    pub(super) fn advance_to(&self, version: ResourceVersion) {
        let mut contents = self.contents();
        if let CacheState::Everything(through) = &mut contents.state {
            *through = version.max(*through);
        }
    }

    /// Advances a cache of version `since` or later to `through`, if no CronJob has changed between the two.
    pub fn advance_unchanged(&self, since: ResourceVersion, through: ResourceVersion) {
        let mut contents = self.contents();
        // A lower version belongs to another history of etcd.
        if let CacheState::Everything(at) = &mut contents.state
            && *at >= since
        {
            *at = through.max(*at);
        }
    }

    /// The contents are consistent after every statement, so a panic elsewhere does not corrupt them.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn n_bytes(object: &CompressedCronJob) -> usize {
    object.compressed_len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count() -> ShardCount {
        ShardCount::new(16).unwrap()
    }

    fn cron_job(uid: &str, version: u64) -> ReceivedCronJob {
        let metadata = json!({ "name": uid, "uid": uid, "resourceVersion": version.to_string() });
        serde_json::from_str(&json!({ "metadata": metadata }).to_string()).unwrap()
    }

    fn all(contents: &CronJobCache) -> Option<(u64, Vec<(String, u64)>)> {
        let (through, objects) = contents.of_shards(&ShardSet::all(count()))?;
        let mut found: Vec<(String, u64)> = objects
            .iter()
            .map(|(uid, object)| (uid.to_string(), object.version().0))
            .collect();
        found.sort();
        Some((through.0, found))
    }

    #[test]
    fn the_cache_is_valid_after_a_complete_list() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        assert!(
            !contents.insert(&cron_job("c", 4)) && contents.contents().n_bytes == 0,
            "it is not all"
        );
        contents.begin();
        contents.insert(&cron_job("a", 5));
        contents.insert(&cron_job("b", 6));
        contents.advance_to(ResourceVersion(6));
        assert_eq!(all(&contents), None);
        contents.complete(ResourceVersion(4));
        contents.advance_to(ResourceVersion(6));
        contents.insert(&cron_job("a", 9));
        contents.advance_to(ResourceVersion(9));
        contents.remove(&Uid::new("b"));
        contents.advance_to(ResourceVersion(10));
        contents.advance_to(ResourceVersion(3));
        assert_eq!(all(&contents), Some((10, vec![("a".into(), 9)])));
        contents.clear();
        assert_eq!(all(&contents), None);
    }

    #[test]
    fn proof_of_no_change_advances_only_a_cache_that_is_as_new() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        let advance = |since, through| contents.advance_unchanged(ResourceVersion(since), ResourceVersion(through));
        advance(1, 9);
        assert_eq!(contents.version(), None);
        contents.begin();
        contents.complete(ResourceVersion(4));
        advance(5, 9);
        assert_eq!(contents.version(), Some(ResourceVersion(4)));
        advance(4, 9);
        assert_eq!(contents.version(), Some(ResourceVersion(9)));
        advance(4, 8);
        assert_eq!(contents.version(), Some(ResourceVersion(9)));
    }

    #[test]
    fn replayed_events_do_not_restore_older_versions() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        contents.begin();
        contents.insert(&cron_job("a", 9));
        contents.complete(ResourceVersion(4));
        contents.insert(&cron_job("a", 7));
        assert_eq!(all(&contents), Some((4, vec![("a".into(), 9)])));
    }

    #[test]
    fn the_cache_returns_only_cron_jobs_of_the_requested_shards() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        contents.begin();
        for number in 0..100 {
            contents.insert(&cron_job(&format!("uid-{number}"), 7));
        }
        contents.complete(ResourceVersion(7));
        let shards: ShardSet = [ShardId(2), ShardId(11)].into_iter().collect();
        let (_, found) = contents.of_shards(&shards).unwrap();
        let is_of = |number: &u32| shards.contains(count().shard_of(&Uid::new(&format!("uid-{number}"))));
        assert_eq!(found.len(), (0..100).filter(is_of).count());
        assert!(found.iter().all(|(uid, _)| shards.contains(count().shard_of(uid))));
    }

    #[test]
    fn an_overflowing_cache_is_invalid_until_the_next_list() {
        let contents = CronJobCache::new(count(), 3 * (OVERHEAD_BYTES + 80));
        contents.begin();
        for uid in ["a", "b", "c"] {
            assert!(!contents.insert(&cron_job(uid, 1)));
        }
        assert!(
            !contents.insert(&cron_job("a", 2)),
            "it takes the place of its former self"
        );
        contents.complete(ResourceVersion(2));
        assert!(contents.insert(&cron_job("d", 3)), "reported once");
        assert!(!contents.insert(&cron_job("e", 4)));
        contents.complete(ResourceVersion(4));
        assert_eq!(all(&contents), None);
        contents.begin();
        contents.insert(&cron_job("a", 5));
        contents.complete(ResourceVersion(5));
        assert_eq!(all(&contents), Some((5, vec![("a".into(), 5)])));
    }
}
