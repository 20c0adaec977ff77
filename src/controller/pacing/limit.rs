//! The adaptive limit of requests in flight: additive increase, and multiplicative decrease on "too many requests" alone.
//!
//! Answers are judged in rounds. A round is as many answers as the limit, and [`ROUND_MIN`] at least. A round that used
//! the limit raises it by one, above the start only if its answers are mostly quick.
//!
//! Slow answers never lower the limit: an admission webhook of one namespace can delay as many of them as it wants.
//! They can only keep the limit at its start.

use std::time::Duration;

/// Initial limit: enough to saturate the API server of a small cluster, whose throughput is flat from 64 on.
const LIMIT_START: f64 = 64.0;

/// Each replica starts with at least this limit, even if many replicas divide the start: a healthy server idles
/// between so few requests. Throttling can lower the limit to a single request: a server may have one place for this
/// replica.
const START_MIN: f64 = 8.0;

/// Factor on "too many requests". It is small because an API server requires longer pauses the more it had to refuse.
const DECREASE_FACTOR: f64 = 0.25;

/// Answers quicker than this, or than twice the quickest, let the limit grow above the start.
const QUICK: Duration = Duration::from_millis(20);

/// Minimum number of answers in a round. More answers make a server with few places refuse less often, and slow the
/// recovery: from one to the start within some 2,500 answers.
const ROUND_MIN: u32 = 32;

/// The limit of requests in flight of one lane.
#[derive(Debug)]
pub(super) struct InFlightLimit {
    limit: f64,
    /// This replica's part of [`LIMIT_START`]: the assumed capacity of the server before its answers show the actual
    /// one.
    start: f64,
    limit_max: f64,
    /// The quickest known answer, which measures the distance to the server.
    quickest: Duration,
    round: Round,
}

/// The answers since the limit was last judged.
#[derive(Debug, Default)]
struct Round {
    n_answers: u32,
    n_quick: u32,
    /// Whether the limit kept requests back.
    is_used: bool,
}

impl Round {
    fn is_quick(&self) -> bool {
        self.n_quick > self.n_answers / 2
    }
}

impl InFlightLimit {
    pub(super) fn new(in_flight_max: u32) -> InFlightLimit {
        let limit_max = f64::from(in_flight_max.max(1));
        InFlightLimit {
            limit: LIMIT_START.min(limit_max),
            start: LIMIT_START,
            limit_max,
            quickest: Duration::MAX,
            round: Round::default(),
        }
    }

