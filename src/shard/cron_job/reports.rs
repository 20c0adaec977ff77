//! The Events that were emitted about a CronJob, as far as they limit further ones.

use jiff::Timestamp;

use crate::shard::{effect::EventReason, seconds::Seconds};

/// Limits the Events of a CronJob about Jobs that belong to no run to a number per hour. Anyone who may create Jobs in
/// any namespace can cause such Events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnexpectedEvents {
    begun: Seconds,
    n_emitted: u8,
}

impl UnexpectedEvents {
    /// The burst that client-go permits.
    const PER_HOUR_MAX: u8 = 25;

    /// Whether another Event may be emitted now. If so, it is counted.
    pub(crate) fn take(&mut self, now: Timestamp) -> bool {
        let begun = self.begun.get();
        if begun.is_none_or(|begun| now.duration_since(begun).as_hours() != 0) {
            *self = UnexpectedEvents {
                begun: Seconds::new(Some(now)),
                n_emitted: 0,
            };
        }
        let may_emit = self.n_emitted < Self::PER_HOUR_MAX;
        self.n_emitted = self.n_emitted.saturating_add(1);
        may_emit
    }
}

/// The reasons of Events that were emitted for the current schedule and are not repeated. One bit each.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reported(u32);

impl Reported {
    /// Adds a reason. Returns whether it was absent.
    pub(crate) fn insert(&mut self, reason: EventReason) -> bool {
        let before = self.0;
        self.0 |= 1 << (reason as u32);
        self.0 != before
    }

    pub(crate) fn remove(&mut self, reason: EventReason) {
        self.0 &= !(1 << (reason as u32));
    }
}
