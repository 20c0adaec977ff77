//! Pending status writes, at most one per CronJob: a later write replaces an earlier one. Pure and bounded.
//!
//! A write passes through several queues, each fair between namespaces. A write of a CronJob with another write in
//! flight is in no queue until that one is answered.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::request::Pending;
use crate::{
    controller::{
        fair_queue::{FairQueue, Place},
        in_flight::{InFlight, Room},
    },
    shard::{BootInstant, StatusOutcome, StatusWrite, Uid},
};

/// Maximum time that a status waits behind a burst of creates. A bound, not a target: until the status is stored, the
/// cursor is not stored either, and no Job may be deleted from history.
const AGE_MAX: Duration = Duration::from_secs(10);

/// Maximum number of writes in flight that read their CronJob first for its metadata, and half as many more of slow
/// namespaces: each may have 1.5 MiB.
const READING_MAX: u32 = 8;

/// Capacity: one write for each of a million CronJobs, the design limit of one shard.
const PENDING_MAX: usize = 1 << 20;

/// While others wait, a namespace has at most one `STATUS_SHARES`th of the places in flight.
const STATUS_SHARES: u32 = 4;

/// Capacity that an empty map keeps. More is freed, so that a burst does not occupy memory permanently.
const KEPT_ENTRIES: usize = 1_024;

/// Maximum number of writes that one call moves to another queue. It takes a tenth of a millisecond, for which the shard
/// task may have to wait for the lock.
const MOVES_MAX: usize = 64;

/// A queue of pending writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueKind {
    /// Writes within the flush interval, by the instant at which it ends.
    Merging,
    /// Writes that are sent unless creates wait, by the instant at which they become old.
    Due,
    /// The same, for writes that are sent after a read of their CronJob.
    DueReading,
    /// Writes of [`AGE_MAX`], by arrival: sent during a burst too.
    Old,
    /// Urgent writes, by arrival.
    Urgent,
    /// Old and urgent writes that are sent after a read of their CronJob, by arrival.
    Reading,
}

/// A pending write and its place; `None` while another write of the CronJob is in flight.
#[derive(Debug)]
struct Waiting {
    pending: Pending,
    place: Option<(QueueKind, Place<BootInstant>)>,
}

/// The pending writes.
#[derive(Debug)]
pub(super) struct PendingWrites {
    flush_interval: Duration,
    waiting: HashMap<Uid, Waiting>,
    /// Indexed by [`QueueKind`].
    queues: [FairQueue<Uid, BootInstant>; 6],
    /// CronJobs with a write in flight.
    in_flight: HashSet<Uid>,
    /// Whether the last write that was sent was urgent.
    was_urgent: bool,
}

impl PendingWrites {
    /// Creates an empty state that merges changes for `flush_interval`.
    pub(super) fn new(flush_interval: Duration) -> PendingWrites {
        PendingWrites {
            flush_interval,
            waiting: HashMap::new(),
            queues: std::array::from_fn(|_| FairQueue::default()),
            in_flight: HashSet::new(),
            was_urgent: false,
        }
    }

    /// Returns the number of pending writes.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a write, or returns it if too many are pending. Returns whether a write may be due earlier than before.
    pub(super) fn push(&mut self, mut pending: Pending) -> Result<bool, Box<Pending>> {
        let uid = pending.uid().clone();
        if let Some(former) = self.remove(&uid) {
            pending.since = former.since;
            pending.write.is_urgent |= former.write.is_urgent;
        } else if self.len() >= PENDING_MAX {
            return Err(Box::new(pending));
        }
        let is_urgent = pending.write.is_urgent;
        self.insert(pending);
        Ok(is_urgent || self.queue(QueueKind::Merging).len() == 1)
    }

    /// Adds a write that was not answered. A later write of the CronJob covers it.
    pub(super) fn put_back(&mut self, mut pending: Pending) {
        pending.forget_read_metadata();
        self.in_flight.remove(pending.uid());
        if let Some(later) = self.remove(pending.uid()) {
            let covered = std::mem::replace(&mut pending, later);
            pending.since = covered.since;
            pending.write.is_urgent |= covered.write.is_urgent;
        }
        self.insert(pending);
    }

    /// Records the answer to a write, and adjusts the pending write of the same CronJob to it. Returns the pending write
    /// if the answer applies to it too.
    pub(super) fn conclude(&mut self, sent: &StatusWrite, outcome: &StatusOutcome) -> Option<StatusWrite> {
        let uid = &sent.cron_job.uid;
        self.in_flight.remove(uid);
        let mut pending = self.remove(uid)?;
        let is_answered = match outcome {
            StatusOutcome::Stored { resource_version } => {
                if pending.write.status == sent.status {
                    return None;
                }
                pending.write.resource_version = pending.write.resource_version.max(*resource_version);
                false
            }
            StatusOutcome::Conflict => pending.write.resource_version <= sent.resource_version,
            StatusOutcome::Gone => true,
            StatusOutcome::Failed { .. } | StatusOutcome::Abandoned => false,
        };
        if is_answered {
            return Some(pending.write);
        }
        self.insert(pending);
        None
    }

