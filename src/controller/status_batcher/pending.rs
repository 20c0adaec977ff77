//! Status writes that wait, at most one for a CronJob: a later one takes the place of an earlier one.
//!
//! Shared by the shard task, which puts writes in, and the batcher, which takes them out. Neither the lock of the lists
//! nor a guard of the map is held across an await; where both are, the lock of the lists was taken first.

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

use crate::{
    shard::{BootInstant, Input, ResourceVersion, ShardTerm, StatusOutcome, StatusWrite, Uid},
    telemetry::metrics::StatusMetrics,
};

/// Writes that can wait: one for each of a million CronJobs, the most that one shard is built for.
const PENDING_MAX: usize = 1 << 20;

/// More than this that wait are flushed without regard to their age: some 8 MiB.
pub(super) const FLUSH_SIZE: usize = 1 << 14;

/// A write that waits.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) write: StatusWrite,
    /// Under what it was ordered, and may be sent.
    pub(super) shard_term: ShardTerm,
    /// When the first of the changes that it carries came.
    pub(super) since: BootInstant,
    /// How many times it was sent and has to be sent again.
    pub(super) n_retries: u32,
}

impl Pending {
    /// Whether its CronJob is read before it is sent.
    pub(super) fn must_read(&self) -> bool {
        self.write.retained_metadata.members.as_str().is_none()
    }
}

/// The order in which writes become due. Entries may be out of date: the map tells.
#[derive(Debug, Default)]
struct Arrivals {
    urgent: VecDeque<Uid>,
    by_age: VecDeque<(BootInstant, Uid)>,
    /// Whether the last one taken was urgent.
    was_urgent: bool,
}

/// The way into the status batcher. Clones are one queue.
#[derive(Clone, Debug)]
pub struct StatusQueue {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pending: DashMap<Uid, Pending>,
    /// The size of the map, which would lock all of itself to tell.
    n_pending: AtomicUsize,
    arrivals: Mutex<Arrivals>,
    /// Told when the batcher has to look before its time.
    news: Notify,
    metrics: StatusMetrics,
}

/// What a push came upon.
enum Pushed {
    /// The first write for its CronJob.
    New,
    /// It took the place of one that could wait, and cannot.
    MadeUrgent,
    /// It took the place of another.
    Merged,
}

impl StatusQueue {
    /// An empty queue.
    pub fn new(metrics: StatusMetrics) -> StatusQueue {
        let shared = Shared {
            pending: DashMap::new(),
            n_pending: AtomicUsize::new(0),
            arrivals: Mutex::default(),
            news: Notify::new(),
            metrics,
        };
        StatusQueue {
            shared: Arc::new(shared),
        }
    }

    /// Takes a write in without waiting. When there is no room its answer is given back at once.
    pub fn push(&self, shard_term: ShardTerm, write: StatusWrite, now: BootInstant) -> Result<(), Input> {
        if self.len() >= PENDING_MAX && !self.shared.pending.contains_key(&write.cron_job.uid) {
            self.shared.metrics.overflows.inc();
            let message = "too many statuses wait to be written".into();
            return Err(answer(
                write,
                StatusOutcome::Failed {
                    message,
                    retry_after: None,
                },
            ));
        }
        let (uid, is_urgent) = (write.cron_job.uid.clone(), write.is_urgent);
        let pushed = self.merge(Pending {
            write,
            shard_term,
            since: now,
            n_retries: 0,
        });
        self.list(uid, is_urgent, now, &pushed);
        Ok(())
    }

