//! Seeded random numbers for tests. The seed alone reproduces a run.

use std::time::{SystemTime, UNIX_EPOCH};

/// A `SplitMix64` generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from `min` to `max`, inclusive.
    pub(crate) fn between(&mut self, min: i64, max: i64) -> i64 {
        let width = max.abs_diff(min).saturating_add(1);
        min + i64::try_from(self.next() % width).expect("as wide as the range")
    }

    /// Returns an index below `length`.
    pub(crate) fn below(&mut self, length: usize) -> usize {
        usize::try_from(self.next() % length as u64).expect("below a length")
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Returns true once in `n` times on average.
    pub(crate) fn is_one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// Returns the seed from the environment: 1 without the variable, so that a gate always runs the same inputs, and a seed
/// from the current time if it is empty. Prints it, so that the run can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("CRONWHEEL_FUZZ_SEED").ok().as_deref() {
        None => 1,
        Some("") => {
            #[expect(clippy::disallowed_methods, reason = "a seed that no run had before")]
            let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        }
        Some(seed) => seed.parse().expect("CRONWHEEL_FUZZ_SEED is a number"),
    };
    eprintln!("CRONWHEEL_FUZZ_SEED={seed}");
    seed
}
