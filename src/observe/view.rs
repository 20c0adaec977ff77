//! What the page and the report show, as plain values.

use jiff::{SignedDuration, Timestamp};

use super::slot::{Mark, Slot};
use crate::schedule::{ConcurrencyPolicy, Zone, thaw::Thaw};

/// Namespace and name of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CronJobName {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
}

/// The first part of the page.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The time of this view.
    pub now: Timestamp,
    /// The tiles.
    pub tiles: Tiles,
    /// The clients that created Jobs in the last 24 hours, the busiest first.
    pub controllers: Vec<ControllerActivity>,
    /// The start of what is known: the oldest run, or the start of the watches.
    pub known_since: Option<Timestamp>,
    /// CronJobs that need attention, oldest first.
    pub attention: Vec<Attention>,
    /// What could be better.
    pub advice: Vec<Advice>,
}

/// Number of Jobs that a client created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerActivity {
    /// The client.
    pub creator: super::facts::Creator,
    /// Number of Jobs in 24 hours.
    pub n_jobs: u64,
    /// The last one.
    pub last: Timestamp,
    /// The median lateness of its Jobs of the last hour with slots.
    pub lateness_p50: Option<SignedDuration>,
    /// The longest time of the last hour for which it was at its limit. Only of the built-in controller.
    pub busy_time: Option<BusyTime>,
}

/// A time in which a controller created Jobs in every second, at a steady rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyTime {
    /// Its first second.
    pub from: Timestamp,
    /// How long it was.
    pub duration: SignedDuration,
    /// The rate, without a burst at the begin.
    pub jobs_per_second: u64,
}

/// The figures of the tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiles {
    /// Number of CronJobs.
    pub n_cron_jobs: usize,
    /// Number of suspended CronJobs.
    pub n_suspended: usize,
    /// Number of CronJobs with a schedule that never matches or is invalid.
    pub n_never: usize,
    /// Number of Jobs that run.
    pub n_running: usize,
    /// Number of CronJobs with a Job that runs.
    pub n_cron_jobs_running: usize,
    /// Number of CronJobs with a slot that is late and has no Job yet.
    pub n_late_now: usize,
    /// Number of runs that failed in the last 24 hours.
    pub n_failed: u64,
    /// Number of slots that were lost in the last 24 hours.
    pub n_lost: u64,
    /// Number of runs that started late in the last 24 hours.
    pub n_late: u64,
    /// Number of starts in the next hour.
    pub n_due_next_hour: u64,
}

/// The heatmap: a row for each namespace, a cell for each span of minutes.
#[derive(Clone, Debug)]
pub struct Strip {
    /// The start of the first cell.
    pub from: Timestamp,
    /// The end of the last cell.
    pub to: Timestamp,
    /// Minutes per cell.
    pub cell_minutes: u32,
    /// The first cell in the future.
    pub now: Timestamp,
    /// The rows: namespaces by name. Those beyond the maximum are in one row, whose namespace is `None`.
    pub rows: Vec<StripRow>,
    /// The minute with the most starts in the future.
    pub peak: Option<Peak>,
    /// Clock changes of zones that CronJobs use.
    pub clock_changes: Vec<ClockChange>,
}

/// A namespace in the strip.
#[derive(Clone, Debug)]
pub struct StripRow {
    /// The namespace; `None` for the sum of those that have no row.
    pub namespace: Option<Box<str>>,
    /// One cell after the other.
    pub cells: Vec<Cell>,
}

/// A span of minutes in one namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Number of runs in the past, of starts in the future.
    pub n_runs: u32,
    /// Number of runs that started late.
    pub n_late: u32,
    /// Number of runs that failed.
    pub n_failed: u32,
    /// Number of lost slots.
    pub n_lost: u32,
}

impl Cell {
    /// The worst outcome; `None` if nothing happened.
    pub fn worst(self) -> Option<Mark> {
        let counts = [
            (self.n_lost, Mark::Lost),
            (self.n_failed, Mark::Failed),
            (self.n_late, Mark::Late),
            (self.n_runs, Mark::Succeeded),
        ];
        counts.into_iter().find(|(count, _)| *count > 0).map(|(_, mark)| mark)
    }
}

/// The minute with the most starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peak {
    /// The minute.
    pub at: Timestamp,
    /// Number of starts.
    pub n_starts: u64,
    /// The namespace with most of them.
    pub namespace: Box<str>,
    /// Number of starts in that namespace.
    pub n_starts_in_namespace: u64,
}

/// A change of the clocks in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockChange {
    /// The instant.
    pub at: Timestamp,
    /// The zone.
    pub zone: Box<str>,
    /// Seconds by which the clocks go forward; negative if they go back.
    pub forward_seconds: i32,
}

/// A CronJob that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attention {
    /// The CronJob.
    pub cron_job: CronJobName,
    /// The kind.
    pub trouble: Trouble,
    /// Since when; `None` if it never was otherwise.
    pub since: Option<Timestamp>,
    /// `status.lastSuccessfulTime`.
    pub last_success: Option<Timestamp>,
    /// The reason in one sentence, without a full stop.
    pub reason: String,
}

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Slots were lost.
    Lost,
    /// A slot is late and has no Job, or the last runs started late.
    Late,
    /// The last runs failed.
    Failed,
    /// A slot has more than one Job.
    Doubled,
    /// Forbid holds the slots back.
    Blocked,
    /// No run succeeded for three periods.
    NoSuccess,
    /// The schedule never matches, or is invalid.
    Never,
}

