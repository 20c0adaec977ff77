//! The adaptive limit of requests in flight. It grows by one per round while answers are not slow, above the start only
//! while they are quick. It shrinks by a factor when the server throttles or its answers slow down.

use std::time::Duration;

/// Slow answers alone never lower the limit below this, where a healthy server idles between answers.
const LIMIT_MIN: f64 = 8.0;

/// Throttling can lower the limit to a single request. A server may have one place for this replica, and each refusal
/// makes the server require a longer pause the next time.
const THROTTLED_LIMIT_MIN: f64 = 1.0;

/// Initial limit: enough to saturate the API server of a small cluster, whose throughput is flat from 64 on.
const LIMIT_START: f64 = 64.0;

/// Factor on "too many requests". It is small because an API server requires longer pauses the more it had to refuse,
/// and the limit recovers within about a second.
const THROTTLED_FACTOR: f64 = 0.25;

/// Factor when answers have slowed down.
const SLOW_FACTOR: f64 = 0.8;

/// Answers slower than this, and than four times the quickest, indicate a queue in the server that this lane feeds.
const SLOW_SECONDS: f64 = 0.25;

/// Answers quicker than this, or than twice the quickest, let the limit grow above the start.
const QUICK_SECONDS: f64 = 0.02;

/// One answer counts as at most this multiple of the slow threshold: one slow webhook proves nothing about the server.
const OUTLIER_FACTOR: f64 = 2.0;

/// Weight of one answer in the mean.
const MEAN_WEIGHT: f64 = 1.0 / 16.0;

/// Weight by which the quickest known answer moves towards answers with few others in flight. So the limit adapts to a
/// server that moved farther away, and does not mistake a busy server for a distant one.
const QUICKEST_WEIGHT: f64 = 1.0 / 256.0;

/// A mean of fewer answers than this decides nothing.
const N_ANSWERS_MIN: u32 = 16;

/// The limit of requests in flight of one lane.
#[derive(Debug)]
pub(super) struct InflightLimit {
    limit: f64,
    /// This replica's part of [`LIMIT_START`]: what the server is assumed to handle before its answers prove otherwise.
    start: f64,
    limit_min: f64,
    limit_max: f64,
    quickest_seconds: Option<f64>,
    mean_seconds: f64,
    n_answers: u32,
}

impl InflightLimit {
    pub(super) fn new(inflight_max: u32) -> InflightLimit {
        let limit_max = f64::from(inflight_max.max(1));
        InflightLimit {
            limit: LIMIT_START.min(limit_max),
            start: LIMIT_START,
            limit_min: LIMIT_MIN.min(limit_max),
            limit_max,
            quickest_seconds: None,
            mean_seconds: 0.0,
            n_answers: 0,
        }
    }

