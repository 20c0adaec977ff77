//! The error of a command.

use std::{error::Error, io};

use crate::{controller::RuntimeError, explain::ExplainError, observe::observer::ObserveError};

/// The reason why a command fails.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command failed.
    #[error("{text}")]
    Failed {
        /// What was attempted on which object, and the fix.
        text: String,
        /// The cause, if the text does not contain it.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Write(#[source] io::Error),
    /// `explain` has no answer.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// The controller or a connection fails.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The CronJobs and Jobs of a cluster cannot be observed.
    #[error(transparent)]
    Observe(#[from] ObserveError),
}

impl CommandError {
    /// Creates an error with a cause.
    pub(super) fn caused(text: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
        CommandError::Failed {
            text: text.into(),
            source: Some(cause.into()),
        }
    }

    /// Whether the reader of standard output has closed it, as `head` does when it has enough.
    pub(super) fn is_closed_output(&self) -> bool {
        matches!(self, CommandError::Write(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> CommandError {
        CommandError::Failed { text, source: None }
    }
}
