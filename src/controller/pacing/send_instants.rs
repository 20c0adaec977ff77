//! The instants at which requests in flight were sent. Only recent requests use capacity of the API server that other
//! requests could use: a request in flight for longer waits for something else, such as an admission webhook.

use std::{collections::BTreeMap, time::Duration};

use crate::shard::BootInstant;

/// A request is recent for this time. An API server with free capacity answers within it, unless an admission webhook
/// delays the answer; one without capacity answers "too many requests".
pub const RECENT_MAX: Duration = Duration::from_secs(1);

/// The number of requests in flight that were sent at each instant.
#[derive(Debug, Default)]
pub struct SendInstants(BTreeMap<BootInstant, u32>);

impl SendInstants {
    /// Records a request that is sent now.
    pub fn enter(&mut self, now: BootInstant) {
        *self.0.entry(now).or_default() += 1;
    }

    /// Records that a request is answered. Has no effect if the request is forgotten.
    pub fn leave(&mut self, sent: BootInstant) {
        if let Some(n) = self.0.get_mut(&sent) {
            *n -= 1;
            if *n == 0 {
                self.0.remove(&sent);
            }
        }
    }

    /// Returns the instant of the oldest request.
    pub fn oldest(&self) -> Option<BootInstant> {
        self.0.first_key_value().map(|(sent, _)| *sent)
    }

    /// Forgets the requests that are not recent, and returns the number of the others.
    pub fn count_recent(&mut self, now: BootInstant) -> u32 {
        while self.oldest().is_some_and(|sent| now.since(sent) >= RECENT_MAX) {
            self.0.pop_first();
        }
        self.0.values().sum()
    }

    /// Returns when the oldest request stops being recent.
    pub fn next_change(&self) -> Option<BootInstant> {
        Some(self.oldest()? + RECENT_MAX)
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
        let mut sends = SendInstants::default();
        assert_eq!((sends.count_recent(at(0)), sends.next_change()), (0, None));
        for sent in [0, 0, 400] {
            sends.enter(at(sent));
        }
        assert_eq!((sends.count_recent(at(999)), sends.next_change()), (3, Some(at(1_000))));
        sends.leave(at(0));
        assert_eq!(sends.count_recent(at(999)), 2);
        assert_eq!(
            (sends.count_recent(at(1_000)), sends.next_change()),
            (1, Some(at(1_400)))
        );
        sends.leave(at(0));
        assert_eq!(sends.count_recent(at(1_000)), 1, "the request was no longer recent");
        sends.leave(at(400));
        assert_eq!(sends.count_recent(at(1_000)), 0);
    }
}
