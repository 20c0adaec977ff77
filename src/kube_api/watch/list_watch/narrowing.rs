//! The selection of an open watch: which wanted shards it lacks, and when superfluous ones are deselected.

use super::{ListWatch, NARROWING_DELAY};
use crate::kube_api::watch::kinds::Kind;

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
