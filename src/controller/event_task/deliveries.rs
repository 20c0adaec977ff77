//! Deliveries: Events that left the queue and are not concluded, one per CronJob at a time, with later Events behind
//! it.
//!
//! Bounded: at most [`DELIVERIES_MAX`] CronJobs, and [`BEHIND_MAX`] Events behind each. Ordered: an Event of a CronJob
//! is sent only after the previous one is concluded, so a count is never raised before its Event exists.

use std::{collections::VecDeque, time::Duration};

use super::EmittedEvent;
use crate::{
    controller::lane::LaneRequest,
    kube_api::{Answered, ApiClient, EventAction, EventAggregator, EventOutcome},
    shard::{BootInstant, ShardTerm, Uid},
    telemetry::metrics::{ApiCall, EventMetrics},
};

/// Number of CronJobs with a delivery. Unanswered deliveries wait here for their next attempt while the lane continues.
/// If this many are unanswered, the fault is not in one namespace, and further Events are better off in the queue.
pub(super) const DELIVERIES_MAX: usize = 16;

/// Events that wait behind a delivery of the same CronJob; a CronJob may emit this many at once (B-14.1).
pub(super) const BEHIND_MAX: usize = 25;

/// How long an Event is attempted before it is dropped: as long as the twelve attempts of client-go, ten seconds apart.
/// A long outage drops only the few Events that were begun; the others wait in the queue.
const TRIED_FOR_MAX: Duration = Duration::from_mins(2);

/// Pause before an unanswered Event is sent again. After other failures the pacer sets the pause.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(10);

/// Timeout of a request: far longer than a healthy server takes. If a webhook delays the answer further, the next
/// attempt finds the Event stored.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Delivery {
    cron_job: Uid,
    action: EventAction,
    /// The instant from which the next attempt may be sent; `None` while one is in flight.
    ready_at: Option<BootInstant>,
    /// The instant at which the delivery is given up; set by the first attempt.
    deadline: Option<BootInstant>,
    behind: VecDeque<EmittedEvent>,
}

/// The deliveries of all CronJobs.
#[derive(Debug)]
pub(super) struct Deliveries {
    /// Merges similar Events of a CronJob.
    pub(super) aggregator: EventAggregator,
    /// The deliveries, in the order in which they were begun.
    begun: Vec<Delivery>,
    metrics: EventMetrics,
}

impl Deliveries {
    pub(super) fn new(metrics: EventMetrics) -> Deliveries {
        Deliveries {
            aggregator: EventAggregator::new(),
            begun: Vec::new(),
            metrics,
        }
    }

    /// Whether a delivery for another CronJob can begin.
    pub(super) fn has_room(&self) -> bool {
        self.begun.len() < DELIVERIES_MAX
    }

    /// Returns the number of Events that are not concluded.
    pub(super) fn len(&self) -> usize {
        self.begun.iter().map(|delivery| 1 + delivery.behind.len()).sum()
    }

    pub(super) fn take(&mut self, emitted: EmittedEvent, now: BootInstant) {
        match self.delivery_of(&emitted.event.cron_job.uid) {
            Some(delivery) if delivery.behind.len() < BEHIND_MAX => delivery.behind.push_back(emitted),
            Some(_) => self.metrics.dropped_queue_full.inc(),
            None => self.begin(VecDeque::from([emitted]), now),
        }
    }

    /// Begins a delivery with the first Event that the aggregator admits.
    fn begin(&mut self, mut events: VecDeque<EmittedEvent>, now: BootInstant) {
        while let Some(next) = events.pop_front() {
            let Some(action) = self.aggregator.admit(&next.event, next.at) else {
                self.metrics.dropped_too_many.inc();
                continue;
            };
            return self.begun.push(Delivery {
                cron_job: next.event.cron_job.uid.clone(),
                action,
                ready_at: Some(now),
                deadline: None,
                behind: events,
            });
        }
    }

