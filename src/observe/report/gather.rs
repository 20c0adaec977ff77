//! Reads the slots of all CronJobs, one CronJob after the other, into the report. Memory is bounded by the numbers of
//! namespaces and of CronJobs, not of slots.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jiff::{SignedDuration, Timestamp};

use super::{
    AdviceEntry, AheadEntry, ControllerEntry, CronJobHistory, DoubledEntry, FailureEntry, LateNowEntry, LateRunEntry,
    LostEntry, NamespaceEntry, OptionsEntry, Report, ReportSource, SlotCounts, distribution::Distribution,
    shadow::ShadowRun,
};
use crate::{
    observe::{
        facts::{CronJobFacts, RunResult},
        slot::{LATE_AFTER, LossReason, Mark, SkipCause, Slot, SlotOutcome},
    },
    schedule::after,
};

/// Maximum numbers of entries.
const NAMESPACES_MAX: usize = 20;
const LATEST_RUNS_MAX: usize = 20;
const LOST_MAX: usize = 100;
const FAILURES_MAX: usize = 100;
const LATE_NOW_MAX: usize = 100;
const DOUBLED_MAX: usize = 100;
const OPTIONS_MAX: usize = 100;

/// Maximum number of slots of an entry. A shell accepts a line with so many.
const SLOTS_MAX: usize = 100;

/// What is known of one namespace, or of all.
#[derive(Default)]
struct Tally {
    slots: SlotCounts,
    lateness: Distribution,
}

/// The report while CronJobs are added.
pub(super) struct Gathering {
    since: Timestamp,
    now: Timestamp,
    n_cron_jobs: u64,
    n_suspended: u64,
    all: Tally,
    namespaces: BTreeMap<Box<str>, Tally>,
    creations_by_second: Vec<u64>,
    lost: Vec<LostEntry>,
    latest_runs: BTreeSet<Reverse<LateRunEntry>>,
    late_now: Vec<LateNowEntry>,
    doubled: Vec<DoubledEntry>,
    failures: Vec<FailureEntry>,
    options: Vec<OptionsEntry>,
    shadow: ShadowRun,
}

impl Gathering {
    pub(super) fn new(since: Timestamp, now: Timestamp) -> Gathering {
        Gathering {
            since,
            now,
            n_cron_jobs: 0,
            n_suspended: 0,
            all: Tally::default(),
            namespaces: BTreeMap::new(),
            creations_by_second: vec![0; 60],
            lost: Vec::new(),
            latest_runs: BTreeSet::new(),
            late_now: Vec::new(),
            doubled: Vec::new(),
            failures: Vec::new(),
            options: Vec::new(),
            shadow: ShadowRun::default(),
        }
    }

    pub(super) fn add(&mut self, cron_job: &CronJobHistory<'_>) {
        self.n_cron_jobs += 1;
        self.n_suspended += u64::from(cron_job.facts.is_suspended);
        self.add_options(cron_job.facts);
        let slots = self.meant(cron_job);
        if slots.is_empty() {
            return;
        }
        let tally = self.namespaces.entry(cron_job.facts.namespace.clone()).or_default();
        for slot in &slots {
            tally.add(slot);
            self.all.add(slot);
            self.shadow.add(slot);
        }
        self.add_creations(cron_job, &slots);
        self.add_lost(cron_job, &slots);
        self.add_late_now(cron_job, &slots);
        self.add_doubled(cron_job, &slots);
        self.add_failures(cron_job, &slots);
    }

    fn add_options(&mut self, facts: &CronJobFacts) {
        let sentences = facts.schedule.options().sentences(facts.concurrency_policy);
        if !sentences.is_empty() {
            self.options.push(OptionsEntry {
                namespace: facts.namespace.clone(),
                name: facts.name.clone(),
                sentences,
            });
        }
    }

    /// The slots of the time of the report. A lost one belongs to the time in which it was given up, which is a day after
    /// the slot of a daily CronJob, and one that is still open to any time.
    fn meant<'a>(&self, cron_job: &'a CronJobHistory<'_>) -> Vec<&'a Slot> {
        let past = cron_job.slots.iter().filter(|slot| slot.at <= self.now);
        let mut slots: Vec<&Slot> = past.collect();
        slots.sort_by_key(|slot| slot.at);
        let next = slots.iter().skip(1).map(|slot| slot.at).chain([self.now]);
        let next: Vec<Timestamp> = next.collect();
        let is_meant = |slot: &Slot, next: Timestamp| match slot.outcome {
            _ if self.since <= slot.at => true,
            SlotOutcome::Open => true,
            SlotOutcome::Lost(LossReason::DeadlineExceeded) => self.since < next.min(deadline(slot, cron_job.facts)),
            SlotOutcome::Lost(LossReason::Superseded | LossReason::NotStarted) => self.since < next,
            SlotOutcome::Started { .. }
            | SlotOutcome::Skipped(_)
            | SlotOutcome::NotObserved
            | SlotOutcome::Undecided(_) => false,
        };
        let meant = slots.into_iter().zip(next).filter(|(slot, next)| is_meant(slot, *next));
        meant.map(|(slot, _)| slot).collect()
    }

