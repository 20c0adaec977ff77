//! Suspensions and freezes, which hold every due slot back.

use jiff::{SignedDuration, Timestamp};

use super::ShardState;
use crate::{
    schedule::{after, options::CatchUp, policy::Verdict},
    shard::{
        cron_job::SlotStage, index::OwnerIndex, outcome_counts::InstantOutcome, record::ConcurrencyPolicy,
        seconds::Seconds,
    },
};

impl ShardState {
    /// Holds every due slot back. The first one that may still start is open; those before it are counted.
    pub(super) fn hold_all(&mut self, owner: OwnerIndex, stage: SlotStage, verdict: &Verdict, now: Timestamp) {
        self.record_ended(owner, now);
        self.index.cron_job_mut(owner).give_place_up();
        let armed = self.index.cron_job(owner).armed.get();
        let is_due = |armed: &Timestamp| self.index.cron_job(owner).has_come(*armed, now);
        let passed = armed.filter(is_due);
        let held = passed.and_then(|passed| self.held_slot(owner, passed, now));
        let is_new = held.is_some_and(|slot| self.open(owner, slot, stage.clone(), verdict));
        if is_new {
            return;
        }
        if let Some(open) = self.open_slot_mut(owner) {
            open.hold(stage);
        } else if armed.is_none() {
            // The first decision of this leader. When the CronJob is resumed, earlier slots are not lost.
            let cron_job = self.index.cron_job_mut(owner);
            cron_job.counted_until = Seconds::new(cron_job.counted_until.get().max(Some(now)));
        }
    }

    /// The first of the due slots that `on-resume` may start, given that `due` is a due slot. A slot that was passed
    /// before is none of them.
    fn held_slot(&self, owner: OwnerIndex, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let cron_job = self.index.cron_job(owner);
        let schedule = &cron_job.record.schedule;
        let mut first = schedule.latest_wanted(due, schedule.slots_until(now))?;
        let count = match schedule.options().on_resume() {
            CatchUp::All(count) if cron_job.record.concurrency_policy != ConcurrencyPolicy::Replace => count,
            CatchUp::All(_) | CatchUp::Latest | CatchUp::Skip => 1,
        };
        let earliest = cron_job.open.as_ref().map_or(due, |open| open.slot);
        for _ in 1..count {
            let before = after(first, SignedDuration::from_secs(-1));
            let earlier = (earliest <= before).then(|| schedule.latest_wanted(earliest, before));
            let Some(earlier) = earlier.flatten() else { break };
            first = earlier;
        }
        Some(first)
    }

    /// How a slot ends that a suspension or a freeze has held back until now, if one has.
    pub(super) fn outcome_of_hold(&self, owner: OwnerIndex) -> Option<InstantOutcome> {
        match self.index.cron_job(owner).open.as_ref()?.stage {
            SlotStage::Suspended => Some(InstantOutcome::Suspended),
            SlotStage::Frozen => Some(InstantOutcome::Frozen),
            SlotStage::HeldByForbid
            | SlotStage::AlreadyActive
            | SlotStage::Replacing { .. }
            | SlotStage::Creating
            | SlotStage::LookingUp { .. }
            | SlotStage::BackingOff { .. } => None,
        }
    }
}
