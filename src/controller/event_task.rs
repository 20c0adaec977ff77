//! The task of Events: low priority, bounded, with few requests at a time over a separate connection (B-14.1).
//!
//! A budget limits the number of writes ([`EventBudget`]), and namespaces take turns. Events are best effort: they may
//! be late, merged with similar ones, or dropped; drops are counted. Like statuses, Events wait behind bursts of
//! creates for a limited time.
//!
//! An Event without an answer takes a place of other namespaces for a second, and one of the few of its own namespace
//! until the timeout.
//!
//! Events are sent in no particular order. A patch that arrives before its Event is created gets 404 and becomes a
//! create of the same name. The stored count may then be too low until the next Event of its kind, which carries the
//! full count.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    clock::Clock,
    lane::{Lane, RETRIES_MAX, RequestResult},
    pacing::Admission,
    shutdown::{EVENT_GRACE, Phase, PhaseReceiver},
    tokens::Tokens,
};
use crate::{
    coordination::Leadership,
    kube_api::{Answer, ApiClient, EventAggregator, EventOutcome, latest_value::LatestReceiver},
    shard::{CronJobEvent, ManagedNamespaces},
    telemetry::metrics::EventMetrics,
};

mod backlog;
mod budget;
mod delivery;

use backlog::{Backlog, Priority};
pub use budget::{EventBudget, EventFilter};
use delivery::Delivery;

/// Capacity of the queue, and of the backlog for each priority: the Events of a burst of some ten thousand runs, some
/// 10 MiB. The queue of client-go holds 1000.
const QUEUE_MAX: usize = 1 << 14;

/// Maximum time that Events wait behind a burst of creates.
const BURST_WAIT_MAX: Duration = Duration::from_secs(10);

/// Maximum number of requests in flight that were sent within the last second. The same limit applies to all requests of
/// one namespace. Events need no high throughput.
const EVENTS_IN_FLIGHT_MAX: u32 = 4;

/// Maximum number of all requests in flight. If the API server answers none, four are sent each second, and each stays in
/// flight for 15 s.
const EVENTS_UNANSWERED_MAX: u32 = 64;

/// Maximum number of retries of an Event after attempts without an answer. They take three minutes. client-go tries an
/// Event 12 times, within two minutes.
const UNANSWERED_RETRIES_MAX: u32 = 12;

/// An Event and the time of its emission.
#[derive(Debug)]
struct EmittedEvent {
    event: CronJobEvent,
    at: Timestamp,
}

/// An entry of the backlog.
#[derive(Debug)]
enum Waiting {
    /// An Event that was never sent.
    New(EmittedEvent),
    /// An Event whose last attempt failed.
    Again(Delivery),
}

impl Waiting {
    fn namespace(&self) -> &str {
        match self {
            Waiting::New(EmittedEvent { event, .. }) => &event.cron_job.namespace,
            Waiting::Again(delivery) => &delivery.action.namespace,
        }
    }
}

/// The queue of the task. Clones share one queue.
#[derive(Clone, Debug)]
pub struct EventQueue {
    sender: mpsc::Sender<EmittedEvent>,
    filter: EventFilter,
    metrics: EventMetrics,
}

impl EventQueue {
    /// Adds an Event. Drops it if the filter excludes it or the queue is full.
    pub fn push(&self, event: CronJobEvent, at: Timestamp) {
        if !self.filter.admits(event.reason) {
            return self.metrics.dropped_filtered.inc();
        }
        match self.sender.try_send(EmittedEvent { event, at }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.metrics.dropped_queue_full.inc(),
            Err(TrySendError::Closed(_)) => self.metrics.dropped_shutdown.inc(),
        }
    }
}

/// The channels of the task.
#[derive(Debug)]
pub struct EventChannels {
    /// Phase of the shutdown; it ends the task.
    pub phase: PhaseReceiver,
    /// Set during a burst of creates, while Events wait.
    pub burst: LatestReceiver<bool>,
    /// The number of replicas that share the budget.
    pub leadership: LatestReceiver<Leadership>,
    /// Budget for Events, shared by all replicas.
    pub budget: EventBudget,
    /// The namespaces in which Events may be written.
    pub namespaces: ManagedNamespaces,
}

