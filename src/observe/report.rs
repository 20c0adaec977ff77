//! The report: how punctual the CronJobs of a cluster were, which runs were lost and how to start them, what failed,
//! what could be better, and what would change with cronwheel.
//!
//! [`Report`] is plain data, and JSON as it is. The other forms render one document of paragraphs, tables and commands,
//! so that a sentence exists once and every form escapes all texts.

mod bars;
mod distribution;
mod document;
mod entries;
mod gather;
mod html;
mod markdown;
mod shadow;
mod text;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use self::gather::Gathering;
pub use self::{
    entries::{
        AdviceEntry, AheadEntry, ClockChangeEntry, ControllerEntry, DoubledEntry, FailureEntry, LateNowEntry,
        LateRunEntry, LatenessEntry, LostEntry, NameEntry, NamespaceEntry, OptionsEntry, PeakEntry, SlotCounts,
    },
    shadow::{HeldEntry, ShadowCounts, WithCronwheel},
};
use super::{
    facts::CronJobFacts,
    fleet::CronJobView,
    forecast::Forecast,
    missed::BackfillCommand,
    slot::Slot,
    view::{Advice, ControllerActivity},
};

/// A CronJob with its slots, as the report reads it.
#[derive(Clone, Debug)]
pub struct CronJobHistory<'a> {
    /// The CronJob.
    pub facts: &'a CronJobFacts,
    /// Its slots, known or not, in any order. Those outside of the report are ignored.
    pub slots: Vec<Slot>,
    /// The median run time of the known runs.
    pub run_time_p50: Option<SignedDuration>,
    /// The 95th percentile of the run time.
    pub run_time_p95: Option<SignedDuration>,
}

impl<'a> CronJobHistory<'a> {
    /// A CronJob with the slots that were due from an instant on.
    pub fn new(view: &CronJobView<'a>, since: Timestamp) -> CronJobHistory<'a> {
        CronJobHistory {
            facts: view.facts,
            slots: view.slots_since(since),
            run_time_p50: view.run_time_p50,
            run_time_p95: view.run_time_p95,
        }
    }
}

/// What the report says about its origin.
#[derive(Clone, Debug)]
pub struct ReportSource {
    /// The name of the cluster.
    pub cluster: String,
    /// The command that starts slots again, with the flags by which it finds the cluster.
    pub command: BackfillCommand,
    /// Slots from this instant on count.
    pub since: Timestamp,
    /// The end of the report.
    pub now: Timestamp,
    /// The start of what is known.
    pub known_since: Option<Timestamp>,
    /// Namespaces whose CronJobs or Jobs the account may not read.
    pub unreadable_namespaces: Vec<Box<str>>,
    /// The clients that created Jobs in the last 24 hours, the busiest first.
    pub controllers: Vec<ControllerActivity>,
    /// Whole sentences about gaps of the observation and the like.
    pub notes: Vec<String>,
}

/// The report. In JSON, members are added, but never removed or changed in meaning; times are RFC 3339 in UTC.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The name of the cluster.
    pub cluster: String,
    /// The command that starts slots again.
    #[serde(skip)]
    pub command: BackfillCommand,
    /// Slots from this instant on count, and earlier ones that were lost after it or are still open.
    pub since: Timestamp,
    /// The end of the report.
    pub now: Timestamp,
    /// The start of what is known, or `null`.
    pub known_since: Option<Timestamp>,
    /// Namespaces that the account may not read.
    pub unreadable_namespaces: Vec<Box<str>>,
    /// The clients that created Jobs in the last 24 hours, the busiest first.
    pub controllers: Vec<ControllerEntry>,
    /// Whole sentences about gaps of the observation and the like.
    pub notes: Vec<String>,
    /// Number of CronJobs that are readable.
    pub n_cron_jobs: u64,
    /// Number of suspended CronJobs.
    pub n_suspended: u64,
    /// What became of the slots.
    pub slots: SlotCounts,
    /// The lateness of all runs; `null` without runs.
    pub lateness: Option<LatenessEntry>,
    /// Namespaces with runs, the latest first; at most 20.
    pub namespaces: Vec<NamespaceEntry>,
    /// Number of namespaces with slots.
    pub n_namespaces: usize,
    /// Number of Jobs that were created in each second of the minute, from 0 to 59, for slots at whole minutes that did not wait. A controller
    /// that works through a queue is seen here.
    pub creations_by_second: Vec<u64>,
    /// Lost runs by CronJob and reason, most first; at most 100.
    pub lost: Vec<LostEntry>,
    /// Number of entries of `lost` without the limit.
    pub n_lost_entries: usize,
    /// Slots with more than one Job; at most 100.
    pub doubled: Vec<DoubledEntry>,
    /// Slots that are due, late and without a Job, the latest first; at most 100. They may be older than `since`.
    pub late_now: Vec<LateNowEntry>,
    /// Number of entries of `late_now` without the limit.
    pub n_late_now: usize,
    /// The runs that started latest; at most 20.
    pub latest_runs: Vec<LateRunEntry>,
    /// Failed runs by CronJob and reason, most first; at most 100.
    pub failures: Vec<FailureEntry>,
    /// Number of entries of `failures` without the limit.
    pub n_failure_entries: usize,
    /// The CronJobs with options, which change something where cronwheel runs the CronJob; at most 100.
    pub options: Vec<OptionsEntry>,
    /// Number of entries of `options` without the limit.
    pub n_options_entries: usize,
    /// What would change with cronwheel.
    pub with_cronwheel: WithCronwheel,
    /// What is due next.
    pub ahead: AheadEntry,
    /// What could be better.
    pub advice: Vec<AdviceEntry>,
}

impl Report {
    /// Gathers the report. `forecast` and `advice` are of the same CronJobs and the same time.
    pub fn new<'a>(
        cron_jobs: impl Iterator<Item = CronJobHistory<'a>>,
        source: ReportSource,
        forecast: &Forecast,
        advice: &[Advice],
    ) -> Report {
        let mut gathering = Gathering::new(source.since, source.now);
        for cron_job in cron_jobs {
            gathering.add(&cron_job);
        }
        gathering.into_report(
            source,
            AheadEntry::new(forecast),
            advice.iter().map(AdviceEntry::new).collect(),
        )
    }

    /// The report for a terminal or a ticket, at most 100 columns wide.
    pub fn to_text(&self) -> String {
        text::render(&document::document(self))
    }

    /// The report as GitHub-flavoured Markdown.
    pub fn to_markdown(&self) -> String {
        markdown::render(&document::document(self))
    }

    /// The report as one HTML page without scripts and without references to other files.
    pub fn to_html(&self) -> String {
        html::render(&document::document(self))
    }

    /// The report as JSON.
    ///
    /// # Errors
    ///
    /// Returns the error of serialization, which these types do not cause.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

#[cfg(test)]
mod tests;
