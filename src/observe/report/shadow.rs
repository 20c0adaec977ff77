//! What would change with cronwheel: what happened, beside what its decision would have been on the same facts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    observe::slot::{LATE_AFTER, Shadow, Slot, SlotOutcome},
    schedule::after,
};

/// The slots of the report, with cronwheel instead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WithCronwheel {
    /// The lost slots.
    pub lost: ShadowCounts,
    /// The slots whose Jobs were created late.
    pub late: ShadowCounts,
    /// What cronwheel would not have started either, and what it alone would not have started; most first.
    pub held: Vec<HeldEntry>,
}

/// What cronwheel would have done with some slots. All other counts add up to `n_slots`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowCounts {
    /// Number of slots.
    pub n_slots: u64,
    /// Number of slots that it would have started on time.
    pub n_on_time: u64,
    /// Number of slots that it would have started late: after the end of an earlier Job, or of a suspension or freeze.
    pub n_later: u64,
    /// Number of slots that it would not have started.
    pub n_held: u64,
    /// Number of slots for which that is not known.
    pub n_unknown: u64,
}

/// Slots that cronwheel would not have started, by rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldEntry {
    /// What happened: `lost`, `late` or `started`.
    pub outcome: &'static str,
    /// The reason, with its rule.
    pub reason: &'static str,
    /// Number of slots.
    pub n_slots: u64,
}

/// Collects slots.
#[derive(Default)]
pub(super) struct ShadowRun {
    lost: ShadowCounts,
    late: ShadowCounts,
    held: BTreeMap<(&'static str, &'static str), u64>,
}

impl ShadowRun {
    pub(super) fn add(&mut self, slot: &Slot) {
        let shadow = slot.with_cronwheel.as_ref();
        let outcome = match &slot.outcome {
            SlotOutcome::Lost(_) => {
                self.lost.add(slot);
                "lost"
            }
            SlotOutcome::Started { .. } if slot.lateness() > Some(LATE_AFTER) => {
                self.late.add(slot);
                "late"
            }
            SlotOutcome::Started { .. } => "started",
            // Nobody started these, so a decision not to start them changes nothing.
            SlotOutcome::Open | SlotOutcome::Skipped(_) | SlotOutcome::NotObserved | SlotOutcome::Undecided(_) => {
                return;
            }
        };
        if let Some(Shadow::Holds(reason)) = shadow {
            *self.held.entry((outcome, reason)).or_default() += 1;
        }
    }

    pub(super) fn finish(self) -> WithCronwheel {
        let entry = |((outcome, reason), n_slots)| HeldEntry {
            outcome,
            reason,
            n_slots,
        };
        let mut held: Vec<HeldEntry> = self.held.into_iter().map(entry).collect();
        held.sort_by_key(|entry| std::cmp::Reverse(entry.n_slots));
        WithCronwheel {
            lost: self.lost,
            late: self.late,
            held,
        }
    }
}

impl ShadowCounts {
    fn add(&mut self, slot: &Slot) {
        let on_time_until = after(slot.startable(), LATE_AFTER);
        self.n_slots += 1;
        match &slot.with_cronwheel {
            Some(Shadow::Starts) => self.n_on_time += 1,
            Some(Shadow::StartsAfter(wait, _)) if after(slot.at, *wait) <= on_time_until => self.n_on_time += 1,
            Some(Shadow::StartsAfter(..)) => self.n_later += 1,
            Some(Shadow::Holds(_)) => self.n_held += 1,
            None => self.n_unknown += 1,
        }
    }
}