/// The task that sends Events.
pub struct EventTask {
    lane: Lane<Delivery>,
    clock: Clock,
    channels: EventChannels,
    events: mpsc::Receiver<EmittedEvent>,
    backlog: Backlog<Waiting>,
    /// Merges similar Events of a CronJob.
    aggregator: EventAggregator,
    tokens: Tokens,
    metrics: EventMetrics,
}

impl EventTask {
    /// Creates the task and its queue.
    pub fn new(
        api: ApiClient,
        clock: Clock,
        channels: EventChannels,
        metrics: EventMetrics,
    ) -> (EventQueue, EventTask) {
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let queue = EventQueue {
            sender,
            filter: channels.budget.filter,
            metrics: metrics.clone(),
        };
        let (leadership, api_metrics) = (channels.leadership.clone(), metrics.api.clone());
        let lane = Lane::new(api, clock.clone(), leadership, api_metrics, EVENTS_IN_FLIGHT_MAX);
        let task = EventTask {
            lane: lane
                .with_total(EVENTS_UNANSWERED_MAX)
                .within(channels.namespaces.clone()),
            aggregator: EventAggregator::new(),
            backlog: Backlog::new(QUEUE_MAX),
            tokens: channels.budget.tokens(clock.boot()),
            clock,
            channels,
            events,
            metrics,
        };
        (queue, task)
    }

    /// Runs until [`Phase::FlushEvents`], then sends the remaining Events for at most [`EVENT_GRACE`].
    pub async fn run(mut self) {
        let mut phase = self.channels.phase.clone();
        tokio::select! {
            biased;
            () = phase.reached(Phase::FlushEvents) => {}
            () = self.work(BURST_WAIT_MAX) => {}
        }
        self.events.close();
        // On timeout the remaining Events are counted below.
        let _ = tokio::time::timeout(EVENT_GRACE, self.work(Duration::ZERO)).await;
        let n_left = self.events.len() + self.backlog.len() + self.lane.n_in_flight() as usize;
        self.metrics.dropped_shutdown.inc_by(n_left as u64);
    }

