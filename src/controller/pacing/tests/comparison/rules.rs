//! Rejected rules, for comparison with the rule in use: see decision 011.

use std::time::Duration;

use super::{super::super::RECENT_MAX, Rule};

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

    fn on_outcome(&mut self, latency: Duration, n_in_flight: u32) -> bool {
        if latency >= RECENT_MAX {
            return false;
        }
        self.n_answers += 1;
        self.n_slow += u32::from(latency > Self::CEILING);
        self.is_used |= n_in_flight + 1 >= self.limit();
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

/// A limit that also decreases on rounds that are mostly slower than 250 ms and than four times the quickest answer.
/// Answers that take a second or longer do not count.
pub(super) struct SlowDecrease {
    limit: f64,
    start: f64,
    quickest: Duration,
    round: Vec<Duration>,
    is_used: bool,
}

impl SlowDecrease {
    pub(super) fn new(n_senders: u32) -> SlowDecrease {
        SlowDecrease {
            limit: start(n_senders),
            start: start(n_senders),
            quickest: Duration::MAX,
            round: Vec::new(),
            is_used: false,
        }
    }

    fn lower(&mut self, limit_min: f64) {
        self.limit = (self.limit * 0.25).max(limit_min.min(self.limit));
        self.round.clear();
        self.is_used = false;
    }
}

impl Rule for SlowDecrease {
    fn limit(&self) -> u32 {
        whole(self.limit)
    }

    fn on_outcome(&mut self, latency: Duration, n_in_flight: u32) -> bool {
        if latency >= RECENT_MAX {
            return false;
        }
        self.quickest = self.quickest.min(latency);
        self.round.push(latency);
        self.is_used |= n_in_flight + 1 >= self.limit();
        if self.round.len() < self.limit().max(32) as usize {
            return false;
        }
        let (slow, quick) = (self.quickest * 4, self.quickest * 2);
        let is_mostly = |is_so: &dyn Fn(Duration) -> bool| {
            self.round.iter().filter(|latency| is_so(**latency)).count() > self.round.len() / 2
        };
        let is_slow = is_mostly(&|latency| latency > slow.max(Duration::from_millis(250)));
        let is_quick = is_mostly(&|latency| latency < quick.max(Duration::from_millis(20)));
        if is_slow && self.limit > 8.0 {
            self.lower(8.0);
            return true;
        }
        if is_slow {
            self.quickest = self.round.iter().copied().min().unwrap_or(self.quickest);
        } else if self.is_used && (self.limit < self.start || is_quick) {
            self.limit = (self.limit + 1.0).min(128.0);
        }
        self.round.clear();
        self.is_used = false;
        false
    }

    fn on_throttled(&mut self) {
        self.lower(1.0);
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
