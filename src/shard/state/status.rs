//! Status writes and their answers (B-13).

use jiff::{SignedDuration, Timestamp};

use super::{
    ShardState,
    answers::ABANDONED_RETRY,
    back_off::{BACK_OFF, requested_wait, wait_after},
};
use crate::{
    schedule::after,
    shard::{
        cron_job::DelayedAction,
        effect::{Effect, EventReason, StatusWrite},
        ids::Uid,
        index::OwnerIndex,
        outcome::StatusOutcome,
        record::CronJobStatus,
    },
};

/// The minimum wait after a failure, and the wait after a conflict if no event arrives to rebuild the write on.
const STATUS_RETRY: SignedDuration = SignedDuration::from_secs(5);

/// Consecutive failures at which the first report is made. With [`STATUS_RETRY`] between them, they last longer than an
/// API server needs to start.
const N_FAILURES_BEFORE_REPORT: u32 = 2;

/// At one failure every half minute this is an hour, the lifetime of an Event (`kube-apiserver --event-ttl`).
const N_FAILURES_BETWEEN_REPORTS: u32 = 120;

impl ShardState {
    /// Emits the status if it differs from the stored one and from the last one emitted.
    pub(super) fn emit_status(&mut self, owner: OwnerIndex, now: Timestamp) {
        let cron_job = self.index.cron_job_mut(owner);
        if cron_job.is_status_stored() {
            cron_job.drop_stored_status();
            cron_job.is_status_urgent = false;
            return;
        }
        if let Some(until) = cron_job.delays.until(DelayedAction::Status, now) {
            return self.wake_at(owner, until);
        }
        let is_urgent = cron_job.is_status_urgent;
        let is_emitted = cron_job.emitted.as_ref().is_some_and(|emitted| {
            emitted.status == *cron_job.current_status()
                && emitted.resource_version == cron_job.record.resource_version
                && emitted.is_urgent >= is_urgent
        });
        if is_emitted {
            return;
        }
        let write = StatusWrite {
            cron_job: cron_job.record.identity.clone(),
            resource_version: cron_job.record.resource_version,
            retained_metadata: cron_job.record.retained_metadata.clone(),
            status: cron_job.current_status().clone(),
            is_urgent,
        };
        cron_job.emitted = Some(Box::new(write.clone()));
        self.outbox.push_back(Effect::WriteStatus(write));
    }

    pub(super) fn status_answered(&mut self, uid: &Uid, sent: CronJobStatus, answer: StatusOutcome, now: Timestamp) {
        let Some(owner) = self.index.find_cron_job(uid) else {
            return;
        };
        let cron_job = self.index.cron_job_mut(owner);
        let emitted_version = cron_job
            .emitted
            .take_if(|emitted| emitted.status == sent)
            .map(|e| e.resource_version);
        match answer {
            StatusOutcome::Stored { resource_version } => {
                cron_job.n_status_failures = 0;
                // An event newer than this answer has already delivered the current status.
                if resource_version >= cron_job.record.resource_version {
                    // Replace may wait until the token of a run is stored.
                    cron_job.must_decide |= sent.runs_done != cron_job.record.status.runs_done;
                    cron_job.note_stored(sent);
                    cron_job.record.resource_version = resource_version;
                }
            }
            StatusOutcome::Conflict => {
                let is_rebuilt_already =
                    emitted_version.is_none_or(|version| version < cron_job.record.resource_version);
                if !is_rebuilt_already {
                    cron_job.delays.set(DelayedAction::Status, after(now, STATUS_RETRY));
                }
            }
            // The deletion event will follow.
            StatusOutcome::Gone => {
                cron_job.delays.set(DelayedAction::Status, after(now, STATUS_RETRY));
            }
            StatusOutcome::Failed { message, retry_after } => {
                cron_job.n_status_failures = cron_job.n_status_failures.saturating_add(1);
                let wait = wait_after(BACK_OFF, cron_job.n_status_failures, owner)
                    .max(STATUS_RETRY)
                    .max(requested_wait(retry_after));
                cron_job.delays.set(DelayedAction::Status, after(now, wait));
                let n_since_report = cron_job.n_status_failures.checked_sub(N_FAILURES_BEFORE_REPORT);
                if n_since_report.is_some_and(|n| n.is_multiple_of(N_FAILURES_BETWEEN_REPORTS)) {
                    self.report_failed_status(owner, &message);
                }
            }
            // An immediate retry would be abandoned too.
            StatusOutcome::Abandoned => {
                cron_job.delays.set(DelayedAction::Status, after(now, ABANDONED_RETRY));
            }
        }
        self.evaluate(owner, now);
    }

    /// Explains in an Event why `LAST SCHEDULE` does not move and finished Jobs accumulate.
    fn report_failed_status(&mut self, owner: OwnerIndex, message: &str) {
        let message = format!(
            "Error updating status: {message}; until an update succeeds lastScheduleTime is out of date and finished \
             jobs are kept"
        );
        self.emit_event(owner, EventReason::FailedStatusUpdate, message);
    }
}
