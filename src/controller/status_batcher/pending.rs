//! Pending status writes, at most one per CronJob: a later write replaces an earlier one. Pure and bounded.
//!
//! A write passes through several queues, each fair between namespaces. Of each kind there are two: writes that read their
//! CronJob first have few places in flight, so the others do not wait for them. A write of a CronJob with another write in
//! flight is in no queue until that one is answered.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use super::request::Pending;
use crate::{
    controller::{
        fair_queue::{FairQueue, Place},
        in_flight::Room,
    },
    shard::{BootInstant, StatusOutcome, Uid},
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
    /// Writes of [`AGE_MAX`], by arrival: sent during a burst too.
    Old,
    /// Urgent writes, by arrival.
    Urgent,
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
    /// Indexed by [`QueueKind`], and then by whether the writes read their CronJob first.
    queues: [[FairQueue<Uid, BootInstant>; 2]; 4],
    /// CronJobs with a write in flight.
    in_flight: HashSet<Uid>,
    /// Whether the last write that was sent was urgent.
    was_urgent: bool,
    /// Whether the last write that was sent read its CronJob first.
    was_reading: bool,
}

impl PendingWrites {
    /// Creates an empty state that merges changes for `flush_interval`.
    pub(super) fn new(flush_interval: Duration) -> PendingWrites {
        PendingWrites {
            flush_interval,
            waiting: HashMap::new(),
            queues: Default::default(),
            in_flight: HashSet::new(),
            was_urgent: false,
            was_reading: false,
        }
    }

    /// Returns the number of pending writes.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the first change of the oldest write in a queue. A write behind another one of its CronJob, which is in
    /// flight, does not count.
    pub(super) fn oldest(&self) -> Option<BootInstant> {
        let waits = [
            self.flush_interval,
            AGE_MAX.max(self.flush_interval),
            Duration::ZERO,
            Duration::ZERO,
        ];
        let first_changes = self.queues.iter().zip(waits).flat_map(|(queues, wait)| {
            let deadlines = queues.iter().filter_map(FairQueue::earliest);
            deadlines.map(move |deadline| BootInstant::after_boot(deadline.since_boot().saturating_sub(wait)))
        });
        first_changes.min()
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
        let merging = &self.queues[QueueKind::Merging as usize];
        Ok(is_urgent || merging.iter().map(FairQueue::len).sum::<usize>() == 1)
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
    pub(super) fn conclude(&mut self, sent: &Pending, outcome: &StatusOutcome) -> Option<Pending> {
        let uid = sent.uid();
        self.in_flight.remove(uid);
        let mut pending = self.remove(uid)?;
        let is_answered = match outcome {
            StatusOutcome::Stored { resource_version } => {
                if pending.write.status == sent.write.status {
                    // The shard of another term does not learn the answer to the write that was sent.
                    return (pending.shard_term != sent.shard_term).then_some(pending);
                }
                pending.write.resource_version = pending.write.resource_version.max(*resource_version);
                false
            }
            StatusOutcome::Conflict => pending.write.resource_version <= sent.write.resource_version,
            StatusOutcome::Gone => true,
            StatusOutcome::Failed { .. } | StatusOutcome::Abandoned => false,
        };
        if is_answered {
            return Some(pending);
        }
        self.insert(pending);
        None
    }

    /// Removes the next write to send. `places` is the limit in flight, and `in_flight` its present use. During a burst of
    /// creates, only urgent and old writes are sent. Urgent and old writes alternate, so that neither kind starves the
    /// other. Writes that read their CronJob first and all others alternate for the same reason.
    pub(super) fn next(&mut self, is_burst: bool, places: u32, room: Room<'_>) -> Option<Pending> {
        let share = (places / STATUS_SHARES).max(1);
        let mut kinds = [QueueKind::Urgent, QueueKind::Old, QueueKind::Due];
        if self.was_urgent {
            kinds.swap(0, 1);
        }
        let n_kinds = if is_burst { 2 } else { 3 };
        for kind in &kinds[..n_kinds] {
            for is_reading in [!self.was_reading, self.was_reading] {
                let queue = &mut self.queues[*kind as usize][usize::from(is_reading)];
                let uid = if is_reading {
                    room.pop_reading(queue, READING_MAX)
                } else {
                    queue.pop(share, |namespace| room.n_of(namespace))
                };
                if let Some(uid) = uid {
                    (self.was_urgent, self.was_reading) = (*kind == QueueKind::Urgent, is_reading);
                    return self.begin(uid);
                }
            }
        }
        None
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

    /// Returns when the next write changes its queue.
    pub(super) fn next_change(&self) -> Option<BootInstant> {
        let [merging, due, ..] = &self.queues;
        merging.iter().chain(due).filter_map(FairQueue::earliest).min()
    }

    /// Ends all waits, also those of later writes.
    pub(super) fn flush(&mut self) {
        self.flush_interval = Duration::ZERO;
        // All at once: the shard task has ended and does not wait for the lock.
        while self.advance(BootInstant::after_boot(Duration::MAX)) {}
    }

    /// Moves writes whose time in their queue has passed. Returns whether it left some for the next call.
    pub(super) fn advance(&mut self, now: BootInstant) -> bool {
        let mut n_left = MOVES_MAX;
        for (from, to) in [(QueueKind::Merging, QueueKind::Due), (QueueKind::Due, QueueKind::Old)] {
            for is_reading in [0, 1] {
                while let Some(uid) = self.queues[from as usize][is_reading].pop_until(now) {
                    self.place(&uid, to);
                    n_left -= 1;
                    if n_left == 0 {
                        return true;
                    }
                }
            }
        }
        false
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

    /// Puts a write, which is in no queue, into one.
    fn place(&mut self, uid: &Uid, kind: QueueKind) {
        let Some(waiting) = self.waiting.get_mut(uid) else {
            return;
        };
        let since = waiting.pending.since;
        let deadline = match kind {
            QueueKind::Merging => since + self.flush_interval,
            QueueKind::Due => since + AGE_MAX.max(self.flush_interval),
            QueueKind::Old | QueueKind::Urgent => since,
        };
        let namespace = &waiting.pending.write.cron_job.namespace;
        let queue = &mut self.queues[kind as usize][usize::from(waiting.pending.must_read())];
        let place = queue.push(namespace, deadline, uid.clone());
        waiting.place = Some((kind, place));
    }

    fn remove(&mut self, uid: &Uid) -> Option<Pending> {
        let Waiting { pending, place } = self.waiting.remove(uid)?;
        if let Some((kind, place)) = place {
            let queue = &mut self.queues[kind as usize][usize::from(pending.must_read())];
            queue.remove(&pending.write.cron_job.namespace, place);
        }
        Some(pending)
    }
}

#[cfg(test)]
mod tests;
