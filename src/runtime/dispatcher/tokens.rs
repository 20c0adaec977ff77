//! Tokens for creates that are long overdue: many at once, then so many a second. Pure.

use std::time::Duration;

use crate::state::sharding::BootInstant;

/// A bucket of tokens that fills with time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tokens {
    capacity: u32,
    interval: Duration,
    /// When the bucket would have been empty: the tokens are the time since then.
    empty_at: BootInstant,
}

impl Tokens {
    /// A full bucket. `per_second` is at least one.
    pub(super) fn new(capacity: u32, per_second: u32, now: BootInstant) -> Tokens {
        let tokens = Tokens {
            capacity,
            interval: Duration::from_secs(1) / per_second.max(1),
            empty_at: BootInstant::after_boot(Duration::ZERO),
        };
        Tokens {
            empty_at: tokens.full_since(now),
            ..tokens
        }
    }

    /// The last instant at which an empty bucket would be full by now.
    fn full_since(&self, now: BootInstant) -> BootInstant {
        BootInstant::after_boot(now.since_boot().saturating_sub(self.interval * self.capacity))
    }

    /// Takes a token, or says when there will be one.
    pub(super) fn take(&mut self, now: BootInstant) -> Result<(), BootInstant> {
        let empty_at = self.empty_at.max(self.full_since(now)) + self.interval;
        if empty_at > now {
            return Err(empty_at);
        }
        self.empty_at = empty_at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_what_it_holds_and_then_what_comes() {
        let at = |millis| BootInstant::after_boot(Duration::from_millis(millis));
        let mut tokens = Tokens::new(3, 10, at(100_000));
        let taken: Vec<_> = (0..4).map(|_| tokens.take(at(100_000))).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), Err(at(100_100))]);
        assert_eq!(tokens.take(at(100_100)), Ok(()));
        assert_eq!(tokens.take(at(100_150)), Err(at(100_200)));
        let later: Vec<_> = (0..4).map(|_| tokens.take(at(200_000)).is_ok()).collect();
        assert_eq!(later, [true, true, true, false], "it holds no more than its capacity");
    }
}
