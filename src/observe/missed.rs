//! The slots without a Job: which, why, and the command that starts them.
//!
//! [`Missed`] is plain data, and JSON as it is. An entry has all slots of one CronJob with one cause, so a CronJob that was
//! suspended for a week is one line.

mod command;
mod text;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

pub use self::command::{BackfillCommand, Meant};
use super::{
    slot::{LossReason, SkipCause, Slot, SlotOutcome},
    view::CronJobName,
};

/// Maximum number of entries.
const ENTRIES_MAX: usize = 1_000;

/// Maximum number of slots that an entry lists.
const SLOTS_MAX: usize = 100;

/// What a list says about its origin.
#[derive(Clone, Debug)]
pub struct MissedSource {
    /// The name of the cluster.
    pub cluster: String,
    /// Slots from this instant on count.
    pub since: Timestamp,
    /// The end.
    pub now: Timestamp,
    /// Namespaces whose CronJobs or Jobs the account may not read.
    pub unreadable_namespaces: Vec<Box<str>>,
    /// Whole sentences about what is not known.
    pub notes: Vec<String>,
}

/// The slots without a Job. In JSON, members are added, but never removed or changed in meaning; times are RFC 3339 in
/// UTC.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missed {
    /// The name of the cluster.
    pub cluster: String,
    /// Slots from this instant on count, and earlier ones that are still open.
    pub since: Timestamp,
    /// The end.
    pub now: Timestamp,
    /// Namespaces that the account may not read.
    pub unreadable_namespaces: Vec<Box<str>>,
    /// Whole sentences about what is not known.
    pub notes: Vec<String>,
    /// Number of CronJobs that are readable.
    pub n_cron_jobs: u64,
    /// Number of slots without a Job.
    pub n_slots: u64,
    /// Number of slots that may have had a Job, or may need none, with those of which nothing is known.
    pub n_unknown: u64,
    /// The slots by CronJob and cause; at most 1,000 entries.
    pub missed: Vec<MissedEntry>,
    /// Number of entries of `missed` without the limit.
    pub n_entries: usize,
    /// What starts the lost slots.
    #[serde(skip)]
    lost: LostCommands,
}

/// Maximum number of commands in the text.
const COMMANDS_MAX: usize = 5;

/// The commands that start lost slots, one for each CronJob.
#[derive(Clone, Debug, Default)]
struct LostCommands {
    first: Vec<String>,
    /// Number of CronJobs with lost slots.
    n: usize,
    /// Whether one of the commands starts slots that are not lost too: they lie between lost ones.
    have_others: bool,
}

impl LostCommands {
    /// Adds the command for a CronJob with these entries, if any slot is lost.
    fn add(&mut self, name: &CronJobName, entries: &[MissedEntry], command: &BackfillCommand) {
        let lost = entries.iter().filter(|entry| entry.is_lost());
        let first = lost.clone().map(|entry| entry.first).min();
        let Some((from, to)) = first.zip(lost.map(|entry| entry.last).max()) else {
            return;
        };
        self.n += 1;
        if self.first.len() == COMMANDS_MAX {
            return;
        }
        let meant = Meant {
            from,
            to,
            has_unknown: false,
        };
        self.first.push(command.line(name, meant));
        let mut others = entries
            .iter()
            .filter(|entry| !entry.is_lost() && entry.reason != UNKNOWN);
        self.have_others |= others.any(|entry| entry.command.is_some() && entry.first <= to && from <= entry.last);
    }
}

/// The slots of one CronJob that have no Job for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MissedEntry {
    /// `metadata.namespace`.
    pub namespace: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `Superseded`, `DeadlineExceeded`, `NotStarted`, `Suspended`, `HeldByForbid`, `ScheduleChanged`, `Deleting`,
    /// `Missed`, `Resumed`, `Frozen`, `Excluded`, `Open` or `Unknown`.
    pub reason: &'static str,
    /// The reason in words.
    pub sentence: String,
    /// The Job for which `Forbid` waited; `null` for any other reason.
    pub held_by: Option<Box<str>>,
    /// Number of slots.
    pub n_slots: u64,
    /// The first slot.
    pub first: Timestamp,
    /// The last slot.
    pub last: Timestamp,
    /// The last slots, at most 100, in order.
    pub slots: Vec<Timestamp>,
    /// The shell command that starts the slots from `first` to `last` that have no Job; `null` if it would start none: the
    /// CronJob is being deleted, a calendar excludes the slots, or the namespace is still frozen.
    pub command: Option<String>,
}

impl MissedEntry {
    /// Whether the slots should have run.
    fn is_lost(&self) -> bool {
        LossReason::ALL.iter().any(|lost| lost.as_str() == self.reason)
    }
}

/// Why a slot has no Job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    /// The name in JSON.
    reason: &'static str,
    /// The Job that held it.
    held_by: Option<Box<str>>,
    sentence: String,
    /// Whether `cronwheel backfill` starts such slots.
    can_start: bool,
}

