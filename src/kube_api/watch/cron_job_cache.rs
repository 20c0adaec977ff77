//! CronJobs as a watch of all of them shows them: their text, so that a shard is loaded without a list of every CronJob.
//!
//! Where the API server does not select, a replica receives all CronJobs anyway. What it leads it has understood; the rest
//! is kept as it came. What is kept is what there was at one version, whole or not at all: a watch that is listed anew, or
//! that a server selects for, or shows more than there is room for, keeps nothing until its next list is complete, which
//! for this is one of everything.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::Resource as _;

use crate::{
    kube_api::objects::decode::UndecodedCronJob,
    shard::{Partition, ResourceVersion, ShardCount, ShardId, ShardSet, Uid},
};

/// What all watches of a replica together may keep: twenty thousand CronJobs of three kilobytes. Beyond that shards are
/// listed, which takes a while there whatever is done.
pub const CACHE_BYTES_MAX: usize = 64 << 20;

/// What an object takes besides its text.
const OVERHEAD_BYTES: usize = 160;

/// The CronJobs of one scope. Clones are one.
#[derive(Clone, Debug)]
pub struct CronJobCache {
    partition: Partition,
    bytes_max: usize,
    /// Held for one change or one look, never across an await.
    contents: Arc<Mutex<Contents>>,
}

#[derive(Debug, Default)]
struct Contents {
    shards: BTreeMap<ShardId, BTreeMap<Uid, UndecodedCronJob>>,
    n_bytes: usize,
    stage: CacheState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CacheState {
    /// What comes is not all that there is.
    #[default]
    Nothing,
    /// A list of everything is going on.
    Listing,
    /// Everything up to this version is kept.
    Everything(ResourceVersion),
    /// There was no room, and is not until another list.
    Full,
}

impl CronJobCache {
    /// Nothing yet, and never more than so many bytes.
    pub fn new(count: ShardCount, bytes_max: usize) -> CronJobCache {
        CronJobCache {
            partition: Partition::Shards(count),
            bytes_max,
            contents: Arc::default(),
        }
    }

    /// The CronJobs of these shards, and the version at which they were these; none where not all are kept.
    pub fn of_shards(&self, shards: &ShardSet) -> Option<(ResourceVersion, Vec<UndecodedCronJob>)> {
        let contents = self.contents();
        let CacheState::Everything(through) = contents.stage else {
            return None;
        };
        let of_shard = |shard| contents.shards.get(&shard).into_iter().flat_map(BTreeMap::values);
        Some((through, shards.iter().flat_map(of_shard).cloned().collect()))
    }

    /// Whether there were more than there is room for.
    pub(super) fn is_full(&self) -> bool {
        self.contents().stage == CacheState::Full
    }

    /// Takes note of an object that is there; whether that was too much.
    pub(super) fn keep(&self, object: &UndecodedCronJob) -> bool {
        let Some(uid) = object.uid() else { return false };
        let shard = self.partition.shard_of(uid);
        let mut contents = self.contents();
        if let CacheState::Nothing | CacheState::Full = contents.stage {
            return false;
        }
        let of_shard = contents.shards.entry(shard).or_default();
        let former = of_shard.get(uid);
        // A watch repeats what a list showed in a later version.
        if former.is_some_and(|former| version(former) > version(object)) {
            return false;
        }
        let n_bytes_before = former.map_or(0, n_bytes);
        of_shard.insert(uid.clone(), object.clone());
        contents.n_bytes = contents.n_bytes - n_bytes_before + n_bytes(object);
        if contents.n_bytes <= self.bytes_max {
            return false;
        }
        *contents = Contents {
            stage: CacheState::Full,
            ..Contents::default()
        };
        true
    }

    /// Takes note of an object that is gone.
    pub(super) fn forget(&self, uid: &Uid) {
        let shard = self.partition.shard_of(uid);
        let mut contents = self.contents();
        if let Some(former) = contents
            .shards
            .get_mut(&shard)
            .and_then(|of_shard| of_shard.remove(uid))
        {
            contents.n_bytes -= n_bytes(&former);
        }
    }

    /// What comes from here on is not all that there is.
    pub(super) fn forget_all(&self) {
        *self.contents() = Contents::default();
    }

    /// Begins anew: a list of everything.
    pub(super) fn begin(&self) {
        *self.contents() = Contents {
            stage: CacheState::Listing,
            ..Contents::default()
        };
    }

    /// The list is complete; it showed everything at this version or later.
    pub(super) fn complete(&self, at: ResourceVersion) {
        let mut contents = self.contents();
        if contents.stage == CacheState::Listing {
            contents.stage = CacheState::Everything(at);
        }
    }