    /// Returns the oldest delivery that may be sent and marks it as in flight.
    pub(super) fn next_ready(&mut self, now: BootInstant) -> Option<Attempt> {
        let is_ready = |delivery: &&mut Delivery| delivery.ready_at.is_some_and(|at| at <= now);
        let delivery = self.begun.iter_mut().find(is_ready)?;
        delivery.ready_at = None;
        delivery.deadline.get_or_insert(now + TRIED_FOR_MAX);
        Some(Attempt {
            cron_job: delivery.cron_job.clone(),
            action: delivery.action.clone(),
        })
    }

    /// Returns when the next delivery may be sent.
    pub(super) fn next_ready_at(&self) -> Option<BootInstant> {
        self.begun.iter().filter_map(|delivery| delivery.ready_at).min()
    }

    /// Postpones the next attempt, or drops the Event if it was attempted for too long.
    pub(super) fn pause(&mut self, cron_job: &Uid, now: BootInstant, until: BootInstant) {
        let Some(delivery) = self.delivery_of(cron_job) else {
            return;
        };
        delivery.ready_at = Some(until);
        if delivery.deadline.is_some_and(|deadline| deadline <= now) {
            self.metrics.dropped_failed.inc();
            self.end(cron_job, now);
        }
    }

    fn delivery_of(&mut self, cron_job: &Uid) -> Option<&mut Delivery> {
        self.begun.iter_mut().find(|delivery| delivery.cron_job == *cron_job)
    }

    /// Handles an outcome. A patch of an Event that is gone becomes a create. Every other outcome ends the delivery,
    /// except that an attempt without an answer is repeated. The server may have stored it, but the next attempt has the
    /// same name and count, so the Event is stored only once.
    pub(super) fn conclude(&mut self, cron_job: &Uid, outcome: EventOutcome, now: BootInstant) {
        let Some(delivery) = self.delivery_of(cron_job) else {
            return;
        };
        let is_patch = delivery.action.patch.is_some();
        match outcome {
            EventOutcome::Unanswered => return self.pause(cron_job, now, now + UNANSWERED_PAUSE),
            EventOutcome::Stored | EventOutcome::Exists if !is_patch => self.metrics.created.inc(),
            EventOutcome::Stored => self.metrics.raised.inc(),
            EventOutcome::Gone if is_patch => {
                delivery.action.patch = None;
                delivery.ready_at = Some(now);
                return;
            }
            EventOutcome::Exists | EventOutcome::Gone | EventOutcome::Rejected => self.metrics.dropped_failed.inc(),
        }
        self.end(cron_job, now);
    }

    /// Ends a delivery. The CronJob's next Event starts a new one, behind those of other CronJobs.
    fn end(&mut self, cron_job: &Uid, now: BootInstant) {
        if let Some(place) = self.begun.iter().position(|delivery| delivery.cron_job == *cron_job) {
            let ended = self.begun.remove(place);
            self.begin(ended.behind, now);
        }
    }
}

/// One attempt to store an Event.
pub(super) struct Attempt {
    pub(super) cron_job: Uid,
    action: EventAction,
}

impl LaneRequest for Attempt {
    type Reply = EventOutcome;

    fn shard_term(&self) -> Option<ShardTerm> {
        None
    }

    fn namespace(&self) -> &str {
        &self.action.namespace
    }

    fn call(&self) -> ApiCall {
        match self.action.patch {
            Some(_) => ApiCall::PatchEvent,
            None => ApiCall::CreateEvent,
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<EventOutcome> {
        let EventAction { namespace, body, patch } = &self.action;
        let request = async {
            match patch {
                Some((name, patch)) => api.patch_event(namespace, name, patch.clone()).await,
                None => api.post_event(namespace, body.clone()).await,
            }
        };
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, request).await;
        answered.unwrap_or_else(|_| Answered::without_answer(EventOutcome::Unanswered))
    }
}
