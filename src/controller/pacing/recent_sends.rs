//! The requests in flight that were sent recently. Only these use capacity of the API server that other requests could
//! use: a request in flight for longer waits for something else, such as an admission webhook.

use std::{collections::BTreeSet, time::Duration};

use crate::shard::BootInstant;

/// A request is recent for this time. An API server with free capacity answers within it, unless an admission webhook
/// delays the answer; one without capacity answers "too many requests".
pub const RECENT_MAX: Duration = Duration::from_secs(1);

/// Identifies a request among those sent at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SendId {
    sent: BootInstant,
    number: u64,
}

/// The recent requests in flight.
#[derive(Debug, Default)]
pub struct RecentSends {
    sends: BTreeSet<SendId>,
    n_sent: u64,
}

impl RecentSends {
    /// Records a request that is sent now.
    pub fn enter(&mut self, now: BootInstant) -> SendId {
        self.n_sent += 1;
        let id = SendId {
            sent: now,
            number: self.n_sent,
        };
        self.sends.insert(id);
        id
    }

    /// Records that a request is answered.
    pub fn leave(&mut self, id: SendId) {
        self.sends.remove(&id);
    }

    /// Returns how many requests in flight are recent.
    pub fn count(&mut self, now: BootInstant) -> u32 {
        while let Some(first) = self.sends.first()
            && now.since(first.sent) >= RECENT_MAX
        {
            self.sends.pop_first();
        }
        self.sends.len().try_into().unwrap_or(u32::MAX)
    }

    /// Returns when the oldest recent request stops being recent.
    pub fn next_change(&self) -> Option<BootInstant> {
        Some(self.sends.first()?.sent + RECENT_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::after_boot(Duration::from_millis(millis))
    }

    #[test]
    fn a_request_is_recent_until_its_answer_or_for_one_second() {
        let mut recent = RecentSends::default();
        assert_eq!((recent.count(at(0)), recent.next_change()), (0, None));
        let ids = [0, 0, 400].map(|millis| recent.enter(at(millis)));
        assert_eq!((recent.count(at(999)), recent.next_change()), (3, Some(at(1_000))));
        recent.leave(ids[0]);
        assert_eq!(recent.count(at(999)), 2);
        assert_eq!((recent.count(at(1_000)), recent.next_change()), (1, Some(at(1_400))));
        recent.leave(ids[1]);
        assert_eq!(recent.count(at(1_000)), 1, "the request was no longer recent");
        recent.leave(ids[2]);
        assert_eq!(recent.count(at(1_000)), 0);
    }
}
