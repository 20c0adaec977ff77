//! The lane of Events: low priority, bounded, few requests at a time over a connection of its own (B-14.1).
//!
//! A budget bounds how many are written ([`EventBudget`]), and namespaces take turns.
//! An Event is a notice: it may be late, merged with similar ones, or dropped; what is dropped is counted. Events stay
//! behind bursts of creates for a while, as statuses do. Those of one CronJob are sent in order; one that gets no
//! answer holds up no other CronJob's.

use std::{future::Future, pin::Pin, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use jiff::Timestamp;
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    watch,
};

use super::{
    ask::ask,
    clock::Clock,
    metrics::{ApiCall, EventMetrics},
    pacing::{Admission, Pacer, Ticket},
    shutdown::{EVENT_GRACE, Phase, PhaseReceiver},
};
use crate::{
    cluster::{Answer, Answered, ClusterApi, EventAction, EventOutcome, watched::Watcher},
    state::{
        CronJobEvent, EventType,
        sharding::{BootInstant, Leadership},
    },
};

mod backlog;
mod budget;
mod deliveries;

use backlog::{Backlog, Namespaced, Priority};
use budget::Share;
pub use budget::{EventBudget, EventFilter};
use deliveries::{Deliveries, DeliveryId};

/// Events that can wait: those of a burst of some ten thousand runs, some 10 MiB. client-go keeps 1000.
const QUEUE_MAX: usize = 1 << 14;

/// The longest that an Event waits behind a burst of creates.
const BURST_WAIT_MAX: Duration = Duration::from_secs(10);

/// Requests on the way. Events are no burst to be got over quickly, and one that is not answered takes a place for as
/// long as it is waited for.
const INFLIGHT_MAX: u32 = 4;

/// How long an answer is waited for: far longer than a server in good health takes. Whatever holds up Events longer, as
/// a webhook, is waited for by the next try.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// The calls about Events; a fake of it stands for the API server in tests.
pub trait EventApi: Clone + Send + Sync + 'static {
    /// Creates an Event.
    fn post_event(&self, namespace: &str, body: Vec<u8>) -> impl Future<Output = Answered<EventOutcome>> + Send;
    /// Patches an Event.
    fn patch_event(
        &self,
        namespace: &str,
        name: &str,
        body: Vec<u8>,
    ) -> impl Future<Output = Answered<EventOutcome>> + Send;
}

impl EventApi for ClusterApi {
    async fn post_event(&self, namespace: &str, body: Vec<u8>) -> Answered<EventOutcome> {
        ClusterApi::post_event(self, namespace, body).await
    }

    async fn patch_event(&self, namespace: &str, name: &str, body: Vec<u8>) -> Answered<EventOutcome> {
        ClusterApi::patch_event(self, namespace, name, body).await
    }
}

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

/// What came of a request.
struct Delivered {
    id: DeliveryId,
    ticket: Ticket,
    answered: Answered<EventOutcome>,
    duration: Duration,
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
pub struct EventLinks {
    /// When to end.
    pub phase: PhaseReceiver,
    /// Whether Events stay behind: in a burst of creates.
    pub burst: Watcher<bool>,
    /// Among how many replicas the budget is divided.
    pub leadership: watch::Receiver<Leadership>,
    /// What all replicas together may spend.
    pub budget: EventBudget,
}

/// See the module.
pub struct EventTask<A> {
    api: A,
    clock: Clock,
    links: EventLinks,
    events: mpsc::Receiver<Happened>,
    backlog: Backlog<Happened>,
    share: Share,
    deliveries: Deliveries,
    in_flight: FuturesUnordered<Pin<Box<dyn Future<Output = Delivered> + Send>>>,
    pacer: Pacer,
    metrics: EventMetrics,
}

impl<A: EventApi> EventTask<A> {
    /// The lane and the way into it.
    pub fn new(api: A, clock: Clock, links: EventLinks, metrics: EventMetrics) -> (EventQueue, EventTask<A>) {
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let queue = EventQueue {
            sender,
            filter: links.budget.filter,
            clock: clock.clone(),
            metrics: metrics.clone(),
        };
        let task = EventTask {
            api,
            backlog: Backlog::new(QUEUE_MAX),
            share: Share::new(links.budget, clock.boot()),
            clock,
            links,
            events,
            deliveries: Deliveries::new(metrics.clone()),
            in_flight: FuturesUnordered::new(),
            pacer: Pacer::new(INFLIGHT_MAX),
            metrics,
        };
        (queue, task)
    }

