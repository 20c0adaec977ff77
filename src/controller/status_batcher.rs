//! Writes statuses: merged per CronJob, after bursts of creates, one at a time for each CronJob, fairly between
//! namespaces.
//!
//! A status write costs the API server as much as a create of a Job. So the changes within the flush interval become
//! one write, and statuses wait for a limited time while creates wait. Urgent writes are sent at once. A conflict or
//! any other refusal is returned to the shard, which decides on the next write. "Too many requests" and an
//! unreachable server do not count as answers: the newest write of that CronJob is sent again after a pause of the
//! whole lane. A write is sent only in the shard term in which it was ordered, and only while its namespace is managed or
//! shortly after, checked again at the send; otherwise it is answered as abandoned.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{Notify, mpsc};

use super::{
    clock::Clock,
    in_flight::STATUSES_IN_FLIGHT_MAX,
    lane::{Lane, RETRIES_MAX, RequestResult, SentOrRead},
    pacing::Admission,
    shutdown::{Phase, PhaseReceiver, STATUS_GRACE},
};
use crate::{
    coordination::Leadership,
    kube_api::{Answer, ApiClient, latest_value::LatestReceiver, objects::classify::OrderOutcome},
    shard::{BootInstant, KeptText, ManagedNamespaces, ShardTerm, StatusOutcome, StatusWrite, TermedAnswer},
    telemetry::metrics::{StatusMetrics, gauge_value},
};

mod pending;
mod request;

use pending::PendingWrites;
use request::Pending;

/// Maximum number of writes in flight during a burst, those of slow namespaces excluded. During a burst only urgent and
/// old writes are sent.
const STATUSES_IN_FLIGHT_MAX_IN_BURST: u32 = 8;

/// The queue of the status batcher.
#[derive(Debug)]
pub struct StatusQueue {
    /// Locked for one insertion or removal, never across an await.
    writes: Mutex<PendingWrites>,
    /// Notified when the batcher must wake up early.
    news: Notify,
    metrics: StatusMetrics,
}

impl StatusQueue {
    /// Creates an empty queue that collects changes for `flush_interval`.
    pub fn new(metrics: StatusMetrics, flush_interval: Duration) -> Arc<StatusQueue> {
        Arc::new(StatusQueue {
            writes: Mutex::new(PendingWrites::new(flush_interval)),
            news: Notify::new(),
            metrics,
        })
    }

    /// Adds a write without waiting.
    ///
    /// # Errors
    ///
    /// If the queue is full, returns the answer to the write.
    pub fn push(&self, shard_term: ShardTerm, write: StatusWrite, now: BootInstant) -> Result<(), Box<TermedAnswer>> {
        let pushed = self.with(|writes| writes.push(Pending::new(write, shard_term, now)));
        let must_wake = pushed.map_err(|pending| {
            self.metrics.overflows.inc();
            let message = "too many statuses wait to be written".into();
            Box::new(pending.answered(OrderOutcome::failed(message, None)))
        })?;
        if must_wake {
            self.news.notify_one();
        }
        Ok(())
    }

    /// Returns the number of pending writes.
    pub(super) fn n_pending(&self) -> usize {
        self.with(|writes| writes.len())
    }

    /// Locks the writes. They are consistent after every call, so a panic elsewhere does not invalidate them.
    fn with<T>(&self, act: impl FnOnce(&mut PendingWrites) -> T) -> T {
        let mut writes = self.writes.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut writes);
        self.metrics.pending.set(gauge_value(writes.len()));
        result
    }
}

/// The channels of the batcher.
#[derive(Debug)]
pub struct StatusChannels {
    /// Incoming writes.
    pub queue: Arc<StatusQueue>,
    /// Answers to the shard task.
    pub answers: mpsc::Sender<TermedAnswer>,
    /// The shards and terms in which this replica may write.
    pub leadership: LatestReceiver<Leadership>,
    /// Phase of the shutdown; it ends the batcher.
    pub phase: PhaseReceiver,
    /// Set during a burst of creates, while writes that are not urgent wait.
    pub burst: LatestReceiver<bool>,
    /// The namespaces in which statuses may be written.
    pub namespaces: ManagedNamespaces,
}

/// The task that writes statuses.
pub struct StatusBatcher {
    lane: Lane<Pending>,
    clock: Clock,
    channels: StatusChannels,
    /// The deadline for the remaining statuses, once the shutdown has reached them.
    flush_by: Option<BootInstant>,
}

impl StatusBatcher {
    /// Creates the task.
    pub fn new(api: ApiClient, clock: Clock, channels: StatusChannels) -> StatusBatcher {
        let (leadership, metrics) = (channels.leadership.clone(), channels.queue.metrics.api.clone());
        let lane = Lane::new(api, clock.clone(), leadership, metrics, STATUSES_IN_FLIGHT_MAX);
        StatusBatcher {
            lane: lane.with_places_for_slow().within(channels.namespaces.clone()),
            clock,
            channels,
            flush_by: None,
        }
    }