    /// Delivers Events until the queue is closed and empty. Cancel safe.
    async fn work(&mut self, burst_wait_max: Duration) {
        let mut is_open = true;
        let mut burst = self.channels.burst.clone();
        let mut burst_since = None;
        loop {
            let now = self.clock.boot();
            burst_since = burst.get().then(|| burst_since.unwrap_or(now));
            let burst_wait = burst_since.map(|since| (since + burst_wait_max).since(now));
            let burst_wait = burst_wait.filter(|wait| !wait.is_zero());
            let pause = burst_wait.or_else(|| self.send_permitted());
            if !is_open && self.backlog.len() == 0 && self.lane.n_in_flight() == 0 {
                return;
            }
            tokio::select! {
                biased;
                Some(result) = self.lane.next() => self.handle_answer(result),
                emitted = self.events.recv(), if is_open => match emitted {
                    Some(emitted) => self.take_in(emitted),
                    None => is_open = false,
                },
                () = burst.changed() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
    }

    fn take_in(&mut self, emitted: EmittedEvent) {
        let priority = if !self.aggregator.is_repeat(&emitted.event) {
            Priority::First
        } else if emitted.event.reason.is_warning() {
            Priority::Warning
        } else {
            Priority::Normal
        };
        let cron_job = Arc::clone(&emitted.event.cron_job);
        self.add(priority, &cron_job.namespace, Waiting::New(emitted));
    }

    /// Adds an Event to the backlog. An Event that is dropped for lack of room still counts, so that the next Event of
    /// its kind carries the full count.
    fn add(&mut self, priority: Priority, namespace: &str, waiting: Waiting) {
        if let Err(dropped) = self.backlog.push(priority, namespace, waiting) {
            if let Waiting::New(emitted) = dropped {
                self.aggregator.count(&emitted.event);
            }
            self.metrics.dropped_over_budget.inc();
        }
    }

    /// Sends until there is a reason to stop. Returns the pause if time alone ends it.
    fn send_permitted(&mut self) -> Option<Duration> {
        loop {
            let now = self.clock.boot();
            match self.lane.admission() {
                Admission::Now => {}
                Admission::Full => return None,
                Admission::Wait(until) => return Some(until.since(now)),
            }
            let mut tokens = self.tokens.clone();
            let n_senders = self.channels.leadership.borrow().n_senders();
            if let Err(until) = tokens.take(n_senders, now) {
                return Some(until.since(now));
            }
            let delivery = self.next_delivery()?;
            self.tokens = tokens;
            self.lane.send(delivery);
        }
    }

    /// Returns the next Event that can be sent. Drops Events of CronJobs that have had too many, and those of namespaces
    /// that are not managed. Namespaces share the places of recent requests.
    fn next_delivery(&mut self) -> Option<Delivery> {
        loop {
            let n_in_flight = |namespace: &str| {
                let n = self.lane.in_flight().n_of(namespace);
                (n < EVENTS_IN_FLIGHT_MAX).then_some(n)
            };
            let next = self.backlog.pop(EVENTS_IN_FLIGHT_MAX / 2, n_in_flight)?;
            if !self.channels.namespaces.contains(next.namespace()) {
                self.metrics.dropped_not_managed.inc();
                continue;
            }
            match next {
                Waiting::Again(delivery) => return Some(delivery),
                Waiting::New(EmittedEvent { event, at }) => match self.aggregator.admit(&event, at) {
                    Some(action) => return Some(Delivery::new(action)),
                    None => self.metrics.dropped_too_many.inc(),
                },
            }
        }
    }

    /// Handles the result of an attempt. A patch of an Event that is gone becomes a create. A create without an answer
    /// is repeated: the server may have stored the Event, but the next attempt has the same name, so the Event is stored
    /// only once. A patch without an answer is not repeated: the next Event of its kind carries the full count.
    fn handle_answer(&mut self, (mut delivery, answer): RequestResult<Delivery>) {
        let is_patch = delivery.action.patch.is_some();
        match answer {
            Some(Answer::Outcome(EventOutcome::Stored)) if is_patch => self.metrics.raised.inc(),
            Some(Answer::Outcome(EventOutcome::Stored)) => self.metrics.created.inc(),
            Some(Answer::Outcome(EventOutcome::Exists)) if !is_patch => self.metrics.created.inc(),
            Some(Answer::Outcome(EventOutcome::Gone)) if is_patch => {
                delivery.action.patch = None;
                self.put_back(delivery);
            }
            Some(Answer::Outcome(EventOutcome::Unanswered))
                if !is_patch && delivery.n_unanswered < UNANSWERED_RETRIES_MAX =>
            {
                delivery.n_unanswered += 1;
                self.put_back(delivery);
            }
            // The server did not accept the request. It is sent again when the lane permits.
            Some(Answer::Throttled { .. } | Answer::Unavailable { .. }) | None => self.put_back(delivery),
            Some(Answer::Outcome(
                EventOutcome::Exists | EventOutcome::Gone | EventOutcome::Rejected | EventOutcome::Unanswered,
            )) => self.metrics.dropped_failed.inc(),
        }
    }

    /// Returns an Event to the backlog, behind the others of its namespace, unless it was attempted too often.
    fn put_back(&mut self, mut delivery: Delivery) {
        delivery.n_retries += 1;
        if delivery.n_retries > RETRIES_MAX {
            return self.metrics.dropped_failed.inc();
        }
        let namespace = delivery.action.namespace.clone();
        self.add(Priority::First, &namespace, Waiting::Again(delivery));
    }
}

#[cfg(test)]
mod tests;
