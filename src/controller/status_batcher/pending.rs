//! Pending status writes, at most one per CronJob: a later write replaces an earlier one.
//!
//! The shard task adds writes and the batcher removes them. Neither the lock of the lists nor a guard of the map is
//! held across an await. Lock order: the lists before the map.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use tokio::sync::Notify;

use super::AGE_MAX;
use crate::{
    controller::lane::{LaneRequest, SentOrRead},
    kube_api::{Answered, ApiClient, objects::classify::OrderOutcome},
    shard::{
        BootInstant, CronJobRecord, Input, KeptText, ReadOutcome, ResourceVersion, ShardTerm, StatusOutcome,
        StatusWrite, Uid,
    },
    telemetry::metrics::{ApiCall, StatusMetrics},
};

/// Capacity: one write for each of a million CronJobs, the design limit of one shard.
const PENDING_MAX: usize = 1 << 20;

/// A pending write.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) write: StatusWrite,
    /// The shard and term in which the write was ordered and may be sent.
    pub(super) shard_term: ShardTerm,
    /// The arrival time of the oldest change in the write.
    pub(super) since: BootInstant,
    /// Number of retries.
    pub(super) n_retries: u32,
}

impl Pending {
    /// Whether the CronJob must be read before the write is sent.
    pub(super) fn must_read(&self) -> bool {
        self.write.retained_metadata.as_str().is_none()
    }
}

impl LaneRequest for Pending {
    type Reply = SentOrRead<StatusOutcome, Arc<KeptText>>;

    fn shard_term(&self) -> Option<ShardTerm> {
        Some(self.shard_term)
    }

    fn namespace(&self) -> &str {
        &self.write.cron_job.namespace
    }

    fn call(&self) -> ApiCall {
        if self.must_read() {
            ApiCall::ReadCronJob
        } else {
            ApiCall::WriteStatus
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<Self::Reply> {
        let write = &self.write;
        if self.must_read() {
            let read = api.read_cron_job(&write.cron_job).await;
            read.map(|outcome| metadata_of(write, outcome))
        } else {
            api.write_status(write).await.map(SentOrRead::Sent)
        }
    }
}

/// The order in which writes become due. Entries may be stale; the map is authoritative.
#[derive(Debug, Default)]
struct Arrivals {
    urgent: VecDeque<Uid>,
    by_age: VecDeque<(BootInstant, Uid)>,
    /// Whether the last write that was taken was urgent.
    was_urgent: bool,
}

/// The queue of the status batcher.
#[derive(Debug)]
pub struct StatusQueue {
    pending: DashMap<Uid, Pending>,
    /// The size of the map, whose own `len` would lock every part of it.
    n_pending: AtomicUsize,
    arrivals: Mutex<Arrivals>,
    /// Notified when the batcher must wake up early.
    pub(super) news: Notify,
    pub(super) metrics: StatusMetrics,
}

impl StatusQueue {
    /// Creates an empty queue.
    pub fn new(metrics: StatusMetrics) -> Arc<StatusQueue> {
        Arc::new(StatusQueue {
            pending: DashMap::new(),
            n_pending: AtomicUsize::new(0),
            arrivals: Mutex::default(),
            news: Notify::new(),
            metrics,
        })
    }

    /// Adds a write without waiting.
    ///
    /// # Errors
    ///
    /// If the queue is full, returns the answer to the write.
    pub fn push(&self, shard_term: ShardTerm, write: StatusWrite, now: BootInstant) -> Result<(), Input> {
        if self.len() >= PENDING_MAX && !self.pending.contains_key(&write.cron_job.uid) {
            self.metrics.overflows.inc();
            let message = "too many statuses wait to be written".into();
            return Err(answer(write, OrderOutcome::failed(message, None)));
        }
        let (uid, is_urgent) = (write.cron_job.uid.clone(), write.is_urgent);
        let mut pending = Pending {
            write,
            shard_term,
            since: now,
            n_retries: 0,
        };
        let is_listed = match self.pending.entry(uid.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(pending);
                self.count_one_more();
                false
            }
            Entry::Occupied(mut occupied) => {
                let former = occupied.get();
                let was_urgent = former.write.is_urgent;
                pending.since = former.since;
                pending.write.is_urgent |= was_urgent;
                occupied.insert(pending);
                was_urgent || !is_urgent
            }
        };
        if is_listed {
            return Ok(());
        }
        let mut arrivals = self.arrivals();
        if is_urgent {
            arrivals.urgent.push_back(uid);
        } else {
            arrivals.by_age.push_back((now, uid));
        }
        // Otherwise the batcher already sleeps until an older write is due.
        if is_urgent || arrivals.by_age.len() == 1 {
            self.news.notify_one();
        }
        Ok(())
    }

    /// Returns a write that must be sent again. If a later write is pending, it covers this one, which is dropped.
    pub(super) fn put_back(&self, pending: Pending) {
        let (uid, since, is_urgent) = (
            pending.write.cron_job.uid.clone(),
            pending.since,
            pending.write.is_urgent,
        );
        match self.pending.entry(uid.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(pending);
                self.count_one_more();
            }
            Entry::Occupied(mut occupied) => {
                let later = &mut occupied.get_mut().write;
                if !is_urgent || std::mem::replace(&mut later.is_urgent, true) {
                    return;
                }
            }
        }
        if is_urgent {
            // The write goes to the front, since its metadata may have been read.
            self.arrivals().urgent.push_front(uid);
        } else {
            self.arrivals().by_age.push_front((since, uid));
        }
    }

