//! Checks that the controllers count every due instant with the outcome that the rules give.
//!
//! For each life of a controller, the model computes the minimum and the maximum number of instants with each outcome.
//! Instants near the beginning and end of the life, near edits, and during obstructions are uncertain.

use std::collections::BTreeMap;

use cronwheel::shard::{InstantOutcome, OutcomeCounts};
use jiff::{SignedDuration, Timestamp};

use super::{
    Case, SKEW,
    view::{Epoch, Slot, View},
};
use crate::{
    naive_options::CatchUp,
    sim::{
        scenario::{Disruption, DisruptionKind, Policy, Spec},
        world::{Job, Life},
    },
};

/// An action this close to a change may have been decided before or after the change.
const NEAR: SignedDuration = SignedDuration::from_secs(60);

/// The maximum time before the end of a controller in which status writes may have failed.
const UNRECORDED: SignedDuration = SignedDuration::from_secs(300);

/// The expected number of instants per outcome in one life.
#[derive(Debug, Default)]
struct Expected {
    /// Instants with a Job, created or already existing: minimum and maximum.
    started: (u64, u64),
    /// Instants without a Job by outcome: the certain number, and the number of possible additional instants.
    by_reason: BTreeMap<&'static str, (u64, u64)>,
    /// Unexpected Jobs: the certain number, and the number of possible additional Jobs.
    unexpected: (u64, u64),
}

pub(super) fn judge(case: &Case<'_>, views: &[View<'_>], problems: &mut Vec<String>) {
    let lives = &case.world.lives;
    for (number, life) in lives.iter().enumerate() {
        let before_that = number.checked_sub(1).map_or(life.from, |before| lives[before].until);
        let mut expected = Expected::default();
        for view in views {
            expected.add(case, view, life, before_that);
        }
        let n_panics = life.snapshot.borrow().n_panics;
        if n_panics > 0 {
            problems.push(format!("the controller from {} panicked {n_panics} times", life.from));
        }
        let outcome_counts = life.snapshot.borrow().outcome_counts.clone();
        for problem in expected.differences(&outcome_counts) {
            problems.push(format!(
                "the controller from {} to {}: {problem}",
                life.from, life.until
            ));
        }
    }
}

impl Expected {
    fn add(&mut self, case: &Case<'_>, view: &View<'_>, life: &Life, before_that: Timestamp) {
        let until = life.until.min(case.end);
        let begun = view.last_slot_before(life.from).unwrap_or(view.cron_job.created);
        // The next controller counts the Jobs that the previous controller did not observe or store.
        let of_life = view.jobs_created(before_that - UNRECORDED, until).iter();
        self.started.1 += of_life.filter(|job| job.slot.is_some()).count() as u64;
        let first = view.slots.partition_point(|slot| slot.start <= begun);
        let end = view.slots.partition_point(|slot| slot.start < until + NEAR);
        for slot in &view.slots[first..end.max(first)] {
            let is_within = slot.start >= life.from + NEAR && !is_near_change(case, view, *slot, until);
            match (view.runs.contains_key(&slot.at), reason(view, *slot)) {
                (true, _) if is_within => self.started.0 += 1,
                (false, Some(reason)) if is_within => self.of(reason).0 += 1,
                _ => {
                    for reason in possible_reasons(case, view, *slot) {
                        self.of(reason).1 += 1;
                    }
                }
            }
        }
        self.add_excluded(case, view, begun, life.from, until);
        self.of(InstantOutcome::HandedOver).1 += n_handovers(case, life);
        for epoch in &view.epochs {
            self.add_unknown_past(case, view, epoch, life.from, begun);
        }
        let foreign = view.foreign_jobs();
        let is_met = |job: &&Job| job.created <= until && job.deleted.is_none_or(|deletion| deletion.at >= life.from);
        self.of(InstantOutcome::ForeignJob).1 += foreign.filter(is_met).count() as u64;
        for job in &view.manual {
            self.add_manual(case, job, life.from, until);
        }
        for job in &view.strangers {
            self.add_strangers(case, job, life.from, until);
        }
    }

