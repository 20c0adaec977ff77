//! The only source of randomness: `SplitMix64` with a seed. The same seed gives the same run.

use std::time::Duration;

/// A seeded generator.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `limit - 1`, or 0 if the limit is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// Returns true with this probability.
    pub fn happens(&mut self, per_million: u32) -> bool {
        self.below(1_000_000) < u64::from(per_million)
    }

    /// Returns a duration between the two, both included, in whole microseconds.
    pub fn between(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let span = longest.saturating_sub(shortest).as_micros();
        let span = u64::try_from(span).unwrap_or(u64::MAX - 1);
        shortest + Duration::from_micros(self.below(span + 1))
    }

    /// Returns a uid of version 4.
    pub(crate) fn uid(&mut self) -> u128 {
        let bits = (u128::from(self.bits()) << 64) | u128::from(self.bits());
        (bits & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62)
    }

    /// Returns the suffix that the server appends to a `generateName`.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut letter = || {
            let at = usize::try_from(self.below(LETTERS.len() as u64)).unwrap_or_default();
            char::from(LETTERS[at])
        };
        (0..5).map(|_| letter()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_determines_the_sequence() {
        let run = |seed| {
            let mut random = Random::new(seed);
            [random.bits(), random.below(1000), random.bits()]
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn random_values_stay_within_their_limits() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert_eq!(random.below(1), 0);
            let (shortest, longest) = (Duration::from_millis(3), Duration::from_millis(4));
            let between = random.between(shortest, longest);
            assert!(shortest <= between && between <= longest);
        }
        assert!(!random.happens(0));
        assert!(random.happens(1_000_000));
    }
}
