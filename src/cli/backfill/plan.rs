//! Which slots start. Pure: slots and Jobs in, the plan out.

use std::{collections::BTreeSet, fmt::Write as _};

use jiff::Timestamp;

use crate::{
    observe::{
        facts::RunResult,
        missed::Meant,
        slot::{Doubt, SkipCause, Slot, SlotOutcome},
        words::{harmless, thousands},
    },
    schedule::ConcurrencyPolicy,
    shard::naming,
};

/// What is known of the CronJob.
pub(super) struct Known<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The slots of the time that was asked for, in order.
    pub(super) slots: &'a [Slot],
    /// All Jobs of the CronJob that run.
    pub(super) running: &'a [Box<str>],
    pub(super) policy: ConcurrencyPolicy,
    /// `status.lastScheduleTime`: a Job was created for this slot.
    pub(super) cursor: Option<Timestamp>,
    /// Whether the names of its Jobs have the second of the slot.
    pub(super) has_seconds: bool,
    /// Whether slots start of which nothing is known.
    pub(super) has_unknown: bool,
}

impl Known<'_> {
    fn job_name(&self, slot: Timestamp) -> Box<str> {
        naming::slot_job_name(self.name, slot, self.has_seconds)
    }
}

/// A slot to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) slot: Timestamp,
    pub(super) job_name: Box<str>,
    /// Why it has no Job.
    pub(super) why: String,
}

/// What a backfill does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The slots to start, in order.
    pub(super) start: Vec<Start>,
    /// Jobs that run already and count towards `--parallel`: those of the slots, and under `Forbid` and `Replace` all of
    /// the CronJob.
    pub(super) running: Vec<Box<str>>,
    pub(super) n_with_job: usize,
    /// Slots that may have had a Job, and do not start.
    pub(super) n_unknown: usize,
    /// Slots on a date that the calendar of the CronJob excludes. They do not start.
    n_excluded: usize,
    /// The last slot that does not start.
    last_left_out: Option<Timestamp>,
}

impl Plan {
    pub(super) fn new(known: &Known<'_>) -> Plan {
        let mut plan = Plan {
            running: match known.policy {
                ConcurrencyPolicy::Allow => Vec::new(),
                ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => known.running.to_vec(),
            },
            ..Plan::default()
        };
        // Without seconds, one Job has the name of all slots of a minute.
        let mut taken = BTreeSet::new();
        for slot in known.slots {
            if !taken.insert(known.job_name(slot.at)) {
                continue;
            }
            plan.add(known, slot);
        }
        plan
    }

    fn add(&mut self, known: &Known<'_>, slot: &Slot) {
        match &slot.outcome {
            SlotOutcome::Started { job_name, result, .. } => {
                self.n_with_job += 1;
                self.last_left_out = Some(slot.at);
                if *result == RunResult::Running && !self.running.contains(job_name) {
                    self.running.push(job_name.clone());
                }
            }
            SlotOutcome::Skipped(SkipCause::SameMinute) => {}
            SlotOutcome::Skipped(SkipCause::Excluded { .. }) => self.n_excluded += 1,
            absent @ (SlotOutcome::NotObserved
            | SlotOutcome::Undecided(_)
            | SlotOutcome::Open
            | SlotOutcome::Lost(_)
            | SlotOutcome::Skipped(_)) => {
                self.add_absent(known, slot.at, absent);
            }
        }
    }

    fn add_absent(&mut self, known: &Known<'_>, slot: Timestamp, absent: &SlotOutcome) {
        // Somebody may have deleted the Job of the cursor. A slot that may have been frozen had none.
        let is_unknown = matches!(
            absent,
            SlotOutcome::NotObserved | SlotOutcome::Undecided(Doubt::Calendar(_))
        ) || known.cursor == Some(slot);
        if is_unknown && !known.has_unknown {
            self.n_unknown += 1;
            self.last_left_out = Some(slot);
            return;
        }
        self.start.push(Start {
            slot,
            job_name: known.job_name(slot),
            why: absent.absence().unwrap_or_default(),
        });
    }

    /// The numbers: `8 slots to start, 3 have a Job`.
    pub(super) fn summary(&self) -> String {
        let mut text = format!("{} to start", counted(self.start.len(), "slot"));
        if self.n_with_job > 0 {
            let have = if self.n_with_job == 1 { "has" } else { "have" };
            let _ = write!(text, ", {} {have} a Job", count(self.n_with_job));
        }
        if self.n_unknown > 0 {
            let n = count(self.n_unknown);
            let _ = write!(
                text,
                ", {n} may have had a Job that the cluster no longer keeps (--include-unknown starts these too)"
            );
        }
        if self.n_excluded > 0 {
            let are = if self.n_excluded == 1 { "is" } else { "are" };
            let n = count(self.n_excluded);
            let _ = write!(text, ", {n} {are} left out because the calendar excludes the date");
        }
        text
    }

    /// One line for each slot to start.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.start.iter().map(|start| {
            let (name, slot, why) = (harmless(&start.job_name), start.slot, harmless(&start.why));
            format!("would start {name} for {slot}: {why}")
        })
    }

    /// The slots from the one with this number on, for the command that goes on after an interruption. `to` is the end of
    /// the time.
    ///
    /// History limits may have deleted Jobs meanwhile, after which nothing is known of slots that are known now to have
    /// none. So the command includes unknown slots, unless it could start one that this plan leaves out.
    pub(super) fn rest(&self, number: usize, to: Timestamp) -> Option<Meant> {
        let from = self.start.get(number)?.slot;
        Some(Meant {
            from,
            to,
            has_unknown: self.last_left_out.is_none_or(|last| last < from),
        })
    }
}

fn count(number: usize) -> String {
    thousands(number.try_into().unwrap_or(u64::MAX))
}

/// A number with its noun.
pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}
