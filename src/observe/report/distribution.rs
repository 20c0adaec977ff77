//! Percentiles of whole seconds, exact, in memory that grows with the number of distinct values.

use std::collections::BTreeMap;

use super::LatenessEntry;

/// Number of values by seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    counts: BTreeMap<i64, u64>,
    n_values: u64,
}

impl Distribution {
    pub(super) fn add(&mut self, seconds: i64) {
        *self.counts.entry(seconds).or_default() += 1;
        self.n_values += 1;
    }

    /// `None` without values.
    pub(super) fn lateness(&self) -> Option<LatenessEntry> {
        Some(LatenessEntry {
            p50_seconds: self.percentile(50)?,
            p90_seconds: self.percentile(90)?,
            p99_seconds: self.percentile(99)?,
            max_seconds: self.percentile(100)?,
        })
    }

    /// The smallest value that at least this percentage of the values does not exceed.
    pub(super) fn percentile(&self, percent: u64) -> Option<i64> {
        let rank = (self.n_values * percent).div_ceil(100);
        let mut n_before = 0;
        let reaches = |(_, n): &(&i64, &u64)| {
            n_before += **n;
            n_before >= rank
        };
        self.counts.iter().find(reaches).map(|(seconds, _)| *seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values() {
        #[track_caller]
        fn check(values: impl Iterator<Item = i64>, expected: Option<[i64; 4]>) {
            let mut distribution = Distribution::default();
            for value in values {
                distribution.add(value);
            }
            let found = distribution.lateness();
            let found = found.map(|found| {
                [
                    found.p50_seconds,
                    found.p90_seconds,
                    found.p99_seconds,
                    found.max_seconds,
                ]
            });
            assert_eq!(found, expected);
        }
        check(std::iter::empty(), None);
        check([7].into_iter(), Some([7; 4]));
        check([9, 1].into_iter(), Some([1, 9, 9, 9]));
        check(1..=1_000, Some([500, 900, 990, 1_000]));
        check(std::iter::repeat_n(0, 99).chain([60]), Some([0, 0, 0, 60]));
    }
}