    /// Removes the next write to send. `places` is the limit in flight, and `in_flight` its present use. During a burst of
    /// creates, only urgent and old writes are sent.
    pub(super) fn next(
        &mut self,
        now: BootInstant,
        is_burst: bool,
        places: u32,
        in_flight: &InFlight,
    ) -> Option<Pending> {
        self.advance(now, MOVES_MAX);
        let room = in_flight.room(now);
        let reading = self.pop_reading(is_burst, room);
        let uid = reading.or_else(|| self.pop_due(is_burst, places, room))?;
        self.begin(uid)
    }

    fn pop_reading(&mut self, is_burst: bool, room: Room<'_>) -> Option<Uid> {
        let kinds = [Some(QueueKind::Reading), (!is_burst).then_some(QueueKind::DueReading)];
        let mut kinds = kinds.into_iter().flatten();
        kinds.find_map(|kind| room.pop_reading(self.queue(kind), READING_MAX))
    }

    /// Removes the next write that is due and needs no read. Urgent writes alternate with old ones, so that neither kind
    /// starves the other.
    fn pop_due(&mut self, is_burst: bool, places: u32, room: Room<'_>) -> Option<Uid> {
        let share = (places / STATUS_SHARES).max(1);
        let first = if self.was_urgent {
            [QueueKind::Old, QueueKind::Urgent]
        } else {
            [QueueKind::Urgent, QueueKind::Old]
        };
        let last = (!is_burst).then_some(QueueKind::Due);
        first.into_iter().chain(last).find_map(|kind| {
            let uid = self.queue(kind).pop(share, |namespace| room.n_of(namespace))?;
            self.was_urgent = kind == QueueKind::Urgent;
            Some(uid)
        })
    }

    /// Removes a write that is sent now.
    fn begin(&mut self, uid: Uid) -> Option<Pending> {
        let Waiting { pending, .. } = self.waiting.remove(&uid)?;
        if self.waiting.is_empty() {
            self.waiting.shrink_to(KEPT_ENTRIES);
        }
        self.in_flight.insert(uid);
        Some(pending)
    }

    /// Returns when the next write changes its queue. This instant has passed if the last call moved too few.
    pub(super) fn next_change(&self) -> Option<BootInstant> {
        let [merging, due, due_reading, ..] = &self.queues;
        [merging, due, due_reading]
            .into_iter()
            .filter_map(FairQueue::earliest)
            .min()
    }

    /// Ends all waits, also those of later writes.
    pub(super) fn flush(&mut self) {
        self.flush_interval = Duration::ZERO;
        // All at once: the shard task has ended and does not wait for the lock.
        self.advance(BootInstant::after_boot(Duration::MAX), usize::MAX);
    }

    /// Moves writes whose time in their queue has passed, at most `n_max`.
    fn advance(&mut self, now: BootInstant, n_max: usize) {
        let mut n_left = n_max;
        for (from, to) in [
            (QueueKind::Merging, QueueKind::Due),
            (QueueKind::Due, QueueKind::Old),
            (QueueKind::DueReading, QueueKind::Old),
        ] {
            while n_left > 0
                && let Some(uid) = self.queue(from).pop_until(now)
            {
                self.place(&uid, to);
                n_left -= 1;
            }
        }
    }

    /// Adds a write whose CronJob has no pending write.
    fn insert(&mut self, pending: Pending) {
        let uid = pending.uid().clone();
        let is_urgent = pending.write.is_urgent;
        self.waiting.insert(uid.clone(), Waiting { pending, place: None });
        if !self.in_flight.contains(&uid) {
            let kind = if is_urgent {
                QueueKind::Urgent
            } else {
                QueueKind::Merging
            };
            self.place(&uid, kind);
        }
    }

    /// Puts a write, which is in no queue, into one, or into the corresponding queue of writes after a read.
    fn place(&mut self, uid: &Uid, kind: QueueKind) {
        let Some(waiting) = self.waiting.get_mut(uid) else {
            return;
        };
        let kind = match (kind, waiting.pending.must_read()) {
            (QueueKind::Due, true) => QueueKind::DueReading,
            (QueueKind::Old | QueueKind::Urgent, true) => QueueKind::Reading,
            (kind, _) => kind,
        };
        let since = waiting.pending.since;
        let deadline = match kind {
            QueueKind::Merging => since + self.flush_interval,
            QueueKind::Due | QueueKind::DueReading => since + AGE_MAX.max(self.flush_interval),
            QueueKind::Old | QueueKind::Urgent | QueueKind::Reading => since,
        };
        let namespace = &waiting.pending.write.cron_job.namespace;
        let place = self.queues[kind as usize].push(namespace, deadline, uid.clone());
        waiting.place = Some((kind, place));
    }

    fn remove(&mut self, uid: &Uid) -> Option<Pending> {
        let Waiting { pending, place } = self.waiting.remove(uid)?;
        if let Some((kind, place)) = place {
            self.queue(kind).remove(&pending.write.cron_job.namespace, place);
        }
        Some(pending)
    }

    fn queue(&mut self, kind: QueueKind) -> &mut FairQueue<Uid, BootInstant> {
        &mut self.queues[kind as usize]
    }
}

#[cfg(test)]
mod tests;
