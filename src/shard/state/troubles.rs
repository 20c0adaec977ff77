//! The facts about a CronJob for [`trouble`](crate::shard::trouble).

use std::sync::Arc;

use jiff::Timestamp;

use super::ShardState;
use crate::shard::{
    cron_job::{CronJobState, Management, SlotStage, Unusable},
    ids::CronJobIdentity,
    index::{Job, OwnerIndex},
    panics::contain,
    record::{ConcurrencyPolicy, CronJobSchedule, Finish},
    trouble::{Activations, TroubleFacts, TroubleKind, Troubles, troubles},
};

/// Of a CronJob with more Jobs, only the last observed ones are examined. History limits keep most CronJobs far
/// below.
const N_JOBS_EXAMINED_MAX: usize = 1_000;

/// The result of the examination of a place.
pub(crate) struct Examined {
    /// The kinds of trouble of its CronJob.
    pub(crate) since: Troubles,
    /// The number of objects examined.
    pub(crate) n_objects: usize,
    /// Whether cronwheel panicked on it just now, so that the shard has new effects.
    pub(crate) has_panicked: bool,
}

impl ShardState {
    /// All places that may contain a CronJob.
    pub(crate) fn places(&self) -> std::ops::Range<OwnerIndex> {
        self.index.owner_indexes()
    }

    /// The identity of the CronJob in a place.
    pub(crate) fn identity(&self, owner: OwnerIndex) -> Arc<CronJobIdentity> {
        self.index.cron_job(owner).record.identity.clone()
    }

    /// The owner of the CronJob in a place, by its label.
    pub(crate) fn owner(&self, owner: OwnerIndex) -> Option<Box<str>> {
        let record = &self.index.cron_job(owner).record;
        record.owner.as_ref().map(|owner| owner.0.clone())
    }

    /// Examines a place. A CronJob that is not known completely, or not managed, is in no trouble.
    pub(crate) fn examine(&mut self, owner: OwnerIndex, now: Timestamp) -> Examined {
        let n_jobs = usize::try_from(self.index.n_jobs_of(owner)).unwrap_or(usize::MAX);
        let known = self.index.get_cron_job(owner);
        // Jobs on the active list need not exist.
        let n_active = known.map_or(0, |known| known.current_status().active.len());
        let mut since = None;
        if let Err(message) = contain(|| since = Some(self.troubles_of(owner, now))) {
            self.note_unexamined(owner, message);
        }
        Examined {
            has_panicked: since.is_none(),
            since: since.unwrap_or_default(),
            n_objects: 1 + n_jobs.min(N_JOBS_EXAMINED_MAX) + n_active.min(N_JOBS_EXAMINED_MAX),
        }
    }

    fn troubles_of(&mut self, owner: OwnerIndex, now: Timestamp) -> Troubles {
        let known = self.index.get_cron_job(owner).filter(|_| self.is_listed(owner));
        let Some(known) = known.filter(|known| known.management == Management::Managed) else {
            return Troubles::default();
        };
        let options = self.namespaces.options(&known.record.identity.namespace);
        if options.is_some_and(|options| options.are_alerts_off) {
            return Troubles::default();
        }
        match known.unusable {
            Some(Unusable::Undecodable) => Troubles::default(),
            Some(Unusable::Panicked) => unhandled(known),
            None if known.is_unexamined => unhandled(known),
            None => {
                #[cfg(test)]
                self.panic_if_told(owner, super::PanicAt::Examination);
                troubles(&self.trouble_facts(owner, now), now)
            }
        }
    }

    fn trouble_facts(&mut self, owner: OwnerIndex, now: Timestamp) -> TroubleFacts {
        let failed_start = self.last_failed_start(owner, now);
        let is_held_back = self.is_held_back(owner);
        let cron_job = self.index.cron_job_mut(owner);
        let pending = cron_job.pending(now);
        let status = cron_job.current_status();
        let (started, succeeded) = (status.last_schedule_time, status.last_successful_time);
        let CronJobState {
            record,
            after_start,
            after_success,
            ..
        } = cron_job;
        let (created, schedule) = (record.created, &record.schedule);
        let after_success = found_after(after_success, schedule, succeeded.unwrap_or(created));
        let after_start =
            (is_held_back || pending.is_some()).then(|| found_after(after_start, schedule, started.unwrap_or(created)));
        TroubleFacts {
            is_stopped: record.is_suspended || record.is_deleting,
            is_unschedulable: schedule.parsed.is_err() || matches!(schedule.zone, Some(Err(_))),
            created,
            last_schedule_time: started,
            last_successful_time: succeeded,
            after_start,
            after_success,
            failed_start,
            pending,
            is_held_back,
            thresholds: record.trouble_thresholds,
        }
    }

    /// Whether Forbid holds runs back: a Job on the active list is running.
    fn is_held_back(&self, owner: OwnerIndex) -> bool {
        let cron_job = self.index.cron_job(owner);
        let is_running = |uid| {
            let job = self.index.find_job(uid).map(|job| self.index.job(job));
            job.is_some_and(|job| job.finish.is_none() && !job.is_delete_requested)
        };
        let mut listed = cron_job.current_status().active.iter().take(N_JOBS_EXAMINED_MAX);
        cron_job.record.concurrency_policy == ConcurrencyPolicy::Forbid
            && listed.any(|active| is_running(&active.uid) && self.index.is_child_of(owner, &active.uid))
    }

    /// The latest start of a Job of the CronJob that failed. A Job that was never started counts from its slot.
    fn last_failed_start(&self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let identity = &self.index.cron_job(owner).record.identity;
        let latest_slot = self.latest_slot_of_jobs(now);
        let is_child = |job: &Job| job.is_in_namespace_of(identity) && !job.is_scheduled_after(latest_slot);
        let jobs = self.index.jobs_of(owner).map(|(_, job)| job);
        let jobs = jobs.take(N_JOBS_EXAMINED_MAX);
        let failed = jobs.filter(|job| job.finish == Some(Finish::Failed) && is_child(job));
        failed.filter_map(|job| job.started().or_else(|| job.scheduled())).max()
    }
}

impl CronJobState {
    /// The start of the latest due slot without a Job, unless `spec.suspend` or Forbid holds it back.
    fn pending(&self, now: Timestamp) -> Option<Timestamp> {
        let start_of = |slot| self.record.schedule.start_of(slot);
        let armed = self.armed.get().filter(|slot| !self.record.schedule.excludes(*slot));
        let armed_due = armed.map(start_of).filter(|start| *start <= now);
        let Some(open) = &self.open else { return armed_due };
        let is_held_back = matches!(
            open.stage,
            SlotStage::Suspended | SlotStage::Frozen | SlotStage::HeldByForbid
        );
        if is_held_back {
            None
        } else {
            armed_due.max(Some(start_of(open.slot)))
        }
    }
}

/// The trouble of a CronJob that cronwheel cannot handle or examine.
fn unhandled(cron_job: &CronJobState) -> Troubles {
    let record = &cron_job.record;
    let is_stopped = record.is_suspended || record.is_deleting;
    let since = record.status.last_schedule_time.unwrap_or(record.created);
    let mut troubles = Troubles::default();
    troubles[TroubleKind::Invalid as usize] = Some(since).filter(|_| !is_stopped);
    troubles
}

/// The activations after an instant, from the last search if that began there.
fn found_after(known: &mut Activations, schedule: &CronJobSchedule, instant: Timestamp) -> Activations {
    if !known.are_after(instant) {
        *known = Activations::after(schedule, instant);
    }
    *known
}
