//! Writes statuses: merged per CronJob, after bursts of creates, one at a time for each CronJob.
//!
//! A status write costs the API server as much as a create of a Job. So the changes within the flush interval become
//! one write, and statuses wait up to [`AGE_MAX`] while creates wait. Urgent writes are sent at once. A conflict or
//! any other refusal is returned to the shard, which decides on the next write. "Too many requests" and an
//! unreachable server do not count as answers: the newest write of that CronJob is sent again after a pause of the
//! whole lane. A write is sent only in the shard term in which it was ordered, checked again at the send; otherwise
//! it is answered as abandoned.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::sync::{mpsc, watch};

use super::{
    clock::Clock,
    lane::{Lane, RETRIES_MAX, RequestResult, SentOrRead},
    pacing::Admission,
    shutdown::{Phase, PhaseReceiver, STATUS_GRACE},
};
use crate::{
    coordination::Leadership,
    kube_api::{Answer, ApiClient, objects::classify::OrderOutcome, ordered_watch::OrderedReceiver},
    shard::{BootInstant, Input, StatusOutcome, StatusWrite, Uid},
    telemetry::metrics::StatusMetrics,
};

mod pending;

pub use pending::StatusQueue;
use pending::{Pending, answer};

/// Maximum time that a status waits behind a burst of creates. A bound, not a target: until the status is stored, the
/// cursor is not stored either, and no Job may be deleted from history.
pub const AGE_MAX: Duration = Duration::from_secs(10);

/// Maximum number of writes in flight: enough to keep the API server of a small cluster busy.
const STATUSES_IN_FLIGHT_MAX: u32 = 32;

/// Maximum number of writes in flight during a burst, when only urgent and old writes are sent.
const STATUSES_IN_FLIGHT_MAX_IN_BURST: u32 = 8;

/// Maximum number of concurrent reads of CronJobs for the metadata of their status writes: each may have 1.5 MiB.
const READING_MAX: usize = 8;

/// The channels of the batcher.
#[derive(Debug)]
pub struct StatusChannels {
    /// Incoming writes.
    pub queue: Arc<StatusQueue>,
    /// Answers to the shard task.
    pub answers: mpsc::Sender<Input>,
    /// The shards and terms in which this replica may write.
    pub leadership: watch::Receiver<Leadership>,
    /// Phase of the shutdown; it ends the batcher.
    pub phase: PhaseReceiver,
    /// Set during a burst of creates, while writes that are not urgent wait.
    pub burst: OrderedReceiver<bool>,
}

/// The task that writes statuses.
pub struct StatusBatcher {
    lane: Lane<Pending>,
    clock: Clock,
    channels: StatusChannels,
    flush_interval: Duration,
    /// CronJobs with a write in flight.
    busy: HashSet<Uid>,
    /// Busy CronJobs whose next write is due.
    parked: HashSet<Uid>,
    /// The deadline for the remaining statuses, once the shutdown has reached them.
    flush_by: Option<BootInstant>,
    n_reading: usize,
}

impl StatusBatcher {
    /// Creates a batcher that collects changes for `flush_interval`.
    pub fn new(api: ApiClient, clock: Clock, channels: StatusChannels, flush_interval: Duration) -> StatusBatcher {
        let (leadership, metrics) = (channels.leadership.clone(), channels.queue.metrics.api.clone());
        StatusBatcher {
            lane: Lane::new(api, clock.clone(), leadership, metrics, STATUSES_IN_FLIGHT_MAX),
            clock,
            channels,
            flush_interval,
            busy: HashSet::new(),
            parked: HashSet::new(),
            flush_by: None,
            n_reading: 0,
        }
    }

    /// Runs until [`Phase::FlushStatuses`], then writes the remaining statuses for at most [`STATUS_GRACE`].
    pub async fn run(mut self) {
        let queue = Arc::clone(&self.channels.queue);
        let mut phase = self.channels.phase.clone();
        loop {
            let mut pause = self.send_due().await;
            if let Some(flush_by) = self.flush_by {
                let remaining = flush_by.since(self.clock.boot());
                let is_done = queue.is_empty() && self.lane.n_in_flight() == 0;
                if is_done || remaining.is_zero() {
                    break;
                }
                pause = Some(pause.map_or(remaining, |pause| pause.min(remaining)));
            }
            tokio::select! {
                biased;
                () = phase.reached(Phase::FlushStatuses), if self.flush_by.is_none() => {
                    self.flush_by = Some(self.clock.boot() + STATUS_GRACE);
                }
                Some(result) = self.lane.next() => self.handle_answer(result).await,
                () = queue.news.notified() => {}
                () = self.channels.burst.changed() => {}
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
            }
        }
        let n_left = queue.len() + self.busy.len();
        if n_left > 0 {
            tracing::warn!(
                n_left,
                "ended before all statuses were written; the next leader derives them again"
            );
        }
    }

