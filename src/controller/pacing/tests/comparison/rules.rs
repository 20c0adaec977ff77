//! The rules that were compared with the present one: see decision 011.

use std::time::Duration;

use super::Rule;

/// A limit that never changes.
pub(super) struct Fixed(pub(super) u32);

impl Rule for Fixed {
    fn limit(&self) -> u32 {
        self.0
    }

    fn on_outcome(&mut self, _: Duration, _: u32) -> bool {
        false
    }

    fn on_throttled(&mut self) {}
}

/// Additive increase, and decrease on "too many requests" and above an absolute latency ceiling.
pub(super) struct Absolute {
    limit: f64,
    limit_min: f64,
    n_answers: u32,
    n_slow: u32,
    is_used: bool,
}

impl Absolute {
    /// With 250 ms, a server at 300 ms gets three times less; with 750 ms, five replicas overload a shared server.
    const CEILING: Duration = Duration::from_millis(500);

    pub(super) fn new(n_senders: u32) -> Absolute {
        let limit = start(n_senders);
        Absolute {
            limit,
            limit_min: limit / 2.0,
            n_answers: 0,
            n_slow: 0,
            is_used: false,
        }
    }

    fn lower(&mut self, factor: f64, limit_min: f64) {
        self.limit = (self.limit * factor).max(limit_min.min(self.limit));
        (self.n_answers, self.n_slow, self.is_used) = (0, 0, false);
    }
}

impl Rule for Absolute {
    fn limit(&self) -> u32 {
        whole(self.limit)
    }

    fn on_outcome(&mut self, latency: Duration, n_inflight: u32) -> bool {
        self.n_answers += 1;
        self.n_slow += u32::from(latency > Self::CEILING);
        self.is_used |= n_inflight + 1 >= self.limit();
        if self.n_answers < self.limit().max(32) {
            return false;
        }
        let (is_slow, is_used) = (self.n_slow * 2 > self.n_answers, self.is_used);
        (self.n_answers, self.n_slow, self.is_used) = (0, 0, false);
        if is_slow {
            self.lower(0.5, self.limit_min);
        } else if is_used {
            self.limit = (self.limit + 1.0).min(128.0);
        }
        is_slow
    }

    fn on_throttled(&mut self) {
        self.lower(0.25, 1.0);
    }
}

/// The former limit: a moving mean of latencies relative to the quickest answer.
pub(super) struct Gradient {
    limit: f64,
    start: f64,
    quickest_seconds: Option<f64>,
    mean_seconds: f64,
    n_answers: u32,
}

impl Gradient {
    pub(super) fn new(n_senders: u32) -> Gradient {
        Gradient {
            limit: start(n_senders),
            start: start(n_senders),
            quickest_seconds: None,
            mean_seconds: 0.0,
            n_answers: 0,
        }
    }

    fn lower(&mut self, factor: f64, limit_min: f64) {
        self.limit = (self.limit * factor).max(limit_min.min(self.limit));
        self.mean_seconds = 0.0;
        self.n_answers = 0;
    }
}

impl Rule for Gradient {
    fn limit(&self) -> u32 {
        whole(self.limit)
    }

    fn on_outcome(&mut self, latency: Duration, n_inflight: u32) -> bool {
        let seconds = latency.as_secs_f64();
        let mut quickest = self.quickest_seconds.map_or(seconds, |known| known.min(seconds));
        if n_inflight < 8 {
            quickest += (seconds - quickest) / 256.0;
        }
        self.quickest_seconds = Some(quickest);
        self.n_answers += 1;
        let weight = f64::max(1.0 / 16.0, 1.0 / f64::from(self.n_answers));
        let slow_seconds = f64::max(0.25, 4.0 * quickest);
        self.mean_seconds += (seconds.min(2.0 * slow_seconds) - self.mean_seconds) * weight;
        if self.n_answers < 16 {
            return false;
        }
        if self.mean_seconds > slow_seconds {
            self.lower(0.8, 8.0);
            return true;
        }
        let growing_below_seconds = if self.limit < self.start {
            slow_seconds
        } else {
            f64::max(0.02, 2.0 * quickest)
        };
        if n_inflight + 1 >= self.limit() && self.mean_seconds < growing_below_seconds {
            self.limit = (self.limit + 1.0 / self.limit).min(128.0);
        }
        false
    }

    fn on_throttled(&mut self) {
        self.lower(0.25, 1.0);
    }
}

/// Each sender's part of 64 requests.
fn start(n_senders: u32) -> f64 {
    (64.0 / f64::from(n_senders)).max(8.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between one and 128"
)]
fn whole(limit: f64) -> u32 {
    limit as u32
}
