//! Why a history file cannot be used.

use std::io;

use rusqlite::{Error, ErrorCode};

/// Why a history file cannot be used. Each message continues a sentence that names the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum HistoryError {
    #[error("another process has it open. Close the other process, or name another file")]
    InUse,
    #[error("the disk is full, or the file has reached its maximum size. Free some space")]
    Full,
    #[error("it has the history of the cluster {cluster}. Name another file")]
    OtherCluster { cluster: String },
    #[error("it cannot be read: {0}")]
    NotRead(io::Error),
    #[error("it is empty. Name the history file of cronwheel ui")]
    Empty,
    #[error("it cannot be created: {0}")]
    NotCreated(io::Error),
    #[error("it cannot be renamed: {0}")]
    NotRenamed(io::Error),
    #[error("no thread can be started to write it: {0}")]
    NoThread(io::Error),
    #[error("its file system allows no writing")]
    ReadOnly,
    #[error("an access failed: {0}")]
    Access(Error),
    #[error("it is damaged: {0}")]
    Damaged(Error),
    #[error("it is damaged: {0}")]
    FailedCheck(String),
    #[error("it is damaged: a value of column {column} is impossible")]
    Implausible { column: &'static str },
    #[error("it is damaged: its header is not that of a history")]
    NoHeader,
    #[error("another application wrote it. Name another file")]
    Foreign,
    #[error("an older version of cronwheel wrote it. Run this version of cronwheel ui with it once")]
    Older,
    #[error("a newer version of cronwheel wrote it, with schema version {0}")]
    Newer(i64),
}

impl HistoryError {
    /// The word for a file that a new one must replace, in the name that it gets. The file of another application is never
    /// replaced.
    pub(super) fn word(&self) -> Option<&'static str> {
        match self {
            HistoryError::Damaged(_)
            | HistoryError::FailedCheck(_)
            | HistoryError::NoHeader
            | HistoryError::Implausible { .. } => Some("damaged"),
            HistoryError::Newer(_) => Some("newer"),
            HistoryError::InUse
            | HistoryError::NotRead(_)
            | HistoryError::Empty
            | HistoryError::Foreign
            | HistoryError::Older
            | HistoryError::Full
            | HistoryError::OtherCluster { .. }
            | HistoryError::NotCreated(_)
            | HistoryError::NotRenamed(_)
            | HistoryError::NoThread(_)
            | HistoryError::ReadOnly
            | HistoryError::Access(_) => None,
        }
    }
}

impl From<Error> for HistoryError {
    fn from(error: Error) -> HistoryError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => HistoryError::InUse,
            Some(ErrorCode::DiskFull) => HistoryError::Full,
            Some(ErrorCode::ReadOnly) => HistoryError::ReadOnly,
            // `Unknown` is for a table or column that does not exist. An error of rusqlite itself is for the type of a
            // value.
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => {
                HistoryError::Damaged(error)
            }
            Some(_) => HistoryError::Access(error),
        }
    }
}