    /// Works until Events are to be flushed, then sends what is left, for a short time.
    pub async fn run(mut self) {
        let mut phase = self.links.phase.clone();
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
        let mut burst = self.links.burst.clone();
        loop {
            let burst_wait = burst.get().then_some(burst_wait_max);
            self.begin_deliveries();
            let pause = self.send_what_may_be_sent(burst_wait);
            if !is_open && self.deliveries.len() == 0 {
                return;
            }
            tokio::select! {
                biased;
                Some(delivered) = self.in_flight.next() => self.settle(delivered),
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
            let n_in_flight = self.in_flight.len().try_into().unwrap_or(u32::MAX);
            match self.pacer.admission(now, n_in_flight) {
                Admission::Now if n_in_flight < INFLIGHT_MAX => {}
                Admission::Now | Admission::Full => return None,
                Admission::Wait(until) => return Some(until.since(now)),
            }
            self.share.divide_among(self.links.leadership.borrow().n_senders(), now);
            if let Err(until) = self.share.spend(now) {
                return Some(until.since(now));
            }
            let (id, action) = self.deliveries.next_ready(now, burst_wait)?;
            let ticket = self.pacer.on_sent(now);
            let request = send(self.api.clone(), self.clock.clone(), self.metrics.clone(), action);
            self.in_flight.push(Box::pin(async move {
                let (answered, duration) = request.await;
                Delivered {
                    id,
                    ticket,
                    answered,
                    duration,
                }
            }));
        }
    }

    fn settle(&mut self, delivered: Delivered) {
        let Delivered {
            id,
            ticket,
            answered,
            duration,
        } = delivered;
        let (now, n_in_flight) = (self.clock.boot(), self.in_flight.len());
        let n_in_flight = n_in_flight.try_into().unwrap_or(u32::MAX);
        self.pacer.on_answered(ticket, &answered, now, duration, n_in_flight);
        match answered.answer {
            Answer::Outcome(outcome) => self.deliveries.conclude(id, outcome, now),
            Answer::Throttled { .. } | Answer::Unavailable { .. } => self.deliveries.put_back(id, now),
        }
    }
}

async fn send<A: EventApi>(
    api: A,
    clock: Clock,
    metrics: EventMetrics,
    action: EventAction,
) -> (Answered<EventOutcome>, Duration) {
    let metrics = &metrics.api;
    match action {
        EventAction::Create { namespace, body } => {
            let request = in_time(api.post_event(&namespace, body));
            ask(&clock, metrics, ApiCall::CreateEvent, request).await
        }
        EventAction::Patch {
            namespace, name, body, ..
        } => {
            let request = in_time(api.patch_event(&namespace, &name, body));
            ask(&clock, metrics, ApiCall::PatchEvent, request).await
        }
        EventAction::Drop => (answered(EventOutcome::Stored), Duration::ZERO),
    }
}

/// The answer, or that there was none in time.
async fn in_time(request: impl Future<Output = Answered<EventOutcome>>) -> Answered<EventOutcome> {
    tokio::time::timeout(ANSWER_TIMEOUT, request).await.unwrap_or_else(|_| {
        answered(EventOutcome::Unanswered {
            message: format!("no answer within {} seconds", ANSWER_TIMEOUT.as_secs()),
        })
    })
}

/// An outcome that no answer gave.
fn answered(outcome: EventOutcome) -> Answered<EventOutcome> {
    Answered {
        answer: Answer::Outcome(outcome),
        code: None,
        server_date: None,
        not_permitted: None,
        fenced_over: None,
    }
}

#[cfg(test)]
mod tests;
