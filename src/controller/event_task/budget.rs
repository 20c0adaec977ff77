//! The Event budget of an installation: the kinds and the number of Events that are written. Events are stored in
//! etcd beside all other objects of a cluster.

use std::time::Duration;

use clap::ValueEnum;

use crate::{
    controller::tokens::Tokens,
    shard::{BootInstant, EventReason, EventType},
};

/// Which Events are posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum EventFilter {
    /// All Events
    #[default]
    All,
    /// Warnings only
    Warnings,
    /// No Events
    None,
}

impl EventFilter {
    pub(super) fn admits(self, reason: EventReason) -> bool {
        match self {
            EventFilter::All => true,
            EventFilter::Warnings => reason.event_type() == EventType::Warning,
            EventFilter::None => false,
        }
    }
}

/// Budget of an installation for Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventBudget {
    /// Which Events are posted.
    pub filter: EventFilter,
    /// Maximum writes of Events per second, by all replicas together.
    pub per_second_max: u32,
}

impl EventBudget {
    /// An Event takes some 900 bytes in etcd, and each write is a new revision: 60 per second are 194 MB in an hour.
    pub const PER_SECOND_DEFAULT: u32 = 60;
}

impl Default for EventBudget {
    fn default() -> EventBudget {
        EventBudget {
            filter: EventFilter::default(),
            per_second_max: EventBudget::PER_SECOND_DEFAULT,
        }
    }
}

/// Most CronJobs fire at whole minutes, so the budget of a minute may be spent at its beginning.
const AT_ONCE: Duration = Duration::from_mins(1);

/// This replica's share of the budget.
#[derive(Debug)]
pub(super) struct Share {
    budget: EventBudget,
    n_replicas: u32,
    tokens: Tokens,
}

impl Share {
    /// Creates a share that is the whole budget.
    pub(super) fn new(budget: EventBudget, now: BootInstant) -> Share {
        let (capacity, per_second) = part(budget, 1);
        Share {
            budget,
            n_replicas: 1,
            tokens: Tokens::new(capacity, per_second, now),
        }
    }

    /// Updates the share to the number of replicas.
    pub(super) fn divide_among(&mut self, n_replicas: u32, now: BootInstant) {
        if n_replicas != self.n_replicas {
            let (capacity, per_second) = part(self.budget, n_replicas);
            self.n_replicas = n_replicas;
            self.tokens = self.tokens.resized(capacity, per_second, now);
        }
    }

    /// Spends one write, or returns the instant when the next write is available.
    pub(super) fn spend(&mut self, now: BootInstant) -> Result<(), BootInstant> {
        self.tokens.take(now)
    }
}

/// Returns the burst and the rate per second of one replica of `n_replicas`.
fn part(budget: EventBudget, n_replicas: u32) -> (u32, u32) {
    let per_second = (budget.per_second_max / n_replicas.max(1)).max(1);
    let at_once = u32::try_from(AT_ONCE.as_secs()).unwrap_or(u32::MAX);
    (per_second.saturating_mul(at_once), per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_divide_the_event_budget() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let spend_all = |share: &mut Share, now| (0_u32..10_000).take_while(|_| share.spend(now).is_ok()).count();
        let mut share = Share::new(EventBudget::default(), at(100));
        assert_eq!(spend_all(&mut share, at(100)), 3_600);
        assert_eq!(spend_all(&mut share, at(110)), 600);
        share.divide_among(3, at(110));
        assert_eq!(spend_all(&mut share, at(110)), 0);
        assert_eq!(spend_all(&mut share, at(120)), 200);
        share.divide_among(1, at(120));
        assert_eq!(spend_all(&mut share, at(121)), 60);
    }

    #[test]
    fn event_filter_selects_by_type() {
        for (filter, admitted) in [
            (EventFilter::All, [true, true]),
            (EventFilter::Warnings, [true, false]),
            (EventFilter::None, [false, false]),
        ] {
            let reasons = [EventReason::FailedCreate, EventReason::SuccessfulCreate];
            assert_eq!(reasons.map(|reason| filter.admits(reason)), admitted, "{filter:?}");
        }
    }
}
