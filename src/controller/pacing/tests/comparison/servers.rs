//! Models of API servers in virtual time.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    time::Duration,
};

use crate::shard::BootInstant;

/// The answer to a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reply {
    Created,
    Throttled { retry_after: Duration },
}

/// The division of the server's capacity.
enum Capacity {
    /// Each of `n` workers executes one request at a time. Others wait in a queue of `queue_max`, beyond which they are
    /// refused.
    Workers {
        n: usize,
        service: Duration,
        queue_max: usize,
    },
    /// All requests are executed at once and share the processors. From `n_half` requests on, the capacity is halved
    /// for each doubling, as on a machine that begins to swap.
    Shared { per_second: f64, n_half: usize },
}

/// The instant at which a burst begins.
pub(super) const START: BootInstant = BootInstant::after_boot(Duration::from_secs(100));

const UNLIMITED: usize = usize::MAX;

/// Creates a server without requests.
pub(super) type NewServer = fn() -> Server;

/// The servers of the table. Service times are means: each request takes from a half to three halves.
pub(super) const SERVERS: &[(&str, NewServer)] = &[
    ("6 workers, 1,600/s", || workers(6, 3_750, UNLIMITED)),
    ("64 workers, 5,000/s", || workers(64, 12_800, UNLIMITED)),
    ("1 worker, 1,000/s", || workers(1, 1_000, UNLIMITED)),
    ("1 worker, 50/s", || workers(1, 20_000, UNLIMITED)),
    ("20 workers, 2 of them for 2 s", || {
        workers(20, 12_500, UNLIMITED).with_others(200..2_200, 2)
    }),
    ("6 workers, none of them for 3 s", || {
        workers(6, 3_750, UNLIMITED).with_others(200..3_200, 0)
    }),
    ("processor sharing, 1,600/s", || shared(1_600.0, UNLIMITED)),
    ("processor sharing, 1,600/s, slower from 64", || shared(1_600.0, 64)),
    ("processor sharing, 400/s, slower from 32", || shared(400.0, 32)),
    ("6 seats and a queue of 50, then 429", || workers(6, 3_750, 50)),
    ("20 seats and a queue of 10, then 429", || workers(20, 12_500, 10)),
    ("20 seats, 2 of them for 2 s, queue of 50", || {
        workers(20, 12_500, 50).with_others(200..2_200, 2)
    }),
    ("4 seats without a queue, then 429", || workers(4, 3_000, 0)),
    ("1 seat without a queue, then 429", || workers(1, 3_000, 0)),
    ("100 ms away", || workers(UNLIMITED, 3_000, UNLIMITED).at_ms(100)),
    ("300 ms away", || workers(UNLIMITED, 3_000, UNLIMITED).at_ms(300)),
    ("6 workers, 100 ms away", || workers(6, 3_750, UNLIMITED).at_ms(100)),
    ("6 workers, webhook of 600 ms", || {
        workers(6, 3_750, UNLIMITED).with_webhook(600, 1)
    }),
    ("6 workers, webhook of 600 ms for a quarter", || {
        workers(6, 3_750, UNLIMITED).with_webhook(600, 4)
    }),
    ("6 workers, webhook of 600 ms for three quarters", || {
        workers(6, 3_750, UNLIMITED).with_webhook_except(600, 4)
    }),
    ("6 workers, webhook of 10 s for a tenth", || {
        workers(6, 3_750, UNLIMITED).with_webhook(10_000, 10)
    }),
];

fn workers(n: usize, service_micros: u64, queue_max: usize) -> Server {
    Server::new(Capacity::Workers {
        n,
        service: Duration::from_micros(service_micros),
        queue_max,
    })
}

fn shared(per_second: f64, n_half: usize) -> Server {
    Server::new(Capacity::Shared { per_second, n_half })
}

/// A model of a server.
pub(super) struct Server {
    capacity: Capacity,
    network: Duration,
    /// The delay of an admission webhook, a number `n`, and whether the webhook delays one answer in `n` or all
    /// others.
    webhook: (Duration, usize, bool),
    /// The time in which other clients use the server, and the number of workers that remain.
    others: Option<(Range<BootInstant>, usize)>,
    waiting: VecDeque<usize>,
    /// The requests that workers execute, with their ends.
    executing: BTreeSet<(BootInstant, usize)>,
    /// The remaining work of requests that share the processors, in requests.
    remaining: Vec<(usize, f64)>,
    now: BootInstant,
    answers: BTreeSet<(BootInstant, usize, Reply)>,
    refusals: Refusals,
}

impl Server {
    fn new(capacity: Capacity) -> Server {
        Server {
            capacity,
            network: Duration::from_micros(500),
            webhook: (Duration::ZERO, 1, true),
            others: None,
            waiting: VecDeque::new(),
            executing: BTreeSet::new(),
            remaining: Vec::new(),
            now: START,
            answers: BTreeSet::new(),
            refusals: Refusals::default(),
        }
    }

    /// Adds a network round trip to each answer.
    fn at_ms(mut self, network_ms: u64) -> Server {
        self.network = Duration::from_millis(network_ms);
        self
    }

    /// A webhook delays one answer in `n`.
    fn with_webhook(mut self, delay_ms: u64, n: usize) -> Server {
        self.webhook = (Duration::from_millis(delay_ms), n, true);
        self
    }

