//! The create of the open slot, the pace of missed runs, and the count of the slots that passed before it.

use jiff::{SignedDuration, Timestamp};

use super::ShardState;
use crate::{
    schedule::{after, policy},
    shard::{
        cron_job::{CronJobState, SlotStage},
        effect::{Effect, JobCreate},
        index::OwnerIndex,
        naming,
    },
};

impl ShardState {
    /// Emits the create of the open slot.
    pub(super) fn order(&mut self, owner: OwnerIndex, next: Option<Timestamp>) {
        let clock_skew_max = self.config.clock_skew_max;
        let cron_job = self.index.cron_job_mut(owner);
        let record = &cron_job.record;
        let Some(open) = &mut cron_job.open else { return };
        let slot = open.slot;
        let start = record.schedule.start_of(slot);
        let next = next.map(|next| record.schedule.start_of(next));
        let zone = record.schedule.zone.as_ref().and_then(|zone| zone.as_ref().ok());
        let expiry = policy::order_expiry(start, record.starting_deadline_seconds);
        let deadline = record
            .starting_deadline_seconds
            .map(|secs| after(start, SignedDuration::from_secs(secs)));
        let expires_at = match (expiry.map(|expiry| after(expiry, SignedDuration::from_nanos(1))), next) {
            (Some(expiry), Some(next)) => Some(expiry.min(next)),
            (expiry, next) => expiry.or(next),
        };
        let store_by = (!record.has_short_lived_jobs())
            .then(|| expires_at.map_or(Timestamp::MAX, |expires_at| after(expires_at, -clock_skew_max)));
        let order = JobCreate {
            cron_job: record.identity.clone(),
            name: record.job_name(slot),
            slot,
            start,
            scheduled_timestamp: naming::scheduled_timestamp(slot, zone),
            template: record.template.clone(),
            wanted_by: deadline.or(next).unwrap_or(Timestamp::MAX),
            expires_at,
            store_by,
            n_attempts_before: open.n_failures,
            // The next slot is armed after the decision that orders this one.
            is_on_time: cron_job.armed.get() == Some(slot),
            run_token: None,
        };
        open.stage = SlotStage::Creating;
        self.outbox.push_back(Effect::CreateJob(order));
    }

    /// The instant until which a missed run waits, so that `all` does not start them all at once.
    pub(super) fn pace_missed(&mut self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let pace = self.catch_up_pace.clone();
        let cron_job = self.index.cron_job_mut(owner);
        let armed = cron_job.armed.get();
        let may_be_missed = cron_job.record.schedule.options().start_several();
        let open = cron_job.open.as_mut()?;
        if !may_be_missed || open.is_paced || armed == Some(open.slot) {
            return None;
        }
        open.is_paced = true;
        Some(pace.reserve(now)).filter(|reserved| now < *reserved)
    }
}

/// The number of slots before this one that were due and are not counted yet.
pub(super) fn n_passed(cron_job: &CronJobState, slot: Timestamp, fired_through: Option<Timestamp>) -> u64 {
    // The armed slot is the next in order; only a slot beyond it has skipped others.
    if cron_job.armed.get() == Some(slot) {
        return 0;
    }
    let stored = cron_job.current_status().last_schedule_time;
    let cursor = stored.unwrap_or(cron_job.record.created);
    let schedule = &cron_job.record.schedule;
    // Slots of the new schedule before its change were never due; a slot at the change itself is.
    let changed = cron_job
        .schedule_changed
        .map(|at| after(schedule.slots_until(at), SignedDuration::from_nanos(-1)));
    let fired_through = fired_through.map(|at| schedule.slots_until(at));
    let base = [cron_job.counted_until.get(), fired_through, changed]
        .into_iter()
        .flatten()
        .fold(cursor, Timestamp::max);
    policy::count_between(schedule, base, slot)
}
