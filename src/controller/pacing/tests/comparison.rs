//! Compares rules for the limit of requests in flight on models of API servers, in virtual time. This prints the table
//! of decision 011: `CRONWHEEL_PACING_TABLE=1 cargo test --lib comparison -- --nocapture`

mod rules;
mod servers;

use std::{collections::BTreeMap, time::Duration};

use self::{
    rules::{Absolute, Fixed, SlowDecrease},
    servers::{NewServer, Reply, SERVERS, Server},
};
use super::super::{limit::InFlightLimit, *};

/// The default of `--max-inflight`.
const IN_FLIGHT_MAX: u32 = 128;

/// The simulation of a burst ends after this time.
const BURST_MAX: Duration = Duration::from_mins(15);

/// A rule for the limit. The pauses are those of [`Pacer`] with each rule.
trait Rule {
    fn limit(&self) -> u32;
    /// Learns from an answer; returns whether the limit was lowered.
    fn on_outcome(&mut self, latency: Duration, n_in_flight: u32) -> bool;
    fn on_throttled(&mut self);
}

impl Rule for InFlightLimit {
    fn limit(&self) -> u32 {
        self.get()
    }

    fn on_outcome(&mut self, latency: Duration, n_in_flight: u32) -> bool {
        InFlightLimit::on_outcome(self, latency, n_in_flight);
        false
    }

    fn on_throttled(&mut self) {
        InFlightLimit::on_throttled(self);
    }
}

/// Creates the rule for one of several senders.
type NewRule = fn(u32) -> Box<dyn Rule>;

/// The rule in use comes first, the rule that it replaced second.
const RULES: [(&str, NewRule); 4] = [
    ("present", |n_senders| {
        let mut limit = InFlightLimit::new(IN_FLIGHT_MAX);
        limit.share_among(n_senders);
        Box::new(limit)
    }),
    ("former", |n_senders| Box::new(SlowDecrease::new(n_senders))),
    ("absolute ceiling", |n_senders| Box::new(Absolute::new(n_senders))),
    ("64, fixed", |n_senders| Box::new(Fixed(64 / n_senders))),
];

/// A replica that has creates to send.
struct Sender {
    rule: Box<dyn Rule>,
    pacer: Pacer,
    recent: SendInstants,
    n_in_flight: u32,
    n_queued: u32,
}

struct Sent {
    sender: usize,
    ticket: Ticket,
}

/// The result of a burst.
#[derive(Debug, Default)]
struct Burst {
    /// The time of the last answer; `None` if creates were unanswered after [`BURST_MAX`].
    ended: Option<Duration>,
    n_throttled: u32,
    queue_max: usize,
}

impl std::fmt::Display for Burst {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ended {
            Some(ended) => write!(f, "{:.2} s", ended.as_secs_f64())?,
            None => write!(f, "over {} s", BURST_MAX.as_secs())?,
        }
        write!(f, ", {}, {}", self.n_throttled, self.queue_max)
    }
}

impl Sender {
    fn new(rule: Box<dyn Rule>, n_queued: u32) -> Sender {
        Sender {
            rule,
            pacer: Pacer::new(IN_FLIGHT_MAX),
            recent: SendInstants::default(),
            n_in_flight: 0,
            n_queued,
        }
    }

    /// Decides whether the next create can be sent, as a lane does.
    fn admission(&mut self, now: BootInstant) -> Admission {
        if self.n_queued == 0 || self.n_in_flight >= IN_FLIGHT_MAX {
            return Admission::Full;
        }
        match self.pacer.admission(now, 0) {
            Admission::Now if self.recent.count_recent(now) >= self.rule.limit() => {
                self.recent.next_change().map_or(Admission::Full, Admission::Wait)
            }
            admission @ (Admission::Now | Admission::Wait(_) | Admission::Full) => admission,
        }
    }

    fn send(&mut self, sender: usize, now: BootInstant) -> Sent {
        self.n_queued -= 1;
        self.n_in_flight += 1;
        self.recent.enter(now);
        Sent {
            sender,
            ticket: self.pacer.on_sent(now),
        }
    }