    /// A webhook delays all answers but one in `n`.
    fn with_webhook_except(mut self, delay_ms: u64, n: usize) -> Server {
        self.webhook = (Duration::from_millis(delay_ms), n, false);
        self
    }

    /// Leaves only `n_left` workers during this time, in milliseconds from the start.
    fn with_others(mut self, during_ms: Range<u64>, n_left: usize) -> Server {
        let at = |millis| START + Duration::from_millis(millis);
        self.others = Some((at(during_ms.start)..at(during_ms.end), n_left));
        self
    }

    /// The number of requests that wait for a worker. With shared processors, all requests but one count.
    pub(super) fn n_waiting(&self) -> usize {
        self.waiting.len() + self.remaining.len().saturating_sub(1)
    }

    /// Receives a request. `now` is not before the instant of the last [`Server::advance`].
    pub(super) fn receive(&mut self, id: usize, now: BootInstant) {
        self.progress(now);
        match self.capacity {
            Capacity::Workers { queue_max, .. } => {
                self.waiting.push_back(id);
                self.begin(now);
                if self.waiting.len() > queue_max {
                    self.waiting.pop_back();
                    let retry_after = self.refusals.refuse(now);
                    let at = now + self.network;
                    self.answers.insert((at, id, Reply::Throttled { retry_after }));
                }
            }
            Capacity::Shared { .. } => {
                self.remaining.push((id, weight(id)));
            }
        }
    }

    /// The next instant at which [`Server::advance`] has an effect.
    pub(super) fn next_event(&self) -> Option<BootInstant> {
        let answered = self.answers.first().map(|(at, ..)| *at);
        let executed = self.executing.first().map(|(at, _)| *at);
        let least = self.remaining.iter().map(|(_, work)| *work).reduce(f64::min);
        let shared = least.map(|work| self.now + Duration::from_secs_f64(work / self.rate()) + Duration::from_nanos(1));
        let free_again = self
            .others
            .as_ref()
            .map(|(during, _)| during.end)
            .filter(|end| !self.waiting.is_empty() && *end > self.now);
        [answered, executed, shared, free_again].into_iter().flatten().min()
    }

    /// Executes requests until `now`, and returns the answers that arrive by then.
    pub(super) fn advance(&mut self, now: BootInstant) -> Vec<(usize, Reply)> {
        self.progress(now);
        while let Some((at, id)) = self.executing.first().copied()
            && at <= now
        {
            self.executing.pop_first();
            self.answer(id, at);
        }
        self.begin(now);
        let mut arrived = Vec::new();
        while let Some((at, id, reply)) = self.answers.first().copied()
            && at <= now
        {
            self.answers.pop_first();
            arrived.push((id, reply));
        }
        arrived
    }

    fn answer(&mut self, id: usize, at: BootInstant) {
        let (delay, n, is_of_these) = self.webhook;
        let is_delayed = id.is_multiple_of(n) == is_of_these;
        let delay = if is_delayed { delay } else { Duration::ZERO };
        let at = at + self.network + delay;
        self.answers.insert((at, id, Reply::Created));
    }

    /// Gives waiting requests to idle workers.
    fn begin(&mut self, now: BootInstant) {
        let Capacity::Workers { n, service, .. } = self.capacity else {
            return;
        };
        let n = match &self.others {
            Some((during, n_left)) if during.contains(&now) => *n_left,
            _ => n,
        };
        while self.executing.len() < n
            && let Some(id) = self.waiting.pop_front()
        {
            self.executing.insert((now + service.mul_f64(weight(id)), id));
        }
    }

    /// The rate of each request that shares the processors, in requests per second.
    fn rate(&self) -> f64 {
        let Capacity::Shared { per_second, n_half } = self.capacity else {
            return 1.0;
        };
        let n = float(self.remaining.len());
        per_second / n / (n / float(n_half)).max(1.0)
    }

    fn progress(&mut self, now: BootInstant) {
        let done = now.since(self.now).as_secs_f64() * self.rate();
        self.now = now;
        for (_, work) in &mut self.remaining {
            *work -= done;
        }
        let ended = self.remaining.extract_if(.., |(_, work)| *work <= 0.0);
        for (id, _) in ended.collect::<Vec<_>>() {
            self.answer(id, now);
        }
    }
}

/// The work of a request relative to the mean, from a half to three halves.
fn weight(id: usize) -> f64 {
    0.5 + float(id.wrapping_mul(0x9E37_79B9) % 1_000) / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "a count of requests")]
fn float(n: usize) -> f64 {
    n as f64
}

/// The `Retry-After` of an API server, which doubles while it refuses many requests (`dropped_requests_tracker.go`).
#[derive(Default)]
struct Refusals {
    seconds: u64,
    changed: Option<BootInstant>,
    n_since: u64,
}

impl Refusals {
    fn refuse(&mut self, now: BootInstant) -> Duration {
        self.seconds = self.seconds.max(1);
        let changed = *self.changed.get_or_insert(now);
        if now.since(changed) >= Duration::from_secs(self.seconds) {
            if self.n_since >= 3 * self.seconds {
                self.seconds = (self.seconds * 2).min(32);
            } else if self.n_since < self.seconds {
                self.seconds = (self.seconds / 2).max(1);
            }
            self.changed = Some(now);
            self.n_since = 0;
        }
        self.n_since += 1;
        Duration::from_secs(self.seconds)
    }
}
