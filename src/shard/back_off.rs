//! Exponential back-off. It has no jitter, so that a simulation can be repeated exactly.

use std::time::Duration;

/// The delays after failures in a row.
#[derive(Clone, Copy, Debug)]
pub struct BackOff {
    /// The delay after the first failure. Each further failure doubles it.
    pub first: Duration,
    /// The longest delay.
    pub longest: Duration,
}

impl BackOff {
    /// The delay after this number of failures in a row, at least one.
    pub fn after(self, n_failures: u32) -> Duration {
        let n_doublings = n_failures.saturating_sub(1).min(u32::BITS - 1);
        self.first.saturating_mul(1 << n_doublings).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let back_off = BackOff {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(10),
        };
        let delays_millis = [1, 2, 3, 6, 7, 40, u32::MAX].map(|n_failures| back_off.after(n_failures).as_millis());
        assert_eq!(delays_millis, [200, 400, 800, 6_400, 10_000, 10_000, 10_000]);
    }
}
