//! Judges runs by the objects of the API server alone: every slot of a CronJob has one Job, unless `Forbid`, a freeze or
//! another Job of the same name held it back. It does not use the controller's own reports.
//!
//! Invariant: each slot is counted once. One without a Job counts as started once it gets its Job.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    schedule::policy::order_expiry,
    shard::{ConcurrencyPolicy, CronJobIdentity, CronJobRecord, Uid},
};

/// Maximum number of slots of a CronJob whose outcome is remembered, for Jobs that come later, and for second Jobs.
const SLOTS_MAX: usize = 100;

/// Number of the latest missed and doubled runs that are named.
const FINDINGS_MAX: usize = 10;

/// Runs since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunCounts {
    /// Slots whose Job was created.
    pub(super) started: u64,
    /// Slots without a Job because of `Forbid` or of a freeze, or because another Job had the name.
    pub(super) held_back: u64,
    /// Due slots that may still start.
    pub(super) waiting: u64,
    /// Slots without a Job at the next slot or when the controller may no longer start them, and without a reason.
    pub(super) missed: u64,
    /// Jobs of slots that had a Job before.
    pub(super) doubled: u64,
}

/// A missed or a doubled run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) cron_job: Arc<CronJobIdentity>,
    pub(super) slot: Timestamp,
    pub(super) problem: Problem,
}

/// What is wrong with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Missed,
    Doubled,
}

impl Problem {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Problem::Missed => "a slot was missed",
            Problem::Doubled => "a second Job was created for a slot",
        }
    }
}

/// The slots and Jobs of all CronJobs that the judgement needs.
#[derive(Default)]
pub(super) struct Audit {
    entries: HashMap<Uid, Entry>,
    /// The instant at which each open slot is judged.
    judgements: BTreeSet<(Timestamp, Uid)>,
    counts: RunCounts,
    /// The latest missed and doubled runs, oldest first.
    findings: VecDeque<Finding>,
}

struct Entry {
    identity: Arc<CronJobIdentity>,
    terms: Terms,
    open: Option<Open>,
    /// The latest slots that have an outcome. A Job may start a slot after later ones, as `cronwheel backfill` does.
    slots: BTreeMap<Timestamp, Outcome>,
    /// The unfinished Jobs of slots.
    running: Vec<Uid>,
}

/// The parts of a CronJob on which its slots depend, beside its schedule. An open slot of other terms is not judged.
#[derive(PartialEq)]
struct Terms {
    is_suspended: bool,
    policy: ConcurrencyPolicy,
    deadline_seconds: Option<i64>,
    /// Whether the names of its Jobs have the second of their slot.
    has_seconds: bool,
}

/// A slot that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct DueSlot {
    pub(super) slot: Timestamp,
    /// The instant from which it may start.
    pub(super) start: Timestamp,
    /// The following slot.
    pub(super) next: Option<Timestamp>,
    /// Whether its namespace is frozen when it may start.
    pub(super) is_frozen: bool,
}

/// How a slot was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Started,
    HeldBack,
    Missed,
}

struct Open {
    slot: Timestamp,
    judged_at: Timestamp,
    is_held_back: bool,
}

impl Audit {
    pub(super) fn counts(&self) -> RunCounts {
        RunCounts {
            waiting: self.judgements.len() as u64,
            ..self.counts
        }
    }

    /// The latest missed and doubled runs, newest first.
    pub(super) fn findings(&self) -> Vec<Finding> {
        self.findings.iter().rev().cloned().collect()
    }

    /// Records the current form of a CronJob. An open slot of a former schedule is not judged.
    pub(super) fn apply(&mut self, record: &CronJobRecord, is_schedule_changed: bool) {
        let terms = Terms {
            is_suspended: record.is_suspended || record.is_deleting,
            policy: record.concurrency_policy,
            deadline_seconds: record.starting_deadline_seconds,
            has_seconds: record.schedule.has_seconds(),
        };
        let uid = &record.identity.uid;
        let Some(entry) = self.entries.get_mut(uid) else {
            let entry = Entry {
                identity: Arc::clone(&record.identity),
                terms,
                open: None,
                slots: BTreeMap::new(),
                running: Vec::new(),
            };
            self.entries.insert(uid.clone(), entry);
            return;
        };
        if entry.terms != terms || is_schedule_changed {
            entry.terms = terms;
            self.close(uid);
        }
    }

    /// Records that something else than the CronJob has changed its schedule.
    pub(super) fn change_schedule(&mut self, cron_job: &Uid) {
        self.close(cron_job);
    }

    /// Records that a freeze holds the open slot of a CronJob back.
    pub(super) fn freeze(&mut self, cron_job: &Uid) {
        if let Some(open) = self.entries.get_mut(cron_job).and_then(|entry| entry.open.as_mut()) {
            open.is_held_back = true;
        }
    }

    pub(super) fn remove(&mut self, cron_job: &Uid) {
        self.close(cron_job);
        self.entries.remove(cron_job);
    }

