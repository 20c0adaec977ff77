//! Detects that the API server returned to an older history, as after a restore of etcd from a snapshot.
//!
//! A restored etcd counts revisions from the snapshot on. A watch that resumes from a version that does not exist yet
//! delivers nothing until the count has passed it, and the same number may denote other content. Therefore the current
//! version is requested before an interrupted watch is opened again. etcd itself answers this request, never a lagging
//! cache. A version below one that the watch has known proves the return. The API servers restart with etcd, which
//! interrupts every watch.

use super::{ListWatch, WatchStep};
use crate::{
    kube_api::watch::{WatchItem, kinds::Kind},
    shard::ResourceVersion,
};

impl<K: Kind> ListWatch<K> {
    /// Opens a watch after a request for the current version.
    pub(super) async fn resume(&mut self, version: ResourceVersion) {
        match self.collection.current_version().await {
            Ok(current) if self.restart_if_history_is_older(current) => {}
            Ok(_) => self.open(version).await,
            Err(error) => self.fail("list", &error, WatchStep::Resume { version }),
        }
    }

    /// Records a version that the watch knows.
    pub(super) fn note_version(&mut self, version: ResourceVersion) {
        self.latest_version = self.latest_version.max(version);
    }

    /// Returns true if `current` is below a version that this watch has known. The version comes from the quorum of etcd,
    /// so the history is then older. The watch reports this, and begins again after a pause.
    pub(super) fn restart_if_history_is_older(&mut self, current: ResourceVersion) -> bool {
        // An answer without a version, which no API server gives, proves nothing.
        let newest = self.latest_version;
        if current >= newest || current == ResourceVersion::default() {
            return false;
        }
        self.latest_version = current;
        self.ready.push_back(WatchItem::HistoryWentBack { newest, current });
        self.retry.fail();
        self.next_step = WatchStep::Begin;
        true
    }
}

#[cfg(test)]
mod tests;
