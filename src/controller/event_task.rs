//! The task of Events: low priority, bounded, with few requests at a time over a separate connection (B-14.1).
//!
//! A budget limits the number of writes ([`EventBudget`]), and namespaces take turns. Events are best effort: they may
//! be late, merged with similar ones, or dropped; drops are counted. Like statuses, Events wait behind bursts of
//! creates for a limited time. The Events of one CronJob are sent in order. An Event without an answer delays no other
//! CronJob's Events.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    watch,
};

use super::{
    clock::Clock,
    lane::{Lane, RequestResult},
    pacing::Admission,
    shutdown::{EVENT_GRACE, Phase, PhaseReceiver},
    tokens::Tokens,
};
use crate::{
    coordination::Leadership,
    kube_api::{Answer, ApiClient, ordered_watch::OrderedReceiver},
    shard::{BootInstant, CronJobEvent},
    telemetry::metrics::EventMetrics,
};

mod backlog;
mod budget;
mod deliveries;

use backlog::{Backlog, Priority};
pub use budget::{EventBudget, EventFilter};
use deliveries::{Attempt, Deliveries};

/// Capacity of the queue: the Events of a burst of some ten thousand runs, some 10 MiB. The queue of client-go holds
/// 1000.
const QUEUE_MAX: usize = 1 << 14;

/// Maximum time that Events wait behind a burst of creates.
const BURST_WAIT_MAX: Duration = Duration::from_secs(10);

/// Maximum number of requests in flight. Events need no high throughput, and a request without an answer occupies its
/// place until the timeout.
const EVENTS_IN_FLIGHT_MAX: u32 = 4;

/// An Event and the time of its emission.
#[derive(Debug)]
struct EmittedEvent {
    event: CronJobEvent,
    at: Timestamp,
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
    pub burst: OrderedReceiver<bool>,
    /// The number of replicas that share the budget.
    pub leadership: watch::Receiver<Leadership>,
    /// Budget for Events, shared by all replicas.
    pub budget: EventBudget,
}

/// The task that sends Events.
pub struct EventTask {
    lane: Lane<Attempt>,
    clock: Clock,
    channels: EventChannels,
    events: mpsc::Receiver<EmittedEvent>,
    backlog: Backlog<EmittedEvent>,
    tokens: Tokens,
    deliveries: Deliveries,
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
        let task = EventTask {
            lane: Lane::new(api, clock.clone(), leadership, api_metrics, EVENTS_IN_FLIGHT_MAX),
            backlog: Backlog::new(QUEUE_MAX),
            tokens: channels.budget.tokens(clock.boot()),
            clock,
            channels,
            events,
            deliveries: Deliveries::new(metrics.clone()),
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
        let n_left = self.events.len() + self.backlog.len() + self.deliveries.len();
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
            let pause = if burst_wait.is_some() {
                burst_wait
            } else {
                self.begin_deliveries(now);
                self.send_permitted()
            };
            if !is_open && self.deliveries.len() == 0 {
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

    /// Adds an Event to the backlog. An Event that is dropped for lack of room still counts, so that the next Event of
    /// its kind carries the full count.
    fn take_in(&mut self, emitted: EmittedEvent) {
        let priority = if !self.deliveries.aggregator.is_repeat(&emitted.event) {
            Priority::First
        } else if emitted.event.reason.is_warning() {
            Priority::Warning
        } else {
            Priority::Normal
        };
        let cron_job = Arc::clone(&emitted.event.cron_job);
        if let Some(dropped) = self.backlog.push(priority, &cron_job.namespace, emitted) {
            self.deliveries.aggregator.count(&dropped.event);
            self.metrics.dropped_over_budget.inc();
        }
    }

    fn begin_deliveries(&mut self, now: BootInstant) {
        while self.deliveries.has_room()
            && let Some(emitted) = self.backlog.pop()
        {
            self.deliveries.take(emitted, now);
        }
    }

    /// Sends until there is a reason to stop. Returns the pause if time alone ends it.
    fn send_permitted(&mut self) -> Option<Duration> {
        loop {
            let now = self.clock.boot();
            let ready_at = self.deliveries.next_ready_at()?;
            if ready_at > now {
                return Some(ready_at.since(now));
            }
            match self.lane.admission() {
                Admission::Now => {}
                Admission::Full => return None,
                Admission::Wait(until) => return Some(until.since(now)),
            }
            let n_senders = self.channels.leadership.borrow().n_senders();
            if let Err(until) = self.tokens.take(n_senders, now) {
                return Some(until.since(now));
            }
            self.lane.send(self.deliveries.next_ready(now)?);
        }
    }

    fn handle_answer(&mut self, (attempt, answer): RequestResult<Attempt>) {
        let now = self.clock.boot();
        match answer {
            Some(Answer::Outcome(outcome)) => self.deliveries.conclude(&attempt.cron_job, outcome, now),
            // The server did not accept the request. It is sent again when the lane permits.
            Some(Answer::Throttled { .. } | Answer::Unavailable { .. }) | None => {
                self.deliveries.pause(&attempt.cron_job, now, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
