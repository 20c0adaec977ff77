//! The plan of a CronJob, for the commands that list next runs.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    schedule::CronJobSchedule,
    shard::{CronJobIdentity, CronJobRecord},
};

/// A CronJob's identity and what decides its next run.
pub(super) struct Plan {
    pub(super) identity: Arc<CronJobIdentity>,
    pub(super) schedule: CronJobSchedule,
    pub(super) is_suspended: bool,
    pub(super) is_deleting: bool,
    /// The start of the chain of activations.
    anchor: Timestamp,
}

impl Plan {
    pub(super) fn of(record: &CronJobRecord) -> Plan {
        Plan {
            identity: Arc::clone(&record.identity),
            schedule: record.schedule.clone(),
            is_suspended: record.is_suspended,
            is_deleting: record.is_deleting,
            anchor: record.status.last_schedule_time.unwrap_or(record.created),
        }
    }

    /// Whether the CronJob starts nothing.
    pub(super) fn is_at_rest(&self) -> bool {
        self.is_suspended || self.is_deleting
    }

    pub(super) fn next_run(&self, now: Timestamp) -> Option<Timestamp> {
        if self.is_at_rest() {
            None
        } else {
            self.schedule.next_run(self.anchor, now)
        }
    }
}
