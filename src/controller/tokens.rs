//! A token bucket: a burst at once, then a fixed rate. Pure.

use std::time::Duration;

use crate::shard::BootInstant;

/// A token bucket that refills with time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tokens {
    capacity: u32,
    interval: Duration,
    /// The instant at which the bucket is full if no more tokens are taken.
    full_at: BootInstant,
}

impl Tokens {
    /// Creates a full bucket. `per_second` is at least one.
    pub(super) fn new(capacity: u32, per_second: u32, now: BootInstant) -> Tokens {
        Tokens {
            capacity,
            interval: Duration::from_secs(1) / per_second.max(1),
            full_at: now,
        }
    }

    /// Takes `n` tokens. If the bucket cannot hold as many, it must be full, and all of them are taken. Returns the
    /// instant from which that is possible if tokens are missing.
    pub(super) fn take(&mut self, n: u32, now: BootInstant) -> Result<(), BootInstant> {
        let full_at = self.full_at.max(now) + self.interval * n.min(self.capacity);
        let beyond = full_at.since(now).saturating_sub(self.interval * self.capacity);
        if beyond > Duration::ZERO {
            return Err(now + beyond);
        }
        self.full_at = full_at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bucket_is_limited_to_its_capacity_and_rate() {
        let at = |millis| BootInstant::after_boot(Duration::from_millis(millis));
        let mut tokens = Tokens::new(3, 10, at(100_000));
        let taken: Vec<_> = (0..4).map(|_| tokens.take(1, at(100_000))).collect();
        assert_eq!(taken, [Ok(()), Ok(()), Ok(()), Err(at(100_100))]);
        assert_eq!(tokens.take(1, at(100_100)), Ok(()));
        assert_eq!(tokens.take(1, at(100_150)), Err(at(100_200)));
        let later: Vec<_> = (0..4).map(|_| tokens.take(1, at(200_000)).is_ok()).collect();
        assert_eq!(
            later,
            [true, true, true, false],
            "the bucket holds at most its capacity"
        );
    }
}
