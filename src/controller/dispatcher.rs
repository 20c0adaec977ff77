//! Sends the Job requests that shards order. The next request is the first that exists and has a place in flight:
//!
//! 1. An overdue create that has expired. It is answered, and not sent.
//! 2. A create whose CronJob was read for it. Then a create whose CronJob must be read first.
//! 3. At every eighth pop, a look-up or a background request, if one has waited for long.
//! 4. A create that is due, or a delete that it waits for: by deadline, and fairly between namespaces.
//! 5. An overdue create, at a limited rate.
//! 6. A look-up, then a background request.
//!
//! One task drives all requests in flight. A request is sent only in the shard term in which it was ordered, only while
//! its namespace is managed and the clock verdict is fine, and never at or after its `expires_at`. Every accepted request is answered at most once
//! with a [`TermedAnswer`]; only a request that is in flight at the end of the shutdown has no answer. "Too many requests" and
//! an unreachable server do not count as answers: the whole lane pauses, and the request returns to the queue. A create
//! returns with its first deadline, behind creates with the same deadline. A create that may have reached the server is
//! not repeated: the shard looks its Job up first.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::{Notify, mpsc};

use super::{
    clock::Clock,
    lane::{Lane, RETRIES_MAX, RequestResult, SentOrRead},
    pacing::Admission,
    shutdown::{IN_FLIGHT_GRACE, Phase, PhaseReceiver},
};
use crate::{
    coordination::Leadership,
    kube_api::{
        Answer, ApiClient,
        latest_value::{LatestReceiver, LatestSender},
    },
    shard::{BootInstant, CreateOutcome, ManagedNamespaces, OrderAnswer, ShardTerm, TermedAnswer, Withdrawal},
    telemetry::metrics::{DispatchMetrics, gauge_value},
};

mod backlog;
mod request;
mod withdrawable;

use backlog::{BACKLOG_MAX, Backlog};
pub use request::{Queued, Request};

/// More creates than this at once are a burst. Statuses and Events wait until a burst is over.
const BURST_MIN: usize = 8;

/// The queue of the dispatcher.
#[derive(Debug)]
pub struct DispatchQueue {
    /// Locked for one insertion or removal, never across an await.
    backlog: Mutex<Backlog>,
    /// Notified at each insertion.
    arrivals: Notify,
    metrics: DispatchMetrics,
}

impl DispatchQueue {
    /// Creates an empty queue.
    pub fn new(metrics: DispatchMetrics) -> Arc<DispatchQueue> {
        Arc::new(DispatchQueue {
            backlog: Mutex::new(Backlog::new(BACKLOG_MAX)),
            arrivals: Notify::new(),
            metrics,
        })
    }

    /// Adds a request without waiting.
    ///
    /// # Errors
    ///
    /// If the queue is full, returns the answer to the request.
    pub fn push(&self, queued: Queued, now: Timestamp) -> Result<(), Box<TermedAnswer>> {
        self.backlog().push(queued, now).map_err(|queued| {
            self.metrics.overflows.inc();
            Box::new(queued.answered(queued.request.abandoned()))
        })?;
        self.arrivals.notify_one();
        Ok(())
    }

    /// Withdraws a request of this term and returns the answer to it. A request that is sent is not affected, but it is
    /// not sent a second time.
    pub fn withdraw(&self, shard_term: ShardTerm, withdrawal: &Withdrawal) -> Option<TermedAnswer> {
        let cron_job = &withdrawal.cron_job;
        let uid = withdrawal.job.as_ref().unwrap_or(&cron_job.uid);
        let withdrawn = self
            .backlog()
            .withdraw(&cron_job.namespace, &(shard_term, uid.clone()))?;
        // A burst may be over.
        self.arrivals.notify_one();
        Some(withdrawn.answered(withdrawn.request.withdrawn()))
    }