    fn add_creations(&mut self, cron_job: &CronJobHistory<'_>, slots: &[&Slot]) {
        for slot in slots {
            let SlotOutcome::Started {
                job_name,
                created,
                is_backfilled: false,
                ..
            } = &slot.outcome
            else {
                continue;
            };
            let second = usize::try_from(created.as_second().rem_euclid(60)).unwrap_or_default();
            // A run that waited starts at any second.
            if slot.at.as_second() % 60 == 0 && slot.held_until.is_none() {
                self.creations_by_second[second] += 1;
            }
            let lateness_seconds = slot.lateness().unwrap_or_default().as_secs();
            let last = self.latest_runs.last();
            let is_full = self.latest_runs.len() == LATEST_RUNS_MAX;
            if lateness_seconds <= LATE_AFTER.as_secs()
                || is_full && last.is_some_and(|Reverse(last)| last.lateness_seconds > lateness_seconds)
            {
                continue;
            }
            self.latest_runs.insert(Reverse(LateRunEntry {
                lateness_seconds,
                slot: slot.at,
                created: *created,
                namespace: cron_job.facts.namespace.clone(),
                name: cron_job.facts.name.clone(),
                job_name: job_name.clone(),
            }));
            if self.latest_runs.len() > LATEST_RUNS_MAX {
                self.latest_runs.pop_last();
            }
        }
    }

    fn add_lost(&mut self, cron_job: &CronJobHistory<'_>, slots: &[&Slot]) {
        let mut by_reason: BTreeMap<LossReason, Vec<Timestamp>> = BTreeMap::new();
        for slot in slots {
            if let SlotOutcome::Lost(reason) = slot.outcome {
                by_reason.entry(reason).or_default().push(slot.at);
            }
        }
        for (reason, slots) in by_reason {
            let latest = &slots[slots.len().saturating_sub(SLOTS_MAX)..];
            let (namespace, name) = (&cron_job.facts.namespace, &cron_job.facts.name);
            self.lost.push(LostEntry {
                namespace: namespace.clone(),
                name: name.clone(),
                reason: reason.as_str(),
                sentence: reason.sentence(),
                n_slots: slots.len() as u64,
                slots: latest.to_vec(),
                command: String::new(),
            });
        }
    }

    fn add_late_now(&mut self, cron_job: &CronJobHistory<'_>, slots: &[&Slot]) {
        let late = slots.iter().filter(|slot| slot.outcome == SlotOutcome::Open);
        let late = late.filter(|slot| slot.mark(self.now) == Mark::Late);
        let (now, facts) = (self.now, cron_job.facts);
        self.late_now.extend(late.map(|slot| LateNowEntry {
            namespace: facts.namespace.clone(),
            name: facts.name.clone(),
            slot: slot.at,
            late_seconds: now.duration_since(slot.startable()).as_secs(),
        }));
    }

    fn add_doubled(&mut self, cron_job: &CronJobHistory<'_>, slots: &[&Slot]) {
        let n_more = DOUBLED_MAX.saturating_sub(self.doubled.len());
        let doubled = slots
            .iter()
            .filter(|slot| !slot.other_jobs.is_empty())
            .filter_map(|slot| {
                let SlotOutcome::Started { job_name, .. } = &slot.outcome else {
                    return None;
                };
                Some(DoubledEntry {
                    namespace: cron_job.facts.namespace.clone(),
                    name: cron_job.facts.name.clone(),
                    slot: slot.at,
                    job_names: [job_name].into_iter().chain(&slot.other_jobs).cloned().collect(),
                })
            });
        self.doubled.extend(doubled.take(n_more));
    }

    fn add_failures(&mut self, cron_job: &CronJobHistory<'_>, slots: &[&Slot]) {
        let mut by_reason: BTreeMap<&str, FailureEntry> = BTreeMap::new();
        for slot in slots {
            let SlotOutcome::Started { job_name, result, .. } = &slot.outcome else {
                continue;
            };
            let RunResult::Failed(reason) = result else { continue };
            let entry = by_reason.entry(reason).or_insert_with(|| FailureEntry {
                namespace: cron_job.facts.namespace.clone(),
                name: cron_job.facts.name.clone(),
                reason: reason.clone(),
                n_runs: 0,
                last_slot: slot.at,
                last_job_name: job_name.clone(),
            });
            entry.n_runs += 1;
            entry.last_slot = slot.at;
            entry.last_job_name = job_name.clone();
        }
        self.failures.extend(by_reason.into_values());
    }

