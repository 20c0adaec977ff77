//! The lane of Events: low priority, bounded, one request at a time over a connection of its own (B-14.1).
//!
//! An Event is a notice: it may be late, merged with similar ones, or dropped; what is dropped is counted. Events stay
//! behind bursts of creates for a while, as statuses do.

use std::{future::Future, time::Duration};

use jiff::Timestamp;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::{
    ask::ask,
    clock::Clock,
    metrics::{ApiCall, EventMetrics},
    pacing::{Admission, Pacer},
    shutdown::{EVENT_GRACE, Phase, PhaseReceiver},
    watched::Watcher,
};
use crate::{
    cluster::{Answer, Answered, ClusterApi, EventAction, EventAggregator, EventOutcome},
    state::{CronJobEvent, sharding::BootInstant},
};

/// Events that can wait: those of a burst of some ten thousand runs, some 10 MiB. client-go keeps 1000.
const QUEUE_MAX: usize = 1 << 14;

/// The longest that an Event waits behind a burst of creates.
const BURST_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long an Event is tried before it is dropped: as long as the twelve tries, ten seconds apart, of client-go. The
/// others wait meanwhile, so of those of a long outage only a few are dropped.
const TRIED_FOR_MAX: Duration = Duration::from_mins(2);

/// The pause before an Event is sent again that was not answered; after other failures the pacer sets it.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(10);

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

/// The way into the lane. Clones are one queue.
#[derive(Clone, Debug)]
pub struct EventQueue {
    sender: mpsc::Sender<Happened>,
    clock: Clock,
    metrics: EventMetrics,
}

impl EventQueue {
    /// Takes an Event in, or drops it when there are too many.
    pub fn push(&self, event: CronJobEvent, at: Timestamp) {
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
    /// Whether a burst of creates is going on.
    pub burst: Watcher<bool>,
}

/// See the module.
#[derive(Debug)]
pub struct EventTask<A> {
    api: A,
    clock: Clock,
    links: EventLinks,
    events: mpsc::Receiver<Happened>,
    aggregator: EventAggregator,
    pacer: Pacer,
    /// Taken from the queue and not delivered yet.
    current: Option<EventAction>,
    metrics: EventMetrics,
}

impl<A: EventApi> EventTask<A> {
    /// The lane and the way into it.
    pub fn new(api: A, clock: Clock, links: EventLinks, metrics: EventMetrics) -> (EventQueue, EventTask<A>) {
        let (sender, events) = mpsc::channel(QUEUE_MAX);
        let queue = EventQueue {
            sender,
            clock: clock.clone(),
            metrics: metrics.clone(),
        };
        let task = EventTask {
            api,
            clock,
            links,
            events,
            aggregator: EventAggregator::new(),
            pacer: Pacer::new(1),
            current: None,
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
        let n_left = self.events.len() + usize::from(self.current.is_some());
        self.metrics.dropped_shutdown.inc_by(n_left as u64);
    }

    /// Delivers one after the other until the queue is closed and empty. May be dropped and called again.
    async fn work(&mut self, burst_wait_max: Duration) {
        loop {
            if self.current.is_none() {
                let Some(happened) = self.events.recv().await else {
                    return;
                };
                self.current = self.admit(&happened);
                if self.current.is_none() {
                    continue;
                }
                self.wait_behind_burst(happened.boot, burst_wait_max).await;
            }
            self.deliver_current().await;
        }
    }

    fn admit(&mut self, happened: &Happened) -> Option<EventAction> {
        match self.aggregator.admit(&happened.event, happened.at) {
            EventAction::Drop => {
                self.metrics.dropped_too_many.inc();
                None
            }
            action @ (EventAction::Create { .. } | EventAction::Patch { .. }) => Some(action),
        }
    }

    async fn wait_behind_burst(&mut self, since: BootInstant, wait_max: Duration) {
        let waited = self.clock.boot().since(since);
        let remaining = wait_max.saturating_sub(waited);
        // Whether the burst or the wait ended first makes no difference, nor does a dispatcher that has ended.
        let _ = tokio::time::timeout(remaining, self.links.burst.wait_for(|is_burst| !is_burst)).await;
    }

    /// Sends the current Event until it is concluded or its time is over. A try that was not answered may have got
    /// through: the name and the count are the same at the next, so nothing is told twice.
    async fn deliver_current(&mut self) {
        let deadline = self.clock.boot() + TRIED_FOR_MAX;
        while let Some(action) = self.current.clone() {
            match self.send(action).await {
                Answer::Outcome(EventOutcome::Unanswered { .. }) => tokio::time::sleep(UNANSWERED_PAUSE).await,
                Answer::Outcome(outcome) => {
                    self.current = self.conclude(outcome);
                    continue;
                }
                Answer::Throttled { .. } | Answer::Unavailable { .. } => {}
            }
            if self.clock.boot() >= deadline {
                self.current = None;
                self.metrics.dropped_failed.inc();
            }
        }
    }

    /// What is still to be done after an outcome: an Event to patch that is gone is created.
    fn conclude(&mut self, outcome: EventOutcome) -> Option<EventAction> {
        match (outcome, self.current.take()?) {
            (EventOutcome::Stored | EventOutcome::Exists, EventAction::Create { .. }) => self.metrics.created.inc(),
            (EventOutcome::Stored, EventAction::Patch { .. }) => self.metrics.raised.inc(),
            (
                EventOutcome::Gone,
                EventAction::Patch {
                    namespace, create_body, ..
                },
            ) => {
                return Some(EventAction::Create {
                    namespace,
                    body: create_body,
                });
            }
            (EventOutcome::Stored | EventOutcome::Exists, EventAction::Drop) => {}
            (
                EventOutcome::Exists
                | EventOutcome::Gone
                | EventOutcome::Rejected { .. }
                | EventOutcome::Unanswered { .. },
                _,
            ) => self.metrics.dropped_failed.inc(),
        }
        None
    }

    async fn send(&mut self, action: EventAction) -> Answer<EventOutcome> {
        while let Admission::Wait(until) = self.pacer.admission(self.clock.boot(), 0) {
            tokio::time::sleep(until.since(self.clock.boot())).await;
        }
        let sent = self.clock.boot();
        let ticket = self.pacer.on_sent(sent);
        let (clock, metrics, api) = (&self.clock, &self.metrics.api, &self.api);
        let (answered, duration) = match action {
            EventAction::Create { namespace, body } => {
                ask(clock, metrics, ApiCall::CreateEvent, api.post_event(&namespace, body)).await
            }
            EventAction::Patch {
                namespace, name, body, ..
            } => {
                ask(
                    clock,
                    metrics,
                    ApiCall::PatchEvent,
                    api.patch_event(&namespace, &name, body),
                )
                .await
            }
            EventAction::Drop => return Answer::Outcome(EventOutcome::Stored),
        };
        self.pacer.on_answered(ticket, &answered, sent + duration, duration, 0);
        answered.answer
    }
}

#[cfg(test)]
mod tests;
