//! The figures of `dev` at one instant.

use super::audit::{Finding, RunCounts};

/// The figures to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    /// Slots that became due within the last minute.
    pub(super) n_due: usize,
    /// Jobs of slots that were started within the last minute.
    pub(super) n_started: usize,
    pub(super) n_running: usize,
    pub(super) runs: RunCounts,
    /// The latest missed and doubled runs, newest first.
    pub(super) findings: Vec<Finding>,
}