    /// A controller counts what a calendar excludes, back to the cursor.
    fn add_excluded(&mut self, case: &Case<'_>, view: &View<'_>, begun: Timestamp, from: Timestamp, until: Timestamp) {
        let counted = view
            .excluded
            .iter()
            .filter(|start| (begun..until + NEAR).contains(*start));
        for start in counted {
            let (before, after) = (*start - NEAR, *start + NEAR);
            let is_sure = before >= from
                && after <= until
                && view.specs(before, after).len() == 1
                && view.cron_job.deleted.is_none_or(|deleted| deleted > after)
                && case.obstructions.within(before, after).is_empty();
            let (sure, perhaps) = self.of(InstantOutcome::Excluded);
            *(if is_sure { sure } else { perhaps }) += 1;
        }
    }

    /// A controller that did not observe the change of a schedule counts the instants of the new schedule before the
    /// change, back to the cursor (B-2.3).
    fn add_unknown_past(&mut self, case: &Case<'_>, view: &View<'_>, epoch: &Epoch, from: Timestamp, begun: Timestamp) {
        if begun < epoch.from && epoch.from <= case.obstructions.known_by(from) {
            let past = epoch
                .spec
                .calendar
                .slots(view.cron_job.created, begun, epoch.from)
                .len() as u64;
            for reason in [
                InstantOutcome::Superseded,
                InstantOutcome::Suspended,
                InstantOutcome::Frozen,
                InstantOutcome::Missed,
                InstantOutcome::Excluded,
            ] {
                self.of(reason).1 += past;
            }
        }
    }

    fn of(&mut self, reason: InstantOutcome) -> &mut (u64, u64) {
        self.by_reason.entry(reason.as_str()).or_default()
    }

    fn add_manual(&mut self, case: &Case<'_>, job: &Job, from: Timestamp, until: Timestamp) {
        let ended = job.ended().unwrap_or(case.end);
        let is_seen = job.created >= from + NEAR
            && job.created + NEAR <= until
            && case
                .obstructions
                .within(job.created - NEAR, job.created + NEAR)
                .is_empty();
        self.unexpected.0 += u64::from(is_seen);
        self.unexpected.1 += u64::from(job.created <= until && ended >= case.obstructions.known_at(from));
    }

    /// An ended Job in another namespace also counts as unexpected.
    fn add_strangers(&mut self, case: &Case<'_>, job: &Job, from: Timestamp, until: Timestamp) {
        let gone = job.deleted.map_or(case.end, |deletion| deletion.at);
        let is_seen = job.created >= from + NEAR
            && job.created + NEAR <= until
            && gone >= job.created + NEAR
            && case
                .obstructions
                .within(job.created - NEAR, job.created + NEAR)
                .is_empty();
        self.unexpected.0 += u64::from(is_seen);
        self.unexpected.1 += u64::from(job.created <= until && gone >= case.obstructions.known_at(from));
    }

    fn differences(&self, outcome_counts: &OutcomeCounts) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, least: u64, most: u64, counted: u64| {
            if !(least..=most).contains(&counted) {
                differences.push(format!("{counted} {what}, expected {least} to {most}"));
            }
        };
        let n_ended: u64 = outcome_counts.outcomes.iter().sum();
        let due = outcome_counts.due_instants;
        compare(
            "instants that ended or are open",
            due,
            due,
            n_ended + outcome_counts.open_instants,
        );
        let with_job = [InstantOutcome::Created, InstantOutcome::Adopted];
        let started = with_job.map(|outcome| outcome_counts.outcome(outcome)).iter().sum();
        let (sure, perhaps) = self.started;
        compare("with a Job", sure, perhaps, started);
        let without = InstantOutcome::ALL
            .into_iter()
            .filter(|outcome| !with_job.contains(outcome));
        for outcome in without {
            let (sure, perhaps) = self.by_reason.get(outcome.as_str()).copied().unwrap_or_default();
            compare(outcome.as_str(), sure, sure + perhaps, outcome_counts.outcome(outcome));
        }
        compare(
            "unexpected Jobs",
            self.unexpected.0,
            self.unexpected.1,
            outcome_counts.unexpected_jobs,
        );
        differences
    }
}

/// How often a controller gives its shards away: at the end, and when its clock goes wrong. It hands over the slot that is
/// open, at most one per CronJob.
fn n_handovers(case: &Case<'_>, life: &Life) -> u64 {
    let is_step = |disruption: &&Disruption| {
        let is_during = disruption.from <= life.until && life.from <= disruption.until;
        is_during && matches!(disruption.kind, DisruptionKind::ClockStep { .. })
    };
    let n_steps = case.scenario.disruptions.iter().filter(is_step).count() as u64;
    n_steps + u64::from(life.is_graceful)
}