    /// The watch has come to this version.
    pub(super) fn come_to(&self, version: ResourceVersion) {
        let mut contents = self.contents();
        if let CacheState::Everything(through) = &mut contents.stage {
            *through = version.max(*through);
        }
    }

    /// What is kept is consistent after every statement, so a panic elsewhere does not spoil it.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn n_bytes(object: &UndecodedCronJob) -> usize {
    object.text_len() + OVERHEAD_BYTES
}

fn version(object: &UndecodedCronJob) -> ResourceVersion {
    let version = object.meta().resource_version.as_deref();
    version.map_or(ResourceVersion(0), ResourceVersion::read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn count() -> ShardCount {
        ShardCount::new(16).unwrap()
    }

    fn cron_job(uid: &str, version: u64) -> UndecodedCronJob {
        let metadata = json!({ "name": uid, "uid": uid, "resourceVersion": version.to_string() });
        serde_json::from_str(&json!({ "metadata": metadata }).to_string()).unwrap()
    }

    fn all(contents: &CronJobCache) -> Option<(u64, Vec<(String, u64)>)> {
        let (through, objects) = contents.of_shards(&ShardSet::all(count()))?;
        let mut found: Vec<(String, u64)> = objects
            .iter()
            .map(|object| (object.uid().unwrap().to_string(), version(object).0))
            .collect();
        found.sort();
        Some((through.0, found))
    }

    #[test]
    fn nothing_is_kept_until_a_list_is_complete_and_everything_from_then_on() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        assert!(
            !contents.keep(&cron_job("c", 4)) && contents.contents().n_bytes == 0,
            "it is not all"
        );
        contents.begin();
        contents.keep(&cron_job("a", 5));
        contents.keep(&cron_job("b", 6));
        contents.come_to(ResourceVersion(6));
        assert_eq!(all(&contents), None);
        contents.complete(ResourceVersion(4));
        contents.come_to(ResourceVersion(6));
        contents.keep(&cron_job("a", 9));
        contents.come_to(ResourceVersion(9));
        contents.forget(&Uid::new("b"));
        contents.come_to(ResourceVersion(10));
        contents.come_to(ResourceVersion(3));
        assert_eq!(all(&contents), Some((10, vec![("a".into(), 9)])));
        contents.forget_all();
        assert_eq!(all(&contents), None);
    }

    #[test]
    fn what_a_watch_repeats_does_not_bring_an_older_form_back() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        contents.begin();
        contents.keep(&cron_job("a", 9));
        contents.complete(ResourceVersion(4));
        contents.keep(&cron_job("a", 7));
        assert_eq!(all(&contents), Some((4, vec![("a".into(), 9)])));
    }

    #[test]
    fn of_some_shards_only_theirs_are_given() {
        let contents = CronJobCache::new(count(), CACHE_BYTES_MAX);
        contents.begin();
        for number in 0..100 {
            contents.keep(&cron_job(&format!("uid-{number}"), 7));
        }
        contents.complete(ResourceVersion(7));
        let partition = Partition::Shards(count());
        let shards: ShardSet = [ShardId(2), ShardId(11)].into_iter().collect();
        let (_, found) = contents.of_shards(&shards).unwrap();
        let is_of = |number: &u32| shards.contains(partition.shard_of(&Uid::new(&format!("uid-{number}"))));
        assert_eq!(found.len(), (0..100).filter(is_of).count());
        assert!(
            found
                .iter()
                .all(|object| shards.contains(partition.shard_of(object.uid().unwrap())))
        );
    }

    #[test]
    fn more_than_there_is_room_for_is_not_kept_until_another_list() {
        let contents = CronJobCache::new(count(), 3 * n_bytes(&cron_job("a", 1)));
        contents.begin();
        for uid in ["a", "b", "c"] {
            assert!(!contents.keep(&cron_job(uid, 1)));
        }
        assert!(
            !contents.keep(&cron_job("a", 2)),
            "it takes the place of its former self"
        );
        contents.complete(ResourceVersion(2));
        assert!(contents.keep(&cron_job("d", 3)), "told once");
        assert!(!contents.keep(&cron_job("e", 4)));
        contents.complete(ResourceVersion(4));
        assert_eq!(all(&contents), None);
        contents.begin();
        contents.keep(&cron_job("a", 5));
        contents.complete(ResourceVersion(5));
        assert_eq!(all(&contents), Some((5, vec![("a".into(), 5)])));
    }
}
