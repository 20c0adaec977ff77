//! The create of the open slot, the pace of missed runs, and the count of the slots that passed before it.

use jiff::{SignedDuration, Timestamp};

use super::ShardState;
use crate::{
    schedule::{
        Exclusion, after,
        busy::busy_since,
        just_before,
        options::{CatchUp, MISSED_AFTER},
        policy,
        thaw::last_frozen,
    },
    shard::{
        FiredThrough,
        cron_job::{CronJobState, SlotStage},
        effect::{Effect, JobCreate},
        index::{Job, OwnerIndex},
        naming,
        record::ConcurrencyPolicy,
    },
};

/// The shortest time between two instants.
const NANOSECOND: SignedDuration = SignedDuration::from_nanos(1);

impl ShardState {
    /// Emits the create of the open slot.
    pub(super) fn order(&mut self, owner: OwnerIndex, next: Option<Timestamp>, now: Timestamp) {
        let clock_skew_max = self.config.clock_skew_max;
        let late_from = self.late_from(owner);
        let skipped_from = self.skipped_from(owner, now);
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
        let expiry = expiry.map(|expiry| after(expiry, NANOSECOND));
        let expires_at = [expiry, next, skipped_from].into_iter().flatten().min();
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
            late_from,
            run_token: None,
        };
        open.stage = SlotStage::Creating;
        self.outbox.push_back(Effect::CreateJob(order));
    }

    /// The instant until which a missed run waits, so that `all` does not start them all at once.
    pub(super) fn pace_missed(&mut self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let cron_job = self.index.cron_job_mut(owner);
        let open = cron_job.open.as_ref()?;
        let is_at_its_time = cron_job.armed.get() == Some(open.slot);
        // The end of the run before sets its pace.
        let is_held_back = open.stage == SlotStage::HeldByForbid;
        if is_at_its_time {
            // No missed slot is before it.
            cron_job.give_place_up();
        }
        let schedule = &cron_job.record.schedule;
        if !schedule.options().start_several() || is_at_its_time || is_held_back {
            return None;
        }
        let next_start = |start| Some(schedule.start_of(schedule.next_wanted(schedule.slots_until(start))?));
        let place = self.catch_up_pace.place(cron_job.place(), next_start, now);
        cron_job.rare_mut().place = Some(place);
        Some(place.at).filter(|at| now < *at && place.came.is_none())
    }

    /// The instant since which Jobs have run that Forbid counts, if the options of the CronJob depend on it.
    pub(super) fn busy_since(&self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let record = &self.index.cron_job(owner).record;
        if record.schedule.options().missed_runs != CatchUp::Skip {
            return None;
        }
        // Nobody knows how long a Job has waited that has not been started yet.
        let begin = |job: &Job| job.started().or(job.scheduled()).unwrap_or(Timestamp::MIN);
        let running = self.running(owner).map(|job| (begin(job), None));
        let completed = self.completed(owner).map(|job| (begin(job), job.completed()));
        busy_since(running.chain(completed), now)
    }

    /// The instant from which `missed-runs: skip` does not start the open slot any more: 60 s after its start, or more than
    /// 60 s after the completion that it waited for under Forbid. It is decided again then.
    pub(super) fn skipped_from(&self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let cron_job = self.index.cron_job(owner);
        let record = &cron_job.record;
        if record.schedule.options().missed_runs != CatchUp::Skip {
            return None;
        }
        let start = record.schedule.start_of(cron_job.open.as_ref()?.slot);
        let is_forbid = record.concurrency_policy == ConcurrencyPolicy::Forbid;
        let completed = self.completed(owner).filter_map(Job::completed).max();
        let idle = completed.filter(|_| is_forbid).map(|at| after(at, NANOSECOND));
        let skipped_from = after(idle.map_or(start, |idle| idle.max(start)), MISSED_AFTER);
        // Later, only `on-resume` starts it.
        Some(skipped_from).filter(|at| now < *at)
    }

    /// The Jobs of slots and of runs that are asked for that have completed.
    fn completed(&self, owner: OwnerIndex) -> impl Iterator<Item = &Job> {
        let jobs = self.index.children_of(owner);
        let completed = jobs.filter(move |(index, job)| job.completed().is_some() && self.is_ours(owner, *index));
        completed.map(|(_, job)| job)
    }

    /// The instant at which the open slot should have started; `None` if its tenant has delayed it. A catch-up counts from
    /// its slot like any other start: after an outage it is late.
    pub(super) fn late_from(&self, owner: OwnerIndex) -> Option<Timestamp> {
        let cron_job = self.index.cron_job(owner);
        let open = cron_job.open.as_ref()?;
        let start = cron_job.record.schedule.start_of(open.slot);
        if open.is_delayed_by_tenant || Some(start) <= self.startable_since(owner) {
            return None;
        }
        let is_awaited = cron_job.armed.get() == Some(open.slot);
        if is_awaited || cron_job.record.concurrency_policy != ConcurrencyPolicy::Forbid {
            return Some(start);
        }
        // Until then Forbid would have held the slot back, even if nobody decided it.
        let jobs = self.index.jobs_of(owner).map(|(_, job)| job);
        let finished = jobs.filter_map(Job::completed).max();
        Some(finished.map_or(start, |finished| finished.max(start)))
    }

    /// The latest instant at which the CronJob could not start for a reason that has ended; no slot until then is late.
    fn startable_since(&self, owner: OwnerIndex) -> Option<Timestamp> {
        let cron_job = self.index.cron_job(owner);
        let freeze = self.freeze_of(owner).map(|freeze| freeze.until);
        let frozen = freeze.map(last_frozen);
        let observed = cron_job.resumed.get().max(cron_job.startable_since());
        // Before the first leadership, another controller answered for the slots.
        observed.max(frozen).max(self.first_led)
    }
}

/// The number of slots before this one that were due and are not counted yet.
pub(super) fn n_passed(cron_job: &CronJobState, slot: Timestamp, fired_through: Option<FiredThrough>) -> u64 {
    // The armed slot is the next in order; only a slot beyond it has skipped others.
    if cron_job.armed.get() == Some(slot) {
        return 0;
    }
    let schedule = &cron_job.record.schedule;
    let base = counted_through(cron_job, fired_through);
    let count = |exclusion: Exclusion<'_>| exclusion.count(cursor_of(cron_job), base, slot);
    let n_excluded = schedule.exclusion().map_or(0, count);
    policy::count_between(schedule, base, slot).saturating_sub(n_excluded)
}

/// The instant up to which the slots are counted, or were never due.
pub(super) fn counted_through(cron_job: &CronJobState, fired_through: Option<FiredThrough>) -> Timestamp {
    let cursor = cursor_of(cron_job);
    let schedule = &cron_job.record.schedule;
    // Slots of the new schedule before its change were never due; a slot at the change itself is.
    let changed = cron_job
        .schedule_changed
        .map(|at| just_before(schedule.slots_until(at)));
    let fired_through = fired_through.and_then(|fired_through| match fired_through {
        FiredThrough::Seal(at) => Some(schedule.slots_until(at)),
        FiredThrough::Renewal(at) => schedule
            .latest_between(cursor, schedule.slots_until(at))
            .map(just_before),
    });
    [cron_job.counted_until.get(), fired_through, changed]
        .into_iter()
        .flatten()
        .fold(cursor, Timestamp::max)
}

/// The cursor, or the creation.
pub(super) fn cursor_of(cron_job: &CronJobState) -> Timestamp {
    let stored = cron_job.current_status().last_schedule_time;
    stored.unwrap_or(cron_job.record.created)
}
