//! The lateness of the last minute, from the histogram of the dispatcher. Starts that were delayed on purpose and
//! overdue starts do not count.

use std::collections::VecDeque;

use jiff::Timestamp;
use prometheus::{Histogram, core::Metric as _};

use super::board::WINDOW;

/// A histogram at one instant: upper bounds in seconds, ascending, each with the number of values up to it. The last
/// bound is infinite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buckets(pub(super) Vec<(f64, u64)>);

impl Buckets {
    pub(super) fn read(histogram: &Histogram) -> Buckets {
        let metric = histogram.metric();
        let histogram = metric.get_histogram();
        let bounds = histogram.get_bucket().iter();
        let mut buckets: Vec<_> = bounds
            .map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()))
            .collect();
        buckets.push((f64::INFINITY, histogram.get_sample_count()));
        Buckets(buckets)
    }
}

/// The lateness of creates, as exact as the buckets permit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lateness {
    /// The median in seconds.
    pub(super) p50_seconds: f64,
    /// The maximum in seconds; infinite beyond the last bucket.
    pub(super) max_seconds: f64,
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
        while self.samples.len() > 1
            && self
                .samples
                .get(1)
                .is_some_and(|(at, _)| now.duration_since(*at) >= WINDOW)
        {
            self.samples.pop_front();
        }
    }

    /// Returns the lateness within the window; `None` without creates.
    pub(super) fn lateness(&self) -> Option<Lateness> {
        let (_, first) = self.samples.front()?;
        let (_, last) = self.samples.back()?;
        let since = |(&(bound, count), (_, before)): (&(f64, u64), &(f64, u64))| (bound, count.saturating_sub(*before));
        let counts: Vec<(f64, u64)> = last.0.iter().zip(&first.0).map(since).collect();
        let (_, n_values) = *counts.last()?;
        let max = counts.iter().find(|(_, count)| *count == n_values)?;
        (n_values > 0).then(|| Lateness {
            p50_seconds: median(&counts, n_values),
            max_seconds: max.0,
        })
    }
}

/// The median, assuming an even distribution within its bucket.
#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
fn median(counts: &[(f64, u64)], n_values: u64) -> f64 {
    let half = n_values as f64 / 2.0;
    let mut below = (0.0, 0);
    for &(bound, count) in counts {
        if count as f64 >= half {
            let share = (half - below.1 as f64) / (count - below.1) as f64;
            return if bound.is_finite() {
                below.0 + (bound - below.0) * share
            } else {
                below.0
            };
        }
        below = (bound, count);
    }
    below.0
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    fn buckets(counts: [u64; 4]) -> Buckets {
        Buckets([0.001, 0.01, 0.1, f64::INFINITY].into_iter().zip(counts).collect())
    }

    #[test]
    fn lateness_is_read_from_the_dispatcher_histogram() {
        let metrics = crate::telemetry::metrics::Metrics::register().unwrap();
        let before = Buckets::read(&metrics.dispatch.lateness);
        for seconds in [0.0004, 0.002, 100.0] {
            metrics.dispatch.lateness.observe(seconds);
        }
        let mut window = LatenessWindow::default();
        window.add(at(0), before);
        assert_eq!(window.lateness(), None);
        window.add(at(1), Buckets::read(&metrics.dispatch.lateness));
        let lateness = window.lateness().unwrap();
        assert!((0.001..=0.002).contains(&lateness.p50_seconds), "{lateness:?}");
        assert!(lateness.max_seconds.is_infinite());
    }

    #[test]
    fn median_is_interpolated_and_maximum_is_a_bucket_bound() {
        #[track_caller]
        fn check(counts: [u64; 4], p50_seconds: f64, max_seconds: f64) {
            let mut window = LatenessWindow::default();
            window.add(at(0), buckets([0; 4]));
            window.add(at(1), buckets(counts));
            let lateness = window.lateness().unwrap();
            assert!((lateness.p50_seconds - p50_seconds).abs() < 1e-9, "{lateness:?}");
            assert_eq!(lateness.max_seconds.to_bits(), max_seconds.to_bits(), "{lateness:?}");
        }
        check([4, 4, 4, 4], 0.0005, 0.001);
        check([0, 4, 4, 4], 0.0055, 0.01);
        check([1, 1, 1, 1], 0.0005, 0.001);
        check([0, 0, 4, 8], 0.1, f64::INFINITY);
        check([0, 0, 0, 8], 0.1, f64::INFINITY);
    }

    #[test]
    fn lateness_covers_the_last_minute() {
        let mut window = LatenessWindow::default();
        window.add(at(0), buckets([0; 4]));
        window.add(at(10), buckets([0, 0, 9, 9]));
        window.add(at(30), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness().map(|lateness| lateness.max_seconds), Some(0.1));
        window.add(at(69), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness().map(|lateness| lateness.max_seconds), Some(0.1));
        window.add(at(70), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness().map(|lateness| lateness.max_seconds), Some(0.001));
        window.add(at(91), buckets([2, 2, 11, 11]));
        assert_eq!(window.lateness(), None);
        assert_eq!(
            window.samples.len(),
            4,
            "the last sample before the window, and those within it"
        );
    }
}
