//! The Events that were taken from the queue and are not concluded: one of a CronJob at a time, the others behind it.
//!
//! Bounded: at most [`DELIVERIES_MAX`] CronJobs, and [`BEHIND_MAX`] Events behind each. Ordered: nothing of a CronJob
//! is begun before what it told earlier is concluded, so a count is never raised before its Event is there.

use std::{collections::VecDeque, time::Duration};

use super::Happened;
use crate::{
    kube_api::{EventAction, EventAggregator, EventOutcome},
    shard::{BootInstant, CronJobEvent, Uid},
    telemetry::metrics::EventMetrics,
};

/// CronJobs with an Event begun. Those that get no answer wait here for their next try, and the lane goes on; where so
/// many do, something is wrong with more than one, and the rest is better off in the queue.
pub(super) const DELIVERIES_MAX: usize = 16;

/// Events that wait behind one of the same CronJob, which may come at once (B-14.1).
pub(super) const BEHIND_MAX: usize = 25;

/// How long an Event is tried before it is dropped: as long as the twelve tries, ten seconds apart, of client-go. Of
/// those of a long outage only the few that were begun are dropped, the others wait in the queue.
const TRIED_FOR_MAX: Duration = Duration::from_mins(2);

/// The pause before an Event is sent again that was not answered; after other failures the pacer sets it.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(10);

/// Names a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeliveryId(u64);