    /// Sends until no write is due or none may be sent. Returns the time until the next write is due, if it is known.
    async fn send_due(&mut self) -> Option<Duration> {
        loop {
            let now = self.clock.boot();
            self.lane.divide_among_senders();
            match self.lane.admission() {
                Admission::Now if self.lane.n_in_flight() < self.in_flight_max() => {}
                Admission::Now | Admission::Full => return None,
                Admission::Wait(until) => return Some(until.since(now)),
            }
            let age = self.age_when_due();
            let Some(uid) = self.channels.queue.next_due(now, age) else {
                return self.channels.queue.oldest().map(|oldest| (oldest + age).since(now));
            };
            if self.busy.contains(&uid) {
                self.parked.insert(uid);
            } else if let Some(pending) = self.channels.queue.take(&uid) {
                if pending.must_read() && self.n_reading >= READING_MAX {
                    // It is the first to be sent when a read in flight is answered.
                    self.channels.queue.put_back(pending);
                    return None;
                }
                self.send(pending, now).await;
            }
        }
    }

    /// Returns the age at which a write that is not urgent is due.
    fn age_when_due(&self) -> Duration {
        if self.flush_by.is_some() {
            Duration::ZERO
        } else if self.channels.burst.get() {
            AGE_MAX.max(self.flush_interval)
        } else {
            self.flush_interval
        }
    }

    fn in_flight_max(&self) -> u32 {
        if self.channels.burst.get() {
            STATUSES_IN_FLIGHT_MAX_IN_BURST
        } else {
            STATUSES_IN_FLIGHT_MAX
        }
    }

    async fn send(&mut self, pending: Pending, now: BootInstant) {
        if !self.lane.is_led(pending.shard_term) {
            return self.abandon(pending).await;
        }
        self.busy.insert(pending.write.cron_job.uid.clone());
        if pending.must_read() {
            self.n_reading += 1;
        } else {
            self.metrics().age.observe(now.since(pending.since).as_secs_f64());
        }
        self.lane.send(pending);
    }

    async fn abandon(&mut self, pending: Pending) {
        self.metrics().fenced.inc();
        self.answer(pending.write, StatusOutcome::Abandoned).await;
    }

    /// Handles the result of a write, or of the read before it.
    async fn handle_answer(&mut self, (mut pending, answer): RequestResult<Pending>) {
        let uid = pending.write.cron_job.uid.clone();
        self.busy.remove(&uid);
        self.n_reading -= usize::from(pending.must_read());
        match answer {
            Some(Answer::Outcome(SentOrRead::Read(metadata))) => {
                pending.write.retained_metadata = metadata;
                self.channels.queue.put_back(pending);
            }
            Some(Answer::Outcome(SentOrRead::Sent(outcome))) => {
                self.follow_up(&pending.write, &outcome).await;
                self.answer(pending.write, outcome).await;
            }
            Some(Answer::Throttled { message, .. } | Answer::Unavailable { message, .. }) => {
                self.try_again(pending, message).await;
            }
            None => self.abandon(pending).await,
        }
        if self.parked.remove(&uid) {
            self.channels.queue.make_due(uid);
        }
    }

    /// Adjusts the pending write of the same CronJob to the answer to the write before it.
    async fn follow_up(&mut self, sent: &StatusWrite, outcome: &StatusOutcome) {
        let doomed = match outcome {
            StatusOutcome::Stored { resource_version } => {
                self.channels.queue.rebase(sent, *resource_version);
                None
            }
            StatusOutcome::Conflict => self
                .channels
                .queue
                .take_if_built_on(&sent.cron_job.uid, sent.resource_version),
            StatusOutcome::Gone => self.channels.queue.take(&sent.cron_job.uid),
            StatusOutcome::Failed { .. } | StatusOutcome::Abandoned => None,
        };
        if let Some(doomed) = doomed {
            self.answer(doomed.write, outcome.clone()).await;
        }
    }

    async fn try_again(&mut self, mut pending: Pending, message: String) {
        pending.n_retries += 1;
        if pending.n_retries > RETRIES_MAX {
            return self.answer(pending.write, OrderOutcome::failed(message, None)).await;
        }
        self.channels.queue.put_back(pending);
    }

    async fn answer(&mut self, write: StatusWrite, outcome: StatusOutcome) {
        if let StatusOutcome::Failed { message, .. } = &outcome {
            let (namespace, name) = (&*write.cron_job.namespace, &*write.cron_job.name);
            tracing::debug!(namespace, name, message, "status not stored");
        }
        // The receiver is gone only after the shard task has ended, and then the answer is irrelevant.
        let _ = self.channels.answers.send(answer(write, outcome)).await;
    }

    fn metrics(&self) -> &StatusMetrics {
        &self.channels.queue.metrics
    }
}

#[cfg(test)]
mod tests;