    /// Runs until [`Phase::FlushStatuses`], then writes the remaining statuses for at most [`STATUS_GRACE`].
    pub async fn run(mut self) {
        let queue = Arc::clone(&self.channels.queue);
        let mut phase = self.channels.phase.clone();
        loop {
            let mut until = self.send_due().await;
            queue
                .metrics
                .oldest
                .publish(queue.with(|writes| writes.oldest()), &self.clock);
            let now = self.clock.boot();
            if let Some(flush_by) = self.flush_by {
                let is_done = queue.n_pending() == 0 && self.lane.n_in_flight() == 0;
                if is_done || now >= flush_by {
                    break;
                }
                until = until.into_iter().chain([flush_by]).min();
            }
            let pause = until.map(|until| until.since(now));
            tokio::select! {
                biased;
                () = phase.reached(Phase::FlushStatuses), if self.flush_by.is_none() => {
                    self.flush_by = Some(self.clock.boot() + STATUS_GRACE);
                    queue.with(PendingWrites::flush);
                }
                Some(result) = self.lane.next() => self.handle_answer(result).await,
                () = queue.news.notified() => {}
                () = self.channels.burst.changed() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
        let n_left = queue.n_pending() + self.lane.n_in_flight() as usize;
        if n_left > 0 {
            tracing::warn!(
                n_left,
                "ended before all statuses were written; the next leader derives them again"
            );
        }
    }

    /// Sends until no write is due or none may be sent. Returns when time alone may change that: a write becomes due, or a
    /// namespace turns slow, so that others get its places.
    async fn send_due(&mut self) -> Option<BootInstant> {
        loop {
            self.lane.divide_among_senders();
            let is_burst = self.channels.burst.get();
            let in_flight_max = if is_burst {
                STATUSES_IN_FLIGHT_MAX_IN_BURST
            } else {
                STATUSES_IN_FLIGHT_MAX
            };
            match self.admission(in_flight_max) {
                Admission::Now => {}
                Admission::Full => return None,
                Admission::Wait(until) => return Some(until),
            }
            let places = in_flight_max.min(self.lane.in_flight_limit());
            let (queue, now) = (&self.channels.queue, self.clock.boot());
            while queue.with(|writes| writes.advance(now)) {
                tokio::task::yield_now().await;
            }
            let room = self.lane.in_flight().room(now);
            let next = queue.with(|writes| {
                let next = writes.next(is_burst, places, room);
                next.ok_or_else(|| writes.next_change())
            });
            match next {
                Ok(pending) if !self.lane.is_led(pending.shard_term) => self.abandon(pending).await,
                Ok(pending) if self.lane.permits(&pending) => self.send(pending),
                Ok(pending) => self.conclude(pending, StatusOutcome::Abandoned).await,
                Err(change) => return change.into_iter().chain(self.lane.recent().1).min(),
            }
        }
    }

    /// Returns whether one more write may be sent now, with at most so many recent ones in flight.
    fn admission(&mut self, in_flight_max: u32) -> Admission {
        match (self.lane.admission(), self.lane.recent()) {
            (Admission::Now, (n_recent, change)) if n_recent >= in_flight_max => {
                change.map_or(Admission::Full, Admission::Wait)
            }
            (admission, _) => admission,
        }
    }

    fn send(&mut self, pending: Pending) {
        if !pending.must_read() {
            let age = self.clock.boot().since(pending.since);
            self.channels.queue.metrics.age.observe(age.as_secs_f64());
        }
        self.lane.send(pending);
    }

    async fn abandon(&mut self, pending: Pending) {
        self.channels.queue.metrics.fenced.inc();
        self.conclude(pending, StatusOutcome::Abandoned).await;
    }

    /// Handles the result of a write, or of the read before it.
    async fn handle_answer(&mut self, (pending, answer): RequestResult<Pending>) {
        match answer {
            Some(Answer::Outcome(SentOrRead::Read(metadata))) => self.send_complete(pending, metadata),
            Some(Answer::Outcome(SentOrRead::Sent(outcome))) => self.conclude(pending, outcome).await,
            Some(Answer::Throttled { message, .. } | Answer::Unavailable { message, .. }) => {
                self.try_again(pending, message).await;
            }
            None => self.abandon(pending).await,
        }
    }

    /// Sends a write whose metadata was read, past the queues, since the metadata occupies memory. If the lane is paused,
    /// the metadata is read again later.
    fn send_complete(&mut self, mut pending: Pending, metadata: Arc<KeptText>) {
        if self.lane.admission() == Admission::Now {
            pending.complete(metadata);
            self.send(pending);
        } else {
            self.channels.queue.with(|writes| writes.put_back(pending));
        }
    }

    async fn try_again(&mut self, mut pending: Pending, message: String) {
        pending.n_retries += 1;
        if pending.n_retries > RETRIES_MAX {
            return self.conclude(pending, OrderOutcome::failed(message, None)).await;
        }
        self.channels.queue.with(|writes| writes.put_back(pending));
    }

    /// Answers a write, and the pending write of the same CronJob if the answer applies to it too.
    async fn conclude(&mut self, sent: Pending, outcome: StatusOutcome) {
        let pending = self.channels.queue.with(|writes| writes.conclude(&sent, &outcome));
        if let Some(pending) = pending {
            self.answer(pending, outcome.clone()).await;
        }
        self.answer(sent, outcome).await;
    }

    async fn answer(&mut self, pending: Pending, outcome: StatusOutcome) {
        if let StatusOutcome::Failed { message, .. } = &outcome {
            let write = &pending.write;
            let (namespace, name) = (&*write.cron_job.namespace, &*write.cron_job.name);
            tracing::debug!(namespace, name, message, "status not stored");
        }
        // The receiver is gone only after the shard task has ended, and then the answer is irrelevant.
        let _ = self.channels.answers.send(pending.answered(outcome)).await;
    }
}

#[cfg(test)]
mod tests;
