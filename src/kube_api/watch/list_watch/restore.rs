//! Detects that the API server returned to an older history, as after a restore of etcd from a snapshot.
//!
//! A restored etcd counts revisions from the snapshot on. A watch that resumes from a version that does not exist yet
//! delivers nothing until the count has passed it, and the same number may denote other content. Therefore the current
//! version is requested before an interrupted watch is opened again. etcd itself answers this request, never a lagging
//! cache. A version below one that the watch has known proves the return. The API servers restart with etcd, which
//! interrupts every watch.

use super::{ListWatch, WatchStep};
use crate::{
    kube_api::watch::{
        WatchItem,
        cron_job_cache::CronJobCache,
        kinds::{Kind, Selection},
    },
    shard::ResourceVersion,
};

impl<K: Kind> ListWatch<K> {
    /// Returns the step after an interruption of the watch.
    pub(super) fn interrupted(&self, through: ResourceVersion) -> WatchStep<K::Content> {
        match self.kind.selection() {
            Selection::Unlabelled { .. } => WatchStep::Open { through },
            Selection::All | Selection::ByLabel(_) | Selection::ByHash(_) => WatchStep::Resume { through },
        }
    }

    /// Opens a watch after a request for the current version.
    pub(super) async fn resume(&mut self, through: ResourceVersion) {
        match self.probe().await {
            Ok(version) if self.restart_if_history_is_older(version) => {}
            Ok(_) => self.open(through).await,
            Err(error) => self.fail("list", &error, WatchStep::Resume { through }),
        }
    }

    /// Records a version that the watch knows.
    pub(super) fn note_version(&mut self, version: ResourceVersion) {
        self.newest = self.newest.max(version);
    }

    /// Whether the current version, from the quorum of etcd, belongs to an older history than this watch, or than the
    /// cache, which a second watch may have advanced. If so, reports it and begins again after a pause. The controller
    /// ends its session meanwhile.
    pub(super) fn restart_if_history_is_older(&mut self, current: ResourceVersion) -> bool {
        // An answer without a version, which no API server gives, proves nothing.
        let cache = self.kind.cache();
        let cached = cache.and_then(CronJobCache::version).unwrap_or_default();
        let newest = self.newest.max(cached);
        if current >= newest || current == ResourceVersion::default() {
            return false;
        }
        if let Some(cache) = cache {
            cache.clear();
        }
        self.newest = current;
        self.ready.push_back(WatchItem::HistoryWentBack { newest, current });
        self.retry.fail();
        self.next_step = WatchStep::Begin;
        true
    }
}

#[cfg(test)]
mod tests;
