//! The lane of Events: low priority, bounded, few requests at a time over a connection of its own (B-14.1).
//!
//! A budget bounds how many are written ([`EventBudget`]), and namespaces take turns.
//! An Event is a notice: it may be late, merged with similar ones, or dropped; what is dropped is counted. Events stay
//! behind bursts of creates for a while, as statuses do. Those of one CronJob are sent in order; one that gets no
//! answer holds up no other CronJob's.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    watch,
};

use super::{
    clock::Clock,
    lane::{Lane, Settled},
    pacing::Admission,
    shutdown::{EVENT_GRACE, Phase, PhaseReceiver},
};
use crate::{
    coordination::Leadership,
    kube_api::{Answer, EventOutcome, ordered_watch::OrderedReceiver},
    shard::{BootInstant, CronJobEvent, EventType},
    telemetry::metrics::EventMetrics,
};

mod backlog;
mod budget;
mod deliveries;
mod request;

use backlog::{Backlog, Namespaced, Priority};
use budget::Share;
pub use budget::{EventBudget, EventFilter};
use deliveries::Deliveries;
use request::Attempt;
pub use request::EventApi;

/// Events that can wait: those of a burst of some ten thousand runs, some 10 MiB. client-go keeps 1000.
const QUEUE_MAX: usize = 1 << 14;

/// The longest that an Event waits behind a burst of creates.
const BURST_WAIT_MAX: Duration = Duration::from_secs(10);

/// Requests on the way. Events are no burst to be got over quickly, and one that is not answered takes a place for as
/// long as it is waited for.
const INFLIGHT_MAX: u32 = 4;

/// An Event and when it happened.
#[derive(Debug)]
struct Happened {
    event: CronJobEvent,
    at: Timestamp,
    boot: BootInstant,
}

impl Namespaced for Happened {
    fn namespace(&self) -> &str {
        &self.event.cron_job.namespace
    }
}

/// The way into the lane. Clones are one queue.
#[derive(Clone, Debug)]
pub struct EventQueue {
    sender: mpsc::Sender<Happened>,
    filter: EventFilter,
    clock: Clock,
    metrics: EventMetrics,
}

impl EventQueue {
    /// Takes an Event in, or drops it where it is filtered out or there are too many.
    pub fn push(&self, event: CronJobEvent, at: Timestamp) {
        if !self.filter.admits(event.reason) {
            return self.metrics.dropped_filtered.inc();
        }
        let boot = self.clock.boot();
        match self.sender.try_send(Happened { event, at, boot }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.metrics.dropped_queue_full.inc(),
            Err(TrySendError::Closed(_)) => self.metrics.dropped_shutdown.inc(),
        }
    }
}

/// What the lane is connected to.
#[derive(Debug)]
pub struct EventChannels {
    /// When to end.
    pub phase: PhaseReceiver,
    /// Whether Events stay behind: in a burst of creates.
    pub burst: OrderedReceiver<bool>,
    /// Among how many replicas the budget is divided.
    pub leadership: watch::Receiver<Leadership>,
    /// What all replicas together may spend.
    pub budget: EventBudget,
}

/// See the module.
pub struct EventTask<A: EventApi> {
    lane: Lane<A, Attempt>,
    clock: Clock,
    channels: EventChannels,
    events: mpsc::Receiver<Happened>,
    backlog: Backlog<Happened>,
    share: Share,
    deliveries: Deliveries,
    metrics: EventMetrics,
}

impl<A: EventApi> EventTask<A> {
    /// The lane and the way into it.
    pub fn new(api: A, clock: Clock, channels: EventChannels, metrics: EventMetrics) -> (EventQueue, EventTask<A>) {
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let queue = EventQueue {
            sender,
            filter: channels.budget.filter,
            clock: clock.clone(),
            metrics: metrics.clone(),
        };
        let lane = Lane::new(
            api,
            clock.clone(),
            channels.leadership.clone(),
            metrics.api.clone(),
            INFLIGHT_MAX,
        );
        let task = EventTask {
            lane,
            backlog: Backlog::new(QUEUE_MAX),
            share: Share::new(channels.budget, clock.boot()),
            clock,
            channels,
            events,
            deliveries: Deliveries::new(metrics.clone()),
            metrics,
        };
        (queue, task)
    }

