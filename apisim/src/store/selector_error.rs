//! Errors in selectors.

/// A selector that cannot be parsed, with the message of the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SelectorError(pub(crate) String);
