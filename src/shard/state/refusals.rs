//! Creates that the API server refuses (B-12.4): the back-off of a CronJob, which carries over to its later slots, and
//! the turns that CronJobs take if many of a namespace are refused ([`RefusedCreates`]).
//!
//! [`RefusedCreates`]: crate::shard::refused_creates::RefusedCreates

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    back_off::{CREATE_BACK_OFF, INVALID_JOB_BACK_OFF, NEXT_SLOT_WAIT_MAX, requested_wait, wait_after},
};
use crate::{
    schedule::{after, policy},
    shard::{
        cron_job::{CronJobState, OpenSlot},
        ids::Uid,
        index::OwnerIndex,
        outcome::RefusalReason,
    },
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
        let (slot, n_failures) = (open.slot, open.n_failures);
        let identity = &cron_job.record.identity;
        let former = cron_job.refused.take().map(|refused| *refused);
        let mut refused = self.refused_creates.refuse(identity, reason, former, now);
        refused.n_refusals = refused.n_refusals.max(n_failures);
        let wait = match reason {
            RefusalReason::Invalid => wait_after(INVALID_JOB_BACK_OFF, n_failures, owner),
            RefusalReason::NamespaceTerminating | RefusalReason::NotPermitted | RefusalReason::Failed(_) => {
                wait_after(CREATE_BACK_OFF, refused.n_refusals, owner)
            }
        };
        refused.not_before = after(now, wait.min(NEXT_SLOT_WAIT_MAX));
        cron_job.refused = Some(Box::new(refused));
        let until = after(now, wait.max(requested_wait(retry_after)));
        // The retry is not later than the deadline, so that the loss of the slot is reported when it occurs.
        let until = until.min(lost_at(cron_job, slot)).max(now);
        self.retry_at(owner, until);
    }

    /// Records that admission let a Job of the CronJob pass.
    pub(super) fn note_create_success(&mut self, owner: OwnerIndex, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        match cron_job.refused.take() {
            Some(refused) => refused.succeed(now),
            None => self
                .refused_creates
                .note_success(&cron_job.record.identity.namespace, now),
        }
    }

    /// Returns the instant until which the create of a slot is put off because earlier creates of the CronJob were
    /// refused, if it is. A create that is not put off now is not put off later either, until its answer.
    pub(super) fn put_off_refused(&mut self, owner: OwnerIndex, slot: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let cron_job = self.index.cron_job_mut(owner);
        let lost_at = lost_at(cron_job, slot);
        let refused = cron_job.refused.as_mut().filter(|refused| !refused.has_turn)?;
        let until = if refused.waits_for_turn(now) {
            // The turn comes earlier, or turns are no longer needed.
            after(now, wait_after(CREATE_BACK_OFF, u32::MAX, owner)).min(lost_at)
        } else {
            refused.not_before
        };
        if now < until {
            // Until its first attempt the slot counts as refused like the slots before it.
            if let Some(open) = &mut cron_job.open {
                open.is_refused_due_to_tenant |= refused.is_due_to_tenant();
            }
            return Some(until);
        }
        refused.has_turn = true;
        None
    }

    /// Tries the open slot of a CronJob whose create was refused, although its back-off is not over and others wait for
    /// their turn. Returns whether a request was ordered.
    pub(crate) fn try_refused(&mut self, uid: &Uid, now: Timestamp) -> bool {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return false;
        };
        let cron_job = self.index.cron_job_mut(owner);
        let is_waiting = cron_job.open.as_ref().and_then(OpenSlot::back_off_end).is_some();
        let Some(refused) = cron_job.refused.as_mut().filter(|_| is_waiting) else {
            return false;
        };
        refused.has_turn = true;
        cron_job.must_decide = true;
        self.evaluate(owner, now);
        let cron_job = self.index.cron_job_mut(owner);
        let is_ordered = cron_job.open.as_ref().is_some_and(OpenSlot::must_be_settled);
        if let Some(refused) = &mut cron_job.refused {
            refused.has_turn = is_ordered;
        }
        is_ordered
    }
}

/// The first instant at which a slot is lost to its starting deadline.
fn lost_at(cron_job: &CronJobState, slot: Timestamp) -> Timestamp {
    let last = policy::order_expiry(slot, cron_job.record.starting_deadline_seconds);
    last.map_or(Timestamp::MAX, |last| after(last, SignedDuration::from_millis(1)))
}
