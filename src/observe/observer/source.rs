//! The state of the source of the view, for the head of the page.

use jiff::Timestamp;

/// Where the facts come from, and what is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Whether all scopes were listed since the start.
    pub is_listed: bool,
    /// The failure of a watch, while one fails.
    pub not_live: Option<NotLive>,
    /// Namespaces that the account may not read.
    pub unreadable: Vec<Unreadable>,
    /// Number of received objects with a member that cannot be decoded.
    pub n_undecodable: u64,
    /// The last one of these, with the member and its problem.
    pub last_undecodable: Option<String>,
    /// What is not known because it cannot be read, as sentences.
    pub notes: Vec<String>,
    /// What is wrong with the history, as sentences.
    pub history_problems: Vec<String>,
}

/// A watch that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLive {
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub problem: String,
}

/// A namespace that the account may not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its name.
    pub namespace: Box<str>,
    /// The answer of the API server.
    pub problem: String,
}
