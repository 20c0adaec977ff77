//! Creates that the API server refuses (B-12.4): the back-off of a CronJob, which carries over to its later slots.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    back_off::{CREATE_BACK_OFF, INVALID_JOB_BACK_OFF, NEXT_SLOT_WAIT_MAX, requested_wait, wait_after},
};
use crate::{
    schedule::{after, policy},
    shard::{cron_job::CronJobState, index::OwnerIndex, outcome::RefusalReason},
};

impl ShardState {
    /// Retries a slot whose create was refused. A Job that is refused as invalid is retried slowly: the cause may be
    /// an admission webhook, and a corrected CronJob is decided at once.
    pub(super) fn retry_refused(
        &mut self,
        owner: OwnerIndex,
        reason: RefusalReason,
        retry_after: Option<Duration>,
        now: Timestamp,
    ) {
        let cron_job = self.index.cron_job_mut(owner);
        let Some(open) = &mut cron_job.open else { return };
        open.n_failures = open.n_failures.saturating_add(1);
        open.is_refused_due_to_tenant = reason.is_due_to_tenant();
        open.is_delayed_by_tenant |= reason.is_due_to_tenant();
        let (slot, n_failures) = (open.slot, open.n_failures);
        let namespace = &cron_job.record.identity.namespace;
        let first = || Box::new(self.refused_creates.add(namespace, now));
        let refused = cron_job.refused.get_or_insert_with(first);
        refused.n_refusals = refused.n_refusals.saturating_add(1).max(n_failures);
        refused.is_due_to_tenant = reason.is_due_to_tenant();
        refused.is_tried = false;
        let wait = match reason {
            RefusalReason::Invalid => wait_after(INVALID_JOB_BACK_OFF, n_failures, owner),
            RefusalReason::NamespaceTerminating | RefusalReason::NotPermitted | RefusalReason::Failed(_) => {
                wait_after(CREATE_BACK_OFF, refused.n_refusals, owner)
            }
        };
        refused.not_before = after(now, wait.min(NEXT_SLOT_WAIT_MAX));
        let until = after(now, wait.max(requested_wait(retry_after)));
        // The retry is not later than the loss of the slot, so that it is reported when it occurs.
        let until = until.min(lost_at(cron_job, slot)).max(now);
        let until = self
            .skipped_from(owner, now)
            .map_or(until, |skipped| until.min(skipped));
        self.retry_at(owner, until);
    }

    /// Returns the instant until which the create of a slot is put off because earlier creates of the CronJob were
    /// refused, if it is. A create that is not put off now is not put off later either, until its answer.
    pub(super) fn put_off_refused(&mut self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let cron_job = self.index.cron_job_mut(owner);
        let refused = cron_job.refused.as_mut().filter(|refused| !refused.is_tried)?;
        if now < refused.not_before {
            // Until its first attempt the slot counts as refused like the slots before it.
            if let Some(open) = &mut cron_job.open {
                open.is_refused_due_to_tenant |= refused.is_due_to_tenant;
                open.is_delayed_by_tenant |= refused.is_due_to_tenant;
            }
            return Some(refused.not_before);
        }
        refused.is_tried = true;
        None
    }
}

/// The first instant at which a slot is lost to its starting deadline.
fn lost_at(cron_job: &CronJobState, slot: Timestamp) -> Timestamp {
    let start = cron_job.record.schedule.start_of(slot);
    let last = policy::order_expiry(start, cron_job.record.starting_deadline_seconds);
    last.map_or(Timestamp::MAX, |last| after(last, SignedDuration::from_millis(1)))
}