    /// Divides the start among `n_senders` replicas of the same server. The part of the limit up to the start scales
    /// with it.
    pub(super) fn share_among(&mut self, n_senders: u32) {
        let start = (LIMIT_START / f64::from(n_senders.max(1))).max(START_MIN);
        let scaled = self.limit.min(self.start) * start / self.start;
        if start < self.start {
            self.limit = scaled.max(START_MIN.min(self.limit));
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

    /// Learns from an answer, while `n_in_flight` others are in flight.
    pub(super) fn on_outcome(&mut self, latency: Duration, n_in_flight: u32) {
        self.quickest = self.quickest.min(latency);
        let quick = QUICK.max(self.quickest.saturating_mul(2));
        let limit = self.get();
        let round = &mut self.round;
        round.n_answers += 1;
        round.n_quick += u32::from(latency < quick);
        round.is_used |= n_in_flight.saturating_add(1) >= limit;
        if round.n_answers >= limit.max(ROUND_MIN) {
            self.end_round();
        }
    }

    fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        if round.is_used && (self.limit < self.start || round.is_quick()) {
            self.limit = (self.limit + 1.0).min(self.limit_max);
        }
    }

    pub(super) fn on_throttled(&mut self) {
        self.limit = (self.limit * DECREASE_FACTOR).max(1.0);
        self.round = Round::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that executes `parallel` requests at once, each for `service`, and queues the rest.
    fn latency(n_in_flight: u32, parallel: u32, service: Duration) -> Duration {
        service * n_in_flight.max(parallel) / parallel
    }

    #[track_caller]
    fn check(name: &str, in_flight_max: u32, parallel: u32, service_ms: u64, expected: std::ops::RangeInclusive<u32>) {
        let mut limit = InFlightLimit::new(in_flight_max);
        limit.on_outcome(Duration::from_millis(service_ms), 0);
        for _ in 0..50_000 {
            let n_in_flight = limit.get();
            limit.on_outcome(
                latency(n_in_flight, parallel, Duration::from_millis(service_ms)),
                n_in_flight - 1,
            );
        }
        assert!(expected.contains(&limit.get()), "{name}: settled at {}", limit.get());
    }

    #[test]
    fn the_limit_adapts_to_the_capacity_of_the_api_server() {
        check("a strong server close by", 128, 256, 3, 128..=128);
        check("a strong server far away", 128, 256, 300, 128..=128);
        check("a small server close by", 128, 6, 4, 60..=64);
        check("a weak server", 128, 1, 20, 64..=64);
        check("a limit below the least", 2, 16, 3, 2..=2);
    }

    #[test]
    fn replicas_share_the_in_flight_limit() {
        let mut limit = InFlightLimit::new(128);
        let mut shared_among = |n_senders| {
            limit.share_among(n_senders);
            limit.get()
        };
        assert_eq!([1, 2, 5, 50].map(&mut shared_among), [64, 32, 12, 8]);
        assert_eq!(
            [50, 4, 1].map(&mut shared_among),
            [8, 16, 64],
            "a larger share applies at once"
        );
        limit.on_throttled();
        limit.share_among(2);
        limit.share_among(1);
        assert_eq!(limit.get(), 16, "the limit does not rise");
        limit.on_throttled();
        for _ in 0..50_000 {
            let n_in_flight = limit.get();
            limit.on_outcome(latency(n_in_flight, 6, Duration::from_millis(4)), n_in_flight - 1);
        }
        assert!((60..=64).contains(&limit.get()), "{}", limit.get());
    }

    #[test]
    fn throttling_quarters_the_limit_down_to_one() {
        let mut limit = InFlightLimit::new(128);
        let seen: Vec<u32> = (0..5)
            .map(|_| {
                limit.on_throttled();
                limit.get()
            })
            .collect();
        assert_eq!(seen, [16, 4, 1, 1, 1]);
    }

    #[test]
    fn a_server_with_one_place_rarely_throttles_after_a_while() {
        let mut limit = InFlightLimit::new(128);
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
    fn the_limit_recovers_to_its_start_after_throttling() {
        let mut limit = InFlightLimit::new(128);
        for _ in 0..3 {
            limit.on_throttled();
        }
        assert_eq!(limit.get(), 1);
        // 1,600 answers a second: 40 ms with 64 in flight.
        for _ in 0..1_600 * 3 {
            let n_in_flight = limit.get();
            limit.on_outcome(latency(n_in_flight, 6, Duration::from_micros(3_750)), n_in_flight - 1);
        }
        assert_eq!(limit.get(), 64);
    }

    #[test]
    fn slow_answers_do_not_lower_the_limit_or_stop_its_recovery() {
        for millis in [300, 600, 1_000, 29_000] {
            let mut limit = InFlightLimit::new(128);
            limit.on_outcome(Duration::from_millis(3), 0);
            for _ in 0..10_000 {
                limit.on_outcome(Duration::from_millis(millis), limit.get() - 1);
                assert_eq!(limit.get(), 64, "{millis} ms");
            }
            limit.on_throttled();
            for _ in 0..10_000 {
                limit.on_outcome(Duration::from_millis(millis), limit.get() - 1);
            }
            assert_eq!(limit.get(), 64, "{millis} ms");
        }
    }

    #[test]
    fn an_unused_limit_does_not_grow() {
        let mut limit = InFlightLimit::new(128);
        for _ in 0..10_000 {
            limit.on_outcome(Duration::from_millis(3), 2);
        }
        assert_eq!(limit.get(), 64);
    }
}
