//! Reports that another controller acts on a CronJob whose options it does not follow, such as the built-in one if it was
//! not switched off.
//!
//! The evidence is what the leader sees happen: a new Job of a slot that no cronwheel created, and a status of another
//! field manager.

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::{after, options::OptionName},
    shard::{
        effect::EventReason,
        index::OwnerIndex,
        namespaces::SETTLE_TIME,
        naming,
        record::{JobCreator, JobRecord},
    },
};

impl ShardState {
    /// Whether another controller has just created the Job, of a slot since the CronJob was managed.
    pub(super) fn is_of_other(&self, job: &JobRecord, now: Timestamp) -> bool {
        // The usual case.
        if job.creator != JobCreator::Unknown || !self.phase.acts() {
            return false;
        }
        let controller = job.controller.as_ref();
        let Some(owner) = controller.and_then(|uid| self.index.find_cron_job(uid)) else {
            return false;
        };
        let record = &self.index.cron_job(owner).record;
        let is_plain = !record.schedule.has_options() && self.freeze_of(owner).is_none();
        if is_plain || self.index.find_job(&job.uid).is_some() {
            return false;
        }
        let identity = &record.identity;
        let is_child = job.namespace == identity.namespace;
        let is_named = |slot: &Timestamp| naming::is_job_name(&job.name, &identity.name, *slot);
        let slot = job.scheduled.filter(is_named).filter(|_| is_child);
        slot.is_some_and(|slot| {
            let settling = after(slot, -SETTLE_TIME);
            slot <= self.latest_slot_of_jobs(now)
                && self.namespaces.contained(&identity.namespace, settling)
                && self.first_led.is_none_or(|led| led <= settling)
        })
    }

    /// Reports the options that another controller ignored when it did this, once until the options change. Those that
    /// change no start do no harm.
    pub(super) fn report_ignored_options(&mut self, owner: OwnerIndex, action: &str, now: Timestamp) {
        if !self.phase_of(owner).acts() || self.is_paused || !self.is_listed(owner) {
            return;
        }
        let record = &self.index.cron_job(owner).record;
        let freeze = self.freeze_of(owner).filter(|freeze| freeze.holds_at(now));
        let ignored = record.schedule.options().of_starts();
        let ignored = ignored.into_iter().chain(freeze.map(|_| OptionName::FreezeUntil));
        let ignored: Vec<&str> = ignored.map(OptionName::annotation).collect();
        if ignored.is_empty() {
            return;
        }
        self.report_once(owner, EventReason::IgnoredOption, |_| {
            format!(
                "another controller {action} and ignores {}: only one may run this CronJob, and cronwheel check says how to \
                 mend that",
                ignored.join(", ")
            )
        });
    }
}