    pub(super) fn into_report(self, source: ReportSource, ahead: AheadEntry, advice: Vec<AdviceEntry>) -> Report {
        let (mut lost, mut failures) = (self.lost, self.failures);
        let (n_lost_entries, n_failure_entries) = (lost.len(), failures.len());
        lost.sort_by(|one, other| {
            (other.n_slots, &one.namespace, &one.name).cmp(&(one.n_slots, &other.namespace, &other.name))
        });
        failures.sort_by(|one, other| {
            (other.n_runs, &one.namespace, &one.name).cmp(&(one.n_runs, &other.namespace, &other.name))
        });
        let mut options = self.options;
        let n_options_entries = options.len();
        options.sort_unstable();
        options.truncate(OPTIONS_MAX);
        let mut late_now = self.late_now;
        let n_late_now = late_now.len();
        late_now.sort_by(|one, other| {
            (other.late_seconds, &one.namespace, &one.name).cmp(&(one.late_seconds, &other.namespace, &other.name))
        });
        late_now.truncate(LATE_NOW_MAX);
        lost.truncate(LOST_MAX);
        failures.truncate(FAILURES_MAX);
        for entry in &mut lost {
            entry.command = entry.start_command(&source.command, &entry.slots).join(" ");
        }
        Report {
            cluster: source.cluster,
            command: source.command,
            since: source.since,
            now: source.now,
            known_since: source.known_since,
            unreadable_namespaces: source.unreadable_namespaces,
            controllers: source.controllers.iter().map(ControllerEntry::new).collect(),
            notes: source.notes,
            n_cron_jobs: self.n_cron_jobs,
            n_suspended: self.n_suspended,
            slots: self.all.slots,
            lateness: self.all.lateness.lateness(),
            n_namespaces: self.namespaces.len(),
            namespaces: latest_namespaces(self.namespaces),
            creations_by_second: self.creations_by_second,
            lost,
            n_lost_entries,
            late_now,
            n_late_now,
            doubled: self.doubled,
            latest_runs: self.latest_runs.into_iter().map(|Reverse(run)| run).collect(),
            failures,
            n_failure_entries,
            options,
            n_options_entries,
            with_cronwheel: self.shadow.finish(),
            ahead,
            advice,
        }
    }
}

impl Tally {
    fn add(&mut self, slot: &Slot) {
        let counts = &mut self.slots;
        counts.n_slots += 1;
        match &slot.outcome {
            SlotOutcome::Started { result, .. } => {
                counts.n_started += 1;
                counts.n_doubled += u64::from(!slot.other_jobs.is_empty());
                counts.n_failed += u64::from(matches!(result, RunResult::Failed(_)));
            }
            SlotOutcome::Open => counts.n_open += 1,
            SlotOutcome::Lost(_) => counts.n_lost += 1,
            SlotOutcome::Skipped(cause) => {
                counts.n_skipped += 1;
                counts.n_frozen += u64::from(matches!(cause, SkipCause::Frozen { .. }));
                counts.n_excluded += u64::from(matches!(cause, SkipCause::Excluded { .. }));
            }
            SlotOutcome::NotObserved => counts.n_unknown += 1,
            SlotOutcome::Undecided(_) => {
                counts.n_unknown += 1;
                counts.n_undecided += 1;
            }
        }
        if let Some(lateness) = slot.lateness() {
            counts.n_late += u64::from(lateness > LATE_AFTER);
            self.lateness.add(lateness.as_secs());
        }
    }
}

/// The instant from which the starting deadline of a slot has passed.
fn deadline(slot: &Slot, facts: &CronJobFacts) -> Timestamp {
    let seconds = SignedDuration::from_secs(facts.starting_deadline_seconds.unwrap_or_default());
    after(facts.schedule.start_of(slot.at), seconds)
}

/// The latest first: by the 99th percentile, then by lost runs.
fn latest_namespaces(namespaces: BTreeMap<Box<str>, Tally>) -> Vec<NamespaceEntry> {
    let entry = |(namespace, tally): (Box<str>, Tally)| NamespaceEntry {
        namespace,
        slots: tally.slots,
        lateness: tally.lateness.lateness(),
    };
    let mut entries: Vec<NamespaceEntry> = namespaces.into_iter().map(entry).collect();
    entries.sort_by_key(|entry| {
        let lateness = entry
            .lateness
            .map(|lateness| (lateness.p99_seconds, lateness.max_seconds));
        Reverse((lateness, entry.slots.n_lost, entry.slots.n_failed))
    });
    entries.truncate(NAMESPACES_MAX);
    entries
}
