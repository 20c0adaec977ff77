//! The selection of an open watch: which wanted shards it lacks, and when superfluous ones are deselected.

use std::time::Duration;

use super::ListWatch;
use crate::kube_api::watch::kinds::Kind;

/// How long shards remain selected after they are no longer wanted.
const NARROWING_DELAY: Duration = Duration::from_secs(10);

impl<K: Kind> ListWatch<K> {
    /// Whether a wanted shard is not selected.
    pub(super) fn lacks_wanted_shards(&self) -> bool {
        self.is_selected_by_server() && !self.wanted.get().is_within(&self.selected)
    }

    /// Deselects superfluous shards after a delay, if there are any.
    pub(super) fn schedule_narrowing(&mut self) {
        if self.is_selected_by_server() && self.wanted.get() != self.selected {
            self.narrowing = Some(Box::pin(tokio::time::sleep(NARROWING_DELAY)));
        }
    }
}