    fn on_reply(&mut self, sent: &Sent, reply: Reply, now: BootInstant) {
        self.recent.leave(sent.ticket.sent);
        self.n_in_flight -= 1;
        let (latency, n_recent) = (now.since(sent.ticket.sent), self.recent.count_recent(now));
        let is_of_period = sent.ticket.period == self.pacer.period;
        match reply {
            Reply::Created => {
                self.pacer.on_outcome(sent.ticket, latency, n_recent);
                if is_of_period && self.rule.on_outcome(latency, n_recent) {
                    self.pacer.period += 1;
                }
            }
            Reply::Throttled { retry_after } => {
                self.n_queued += 1;
                self.pacer.on_throttled(sent.ticket, now, Some(retry_after));
                if is_of_period {
                    self.rule.on_throttled();
                }
            }
        }
    }
}

/// Sends the creates of all senders at once, until each is answered.
fn run(mut senders: Vec<Sender>, mut server: Server) -> Burst {
    let mut now = servers::START;
    let (mut burst, mut sent, mut n_sent) = (Burst::default(), BTreeMap::new(), 0);
    while now.since(servers::START) < BURST_MAX {
        let mut wakeup: Option<BootInstant> = None;
        for (number, sender) in senders.iter_mut().enumerate() {
            let mut admission = sender.admission(now);
            while admission == Admission::Now {
                n_sent += 1;
                sent.insert(n_sent, sender.send(number, now));
                server.receive(n_sent, now);
                admission = sender.admission(now);
            }
            if let Admission::Wait(until) = admission {
                wakeup = Some(wakeup.map_or(until, |known| known.min(until)));
            }
        }
        burst.queue_max = burst.queue_max.max(server.n_waiting());
        let Some(next) = server.next_event().into_iter().chain(wakeup).min() else {
            assert!(senders.iter().all(|sender| sender.n_queued == 0), "each Job is created");
            burst.ended = Some(now.since(servers::START));
            break;
        };
        now = next;
        for (id, reply) in server.advance(now) {
            let request = sent.remove(&id).expect("each request is answered once");
            burst.n_throttled += u32::from(reply != Reply::Created);
            senders[request.sender].on_reply(&request, reply, now);
        }
    }
    burst
}

fn burst(n_creates: u32, n_senders: u32, rule: NewRule, server: NewServer) -> Burst {
    let senders = (0..n_senders).map(|_| Sender::new(rule(n_senders), n_creates / n_senders));
    run(senders.collect(), server())
}

#[test]
fn the_limit_rule_is_as_quick_as_the_former_one() {
    for n_senders in [1, 5] {
        for (name, server) in SERVERS {
            let [present, former] = [RULES[0], RULES[1]].map(|(_, rule)| burst(1_000, n_senders, rule, *server));
            let [present_ended, former_ended] = [&present, &former].map(|burst| burst.ended.unwrap_or(BURST_MAX));
            assert!(
                present_ended <= former_ended.mul_f64(1.2),
                "{name}: {present}; {former}"
            );
            assert!(present.n_throttled <= former.n_throttled, "{name}: {present}; {former}");
        }
    }
    if std::env::var_os("CRONWHEEL_PACING_TABLE").is_some() {
        print_table();
    }
}

fn print_table() {
    eprintln!(
        "| Creates, replicas | Server | {} |",
        RULES.map(|(name, _)| name).join(" | ")
    );
    eprintln!("|---|---|{}", "---|".repeat(RULES.len()));
    for (n_creates, n_senders) in [(1_000, 1), (5_000, 1), (5_000, 5)] {
        for (name, server) in SERVERS {
            let bursts = RULES.map(|(_, rule)| burst(n_creates, n_senders, rule, *server).to_string());
            eprintln!("| {n_creates}, {n_senders} | {name} | {} |", bursts.join(" | "));
        }
    }
}
