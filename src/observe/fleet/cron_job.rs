//! One CronJob of the fleet: its facts, slots and Jobs.
//!
//! The outcome of each slot follows from the eras, the Jobs and the periods of observation ([`judge`](super::judge)).
//! Every change recomputes it for the slots that are kept, so a late arrival repairs what was decided before.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{
    cells::Cells,
    due_slots::{self, Cut},
    era::Eras,
    freezes::{Freezes, Span},
    judge,
    last_outcomes::{LastOutcomes, LostSlots},
    names::NameIds,
    observations::Observations,
    other_runs::OtherRun,
    second::Second,
    slot_record::{Outcome, SlotRecord},
    words,
};
use crate::{
    observe::{
        facts::{CronJobFacts, Hindrance, Run, RunResult},
        slot::LATE_AFTER,
        view::CronJobName,
    },
    shard::{Uid, naming},
};

/// Allocation step of slots. Doubling would waste a third of the memory of a fleet. The 50 slots of the page and a step
/// take 2,544 bytes, and the allocator has blocks of 2,560.
const SLOTS_STEP: usize = 3;

/// One CronJob.
#[derive(Debug)]
pub(super) struct CronJob {
    pub(super) uid: Uid,
    pub(super) name: CronJobName,
    pub(super) namespace_id: u32,
    /// `None` while only the history, or Jobs, told of it.
    pub(super) facts: Option<Arc<CronJobFacts>>,
    pub(super) eras: Eras,
    /// The slots by time.
    pub(super) slots: Vec<SlotRecord>,
    /// Jobs without a slot of their own: started by hand, second ones of a slot, and old ones that run.
    pub(super) other_runs: Vec<OtherRun>,
    /// Names of the Jobs that are not named after the slot.
    names: BTreeMap<Second, Box<str>>,
    /// What hinders Jobs of slots.
    hindrances: BTreeMap<Uid, Hindrance>,
    /// When the lost slots were given up.
    pub(super) losses: BTreeMap<Second, Second>,
    /// All due slots up to here are enumerated.
    pub(super) enumerated: Option<Second>,
    /// What was left out of them.
    pub(super) cut: Option<Cut>,
    /// The next slot.
    pub(super) next: Option<Second>,
    /// The last slots of each kind, also of slots that are no longer kept.
    pub(super) last: LastOutcomes,
    forgotten: LastOutcomes,
    /// The latest slot that was dropped. Jobs up to it are not counted again.
    pub(super) dropped_until: Option<Second>,
    /// When an outcome changes by time alone.
    pub(super) wakeup: Option<Second>,
}

/// What all CronJobs share while one is settled.
pub(super) struct Surroundings<'a> {
    pub(super) now: Second,
    pub(super) n_slots_max: usize,
    /// Slots from here on are kept beyond the maximum.
    pub(super) kept_since: Second,
    pub(super) observations: &'a Observations,
    pub(super) freezes: &'a Freezes,
    pub(super) ids: &'a NameIds,
    pub(super) cells: &'a mut Cells,
}

/// How a Job left the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The watch told of it then.
    Seen(Timestamp),
    /// A new list does not have it; the last instant at which all Jobs were known.
    Unseen(Option<Timestamp>),
}

/// What became of a Job that the CronJob was told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunUpdate {
    /// Whether a slot got a Job.
    pub(super) has_new_job: bool,
    pub(super) is_changed: bool,
    /// The slot, if its Job failed after the slot was dropped.
    pub(super) failed_slot: Option<Second>,
}

impl CronJob {
    pub(super) fn new(uid: Uid, name: CronJobName, namespace_id: u32) -> CronJob {
        CronJob {
            uid,
            name,
            namespace_id,
            facts: None,
            eras: Eras::default(),
            slots: Vec::new(),
            other_runs: Vec::new(),
            names: BTreeMap::new(),
            hindrances: BTreeMap::new(),
            losses: BTreeMap::new(),
            enumerated: None,
            cut: None,
            next: None,
            last: LastOutcomes::default(),
            forgotten: LastOutcomes::default(),
            dropped_until: None,
            wakeup: None,
        }
    }