    /// Marks a CronJob's write as due, after the write in flight was answered.
    pub(super) fn make_due(&self, uid: Uid) {
        if self.pending.contains_key(&uid) {
            self.arrivals().urgent.push_back(uid);
        }
    }

    /// Returns the CronJob whose write is due next: an urgent one, otherwise the oldest if it has this age. Urgent writes
    /// alternate with writes of [`AGE_MAX`], so that neither kind starves the other.
    pub(super) fn next_due(&self, now: BootInstant, age: Duration) -> Option<Uid> {
        let mut arrivals = self.arrivals();
        if std::mem::take(&mut arrivals.was_urgent)
            && let Some(overdue) = self.pop_aged(&mut arrivals, now, AGE_MAX)
        {
            return Some(overdue);
        }
        if let Some(uid) = arrivals.urgent.pop_front() {
            arrivals.was_urgent = true;
            return Some(uid);
        }
        self.pop_aged(&mut arrivals, now, age)
    }

    fn pop_aged(&self, arrivals: &mut Arrivals, now: BootInstant, age: Duration) -> Option<Uid> {
        loop {
            let (since, uid) = arrivals.by_age.front()?;
            let is_due = *since + age <= now;
            let pending = self.pending.get(uid);
            let is_current = pending.is_some_and(|pending| pending.since == *since);
            if is_current && !is_due {
                return None;
            }
            let (_, uid) = arrivals.by_age.pop_front()?;
            if is_current {
                return Some(uid);
            }
        }
    }

    /// Returns when the oldest write that is not urgent arrived. May be stale, towards the past.
    pub(super) fn oldest(&self) -> Option<BootInstant> {
        self.arrivals().by_age.front().map(|(since, _)| *since)
    }

    pub(super) fn take(&self, uid: &Uid) -> Option<Pending> {
        let (_, pending) = self.pending.remove(uid)?;
        self.count_one_less();
        Some(pending)
    }

    /// Follows up a stored write: an equal pending write is removed, a different one is based on the new version.
    pub(super) fn rebase(&self, stored: &StatusWrite, version: ResourceVersion) {
        let uid = &stored.cron_job.uid;
        let is_same = |pending: &Pending| pending.write.status == stored.status;
        if self.pending.remove_if(uid, |_, pending| is_same(pending)).is_some() {
            self.count_one_less();
        } else if let Some(mut pending) = self.pending.get_mut(uid) {
            pending.write.resource_version = pending.write.resource_version.max(version);
        }
    }

    /// Removes the pending write if it is based on an outdated version.
    pub(super) fn take_if_built_on(&self, uid: &Uid, version: ResourceVersion) -> Option<Pending> {
        let is_outdated = |pending: &Pending| pending.write.resource_version <= version;
        let (_, pending) = self.pending.remove_if(uid, |_, pending| is_outdated(pending))?;
        self.count_one_less();
        Some(pending)
    }

    /// Returns the number of pending writes.
    pub fn len(&self) -> usize {
        self.n_pending.load(Ordering::Relaxed)
    }

    /// Returns whether no write is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn count_one_more(&self) {
        self.n_pending.fetch_add(1, Ordering::Relaxed);
        self.metrics.pending.inc();
    }

    fn count_one_less(&self) {
        self.n_pending.fetch_sub(1, Ordering::Relaxed);
        self.metrics.pending.dec();
    }

    /// Locks the lists. They are consistent after every statement, so a panic elsewhere does not invalidate them.
    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the input that reports the answer to a write.
pub(super) fn answer(write: StatusWrite, answer: StatusOutcome) -> Input {
    Input::StatusAnswered {
        cron_job: write.cron_job.uid.clone(),
        sent: Box::new(write.status),
        answer,
    }
}

/// Returns the metadata for a write, or the answer to the write if it cannot be sent.
fn metadata_of(write: &StatusWrite, outcome: ReadOutcome<CronJobRecord>) -> SentOrRead<StatusOutcome, Arc<KeptText>> {
    SentOrRead::Sent(match outcome {
        ReadOutcome::Found(record) if record.identity.uid != write.cron_job.uid => StatusOutcome::Gone,
        ReadOutcome::Found(record) if record.resource_version == write.resource_version => {
            return SentOrRead::Read(record.retained_metadata);
        }
        ReadOutcome::Found(_) => StatusOutcome::Conflict,
        ReadOutcome::Gone => StatusOutcome::Gone,
        ReadOutcome::NotPermitted { message } => OrderOutcome::failed(message, None),
        ReadOutcome::Failed { message, retry_after } => OrderOutcome::failed(message, retry_after),
        ReadOutcome::Abandoned => StatusOutcome::Abandoned,
    })
}
