//! The parts of the report as plain data, and as JSON.

use jiff::Timestamp;
use serde::Serialize;

use crate::observe::{
    forecast::Forecast,
    missed::{BackfillCommand, Meant},
    view::{Advice, ClockChange, ControllerActivity, CronJobName, Peak},
};

/// A client that created Jobs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerEntry {
    /// Its name.
    pub name: Box<str>,
    /// Number of Jobs in the last 24 hours.
    pub n_jobs: u64,
    /// The creation of the last one.
    pub last: Timestamp,
    /// The median lateness in the last hour with slots.
    pub lateness_p50_seconds: Option<i64>,
}

/// What became of the slots of the report: `n_slots` is the sum of those started, lost, skipped, open and unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotCounts {
    /// Number of slots.
    pub n_slots: u64,
    /// Number of slots with a Job.
    pub n_started: u64,
    /// Number of Jobs with a lateness of more than five seconds.
    pub n_late: u64,
    /// Number of Jobs that failed.
    pub n_failed: u64,
    /// Number of lost slots.
    pub n_lost: u64,
    /// Number of slots for which the CronJob itself asked for no Job.
    pub n_skipped: u64,
    /// Number of those of `n_skipped` in a freeze of the namespace.
    pub n_frozen: u64,
    /// Number of those of `n_skipped` on a date that the calendar of `not-on` excludes.
    pub n_excluded: u64,
    /// Number of slots that are due and have no Job yet.
    pub n_open: u64,
    /// Number of slots of which it is not known whether they had a Job, or should have had one.
    pub n_unknown: u64,
    /// Number of those of `n_unknown` that had no Job, and may be on a date that a calendar excludes, in a freeze or in a
    /// suspension.
    pub n_undecided: u64,
    /// Number of those of `n_started` with more than one Job.
    pub n_doubled: u64,
}

/// The lateness of runs: from the slot to the creation of its Job, without the time for which Forbid, `suspend` or
/// `spread` held it back. Zero means below one second, as creation times have whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LatenessEntry {
    /// The median.
    pub p50_seconds: i64,
    /// The 90th percentile.
    pub p90_seconds: i64,
    /// The 99th percentile.
    pub p99_seconds: i64,
    /// The maximum.
    pub max_seconds: i64,
}

/// The slots of a namespace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceEntry {
    /// The namespace.
    pub namespace: Box<str>,
    /// What became of its slots.
    pub slots: SlotCounts,
    /// The lateness of its runs; `null` without runs.
    pub lateness: Option<LatenessEntry>,
}

/// Lost runs of one CronJob with one reason.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LostEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `Superseded`, `DeadlineExceeded` or `NotStarted`.
    pub reason: &'static str,
    /// The reason in words.
    pub sentence: &'static str,
    /// Number of lost runs.
    pub n_slots: u64,
    /// The latest of them, at most 100, in order.
    pub slots: Vec<Timestamp>,
    /// The shell command that starts the slots from the first to the last of `slots` that have no Job. The Jobs have the
    /// names that the slots would have had.
    pub command: String,
}

/// A slot with more than one Job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoubledEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// The name of the CronJob.
    pub name: Box<str>,
    /// The slot.
    pub slot: Timestamp,
    /// The names of its Jobs.
    pub job_names: Vec<Box<str>>,
}

/// A slot that is due, late and without a Job.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LateNowEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// The name of the CronJob.
    pub name: Box<str>,
    /// The slot.
    pub slot: Timestamp,
    /// The time for which it could have started.
    pub late_seconds: i64,
}

/// A run that started late.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LateRunEntry {
    /// The lateness, which is shorter than the time from `slot` to `created` if Forbid or `suspend` held the run back.
    pub lateness_seconds: i64,
    /// The slot.
    pub slot: Timestamp,
    /// The creation of the Job.
    pub created: Timestamp,
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// The name of the CronJob.
    pub name: Box<str>,
    /// The name of the Job.
    pub job_name: Box<str>,
}

/// Failed runs of one CronJob with one reason.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// The reason of the condition `Failed`.
    pub reason: Box<str>,
    /// Number of failed runs.
    pub n_runs: u64,
    /// The slot of the last one.
    pub last_slot: Timestamp,
    /// The Job of the last one.
    pub last_job_name: Box<str>,
}

/// A CronJob with options.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OptionsEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// What each option changes.
    pub sentences: Vec<String>,
}

/// What is due next.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AheadEntry {
    /// The end of the forecast.
    pub until: Timestamp,
    /// Number of starts until then.
    pub n_starts: u64,
    /// The minute with the most starts, or `null`.
    pub peak: Option<PeakEntry>,
    /// Clock changes of zones that CronJobs use.
    pub clock_changes: Vec<ClockChangeEntry>,
}

/// The minute with the most starts.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeakEntry {
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClockChangeEntry {
    /// The instant.
    pub at: Timestamp,
    /// The zone.
    pub zone: Box<str>,
    /// Seconds by which the clocks go forward; negative if they go back.
    pub forward_seconds: i32,
}

/// A piece of advice.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdviceEntry {
    /// The kind.
    pub kind: &'static str,
    /// The sentence.
    pub sentence: String,
    /// The CronJobs that it concerns, at most 20.
    pub cron_jobs: Vec<NameEntry>,
    /// Number of CronJobs that it concerns.
    pub n_cron_jobs: usize,
}

/// Namespace and name of a CronJob.
#[derive(Clone, Debug, Serialize)]
pub struct NameEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
}

impl ControllerEntry {
    pub(super) fn new(activity: &ControllerActivity) -> ControllerEntry {
        ControllerEntry {
            name: activity.creator.as_str().into(),
            n_jobs: activity.n_jobs,
            last: activity.last,
            lateness_p50_seconds: activity.lateness_p50.map(|lateness| lateness.as_secs()),
        }
    }
}

impl LostEntry {
    /// The words of the command that starts some of the slots.
    pub(super) fn start_command(&self, command: &BackfillCommand, slots: &[Timestamp]) -> Vec<String> {
        let (Some(from), Some(to)) = (slots.first(), slots.last()) else {
            return Vec::new();
        };
        let cron_job = CronJobName {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        let meant = Meant {
            from: *from,
            to: *to,
            has_unknown: false,
        };
        command.words(&cron_job, meant)
    }
}

impl AheadEntry {
    pub(super) fn new(forecast: &Forecast) -> AheadEntry {
        let peak = |peak: &Peak| PeakEntry {
            at: peak.at,
            n_starts: peak.n_starts,
            namespace: peak.namespace.clone(),
            n_starts_in_namespace: peak.n_starts_in_namespace,
        };
        let change = |change: &ClockChange| ClockChangeEntry {
            at: change.at,
            zone: change.zone.clone(),
            forward_seconds: change.forward_seconds,
        };
        AheadEntry {
            until: forecast.to(),
            n_starts: forecast.n_starts_between(forecast.from(), forecast.to()),
            peak: forecast.peak().map(peak),
            clock_changes: forecast.clock_changes().iter().map(change).collect(),
        }
    }
}

impl AdviceEntry {
    pub(super) fn new(advice: &Advice) -> AdviceEntry {
        let name = |CronJobName { namespace, name }: &CronJobName| NameEntry {
            namespace: namespace.clone(),
            name: name.clone(),
        };
        AdviceEntry {
            kind: advice.kind,
            sentence: advice.sentence.clone(),
            cron_jobs: advice.cron_jobs.iter().map(name).collect(),
            n_cron_jobs: advice.n_cron_jobs,
        }
    }
}
