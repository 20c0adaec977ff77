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
pub const KEPT_BYTES_MAX: usize = 64 << 20;

/// What an object takes besides its text.
const OVERHEAD_BYTES: usize = 160;

/// The CronJobs of one scope. Clones are one.
#[derive(Clone, Debug)]
pub struct KeptCronJobs {
    partition: Partition,
    bytes_max: usize,
    /// Held for one change or one look, never across an await.
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    shards: BTreeMap<ShardId, BTreeMap<Uid, UndecodedCronJob>>,
    n_bytes: usize,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
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

impl KeptCronJobs {
    /// Nothing yet, and never more than so many bytes.
    pub fn new(count: ShardCount, bytes_max: usize) -> KeptCronJobs {
        KeptCronJobs {
            partition: Partition::Shards(count),
            bytes_max,
            kept: Arc::default(),
        }
    }

    /// The CronJobs of these shards, and the version at which they were these; none where not all are kept.
    pub fn of_shards(&self, shards: &ShardSet) -> Option<(ResourceVersion, Vec<UndecodedCronJob>)> {
        let kept = self.kept();
        let Stage::Everything(through) = kept.stage else {
            return None;
        };
        let of_shard = |shard| kept.shards.get(&shard).into_iter().flat_map(BTreeMap::values);
        Some((through, shards.iter().flat_map(of_shard).cloned().collect()))
    }

    /// Whether there were more than there is room for.
    pub(super) fn is_full(&self) -> bool {
        self.kept().stage == Stage::Full
    }

    /// Takes note of an object that is there; whether that was too much.
    pub(super) fn keep(&self, object: &UndecodedCronJob) -> bool {
        let Some(uid) = object.uid() else { return false };
        let shard = self.partition.shard_of(uid);
        let mut kept = self.kept();
        if let Stage::Nothing | Stage::Full = kept.stage {
            return false;
        }
        let of_shard = kept.shards.entry(shard).or_default();
        let former = of_shard.get(uid);
        // A watch repeats what a list showed in a later version.
        if former.is_some_and(|former| version(former) > version(object)) {
            return false;
        }
        let n_bytes_before = former.map_or(0, n_bytes);
        of_shard.insert(uid.clone(), object.clone());
        kept.n_bytes = kept.n_bytes - n_bytes_before + n_bytes(object);
        if kept.n_bytes <= self.bytes_max {
            return false;
        }
        *kept = Kept {
            stage: Stage::Full,
            ..Kept::default()
        };
        true
    }

    /// Takes note of an object that is gone.
    pub(super) fn forget(&self, uid: &Uid) {
        let shard = self.partition.shard_of(uid);
        let mut kept = self.kept();
        if let Some(former) = kept.shards.get_mut(&shard).and_then(|of_shard| of_shard.remove(uid)) {
            kept.n_bytes -= n_bytes(&former);
        }
    }

    /// What comes from here on is not all that there is.
    pub(super) fn forget_all(&self) {
        *self.kept() = Kept::default();
    }

    /// Begins anew: a list of everything.
    pub(super) fn begin(&self) {
        *self.kept() = Kept {
            stage: Stage::Listing,
            ..Kept::default()
        };
    }

    /// The list is complete; it showed everything at this version or later.
    pub(super) fn complete(&self, at: ResourceVersion) {
        let mut kept = self.kept();
        if kept.stage == Stage::Listing {
            kept.stage = Stage::Everything(at);
        }
    }

    /// The watch has come to this version.
    pub(super) fn come_to(&self, version: ResourceVersion) {
        let mut kept = self.kept();
        if let Stage::Everything(through) = &mut kept.stage {
            *through = version.max(*through);
        }
    }

    /// What is kept is consistent after every statement, so a panic elsewhere does not spoil it.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn all(kept: &KeptCronJobs) -> Option<(u64, Vec<(String, u64)>)> {
        let (through, objects) = kept.of_shards(&ShardSet::all(count()))?;
        let mut found: Vec<(String, u64)> = objects
            .iter()
            .map(|object| (object.uid().unwrap().to_string(), version(object).0))
            .collect();
        found.sort();
        Some((through.0, found))
    }

    #[test]
    fn nothing_is_kept_until_a_list_is_complete_and_everything_from_then_on() {
        let kept = KeptCronJobs::new(count(), KEPT_BYTES_MAX);
        assert!(
            !kept.keep(&cron_job("c", 4)) && kept.kept().n_bytes == 0,
            "it is not all"
        );
        kept.begin();
        kept.keep(&cron_job("a", 5));
        kept.keep(&cron_job("b", 6));
        kept.come_to(ResourceVersion(6));
        assert_eq!(all(&kept), None);
        kept.complete(ResourceVersion(4));
        kept.come_to(ResourceVersion(6));
        kept.keep(&cron_job("a", 9));
        kept.come_to(ResourceVersion(9));
        kept.forget(&Uid::new("b"));
        kept.come_to(ResourceVersion(10));
        kept.come_to(ResourceVersion(3));
        assert_eq!(all(&kept), Some((10, vec![("a".into(), 9)])));
        kept.forget_all();
        assert_eq!(all(&kept), None);
    }

    #[test]
    fn what_a_watch_repeats_does_not_bring_an_older_form_back() {
        let kept = KeptCronJobs::new(count(), KEPT_BYTES_MAX);
        kept.begin();
        kept.keep(&cron_job("a", 9));
        kept.complete(ResourceVersion(4));
        kept.keep(&cron_job("a", 7));
        assert_eq!(all(&kept), Some((4, vec![("a".into(), 9)])));
    }

    #[test]
    fn of_some_shards_only_theirs_are_given() {
        let kept = KeptCronJobs::new(count(), KEPT_BYTES_MAX);
        kept.begin();
        for number in 0..100 {
            kept.keep(&cron_job(&format!("uid-{number}"), 7));
        }
        kept.complete(ResourceVersion(7));
        let partition = Partition::Shards(count());
        let shards: ShardSet = [ShardId(2), ShardId(11)].into_iter().collect();
        let (_, found) = kept.of_shards(&shards).unwrap();
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
        let kept = KeptCronJobs::new(count(), 3 * n_bytes(&cron_job("a", 1)));
        kept.begin();
        for uid in ["a", "b", "c"] {
            assert!(!kept.keep(&cron_job(uid, 1)));
        }
        assert!(!kept.keep(&cron_job("a", 2)), "it takes the place of its former self");
        kept.complete(ResourceVersion(2));
        assert!(kept.keep(&cron_job("d", 3)), "told once");
        assert!(!kept.keep(&cron_job("e", 4)));
        kept.complete(ResourceVersion(4));
        assert_eq!(all(&kept), None);
        kept.begin();
        kept.keep(&cron_job("a", 5));
        kept.complete(ResourceVersion(5));
        assert_eq!(all(&kept), Some((5, vec![("a".into(), 5)])));
    }
}