impl Trouble {
    /// The word on the page.
    pub fn as_str(self) -> &'static str {
        match self {
            Trouble::Lost => "lost",
            Trouble::Late => "late",
            Trouble::Failed => "failed",
            Trouble::Doubled => "doubled",
            Trouble::Blocked => "blocked",
            Trouble::NoSuccess => "no success",
            Trouble::Never => "never",
        }
    }
}

/// A piece of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The kind, for JSON and for links.
    pub kind: &'static str,
    /// The sentence.
    pub sentence: String,
    /// The CronJobs that it concerns, at most [`Advice::NAMES_MAX`].
    pub cron_jobs: Vec<CronJobName>,
    /// Number of CronJobs that it concerns.
    pub n_cron_jobs: usize,
}

impl Advice {
    /// Maximum number of CronJobs that are named.
    pub const NAMES_MAX: usize = 20;
}

/// Which CronJobs the list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Part of `namespace/name`, or `key=value` of a label; words separated by spaces must all match.
    pub text: String,
    /// One namespace.
    pub namespace: Option<Box<str>>,
    /// One state.
    pub state: Option<StateFilter>,
    /// CronJobs with a slot between these instants, inclusive and exclusive.
    pub slots_between: Option<(Timestamp, Timestamp)>,
    /// Number of rows to pass over.
    pub offset: usize,
    /// Maximum number of rows.
    pub limit: usize,
}

/// States that the list can be filtered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFilter {
    /// A Job runs.
    Running,
    /// A slot is late and has no Job, or a run started late in the last 24 hours.
    Late,
    /// A run failed in the last 24 hours.
    Failed,
    /// A slot was lost in the last 24 hours.
    Lost,
    /// Suspended.
    Suspended,
    /// The schedule never matches or is invalid.
    Never,
    /// Due in the next hour.
    Due,
    /// Held back by Forbid.
    Blocked,
    /// The namespace is frozen.
    Frozen,
}

impl StateFilter {
    /// All states.
    pub const ALL: [StateFilter; 9] = [
        StateFilter::Running,
        StateFilter::Late,
        StateFilter::Failed,
        StateFilter::Lost,
        StateFilter::Suspended,
        StateFilter::Never,
        StateFilter::Due,
        StateFilter::Blocked,
        StateFilter::Frozen,
    ];

    /// The word on the page and in its address.
    pub fn as_str(self) -> &'static str {
        match self {
            StateFilter::Running => "running",
            StateFilter::Late => "late",
            StateFilter::Failed => "failed",
            StateFilter::Lost => "lost",
            StateFilter::Suspended => "suspended",
            StateFilter::Never => "never",
            StateFilter::Due => "due",
            StateFilter::Blocked => "blocked",
            StateFilter::Frozen => "frozen",
        }
    }
}

/// A page of the list of CronJobs.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The rows.
    pub rows: Vec<Row>,
    /// Number of CronJobs that match.
    pub n_matching: usize,
    /// Number of all CronJobs.
    pub n_all: usize,
}

/// A CronJob in the list.
#[derive(Clone, Debug)]
pub struct Row {
    /// The CronJob.
    pub cron_job: CronJobName,
    /// The schedule in words, or what is wrong with it.
    pub schedule_text: String,
    /// `spec.schedule`.
    pub schedule: Box<str>,
    /// The zone of the schedule.
    pub zone: Zone,
    /// The concurrency policy.
    pub concurrency_policy: ConcurrencyPolicy,
    /// `startingDeadlineSeconds`.
    pub starting_deadline_seconds: Option<i64>,
    /// The last ten slots, the oldest first.
    pub marks: Vec<Mark>,
    /// The median run time of the known runs.
    pub run_time_p50: Option<SignedDuration>,
    /// The 95th percentile of the run time.
    pub run_time_p95: Option<SignedDuration>,
    /// The next slot, or why there is none.
    pub next: Next,
}

/// The next slot of a CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// The start of the next slot.
    At(Timestamp),
    /// Forbid holds this slot back.
    HeldBack(Timestamp),
    /// Suspended.
    Suspended,
    /// The namespace is frozen until then.
    Frozen(Timestamp),
    /// Being deleted.
    Deleting,
    /// The schedule never matches or is invalid.
    Never,
}

/// One CronJob.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The row in the list.
    pub row: Row,
    /// Its labels.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// The last slots, at most fifty, the oldest first.
    pub slots: Vec<Slot>,
    /// Jobs that belong to none of the slots, the latest last.
    pub other_runs: Vec<super::facts::Run>,
    /// The end of a freeze that holds now.
    pub thaw: Option<Thaw>,
    /// The next ten slots, without those that the freeze holds back.
    pub next_slots: Vec<NextSlot>,
    /// Clock changes before the last of them.
    pub clock_changes: Vec<ClockChange>,
    /// What is wrong, as on the page.
    pub attention: Vec<Attention>,
    /// Differences between what happened and what cronwheel would have done, in plain words.
    pub differences: Vec<String>,
    /// What each option changes.
    pub options: Vec<String>,
    /// The options that cannot be read, and whether the options are ignored.
    pub option_warnings: Vec<String>,
}

/// A slot that has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextSlot {
    /// The slot.
    pub at: Timestamp,
    /// Its start, which the option `spread` makes later.
    pub start: Timestamp,
}

/// A notice above the page about the view itself, such as a history that cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Banner {
    /// One or more sentences with full stops.
    pub sentence: String,
}