    /// Locks the backlog. It is consistent after every statement, so a panic elsewhere does not invalidate it.
    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The channels of the dispatcher.
#[derive(Debug)]
pub struct DispatcherChannels {
    /// Incoming requests.
    pub queue: Arc<DispatchQueue>,
    /// Answers to the shard task.
    pub answers: mpsc::Sender<TermedAnswer>,
    /// The shards and terms in which this replica may write.
    pub leadership: LatestReceiver<Leadership>,
    /// Phase of the shutdown; it ends the dispatcher.
    pub phase: PhaseReceiver,
    /// Set while more creates are due than are sent at once. Statuses and Events wait meanwhile.
    pub burst: LatestSender<bool>,
    /// The namespaces in which Jobs may be created and deleted.
    pub namespaces: ManagedNamespaces,
}

/// The task that sends Job requests.
pub struct Dispatcher {
    lane: Lane<Queued>,
    clock: Clock,
    channels: DispatcherChannels,
    /// The creates in flight that may be part of a burst.
    n_creates_in_flight: usize,
    /// Since when creates have waited without a pause.
    creates_waiting_since: Option<BootInstant>,
    metrics: DispatchMetrics,
}

impl Dispatcher {
    /// Creates a dispatcher with at most `in_flight_max` requests in flight, and in addition those of slow namespaces.
    pub fn new(api: ApiClient, clock: Clock, channels: DispatcherChannels, in_flight_max: u32) -> Dispatcher {
        let metrics = channels.queue.metrics.clone();
        let leadership = channels.leadership.clone();
        let lane = Lane::new(api, clock.clone(), leadership, metrics.api.clone(), in_flight_max);
        Dispatcher {
            lane: lane.with_places_for_slow().within(channels.namespaces.clone()),
            clock,
            channels,
            n_creates_in_flight: 0,
            creates_waiting_since: None,
            metrics,
        }
    }