    /// Follows the facts. Returns whether a field that decides slots changed.
    pub(super) fn set_facts(&mut self, facts: CronJobFacts, now: Timestamp) -> bool {
        let before = self.facts.take();
        let has_new_era = self.eras.follow(before.as_deref(), &facts, now);
        let is_interval = words::is_interval(&facts);
        let has_new_cursor = before.is_none_or(|before| before.last_schedule_time != facts.last_schedule_time);
        self.facts = Some(Arc::new(facts));
        // The activations of an interval follow from the cursor.
        if let Some(enumerated) = self.enumerated.filter(|_| has_new_era || is_interval && has_new_cursor) {
            self.next = due_slots::next_after(self, enumerated);
        }
        has_new_era
    }

    /// Takes facts that were not known before, and may be as old as the CronJob.
    pub(super) fn learn(&mut self, facts: CronJobFacts) {
        self.facts = Some(Arc::new(facts));
        if let Some(enumerated) = self.enumerated {
            self.next = due_slots::next_after(self, enumerated);
        }
    }

    /// Adds a Job, or its new form.
    pub(super) fn put_run(&mut self, run: &Run, is_kept: bool, ids: &mut NameIds) -> RunUpdate {
        self.hindrances.remove(&run.job_uid);
        let Some(index) = self.place_of(run) else {
            return self.put_other(run, is_kept);
        };
        if let Some(hindrance) = &run.hindrance {
            self.hindrances.insert(run.job_uid.clone(), hindrance.clone());
        }
        let slot = &mut self.slots[index];
        let is_new = slot.job_uid.as_ref() != Some(&run.job_uid);
        if is_new {
            slot.has_usual_name = SlotRecord::is_usual_name(run, &self.name.name, slot.at);
            if !slot.has_usual_name {
                self.names.insert(slot.at, run.job_name.clone());
            }
        }
        let is_changed = slot.set_run(run, is_kept, ids);
        RunUpdate {
            has_new_job: is_new,
            is_changed,
            failed_slot: None,
        }
    }

    /// The place of a Job's slot, which is added if the schedule does not have it. `None` if the Job has no slot, or its
    /// slot has another Job.
    fn place_of(&mut self, run: &Run) -> Option<usize> {
        let at = Second::floor(run.slot?);
        let place = self.slots.partition_point(|slot| slot.at < at);
        let is_free = |slot: &SlotRecord| slot.job_uid.as_ref().is_none_or(|uid| *uid == run.job_uid);
        if let Some(slot) = self.slots.get(place).filter(|slot| slot.at == at) {
            return is_free(slot).then_some(place);
        }
        // The minutes at the end of a Job's name do not tell the second of its slot.
        let in_minute = self.slots.get(place).filter(|slot| slot.at.minute() == at.minute());
        let has_seconds = self.facts.as_deref().is_some_and(|facts| facts.schedule.has_seconds());
        if at.is_whole_minute() && !has_seconds && in_minute.is_some_and(is_free) {
            return Some(place);
        }
        if self.dropped_until.is_some_and(|dropped| at <= dropped) {
            return None;
        }
        self.insert_slot(place, SlotRecord::new(at));
        Some(place)
    }

