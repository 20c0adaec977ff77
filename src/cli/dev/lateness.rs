//! The lateness of the last minute, from the histogram of the dispatcher. Starts that were delayed on purpose and
//! overdue starts do not count.

use std::collections::VecDeque;

use jiff::Timestamp;
use prometheus::{Histogram, core::Metric as _};

use super::last_minute::WINDOW;

/// A histogram at one instant: upper bounds in seconds, ascending, each with the number of values up to it. The last
/// bound is infinite.
type Buckets = Vec<(Seconds, u64)>;

/// The unit of the histogram.
type Seconds = f64;

/// Reads the buckets of a histogram.
pub(super) fn read(histogram: &Histogram) -> Buckets {
    let metric = histogram.metric();
    let histogram = metric.get_histogram();
    let bounds = histogram.get_bucket().iter();
    let buckets = bounds.map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()));
    let all = (f64::INFINITY, histogram.get_sample_count());
    buckets.chain(std::iter::once(all)).collect()
}

/// The lateness of creates: upper bounds for percentiles and the maximum, from the buckets that contain them; infinite
/// beyond the last bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lateness {
    pub(super) p50: Seconds,
    pub(super) p99: Seconds,
    pub(super) max: Seconds,
}

/// The histograms of the last minute, oldest first.
#[derive(Default)]
pub(super) struct LatenessWindow {
    samples: VecDeque<(Timestamp, Buckets)>,
}

impl LatenessWindow {
    /// Adds a histogram. Older ones than the window are removed, except the last of them, which is the base.
    pub(super) fn add(&mut self, now: Timestamp, buckets: Buckets) {
        self.samples.push_back((now, buckets));
        let is_base = |(at, _): &(Timestamp, Buckets)| now.duration_since(*at) >= WINDOW;
        while self.samples.get(1).is_some_and(is_base) {
            self.samples.pop_front();
        }
    }

    /// Returns the lateness within the window; `None` without creates.
    pub(super) fn lateness(&self) -> Option<Lateness> {
        let (_, first) = self.samples.front()?;
        let (_, last) = self.samples.back()?;
        let since = |(&(bound, count), (_, before)): (&(f64, u64), &(f64, u64))| (bound, count.saturating_sub(*before));
        let counts: Vec<(f64, u64)> = last.iter().zip(first).map(since).collect();
        let (_, n_values) = *counts.last().filter(|(_, n_values)| *n_values > 0)?;
        let bound_of = |n_least: u64| counts.iter().find(|(_, count)| *count >= n_least);
        Some(Lateness {
            p50: bound_of(n_values.div_ceil(2))?.0,
            p99: bound_of(n_values - n_values / 100)?.0,
            max: bound_of(n_values)?.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn buckets(counts: [u64; 4]) -> Buckets {
        [0.001, 0.01, 0.1, f64::INFINITY].into_iter().zip(counts).collect()
    }

    #[test]
    fn lateness_is_read_from_the_dispatcher_histogram() {
        let metrics = crate::telemetry::metrics::Metrics::register();
        let before = read(&metrics.dispatch.lateness);
        for seconds in [0.0004, 0.002, 4_000.0] {
            metrics.dispatch.lateness.observe(seconds);
        }
        let mut window = LatenessWindow::default();
        window.add(at(0), before);
        assert_eq!(window.lateness(), None);
        window.add(at(1), read(&metrics.dispatch.lateness));
        let lateness = window.lateness().unwrap();
        assert!((0.002..=0.005).contains(&lateness.p50), "{lateness:?}");
        assert!(lateness.max.is_infinite());
    }

    #[test]
    fn percentiles_and_maximum_are_bucket_bounds() {
        #[track_caller]
        fn check(counts: [u64; 4], expected: [f64; 3]) {
            let mut window = LatenessWindow::default();
            window.add(at(0), buckets([0; 4]));
            window.add(at(1), buckets(counts));
            let lateness = window.lateness().unwrap();
            let bounds = [lateness.p50, lateness.p99, lateness.max];
            assert_eq!(bounds.map(f64::to_bits), expected.map(f64::to_bits), "{lateness:?}");
        }
        check([4, 4, 4, 4], [0.001; 3]);
        check([0, 4, 4, 4], [0.01; 3]);
        check([1, 1, 1, 1], [0.001; 3]);
        check([98, 99, 100, 100], [0.001, 0.01, 0.1]);
        check([990, 990, 999, 1_000], [0.001, 0.001, f64::INFINITY]);
        check([0, 0, 4, 8], [0.1, f64::INFINITY, f64::INFINITY]);
        check([0, 0, 0, 8], [f64::INFINITY; 3]);
    }

    #[test]
    fn lateness_covers_the_last_minute() {
        let mut window = LatenessWindow::default();
        window.add(at(0), buckets([0; 4]));
        window.add(at(10), buckets([0, 0, 9, 9]));
        window.add(at(30), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness().map(|lateness| lateness.max), Some(0.1));
        window.add(at(69), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness().map(|lateness| lateness.max), Some(0.1));
        window.add(at(70), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness().map(|lateness| lateness.max), Some(0.001));
        window.add(at(91), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness(), None);
        assert_eq!(
            window.samples.len(),
            4,
            "the last sample before the window, and those within it"
        );
    }
}