    /// Records that a slot is due.
    pub(super) fn open(&mut self, cron_job: &Uid, due: DueSlot) {
        let slot = due.slot;
        if let Some(former) = self.close(cron_job) {
            self.judge(cron_job, &former);
        }
        let Some(entry) = self.entries.get_mut(cron_job) else {
            return;
        };
        if entry.last_started() >= Some(slot) {
            return;
        }
        let deadline = order_expiry(due.start, entry.terms.deadline_seconds);
        let judged_at = [due.next, deadline]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Timestamp::MAX);
        entry.open = Some(Open {
            slot,
            judged_at,
            is_held_back: due.is_frozen || entry.holds_back(slot),
        });
        self.judgements.insert((judged_at, cron_job.clone()));
    }

    /// Judges the slots whose next slot or deadline has come.
    pub(super) fn pass_time(&mut self, now: Timestamp) {
        while let Some((at, cron_job)) = self.judgements.first().cloned()
            && at <= now
        {
            // Each judgement belongs to an open slot.
            let Some(open) = self.close(&cron_job) else { return };
            self.judge(&cron_job, &open);
        }
    }

    /// Records a new Job of a slot.
    pub(super) fn start(&mut self, cron_job: &Uid, slot: Timestamp) {
        let Some(entry) = self.entries.get_mut(cron_job) else {
            return;
        };
        match entry.note_outcome(slot, Outcome::Started) {
            Some(Outcome::Started) => {
                self.counts.doubled += 1;
                note(&mut self.findings, &entry.identity, slot, Problem::Doubled);
                return;
            }
            Some(Outcome::HeldBack) => self.counts.held_back -= 1,
            Some(Outcome::Missed) => {
                self.counts.missed -= 1;
                let uid = &entry.identity.uid;
                let is_this = |finding: &Finding| finding.slot == slot && finding.cron_job.uid == *uid;
                self.findings
                    .retain(|finding| finding.problem != Problem::Missed || !is_this(finding));
            }
            None => {}
        }
        self.counts.started += 1;
        match &mut entry.open {
            Some(open) if open.slot == slot => {
                self.close(cron_job);
            }
            Some(open) => open.is_held_back |= entry.terms.has_one_name(open.slot, slot),
            None => {}
        }
    }

    /// Records whether a Job of a slot runs.
    pub(super) fn set_running(&mut self, cron_job: &Uid, job: &Uid, is_running: bool) {
        let Some(entry) = self.entries.get_mut(cron_job) else {
            return;
        };
        entry.running.retain(|running| running != job);
        entry.running.extend(is_running.then(|| job.clone()));
        if let Some(mut open) = entry.open.take() {
            open.is_held_back |= entry.holds_back(open.slot);
            entry.open = Some(open);
        }
    }

    fn close(&mut self, cron_job: &Uid) -> Option<Open> {
        let open = self.entries.get_mut(cron_job)?.open.take()?;
        self.judgements.remove(&(open.judged_at, cron_job.clone()));
        Some(open)
    }

    fn judge(&mut self, cron_job: &Uid, open: &Open) {
        let Some(entry) = self.entries.get_mut(cron_job) else {
            return;
        };
        if open.is_held_back {
            self.counts.held_back += 1;
            entry.note_outcome(open.slot, Outcome::HeldBack);
            return;
        }
        self.counts.missed += 1;
        entry.note_outcome(open.slot, Outcome::Missed);
        note(&mut self.findings, &entry.identity, open.slot, Problem::Missed);
    }
}

impl Terms {
    /// Whether the Jobs of these slots have the same name. It has the minute of the slot, or its second.
    fn has_one_name(&self, slot: Timestamp, other: Timestamp) -> bool {
        let minute = |slot: Timestamp| slot.as_second().div_euclid(60);
        !self.has_seconds && minute(slot) == minute(other)
    }
}

impl Entry {
    /// Notes the outcome of a slot. Returns its former outcome.
    fn note_outcome(&mut self, slot: Timestamp, outcome: Outcome) -> Option<Outcome> {
        let former = self.slots.insert(slot, outcome);
        if self.slots.len() > SLOTS_MAX {
            self.slots.pop_first();
        }
        former
    }

    fn last_started(&self) -> Option<Timestamp> {
        let mut started = self
            .slots
            .iter()
            .rev()
            .filter(|(_, outcome)| **outcome == Outcome::Started);
        started.next().map(|(slot, _)| *slot)
    }

    fn holds_back(&self, slot: Timestamp) -> bool {
        let is_forbidden = self.terms.policy == ConcurrencyPolicy::Forbid && !self.running.is_empty();
        is_forbidden
            || self
                .last_started()
                .is_some_and(|last| self.terms.has_one_name(last, slot))
    }
}

/// Logs a missed or doubled run, and keeps it for the page.
fn note(findings: &mut VecDeque<Finding>, cron_job: &Arc<CronJobIdentity>, slot: Timestamp, problem: Problem) {
    let CronJobIdentity { namespace, name, .. } = &**cron_job;
    tracing::warn!(%namespace, cron_job = %name, %slot, "{}", problem.as_str());
    if findings.len() == FINDINGS_MAX {
        findings.pop_front();
    }
    findings.push_back(Finding {
        cron_job: Arc::clone(cron_job),
        slot,
        problem,
    });
}

#[cfg(test)]
mod tests;