    /// A Job is no longer in the cluster. Returns its new form if that ended it.
    pub(super) fn lose_run(&mut self, job_uid: &Uid, end: Leaving, ids: &NameIds) -> Option<Run> {
        self.hindrances.remove(job_uid);
        if let Some(other) = self.other_runs.iter_mut().find(|other| other.run.job_uid == *job_uid) {
            other.is_kept = false;
            other.run.hindrance = None;
            if other.run.result != RunResult::Running {
                return None;
            }
            (other.run.result, other.run.finished) = match end {
                Leaving::Seen(at) => (RunResult::Deleted, Some(at)),
                Leaving::Unseen(last) => (
                    RunResult::Gone,
                    Some(last.unwrap_or(other.run.created).max(other.run.created)),
                ),
            };
            let run = other.run.clone();
            self.other_runs.retain(|other| {
                other.run.job_uid != *job_uid || !other.had_slot || other.run.result == RunResult::Gone
            });
            self.bound_other_runs();
            return Some(run);
        }
        let index = self
            .slots
            .iter()
            .rposition(|slot| slot.job_uid.as_ref() == Some(job_uid))?;
        let slot = &mut self.slots[index];
        slot.is_kept = false;
        if !slot.is_running() {
            return None;
        }
        (slot.outcome, slot.finished) = match end {
            Leaving::Seen(at) => (Outcome::Deleted, Some(Second::floor(at))),
            Leaving::Unseen(last) => (Outcome::Gone, last.map(Second::floor).max(Some(slot.created))),
        };
        self.run_at(index, ids)
    }

    /// The Jobs that run although no list of the cluster has them: the history told of them.
    pub(super) fn unlisted_runs(&self) -> Vec<Uid> {
        let slots = self.slots.iter().filter(|slot| slot.is_running() && !slot.is_kept);
        let others = self.other_runs.iter();
        let others = others.filter(|other| other.run.result == RunResult::Running && !other.is_kept);
        let others = others.map(|other| other.run.job_uid.clone());
        slots.filter_map(|slot| slot.job_uid.clone()).chain(others).collect()
    }

    /// Adds what is due, judges every slot, and drops slots beyond the maximum. Returns whether a view may differ.
    pub(super) fn settle(&mut self, around: &mut Surroundings<'_>) -> bool {
        let n_slots = self.slots.len();
        due_slots::enumerate(self, around);
        let mut is_changed = self.slots.len() != n_slots;
        let judgements = judge::judge(self, (around.observations, around.freezes), around.now);
        let mut last = self.forgotten;
        for (index, judgement) in judgements.into_iter().enumerate() {
            is_changed |= judgement.apply(&mut self.slots[index]);
            is_changed |= self.count(index, around.cells);
            last.note(&self.slots[index], self.is_cut_at(index));
        }
        is_changed |= last != self.last;
        self.last = last;
        let n_kept = due_slots::n_since(self, around.kept_since);
        self.trim(around.n_slots_max.max(n_kept), around.ids);
        let thaw = around.freezes.present(&self.name.namespace, around.now);
        let thaw = thaw.map(Span::end);
        self.wakeup = self.next_wakeup(around.now).into_iter().chain(thaw).min();
        is_changed
    }

    /// Drops the oldest slots. What they added to their minutes stays.
    pub(super) fn trim(&mut self, n_slots_max: usize, ids: &NameIds) {
        let n_excess = self.slots.len().saturating_sub(n_slots_max);
        if n_excess == 0 {
            return;
        }
        for index in 0..n_excess {
            let is_cut = self.is_cut_at(index);
            self.forgotten.note(&self.slots[index], is_cut);
            // One that is gone may have held later slots.
            if matches!(self.slots[index].outcome, Outcome::Running | Outcome::Gone)
                && let Some(run) = self.run_at(index, ids)
            {
                let is_kept = self.slots[index].is_kept;
                self.add_other(OtherRun {
                    run,
                    is_kept,
                    had_slot: true,
                });
            }
        }
        self.dropped_until = self.dropped_until.max(self.slots.get(n_excess - 1).map(|slot| slot.at));
        self.slots.drain(..n_excess);
        // The first lists add a day of slots, of which few stay.
        if self.slots.capacity() > self.slots.len() + 2 * SLOTS_STEP {
            self.slots.shrink_to(self.slots.len() + SLOTS_STEP);
        }
        if let Some(oldest) = self.slots.first().map(|slot| slot.at) {
            self.names = self.names.split_off(&oldest);
            self.losses = self.losses.split_off(&oldest);
            self.eras.forget_before(oldest);
        }
    }