    fn merge(&self, mut pending: Pending) -> Pushed {
        match self.shared.pending.entry(pending.write.cron_job.uid.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(pending);
                self.count_one_more();
                Pushed::New
            }
            Entry::Occupied(mut occupied) => {
                let former = occupied.get();
                let was_urgent = former.write.is_urgent;
                let is_made_urgent = pending.write.is_urgent && !was_urgent;
                pending.since = former.since;
                pending.write.is_urgent |= was_urgent;
                occupied.insert(pending);
                if is_made_urgent {
                    Pushed::MadeUrgent
                } else {
                    Pushed::Merged
                }
            }
        }
    }

    fn list(&self, uid: Uid, is_urgent: bool, now: BootInstant, pushed: &Pushed) {
        let must_look = match (pushed, is_urgent) {
            (Pushed::Merged, _) => false,
            (Pushed::New, false) => {
                let mut arrivals = self.arrivals();
                arrivals.by_age.push_back((now, uid));
                // Otherwise the batcher waits for an older one already.
                arrivals.by_age.len() == 1 || self.len() == FLUSH_SIZE + 1
            }
            (Pushed::New | Pushed::MadeUrgent, _) => {
                self.arrivals().urgent.push_back(uid);
                true
            }
        };
        if must_look {
            self.shared.news.notify_one();
        }
    }

    /// Takes back a write that has to be sent again, unless a later one waits by now: that one carries all it does.
    pub(super) fn put_back(&self, pending: Pending) {
        let (uid, since, is_urgent) = (
            pending.write.cron_job.uid.clone(),
            pending.since,
            pending.write.is_urgent,
        );
        let is_newly_urgent = match self.shared.pending.entry(uid.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(pending);
                self.count_one_more();
                is_urgent
            }
            Entry::Occupied(mut occupied) => {
                let later = occupied.get_mut();
                if !is_urgent || std::mem::replace(&mut later.write.is_urgent, true) {
                    return;
                }
                true
            }
        };
        let mut arrivals = self.arrivals();
        if is_newly_urgent {
            // First again: it may hold metadata that was read for it.
            arrivals.urgent.push_front(uid);
        } else {
            arrivals.by_age.push_front((since, uid));
        }
    }

    /// Takes note that a CronJob's write is due as soon as the one on the way is answered.
    pub(super) fn make_due(&self, uid: Uid) {
        if self.shared.pending.contains_key(&uid) {
            self.arrivals().urgent.push_back(uid);
        }
    }

    /// The CronJob whose write is due next: one that is urgent, else the oldest, if that came at or before `came_by`.
    /// Urgent ones take turns with those that came at or before `overdue_by`, so that neither waits for the last of
    /// the other.
    pub(super) fn next_due(&self, came_by: Option<BootInstant>, overdue_by: Option<BootInstant>) -> Option<Uid> {
        let mut arrivals = self.arrivals();
        let overdue = if arrivals.was_urgent {
            self.oldest_of(&mut arrivals, overdue_by)
        } else {
            None
        };
        if overdue.is_some() {
            arrivals.was_urgent = false;
            return overdue;
        }
        if let Some(uid) = arrivals.urgent.pop_front() {
            arrivals.was_urgent = true;
            return Some(uid);
        }
        self.oldest_of(&mut arrivals, came_by)
    }

    fn oldest_of(&self, arrivals: &mut Arrivals, came_by: Option<BootInstant>) -> Option<Uid> {
        loop {
            let (since, uid) = arrivals.by_age.front()?;
            let is_current = self
                .shared
                .pending
                .get(uid)
                .is_some_and(|pending| pending.since == *since);
            if is_current && came_by.is_none_or(|came_by| *since > came_by) {
                return None;
            }
            let (_, uid) = arrivals.by_age.pop_front()?;
            if is_current {
                return Some(uid);
            }
        }
    }

    /// When the oldest that can wait came. May be out of date, towards the past.
    pub(super) fn oldest(&self) -> Option<BootInstant> {
        self.arrivals().by_age.front().map(|(since, _)| *since)
    }

    pub(super) fn take(&self, uid: &Uid) -> Option<Pending> {
        let (_, pending) = self.shared.pending.remove(uid)?;
        self.count_one_less();
        Some(pending)
    }

    /// Follows up a stored write: what waits is built on it, or is the same and is done with.
    pub(super) fn rebase(&self, stored: &StatusWrite, version: ResourceVersion) {
        let uid = &stored.cron_job.uid;
        let is_same = |pending: &Pending| pending.write.status == stored.status;
        if self
            .shared
            .pending
            .remove_if(uid, |_, pending| is_same(pending))
            .is_some()
        {
            self.count_one_less();
        } else if let Some(mut pending) = self.shared.pending.get_mut(uid) {
            pending.write.resource_version = pending.write.resource_version.max(version);
        }
    }

    /// Takes out what waits on a version that is known to be out of date.
    pub(super) fn take_if_built_on(&self, uid: &Uid, version: ResourceVersion) -> Option<Pending> {
        let is_outdated = |pending: &Pending| pending.write.resource_version <= version;
        let (_, pending) = self.shared.pending.remove_if(uid, |_, pending| is_outdated(pending))?;
        self.count_one_less();
        Some(pending)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.shared.n_pending.load(Ordering::Relaxed)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns when there is a reason to look.
    pub(super) async fn news(&self) {
        self.shared.news.notified().await;
    }

    pub(super) fn metrics(&self) -> &StatusMetrics {
        &self.shared.metrics
    }

    fn count_one_more(&self) {
        self.shared.n_pending.fetch_add(1, Ordering::Relaxed);
        self.shared.metrics.pending.inc();
    }

    fn count_one_less(&self) {
        self.shared.n_pending.fetch_sub(1, Ordering::Relaxed);
        self.shared.metrics.pending.dec();
    }

    /// The lists are consistent after every statement, so a panic elsewhere does not spoil them.
    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.shared.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The instant at or before which a write must have come to be due after `age`.
pub(super) fn came_by(now: BootInstant, age: Duration) -> Option<BootInstant> {
    now.since_boot().checked_sub(age).map(BootInstant::after_boot)
}

/// The fact that a write was answered.
pub(super) fn answer(write: StatusWrite, answer: StatusOutcome) -> Input {
    Input::StatusAnswered {
        cron_job: write.cron_job.uid.clone(),
        sent: Box::new(write.status),
        answer,
    }
}
