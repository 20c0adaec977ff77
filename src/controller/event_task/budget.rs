//! The Event budget of an installation: the kinds and the number of Events that are written. Events are stored in
//! etcd beside all other objects of a cluster.

use clap::ValueEnum;

use crate::{
    controller::tokens::Tokens,
    shard::{BootInstant, EventReason},
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
            EventFilter::Warnings => reason.is_warning(),
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

    /// Returns the tokens of the installation. For each write, a replica takes one token for each replica that sends.
    pub(super) fn tokens(self, now: BootInstant) -> Tokens {
        Tokens::new(AT_ONCE_SECS * self.per_second_max, self.per_second_max, now)
    }
}

/// Most CronJobs fire at whole minutes, so the budget of a minute may be spent at its beginning.
const AT_ONCE_SECS: u32 = 60;

impl Default for EventBudget {
    fn default() -> EventBudget {
        EventBudget {
            filter: EventFilter::default(),
            per_second_max: EventBudget::PER_SECOND_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn replicas_divide_the_event_budget() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let mut tokens = EventBudget::default().tokens(at(100));
        let mut n_written = |n_senders, now| {
            (0_u32..10_000)
                .take_while(|_| tokens.take(n_senders, now).is_ok())
                .count()
        };
        assert_eq!(n_written(1, at(100)), 3_600);
        assert_eq!(n_written(1, at(110)), 600);
        assert_eq!(n_written(3, at(110)), 0);
        assert_eq!(n_written(3, at(120)), 200);
        assert_eq!(n_written(1, at(121)), 60);
    }

    #[test]
    fn each_of_very_many_replicas_can_write_events() {
        let at = |seconds| BootInstant::after_boot(Duration::from_secs(seconds));
        let budget = EventBudget {
            per_second_max: 1,
            ..EventBudget::default()
        };
        let mut tokens = budget.tokens(at(100));
        assert_eq!(tokens.take(1_000, at(100)), Ok(()));
        assert_eq!(tokens.take(1_000, at(101)), Err(at(160)));
        assert_eq!(tokens.take(1_000, at(160)), Ok(()));
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
