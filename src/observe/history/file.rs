//! The history file through its troubles: in use, damaged, full, or not writable.

use std::path::PathBuf;

use jiff::Timestamp;

use super::{
    Limits,
    error::HistoryError,
    location::{self, ClusterId},
    store::Store,
};
use crate::observe::view::Banner;

/// Files that are set aside. If new files are damaged again and again, the disk is at fault.
const SET_ASIDE_MAX: usize = 3;

/// A history file, open or not.
pub(super) struct HistoryFile {
    path: PathBuf,
    cluster: ClusterId,
    limits: Limits,
    store: Option<Store>,
    /// Why nothing is written at the moment.
    trouble: Option<HistoryError>,
    /// What became of former files.
    set_aside: Vec<Banner>,
}

impl HistoryFile {
    pub(super) fn new(path: PathBuf, cluster: ClusterId, limits: Limits) -> HistoryFile {
        HistoryFile {
            path,
            cluster,
            limits,
            store: None,
            trouble: None,
            set_aside: Vec::new(),
        }
    }

    /// Opens the file if it is not open. Sets a file aside that cannot be used, and begins a new one.
    pub(super) fn open(&mut self, now: Timestamp) -> bool {
        while self.store.is_none() {
            match Store::open(&self.path, &self.cluster, self.limits) {
                Ok(store) => {
                    self.store = Some(store);
                    self.trouble = None;
                }
                Err(error) => match self.replace(error, now) {
                    Ok(()) => {}
                    Err(error) => {
                        self.trouble = Some(error);
                        break;
                    }
                },
            }
        }
        self.store.is_some()
    }

    /// Writes to the file. Returns whether that succeeded.
    pub(super) fn write(
        &mut self,
        now: Timestamp,
        action: impl FnOnce(&mut Store) -> Result<(), HistoryError>,
    ) -> bool {
        let is_written = self.read(now, action).is_some();
        if is_written {
            self.trouble = None;
        }
        is_written
    }

    /// Uses the file if it is open. `None` if it is not, or if the action fails.
    pub(super) fn read<T>(
        &mut self,
        now: Timestamp,
        action: impl FnOnce(&mut Store) -> Result<T, HistoryError>,
    ) -> Option<T> {
        match action(self.store.as_mut()?) {
            Ok(value) => Some(value),
            Err(HistoryError::Full) => {
                // The file can be read, and has space again when runs are removed.
                self.trouble = Some(HistoryError::Full);
                None
            }
            Err(error) => {
                self.store = None;
                match self.replace(error, now) {
                    Ok(()) => _ = self.open(now),
                    Err(error) => self.trouble = Some(error),
                }
                None
            }
        }
    }

    /// Closes the file, which moves the contents of the WAL into it.
    pub(super) fn close(&mut self) {
        self.store = None;
    }

    pub(super) fn fail(&mut self, error: HistoryError) {
        self.store = None;
        self.trouble = Some(error);
    }

    pub(super) fn banners(&self) -> Vec<Banner> {
        let mut banners = self.set_aside.clone();
        if let Some(trouble) = &self.trouble {
            let path = self.path.display();
            let sentence = format!(
                "New runs are kept in memory only, because {path} cannot be written: {trouble}. \
                 cronwheel tries again every {} seconds.",
                super::writer::RETRY_SECONDS,
            );
            banners.push(warning(sentence));
        }
        banners
    }

    /// Sets a file aside that can never be used. Returns any other error.
    fn replace(&mut self, error: HistoryError, now: Timestamp) -> Result<(), HistoryError> {
        let word = error.word().filter(|_| self.set_aside.len() < SET_ASIDE_MAX);
        let Some(word) = word else {
            return Err(error);
        };
        let new_path = location::set_aside(&self.path, word, now).map_err(HistoryError::NotRenamed)?;
        let sentence = format!(
            "A new history begins, because {} could not be used: {error}. It was renamed to {}.",
            self.path.display(),
            new_path.display(),
        );
        self.set_aside.push(warning(sentence));
        Ok(())
    }
}

pub(super) fn warning(sentence: String) -> Banner {
    Banner { sentence }
}