/// Whether a change near the slot may have changed its outcome, or an option determines it.
fn is_near_change(case: &Case<'_>, view: &View<'_>, slot: Slot, until: Timestamp) -> bool {
    let over = match view.runs.get(&slot.at).map(Vec::as_slice).unwrap_or_default() {
        _ if starts_otherwise(view) => return true,
        [] => slot.over,
        [run] => run.created,
        _ => return true,
    };
    let (from, to) = (slot.start - NEAR, over + NEAR);
    let is_edited = view.specs(from, to).iter().any(|(since, _)| *since >= from);
    let is_deleted = view.cron_job.deleted.is_some_and(|deleted| deleted <= to);
    let is_frozen = view.freezes().any(|freeze| freeze.from <= to && from <= freeze.until);
    to > until || is_edited || is_deleted || is_frozen || !case.obstructions.within(from, to).is_empty()
}

/// Whether an option determines what starts after an outage or a suspension.
fn starts_otherwise(view: &View<'_>) -> bool {
    view.rules.iter().flatten().any(|rule| *rule != CatchUp::Latest)
}

/// The possible outcomes of a slot without a Job.
fn possible_reasons(case: &Case<'_>, view: &View<'_>, slot: Slot) -> Vec<InstantOutcome> {
    let over = if starts_otherwise(view) {
        slot.epoch_until
    } else {
        slot.over
    };
    let (from, to) = (slot.start - NEAR, over + NEAR);
    let specs = view.specs(from, to);
    let is_any = |is_so: fn(&Spec) -> bool| specs.iter().any(|(_, spec)| is_so(spec));
    let is_at_change = |epoch: &Epoch| (from..=to).contains(&epoch.from) || (from..=to).contains(&epoch.until);
    let possible = [
        (InstantOutcome::Superseded, true),
        (
            InstantOutcome::RefusedDueToTenant,
            !case.obstructions.within(from, to).is_empty(),
        ),
        (InstantOutcome::Suspended, is_any(|spec| spec.is_suspended)),
        (
            InstantOutcome::Frozen,
            view.freezes().any(|freeze| freeze.from <= to && from <= freeze.until),
        ),
        (InstantOutcome::Missed, starts_otherwise(view)),
        (
            InstantOutcome::HeldByForbid,
            // A later controller counts it by the policy of that time.
            view.specs(from, case.end)
                .iter()
                .any(|(_, spec)| spec.policy == Policy::Forbid),
        ),
        (
            InstantOutcome::DeadlineExceeded,
            is_any(|spec| spec.deadline_seconds.is_some()),
        ),
        (InstantOutcome::Deleted, view.cron_job.deleted.is_some()),
        (
            InstantOutcome::ScheduleChanged,
            view.epochs.len() > 1 && view.epochs.iter().any(is_at_change),
        ),
    ];
    let possible = possible.into_iter().filter(|(_, is_possible)| *is_possible);
    possible.map(|(reason, _)| reason).collect()
}

/// The outcome of a slot without a run, if the spec was constant around it and the controller was unobstructed.
fn reason(view: &View<'_>, slot: Slot) -> Option<InstantOutcome> {
    let [(_, spec)] = view.specs(slot.start, slot.over) else {
        return None;
    };
    if spec.is_suspended {
        return Some(InstantOutcome::Suspended);
    }
    if let Some(foreign) = view.foreign_job(slot.at) {
        let is_met = spec.policy == Policy::Allow && foreign.created < slot.start - SKEW;
        return is_met.then_some(InstantOutcome::ForeignJob);
    }
    let lost = spec
        .deadline_seconds
        .map(|seconds| slot.start + SignedDuration::from_secs(seconds));
    match lost {
        _ if spec.policy != Policy::Forbid => None,
        Some(lost) if lost + SignedDuration::from_secs(3) < slot.over => Some(InstantOutcome::DeadlineExceeded),
        Some(lost) if lost - SignedDuration::from_secs(3) < slot.over => None,
        // A create that cannot be sent in time is superseded.
        Some(_) | None => (!is_freed_late(view, slot)).then_some(InstantOutcome::HeldByForbid),
    }
}

/// Whether a Job ended just before a slot was over, so that the slot may have been about to start.
fn is_freed_late(view: &View<'_>, slot: Slot) -> bool {
    let late = slot.over - SignedDuration::from_secs(3)..slot.over;
    view.jobs
        .iter()
        .any(|job| job.ended().is_some_and(|ended| late.contains(&ended)))
}
