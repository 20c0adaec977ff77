//! The refusal of a selector.

/// A selector that cannot be parsed, in the server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SelectorError(pub(crate) String);
