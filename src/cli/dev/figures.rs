//! The figures of the screen of `dev` at one instant.

use jiff::Timestamp;

use super::audit::RunCounts;

/// The figures to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) n_cron_jobs: usize,
    pub(super) n_suspended: usize,
    /// CronJobs whose due slot waits for a running Job because of `Forbid`.
    pub(super) n_blocked: usize,
    /// CronJobs that are not suspended and never run.
    pub(super) n_never: usize,
    /// Jobs of slots within [`WINDOW`](super::board::WINDOW).
    pub(super) n_starts: usize,
    pub(super) n_running: usize,
    /// Complete Jobs since the start; the next fields also count from the start.
    pub(super) n_complete: u64,
    pub(super) n_failed: u64,
    pub(super) runs: RunCounts,
    /// The next runs, in the order of their instants.
    pub(super) next_runs: Vec<NextRun>,
    /// The CronJobs without a next run, by name.
    pub(super) idle: Vec<NextRun>,
    /// The newest first.
    pub(super) latest_jobs: Vec<LatestJob>,
    pub(super) subject: Option<Subject>,
}

/// A CronJob and its next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NextRun {
    pub(super) name: String,
    pub(super) schedule: String,
    pub(super) state: NextState,
}

/// The next run of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextState {
    At {
        at: Timestamp,
        /// The instant in the zone of the CronJob.
        local: String,
    },
    /// A due slot waits for this Job because of `Forbid`.
    WaitsFor(String),
    Suspended,
    Deleting,
    Never,
}

/// A Job that was started for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LatestJob {
    pub(super) name: String,
    /// The slot in the zone of the CronJob.
    pub(super) slot: String,
    pub(super) state: &'static str,
}

/// The CronJob that the hints name, with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) is_suspended: bool,
    pub(super) has_run: bool,
    /// Whether any CronJob has a Job that no slot started.
    pub(super) has_manual_job: bool,
}
