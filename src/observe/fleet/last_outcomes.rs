//! The last slots of a CronJob that failed, were late or were lost, also those that are no longer kept.

use super::{
    second::Second,
    slot_record::{Outcome, SlotRecord},
};
use crate::observe::slot::LossReason;

const DAY_SECONDS: u32 = 24 * 3_600;

/// The last slots of some outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastOutcomes {
    pub(super) failed: Option<Second>,
    pub(super) late: Option<Second>,
    pub(super) lost: Option<LostSlots>,
    /// The end of the last successful Job.
    pub(super) succeeded: Option<Second>,
}

/// Lost slots, less than a day apart from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostSlots {
    pub(super) n_slots: u32,
    pub(super) first: Second,
    pub(super) last: Second,
    /// That of the last one.
    pub(super) reason: LossReason,
    /// Whether slots before the first one were left out.
    pub(super) is_cut: bool,
}

impl LastOutcomes {
    /// Notes a slot that is later than those noted before. `is_cut` tells that slots before it were left out.
    pub(super) fn note(&mut self, slot: &SlotRecord, is_cut: bool) {
        let at = Some(slot.at);
        if slot.outcome == Outcome::Failed {
            self.failed = self.failed.max(at);
        }
        if slot.has_late_job() {
            self.late = self.late.max(at);
        }
        if slot.outcome == Outcome::Succeeded {
            self.succeeded = self.succeeded.max(slot.finished);
        }
        if let Outcome::Lost(reason) = slot.outcome {
            let before = self.lost.filter(|lost| slot.at.since(lost.last) < DAY_SECONDS);
            self.lost = Some(LostSlots {
                n_slots: before.map_or(1, |lost| lost.n_slots + 1),
                first: before.map_or(slot.at, |lost| lost.first),
                last: slot.at,
                reason,
                is_cut: before.map_or(is_cut, |lost| lost.is_cut),
            });
        }
    }
}
