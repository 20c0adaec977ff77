//! The shards that are to be listed.

use std::time::Duration;

use crate::shard::{BootInstant, ShardId, ShardSet};

/// How long a list of shards that are taken over waits for the next such shard. A replica takes shards by writes of their
/// Leases, and a busy API server answers these up to a tenth of a second apart. One list of all shards takes about as
/// long as a list of one.
const GATHER_PAUSE: Duration = Duration::from_millis(200);

/// Maximum time that such a list waits: a twentieth of the ten seconds after which a member is evicted.
const GATHER_MAX: Duration = Duration::from_millis(500);

/// A list to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// The shards whose CronJobs and Jobs are to be listed.
    pub shards: ShardSet,
    /// Whether the list must contain every earlier write. Otherwise the versions that this replica's watches have
    /// reached suffice.
    pub is_consistent: bool,
}

/// A consistent list that waits for further shards.
#[derive(Clone, Copy, Debug)]
struct Gathering {
    /// The instant at which its first shard was added.
    began: BootInstant,
    /// The earliest instant of the list.
    due_at: BootInstant,
}

/// The shards of the next list, and of the list in progress.
#[derive(Debug, Default)]
pub(super) struct ListQueue {
    next: ShardSet,
    /// The wait of the next list. Set if and only if that list must be consistent.
    gathering: Option<Gathering>,
    is_listing: bool,
    /// The shards of the list in progress, except those removed, or added to the next list, since it began.
    listing: ShardSet,
}

impl ListQueue {
    /// Adds a shard to the next list. A list in progress no longer counts for it, since it may miss changes from before
    /// this order.
    pub(super) fn add(&mut self, shard: ShardId, must_be_consistent: bool, now: BootInstant) {
        self.listing.remove(shard);
        self.next.insert(shard);
        if must_be_consistent {
            let began = self.gathering.map_or(now, |gathering| gathering.began);
            let due_at = (now + GATHER_PAUSE).min(began + GATHER_MAX);
            self.gathering = Some(Gathering { began, due_at });
        }
    }

    pub(super) fn remove(&mut self, shard: ShardId) {
        self.next.remove(shard);
        self.listing.remove(shard);
        if self.next.is_empty() {
            self.gathering = None;
        }
    }

    /// Whether a list of the shard is ordered or in progress.
    pub(super) fn contains(&self, shard: ShardId) -> bool {
        self.next.contains(shard) || self.listing.contains(shard)
    }

    /// Begins the next list, if it is due and none is in progress.
    pub(super) fn begin(&mut self, now: BootInstant) -> Option<ListRequest> {
        let is_early = self.gathering.is_some_and(|gathering| now < gathering.due_at);
        if self.is_listing || self.next.is_empty() || is_early {
            return None;
        }
        self.is_listing = true;
        self.listing = std::mem::take(&mut self.next);
        Some(ListRequest {
            shards: self.listing,
            is_consistent: self.gathering.take().is_some(),
        })
    }

    /// The instant at which [`ListQueue::begin`] will begin the next list, if that list only waits for its time.
    pub(super) fn due_at(&self) -> Option<BootInstant> {
        let Gathering { due_at, .. } = self.gathering?;
        (!self.is_listing && !self.next.is_empty()).then_some(due_at)
    }

    /// The shards of the list in progress, except those removed, or added to the next list, since it began.
    pub(super) fn in_progress(&self) -> ShardSet {
        self.listing
    }

    /// Ends the list in progress. Returns the shards for which it counts.
    pub(super) fn end(&mut self) -> ShardSet {
        self.is_listing = false;
        std::mem::take(&mut self.listing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootInstant {
        BootInstant::after_boot(Duration::from_millis(millis))
    }

    fn n_shards(queue: &mut ListQueue, now: BootInstant) -> Option<usize> {
        queue.begin(now).map(|order| order.shards.len())
    }

    #[test]
    fn a_list_for_a_planned_handover_begins_at_once() {
        let mut queue = ListQueue::default();
        queue.add(ShardId(1), false, at(0));
        let order = queue.begin(at(0)).unwrap();
        assert_eq!((order.shards.len(), order.is_consistent), (1, false));
    }

    #[test]
    fn shards_taken_over_within_200_ms_of_each_other_share_a_list() {
        let mut queue = ListQueue::default();
        queue.add(ShardId(0), true, at(0));
        queue.add(ShardId(1), true, at(110));
        assert_eq!(n_shards(&mut queue, at(309)), None);
        assert_eq!(queue.due_at(), Some(at(310)));
        let order = queue.begin(at(310)).unwrap();
        assert_eq!((order.shards.len(), order.is_consistent), (2, true));
        queue.add(ShardId(9), true, at(320));
        assert_eq!(n_shards(&mut queue, at(900)), None, "one list at a time");
        assert_eq!(queue.end().len(), 2);
        assert_eq!(n_shards(&mut queue, at(900)), Some(1));
    }

    #[test]
    fn a_shared_list_waits_at_most_500_ms() {
        let mut queue = ListQueue::default();
        for number in 0..5 {
            queue.add(ShardId(number), true, at(110 * u64::from(number)));
        }
        assert_eq!(n_shards(&mut queue, at(499)), None);
        assert_eq!(n_shards(&mut queue, at(500)), Some(5));
    }
    #[test]
    fn a_shard_that_is_removed_does_not_shorten_the_wait_of_the_next_list() {
        let mut queue = ListQueue::default();
        queue.add(ShardId(0), true, at(0));
        queue.remove(ShardId(0));
        queue.add(ShardId(1), true, at(10_000));
        assert_eq!(n_shards(&mut queue, at(10_000)), None);
        queue.remove(ShardId(1));
        queue.add(ShardId(1), false, at(10_010));
        let order = queue.begin(at(10_010)).unwrap();
        assert!(!order.is_consistent, "no shard of the list is taken over");
    }
}