    /// Whether slots before this one were left out when the slots were first enumerated.
    fn is_cut_at(&self, index: usize) -> bool {
        self.cut.is_some_and(|cut| cut.first == self.slots[index].at)
    }

    /// The lost slots, if the last of them was given up after an instant.
    pub(super) fn lost_after(&self, instant: Second) -> Option<LostSlots> {
        let lost = self.last.lost?;
        let later = self.slots.iter().find(|slot| slot.at > lost.last);
        let given_up = later.map(|slot| slot.at).or(self.next)?;
        (given_up >= instant).then_some(lost)
    }

    /// A Job may be created unseen for the slots that are not closed.
    pub(super) fn forget_open_proofs(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.outcome == Outcome::Open) {
            slot.is_proven = false;
        }
    }

    /// The next instant at which an outcome or an appearance changes without an event.
    fn next_wakeup(&self, now: Second) -> Option<Second> {
        let open = self.slots.iter().filter(|slot| slot.outcome == Outcome::Open);
        let late = open.map(|slot| slot.startable().plus_duration(LATE_AFTER).plus(1));
        // Under `all`, more than the last two can be open.
        let undecided = self.slots.iter().enumerate().rev();
        let undecided =
            undecided.take_while(|(place, slot)| place + 2 >= self.slots.len() || slot.outcome == Outcome::Open);
        let closings = undecided.flat_map(|(place, slot)| {
            let start = self.start_of(place);
            let era = self.eras.get(self.eras.index_at(slot.at));
            let deadline = start.zip(era).and_then(|(start, era)| judge::deadline(start, era));
            [start, deadline, self.missed_at(place, slot.startable())]
        });
        let changes = late.chain(closings.flatten()).chain(self.next);
        changes.filter(|at| *at > now).min()
    }

    /// Makes room for slots that are to be inserted, if they are many.
    pub(super) fn reserve_slots(&mut self, n_slots: usize) {
        if n_slots > SLOTS_STEP {
            self.slots.reserve_exact(n_slots);
        }
    }

    /// Inserts a slot without a Job.
    pub(super) fn insert_slot(&mut self, place: usize, slot: SlotRecord) {
        if self.slots.len() == self.slots.capacity() {
            self.slots.reserve_exact(SLOTS_STEP);
        }
        self.slots.insert(place, slot);
    }

    /// The name of the Job of a slot.
    pub(super) fn job_name(&self, slot: &SlotRecord) -> Box<str> {
        let named = self.names.get(&slot.at).filter(|_| !slot.has_usual_name);
        named
            .cloned()
            .unwrap_or_else(|| naming::job_name(&self.name.name, slot.at.timestamp()))
    }

    /// The Job of a slot.
    pub(super) fn run_at(&self, index: usize, ids: &NameIds) -> Option<Run> {
        let slot = self.slots.get(index)?;
        let mut run = slot.run(&self.uid, self.job_name(slot), ids)?;
        run.hindrance = self.hindrance(&run.job_uid).cloned();
        Some(run)
    }

    pub(super) fn hindrance(&self, job_uid: &Uid) -> Option<&Hindrance> {
        self.hindrances.get(job_uid)
    }

    /// The uids of all Jobs.
    pub(super) fn job_uids(&self) -> impl Iterator<Item = &Uid> {
        let slots = self.slots.iter().filter_map(|slot| slot.job_uid.as_ref());
        slots.chain(self.other_runs.iter().map(|other| &other.run.job_uid))
    }

    pub(super) fn n_running(&self) -> usize {
        let others = self.other_runs.iter();
        let others = others.filter(|other| other.run.result == RunResult::Running).count();
        others + self.slots.iter().filter(|slot| slot.is_running()).count()
    }
}
