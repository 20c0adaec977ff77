//! A history file that is only read: it must exist, and nothing is created, migrated or set aside.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{error::HistoryError, location::ClusterId, store::Store};
use crate::observe::facts::Record;

/// An open history file that is only read. While it exists, no other process can open the file.
pub struct HistoryReader {
    path: PathBuf,
    store: Store,
}

/// A history file cannot be read. The message names the file, the reason and the fix.
#[derive(Debug, thiserror::Error)]
#[error("the history {path} cannot be read: {reason}", path = .path.display())]
pub struct UnreadableHistory {
    path: PathBuf,
    reason: HistoryError,
}

impl HistoryReader {
    /// Opens the history of a cluster.
    ///
    /// # Errors
    ///
    /// [`UnreadableHistory`] if the file is missing, in use, damaged, or not a history of this cluster.
    pub fn open(path: &Path, cluster: &ClusterId) -> Result<HistoryReader, UnreadableHistory> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match Store::open_to_read(&path, cluster) {
            Ok(store) => Ok(HistoryReader { path, store }),
            Err(reason) => Err(UnreadableHistory { path, reason }),
        }
    }

    /// Passes on what is stored, as [`History::load`](super::History::load) does.
    ///
    /// # Errors
    ///
    /// [`UnreadableHistory`] if the file is damaged. Some records have been passed on by then.
    pub fn load(
        &self,
        since: Timestamp,
        n_runs_per_cron_job: usize,
        sink: &mut dyn FnMut(Record),
    ) -> Result<(), UnreadableHistory> {
        let loaded = self.store.load(since, n_runs_per_cron_job, sink);
        loaded.map_err(|reason| UnreadableHistory {
            path: self.path.clone(),
            reason,
        })
    }
}