#[derive(Debug)]
struct Delivery {
    id: DeliveryId,
    cron_job: Uid,
    action: EventAction,
    happened: BootInstant,
    stage: DeliveryState,
    /// When it is given up; set by its first try.
    deadline: Option<BootInstant>,
    behind: VecDeque<Happened>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryState {
    /// Not sent yet: it stays behind bursts.
    New,
    InFlight,
    /// Sent in vain; not again before then.
    Pausing(BootInstant),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Deliveries {
    aggregator: EventAggregator,
    /// In the order in which they were begun.
    begun: Vec<Delivery>,
    n_begun_ever: u64,
    metrics: EventMetrics,
}

impl Deliveries {
    pub(super) fn new(metrics: EventMetrics) -> Deliveries {
        Deliveries {
            aggregator: EventAggregator::new(),
            begun: Vec::new(),
            n_begun_ever: 0,
            metrics,
        }
    }

    /// Whether another Event can be taken in.
    pub(super) fn has_room(&self) -> bool {
        self.begun.len() < DELIVERIES_MAX
    }

    /// Whether an Event of its CronJob and reason was sent of late.
    pub(super) fn is_repeat(&self, event: &CronJobEvent) -> bool {
        self.aggregator.is_repeat(event)
    }

    /// Counts an Event that is not sent.
    pub(super) fn count(&mut self, event: &CronJobEvent) {
        self.aggregator.count(event);
    }

    /// Events that are not concluded.
    pub(super) fn len(&self) -> usize {
        self.begun.iter().map(|delivery| 1 + delivery.behind.len()).sum()
    }

    pub(super) fn take(&mut self, happened: Happened) {
        let uid = &happened.event.cron_job.uid;
        match self.begun.iter_mut().find(|delivery| delivery.cron_job == *uid) {
            Some(delivery) if delivery.behind.len() < BEHIND_MAX => delivery.behind.push_back(happened),
            Some(_) => self.metrics.dropped_queue_full.inc(),
            None => self.begin(VecDeque::from([happened])),
        }
    }

    /// Begins the first of a CronJob's Events that is to be sent.
    fn begin(&mut self, mut events: VecDeque<Happened>) {
        while let Some(next) = events.pop_front() {
            match self.aggregator.admit(&next.event, next.at) {
                EventAction::Drop => self.metrics.dropped_too_many.inc(),
                action @ (EventAction::Create { .. } | EventAction::Patch { .. }) => {
                    self.n_begun_ever += 1;
                    self.begun.push(Delivery {
                        id: DeliveryId(self.n_begun_ever),
                        cron_job: next.event.cron_job.uid.clone(),
                        action,
                        happened: next.boot,
                        stage: DeliveryState::New,
                        deadline: None,
                        behind: events,
                    });
                    return;
                }
            }
        }
    }

    /// The oldest that may be sent; it is on the way from then on. While `burst_wait` is given, new ones wait for so long.
    pub(super) fn next_ready(
        &mut self,
        now: BootInstant,
        burst_wait: Option<Duration>,
    ) -> Option<(DeliveryId, EventAction)> {
        let is_ready = |delivery: &&mut Delivery| delivery.ready_at(burst_wait).is_some_and(|at| at <= now);
        let delivery = self.begun.iter_mut().find(is_ready)?;
        delivery.stage = DeliveryState::InFlight;
        delivery.deadline.get_or_insert(now + TRIED_FOR_MAX);
        Some((delivery.id, delivery.action.clone()))
    }

    /// When time alone lets one more be sent.
    pub(super) fn next_ready_at(&self, burst_wait: Option<Duration>) -> Option<BootInstant> {
        let instants = self.begun.iter().filter_map(|delivery| delivery.ready_at(burst_wait));
        instants.min()
    }

    /// The server did not take the request: it is sent again when the lane goes on.
    pub(super) fn put_back(&mut self, id: DeliveryId, now: BootInstant) {
        self.pause(id, now, now);
    }

    /// Nobody can say whether it got through. The name and the count are the same at the next try, so nothing is told
    /// twice.
    fn put_off(&mut self, id: DeliveryId, now: BootInstant) {
        self.pause(id, now, now + UNANSWERED_PAUSE);
    }

    fn pause(&mut self, id: DeliveryId, now: BootInstant, until: BootInstant) {
        let Some(delivery) = self.begun.iter_mut().find(|delivery| delivery.id == id) else {
            return;
        };
        delivery.stage = DeliveryState::Pausing(until);
        if delivery.deadline.is_some_and(|deadline| deadline <= now) {
            self.metrics.dropped_failed.inc();
            self.end(id);
        }
    }

    /// Takes in an outcome: an Event to patch that is gone is created, all else is the end of it or another try.
    pub(super) fn conclude(&mut self, id: DeliveryId, outcome: EventOutcome, now: BootInstant) {
        let Some(delivery) = self.begun.iter_mut().find(|delivery| delivery.id == id) else {
            return;
        };
        match (outcome, &delivery.action) {
            (EventOutcome::Unanswered { .. }, _) => return self.put_off(id, now),
            (EventOutcome::Stored | EventOutcome::Exists, EventAction::Create { .. }) => self.metrics.created.inc(),
            (EventOutcome::Stored, EventAction::Patch { .. }) => self.metrics.raised.inc(),
            (
                EventOutcome::Gone,
                EventAction::Patch {
                    namespace, create_body, ..
                },
            ) => {
                delivery.action = EventAction::Create {
                    namespace: namespace.clone(),
                    body: create_body.clone(),
                };
                delivery.stage = DeliveryState::Pausing(now);
                return;
            }
            (EventOutcome::Exists | EventOutcome::Gone | EventOutcome::Rejected { .. }, _)
            | (EventOutcome::Stored, EventAction::Drop) => self.metrics.dropped_failed.inc(),
        }
        self.end(id);
    }

    /// Ends a delivery; the CronJob's next one has its turn behind the others.
    fn end(&mut self, id: DeliveryId) {
        if let Some(place) = self.begun.iter().position(|delivery| delivery.id == id) {
            let ended = self.begun.remove(place);
            self.begin(ended.behind);
        }
    }
}

impl Delivery {
    fn ready_at(&self, burst_wait: Option<Duration>) -> Option<BootInstant> {
        match self.stage {
            DeliveryState::New => Some(self.happened + burst_wait.unwrap_or_default()),
            DeliveryState::Pausing(until) => Some(until),
            DeliveryState::InFlight => None,
        }
    }
}