    /// Divides the start among `n_senders` replicas of the same server. The limit scales with the start, as far as it
    /// is not above it.
    pub(super) fn share_among(&mut self, n_senders: u32) {
        let start = (LIMIT_START / f64::from(n_senders.max(1))).max(LIMIT_MIN);
        let scaled = self.limit.min(self.start) * start / self.start;
        if start < self.start {
            self.limit = scaled.max(self.limit_min.min(self.limit));
        } else if start > self.start {
            self.limit = scaled.max(self.limit).min(self.limit_max);
        }
        self.start = start;
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between one and a u32"
    )]
    pub(super) fn get(&self) -> u32 {
        self.limit as u32
    }

    /// Learns from an answer. Returns whether the limit was lowered, so that answers to requests in flight do not count
    /// against the new limit.
    pub(super) fn on_outcome(&mut self, latency: Duration, n_inflight: u32) -> bool {
        let seconds = latency.as_secs_f64();
        let mut quickest = self.quickest_seconds.map_or(seconds, |known| known.min(seconds));
        if f64::from(n_inflight) < self.limit_min {
            quickest += (seconds - quickest) * QUICKEST_WEIGHT;
        }
        self.quickest_seconds = Some(quickest);
        self.n_answers = self.n_answers.saturating_add(1);
        // The first answers weigh equally, later ones by the constant.
        let weight = MEAN_WEIGHT.max(1.0 / f64::from(self.n_answers));
        let slow_seconds = SLOW_SECONDS.max(4.0 * quickest);
        let counted_seconds = seconds.min(OUTLIER_FACTOR * slow_seconds);
        self.mean_seconds += (counted_seconds - self.mean_seconds) * weight;
        if self.n_answers < N_ANSWERS_MIN {
            return false;
        }
        if self.mean_seconds > slow_seconds {
            self.lower(SLOW_FACTOR, self.limit_min);
            return true;
        }
        let is_used = n_inflight.saturating_add(1) >= self.get();
        // Below the start the limit grows even if the server is busy: its throughput grows with the requests in flight.
        let growing_below_seconds = if self.limit < self.start {
            slow_seconds
        } else {
            QUICK_SECONDS.max(2.0 * quickest)
        };
        if is_used && self.mean_seconds < growing_below_seconds {
            self.limit = (self.limit + 1.0 / self.limit).min(self.limit_max);
        }
        false
    }

    pub(super) fn on_throttled(&mut self) {
        self.lower(THROTTLED_FACTOR, THROTTLED_LIMIT_MIN);
    }

    fn lower(&mut self, factor: f64, limit_min: f64) {
        self.limit = (self.limit * factor).max(limit_min.min(self.limit));
        self.mean_seconds = 0.0;
        self.n_answers = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that executes `parallel` requests at once, each for `service`, and queues the rest.
    fn latency(n_inflight: u32, parallel: u32, service: Duration) -> Duration {
        service * n_inflight.max(parallel) / parallel
    }

    #[track_caller]
    fn check(name: &str, inflight_max: u32, parallel: u32, service_ms: u64, expected: std::ops::RangeInclusive<u32>) {
        let mut limit = InflightLimit::new(inflight_max);
        limit.on_outcome(Duration::from_millis(service_ms), 0);
        for _ in 0..50_000 {
            let n_inflight = limit.get();
            limit.on_outcome(
                latency(n_inflight, parallel, Duration::from_millis(service_ms)),
                n_inflight - 1,
            );
        }
        assert!(expected.contains(&limit.get()), "{name}: settled at {}", limit.get());
    }

    #[test]
    fn the_limit_settles_where_the_server_is_busy_but_answers_soon() {
        check("a strong server close by", 128, 256, 3, 128..=128);
        check("a strong server far away", 128, 256, 300, 128..=128);
        check("a small server close by", 128, 6, 4, 60..=64);
        check("a weak server", 128, 1, 20, 8..=13);
        check("a limit below the least", 2, 16, 3, 2..=2);
    }

    #[test]
    fn replicas_share_what_the_server_carries() {
        let mut limit = InflightLimit::new(128);
        let mut shared_among = |n_senders| {
            limit.share_among(n_senders);
            limit.get()
        };
        assert_eq!([1, 2, 5, 50].map(&mut shared_among), [64, 32, 12, 8]);
        assert_eq!(
            [50, 4, 1].map(&mut shared_among),
            [8, 16, 64],
            "a part that grows is taken at once"
        );
        limit.on_throttled();
        limit.share_among(2);
        limit.share_among(1);
        assert_eq!(limit.get(), 16, "no more than was left of it");
        limit.on_throttled();
        for _ in 0..50_000 {
            let n_inflight = limit.get();
            limit.on_outcome(latency(n_inflight, 6, Duration::from_millis(4)), n_inflight - 1);
        }
        assert!((60..=64).contains(&limit.get()), "{}", limit.get());
    }

    #[test]
    fn throttling_quarters_the_limit_down_to_one() {
        let mut limit = InflightLimit::new(128);
        let seen: Vec<u32> = (0..5)
            .map(|_| {
                limit.on_throttled();
                limit.get()
            })
            .collect();
        assert_eq!(seen, [16, 4, 1, 1, 1]);
    }

    #[test]
    fn a_server_that_has_one_place_for_us_refuses_rarely_once_that_is_learnt() {
        let mut limit = InflightLimit::new(128);
        let n_refused = (0..1_000)
            .filter(|_| {
                let is_refused = limit.get() > 1;
                if is_refused {
                    limit.on_throttled();
                } else {
                    limit.on_outcome(Duration::from_millis(3), 0);
                }
                is_refused
            })
            .count();
        assert!((3..80).contains(&n_refused), "{n_refused} refusals");
    }

    #[test]
    fn slow_answers_do_not_raise_a_limit_that_throttling_took_below_the_least() {
        let mut limit = InflightLimit::new(128);
        for _ in 0..3 {
            limit.on_throttled();
        }
        limit.on_outcome(Duration::from_millis(3), 0);
        for _ in 0..100 {
            limit.on_outcome(Duration::from_secs(1), 1);
        }
        assert!(limit.get() < 8, "{}", limit.get());
    }

    #[test]
    fn after_a_reduction_the_limit_comes_back_to_where_it_started() {
        let mut limit = InflightLimit::new(128);
        for _ in 0..3 {
            limit.on_throttled();
        }
        assert_eq!(limit.get(), 1);
        // 1,600 answers a second: 40 ms with 64 in flight.
        for _ in 0..1_600 * 3 {
            let n_inflight = limit.get();
            limit.on_outcome(latency(n_inflight, 6, Duration::from_micros(3_750)), n_inflight - 1);
        }
        assert_eq!(limit.get(), 64);
    }

    #[test]
    fn one_slow_answer_does_not_lower_the_limit() {
        let mut limit = InflightLimit::new(128);
        for number in 0..1_000 {
            let millis = if number % 100 == 99 { 30_000 } else { 40 };
            assert!(!limit.on_outcome(Duration::from_millis(millis), 63), "answer {number}");
        }
        assert!(limit.get() >= 64);
    }

    #[test]
    fn a_limit_that_is_not_used_does_not_grow() {
        let mut limit = InflightLimit::new(128);
        for _ in 0..10_000 {
            limit.on_outcome(Duration::from_millis(3), 2);
        }
        assert_eq!(limit.get(), 64);
    }
}