    /// Runs until the intake stops. Then waits for the requests in flight and answers all others as abandoned.
    pub async fn run(mut self) {
        let queue = self.channels.queue.clone();
        let mut phase = self.channels.phase.clone();
        let mut verdict = self.clock.subscribe_verdict();
        loop {
            let stalled_until = self.send_permitted().await;
            let burst_change = self.publish();
            let until = stalled_until.into_iter().chain(burst_change).min();
            let pause = until.map(|until| until.since(self.clock.boot()));
            tokio::select! {
                biased;
                () = phase.reached(Phase::StopIntake) => break,
                Some(result) = self.lane.next() => self.handle_answer(result).await,
                () = queue.arrivals.notified() => {}
                () = verdict.changed() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
        self.finish().await;
    }

    /// Sends requests until there is a reason to stop. Returns when to try again if only time is needed.
    async fn send_permitted(&mut self) -> Option<BootInstant> {
        loop {
            if !self.clock.is_fine() {
                return None;
            }
            self.lane.divide_among_senders();
            match self.lane.admission() {
                Admission::Now => {}
                Admission::Wait(until) => return Some(until),
                Admission::Full => return None,
            }
            let (now, boot) = (self.clock.now(), self.clock.boot());
            let places = self.lane.in_flight_limit();
            let popped = self.backlog().pop((now, boot), places, self.lane.in_flight());
            let queued = match popped {
                Ok(queued) => queued,
                Err(token_at) => return token_at.into_iter().chain(self.lane.recent().1).min(),
            };
            match self.answer_instead_of_sending(&queued, now) {
                Some(answer) => self.conclude(&queued, answer).await,
                None => self.send(queued),
            }
        }
    }

    /// Returns the answer to a request that must not be sent at this instant.
    fn answer_instead_of_sending(&self, queued: &Queued, now: Timestamp) -> Option<OrderAnswer> {
        let request = &queued.request;
        if !self.lane.is_led(queued.shard_term) {
            self.metrics.fenced.inc();
            return Some(request.abandoned());
        }
        if request.is_early(now) || !self.lane.permits(queued) {
            return Some(request.abandoned());
        }
        request.is_expired(now).then(|| request.withdrawn())
    }

    fn send(&mut self, mut queued: Queued) {
        self.n_creates_in_flight += usize::from(queued.may_be_in_burst());
        queued.sent = self.clock.now();
        self.lane.send(queued);
    }

    /// Handles the result of a request: an answer for the shard, or a retry.
    async fn handle_answer(&mut self, (mut queued, answer): RequestResult<Queued>) {
        self.n_creates_in_flight -= usize::from(queued.may_be_in_burst());
        match answer {
            Some(Answer::Outcome(SentOrRead::Sent(answer))) => {
                self.record_creation(&queued, &answer);
                self.conclude(&queued, answer).await;
            }
            Some(Answer::Outcome(SentOrRead::Read(template))) => {
                queued.set_template(template);
                self.put_back(queued).await;
            }
            Some(Answer::Throttled { message, .. }) => self.try_again(queued, message).await,
            // The first POST may have created the Job, and the Job may be deleted again. A repeated POST could then
            // create a second Job, so the shard looks the first one up. All other requests are repeatable.
            Some(Answer::Unavailable {
                message,
                is_unreachable,
                ..
            }) => match queued.request.unanswered(message.clone(), is_unreachable) {
                Some(answer) => self.conclude(&queued, answer).await,
                None => self.try_again(queued, message).await,
            },
            None => self.put_back(queued).await,
        }
    }

    async fn try_again(&mut self, mut queued: Queued, message: String) {
        queued.n_retries += 1;
        if queued.n_retries > RETRIES_MAX {
            return self.conclude(&queued, queued.request.failed(message)).await;
        }
        self.put_back(queued).await;
    }

    async fn put_back(&mut self, queued: Queued) {
        let now = self.clock.now();
        let withdrawn = self.backlog().put_back(queued, now);
        if let Some(withdrawn) = withdrawn {
            self.answer(withdrawn.answered(withdrawn.request.withdrawn())).await;
        }
    }

    /// Answers a popped request.
    async fn conclude(&mut self, queued: &Queued, answer: OrderAnswer) {
        self.backlog().take_withdrawn(queued);
        self.answer(queued.answered(answer)).await;
    }

    /// Lateness, of each run once: that of the request that created its Job. Creation skew (B-15.1), in the controller's
    /// time: the offset of `--clock-offset` is added to the server's time.
    fn record_creation(&self, queued: &Queued, answer: &OrderAnswer) {
        if queued.request.is_of_run() {
            return;
        }
        if let OrderAnswer::Create {
            slot,
            answer: CreateOutcome::Created { created, .. },
            ..
        } = answer
        {
            let skew = created.duration_since(*slot) + self.clock.offset();
            self.metrics.creation_skew.observe(skew.as_secs_f64());
            if let Some(lateness) = queued.lateness() {
                self.metrics.lateness.observe(lateness.as_secs_f64());
            }
        }
    }

    async fn answer(&mut self, answer: TermedAnswer) {
        // The receiver is gone only after the shard task has ended, and then the answer is irrelevant.
        let _ = self.channels.answers.send(answer).await;
    }

    /// Publishes the sizes of the queue and of the requests in flight to the gauges, and the burst to the tasks that
    /// wait for its end. A create does not count for a burst if it waits for an admission webhook, if it is held back
    /// meanwhile, or if it has few places of its own. Returns when a burst may end without an answer.
    fn publish(&mut self) -> Option<BootInstant> {
        let (n_creates, n_to_send, n_background) = {
            let (backlog, room) = (self.backlog(), self.lane.in_flight().room(self.clock.boot()));
            (
                backlog.n_creates(),
                backlog.n_creates_to_send(room),
                backlog.n_background(),
            )
        };
        self.metrics.creates_waiting.set(gauge_value(n_creates));
        let since = self.creates_waiting_since.unwrap_or_else(|| self.clock.boot());
        self.creates_waiting_since = (n_creates > 0).then_some(since);
        let waiting_since = &self.metrics.creates_waiting_since;
        waiting_since.publish(self.creates_waiting_since, &self.clock);
        self.metrics.background_waiting.set(gauge_value(n_background));
        self.metrics.in_flight.set(self.lane.n_in_flight().into());
        self.metrics.in_flight_limit.set(self.lane.in_flight_limit().into());
        let (n_recent, change) = self.lane.recent();
        let n_recent_creates = self.n_creates_in_flight.min(n_recent as usize);
        let is_burst = n_to_send + n_recent_creates > BURST_MIN;
        self.channels.burst.set(is_burst);
        change.filter(|_| is_burst)
    }

    /// Abandons the queued requests, and waits a limited time for those in flight.
    async fn finish(mut self) {
        let deadline = self.clock.boot() + IN_FLIGHT_GRACE;
        loop {
            // Retries have returned to the queue; they are not sent again.
            self.abandon_backlog().await;
            let until = self.publish().map_or(deadline, |change| change.min(deadline));
            let now = self.clock.boot();
            if self.lane.n_in_flight() == 0 || now >= deadline {
                break;
            }
            if let Ok(Some(result)) = tokio::time::timeout(until.since(now), self.lane.next()).await {
                self.handle_answer(result).await;
            }
        }
        tracing::debug!(n_unanswered = self.lane.n_in_flight(), "dispatcher ended");
        // No later publish would reset it.
        self.channels.burst.set(false);
    }

    async fn abandon_backlog(&mut self) {
        loop {
            let next = self.backlog().take_any();
            let Some(queued) = next else {
                return;
            };
            self.answer(queued.answered(queued.request.abandoned())).await;
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.channels.queue.backlog()
    }
}

#[cfg(test)]
mod tests;
