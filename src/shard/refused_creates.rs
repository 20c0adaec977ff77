//! The CronJobs whose creates are refused. Each backs off on its own.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;

/// The number of CronJobs whose last create was refused. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedCreates(Arc<AtomicU64>);

/// The refusal of a CronJob's last create. Dropped after a create that is not refused.
#[derive(Debug)]
pub(crate) struct RefusedCreate {
    creates: RefusedCreates,
    /// The number of refusals in a row, over all slots.
    pub(crate) n_refusals: u32,
    /// Whether the tenant caused the last refusal.
    pub(crate) is_due_to_tenant: bool,
    /// No create of a later slot before this instant.
    pub(crate) not_before: Timestamp,
    /// Whether the next create was let pass, until its answer.
    pub(crate) is_tried: bool,
}

impl RefusedCreates {
    /// Counts a CronJob that was not refused before.
    pub(super) fn add(&self, now: Timestamp) -> RefusedCreate {
        self.0.fetch_add(1, Ordering::Relaxed);
        RefusedCreate {
            creates: self.clone(),
            n_refusals: 0,
            is_due_to_tenant: false,
            not_before: now,
            is_tried: false,
        }
    }

    /// The current number.
    pub(super) fn n_cron_jobs(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for RefusedCreate {
    fn drop(&mut self) {
        self.creates.0.fetch_sub(1, Ordering::Relaxed);
    }
}