/// The cause of a slot. `None` for one with a Job, and for one that shares the Job of its minute.
fn cause(outcome: &SlotOutcome, now: Timestamp) -> Option<Cause> {
    let reason = match outcome {
        SlotOutcome::Started { .. } | SlotOutcome::Skipped(SkipCause::SameMinute) => return None,
        SlotOutcome::Open => "Open",
        SlotOutcome::Lost(reason) => reason.as_str(),
        SlotOutcome::Skipped(skipped) => skipped.as_str(),
        SlotOutcome::NotObserved | SlotOutcome::Undecided(_) => UNKNOWN,
    };
    let held_by = if let SlotOutcome::Skipped(SkipCause::HeldByForbid { job_name }) = outcome {
        Some(job_name.clone())
    } else {
        None
    };
    let is_frozen = matches!(outcome, SlotOutcome::Skipped(SkipCause::Frozen { until, .. }) if now < *until);
    let is_unwanted = matches!(
        outcome,
        SlotOutcome::Skipped(SkipCause::Deleting | SkipCause::Excluded { .. })
    );
    Some(Cause {
        reason,
        held_by,
        sentence: outcome.absence()?,
        can_start: !is_frozen && !is_unwanted,
    })
}

/// The cause of a slot that may have had a Job, or may need none.
const UNKNOWN: &str = "Unknown";

impl Missed {
    /// Gathers the slots of all CronJobs. Those outside of the time are ignored, except for open ones.
    pub fn new(
        cron_jobs: impl Iterator<Item = (CronJobName, Vec<Slot>)>,
        source: MissedSource,
        command: &BackfillCommand,
    ) -> Missed {
        let (mut n_cron_jobs, mut n_slots, mut n_unknown, mut n_entries) = (0, 0, 0, 0);
        let (mut missed, mut lost) = (Vec::new(), LostCommands::default());
        for (name, slots) in cron_jobs {
            n_cron_jobs += 1;
            let entries = entries(&name, &slots, &source, command);
            lost.add(&name, &entries, command);
            for entry in entries {
                let count = if entry.reason == UNKNOWN {
                    &mut n_unknown
                } else {
                    &mut n_slots
                };
                *count += entry.n_slots;
                n_entries += 1;
                if missed.len() < ENTRIES_MAX {
                    missed.push(entry);
                }
            }
        }
        Missed {
            cluster: source.cluster,
            since: source.since,
            now: source.now,
            unreadable_namespaces: source.unreadable_namespaces,
            notes: source.notes,
            n_cron_jobs,
            n_slots,
            n_unknown,
            missed,
            n_entries,
            lost,
        }
    }

    /// The list for a terminal. Its last lines are commands that start the lost slots.
    pub fn to_text(&self) -> String {
        text::render(self)
    }

    /// The list as JSON.
    ///
    /// # Errors
    ///
    /// Returns the error of serialization, which these types do not cause.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

/// The entries of one CronJob, in the order of their first slots.
fn entries(name: &CronJobName, slots: &[Slot], source: &MissedSource, command: &BackfillCommand) -> Vec<MissedEntry> {
    let mut by_cause: BTreeMap<Cause, Vec<&Slot>> = BTreeMap::new();
    for slot in slots {
        let is_meant = slot.at <= source.now && (slot.at >= source.since || slot.outcome == SlotOutcome::Open);
        if let Some(cause) = cause(&slot.outcome, source.now).filter(|_| is_meant) {
            by_cause.entry(cause).or_default().push(slot);
        }
    }
    let entry = |(cause, slots)| entry(name, cause, slots, command);
    let mut entries: Vec<MissedEntry> = by_cause.into_iter().filter_map(entry).collect();
    entries.sort_by_key(|entry| entry.first);
    entries
}

fn entry(name: &CronJobName, cause: Cause, slots: Vec<&Slot>, command: &BackfillCommand) -> Option<MissedEntry> {
    let Cause {
        reason,
        held_by,
        sentence,
        can_start,
    } = cause;
    let (n_slots, mut slots) = (slots.len(), slots.into_iter().map(|slot| slot.at).collect::<Vec<_>>());
    slots.sort_unstable();
    let (first, last) = (*slots.first()?, *slots.last()?);
    let meant = Meant {
        from: first,
        to: last,
        has_unknown: reason == UNKNOWN,
    };
    Some(MissedEntry {
        namespace: name.namespace.clone(),
        name: name.name.clone(),
        reason,
        sentence,
        held_by,
        n_slots: n_slots.try_into().unwrap_or(u64::MAX),
        first,
        last,
        slots: slots.split_off(n_slots.saturating_sub(SLOTS_MAX)),
        command: can_start.then(|| command.line(name, meant)),
    })
}

#[cfg(test)]
mod tests;
