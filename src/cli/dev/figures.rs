//! The figures of the screen of `dev` at one instant.

use super::audit::RunCounts;

/// A row of a table.
pub(super) type Row = [String; 3];

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
    /// CronJob, schedule and next run, in the order of the next runs. CronJobs without one come last, by name.
    pub(super) next_runs: Vec<Row>,
    /// Name, slot and state of the Jobs that were started last, the newest first.
    pub(super) latest_jobs: Vec<Row>,
    pub(super) subject: Option<Subject>,
}

impl Figures {
    /// Whether the first row of `next_runs` has a next run. It has none if all CronJobs are idle.
    pub(super) fn has_next_run(&self) -> bool {
        self.n_suspended + self.n_never < self.n_cron_jobs
    }
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