    /// Works until Events are to be flushed, then sends what is left, for a short time.
    pub async fn run(mut self) {
        let mut phase = self.channels.phase.clone();
        tokio::select! {
            biased;
            () = phase.reached(Phase::FlushEvents) => {}
            () = self.work(BURST_WAIT_MAX) => {}
        }
        self.events.close();
        // When the time is over what is left is counted below.
        let _ = tokio::time::timeout(EVENT_GRACE, self.work(Duration::ZERO)).await;
        let n_left = self.events.len() + self.backlog.len() + self.deliveries.len();
        self.metrics.dropped_shutdown.inc_by(n_left as u64);
    }

    /// Delivers until the queue is closed and empty. May be dropped and called again.
    async fn work(&mut self, burst_wait_max: Duration) {
        let mut is_open = true;
        let mut burst = self.channels.burst.clone();
        loop {
            let burst_wait = burst.get().then_some(burst_wait_max);
            self.begin_deliveries();
            let pause = self.send_what_may_be_sent(burst_wait);
            if !is_open && self.deliveries.len() == 0 {
                return;
            }
            tokio::select! {
                biased;
                Some(settled) = self.lane.next() => self.settle(settled),
                happened = self.events.recv(), if is_open => match happened {
                    Some(happened) => self.take_in(happened),
                    None => is_open = false,
                },
                // A dispatcher that has ended makes no burst, and tells no change.
                Ok(()) = burst.changed() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
    }

    /// Lets an Event wait for its turn. One that finds no room is counted, so that the next of its kind tells how many
    /// there were.
    fn take_in(&mut self, happened: Happened) {
        let priority = if !self.deliveries.is_repeat(&happened.event) {
            Priority::First
        } else if happened.event.reason.event_type() == EventType::Warning {
            Priority::Warning
        } else {
            Priority::Normal
        };
        if let Some(dropped) = self.backlog.push(priority, happened) {
            self.deliveries.count(&dropped.event);
            self.metrics.dropped_over_budget.inc();
        }
    }

    fn begin_deliveries(&mut self) {
        while self.deliveries.has_room()
            && let Some(happened) = self.backlog.pop()
        {
            self.deliveries.take(happened);
        }
    }

    /// Sends until there is a reason not to; says how long it lasts, if time alone ends it.
    fn send_what_may_be_sent(&mut self, burst_wait: Option<Duration>) -> Option<Duration> {
        loop {
            let now = self.clock.boot();
            let ready_at = self.deliveries.next_ready_at(burst_wait)?;
            if ready_at > now {
                return Some(ready_at.since(now));
            }
            match self.lane.admission() {
                // A pause ends with a probe, whatever is in flight.
                Admission::Now if self.lane.n_in_flight() < INFLIGHT_MAX => {}
                Admission::Now | Admission::Full => return None,
                Admission::Wait(until) => return Some(until.since(now)),
            }
            self.share
                .divide_among(self.channels.leadership.borrow().n_senders(), now);
            if let Err(until) = self.share.spend(now) {
                return Some(until.since(now));
            }
            let (id, action) = self.deliveries.next_ready(now, burst_wait)?;
            self.lane.send(Attempt { id, action });
        }
    }

    fn settle(&mut self, (attempt, answer): Settled<Attempt, EventOutcome>) {
        let now = self.clock.boot();
        match answer {
            Some(Answer::Outcome(outcome)) => self.deliveries.conclude(attempt.id, outcome, now),
            Some(Answer::Throttled { .. } | Answer::Unavailable { .. }) | None => {
                self.deliveries.put_back(attempt.id, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
