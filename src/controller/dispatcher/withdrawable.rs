//! The requests that a shard may withdraw, by CronJob or Job: the places of queued requests, and the set of sent
//! ones.
//!
//! A request that was withdrawn while it was sent is not sent again. Its answer, if it has one, counts.

use std::collections::HashMap;

use super::{backlog::QueueKind, request::Queued};
use crate::{
    controller::fair_queue::Place,
    shard::{ShardTerm, Uid},
};

/// The term of a request, and the uid of the CronJob of a create or of the Job of a delete.
pub(super) type RequestKey = (ShardTerm, Uid);

/// Capacity that an empty backlog keeps. More is freed, so that a burst does not occupy memory permanently.
const KEPT_ENTRIES: usize = 1_024;

/// The requests of a backlog that may be withdrawn.
#[derive(Debug, Default)]
pub(super) struct Withdrawable {
    waiting: HashMap<RequestKey, (QueueKind, Place)>,
    /// Whether each sent request was withdrawn.
    sent: HashMap<RequestKey, bool>,
}

impl Withdrawable {
    /// Records that a request waits.
    pub(super) fn wait(&mut self, key: RequestKey, queue: QueueKind, place: Place) {
        self.waiting.insert(key, (queue, place));
    }

    /// Records that a request was taken from the backlog to be sent.
    pub(super) fn send(&mut self, queued: &Queued) {
        if let Some(key) = queued.key() {
            self.waiting.remove(&key);
            if self.waiting.is_empty() {
                self.waiting.shrink_to(KEPT_ENTRIES);
            }
            self.sent.insert(key, false);
        }
    }

    /// Forgets a sent request that is answered or returns to the backlog. Returns whether it was withdrawn meanwhile.
    pub(super) fn take_withdrawn(&mut self, queued: &Queued) -> bool {
        let key = queued.key();
        key.and_then(|key| self.sent.remove(&key)).unwrap_or_default()
    }

    /// Withdraws a request. Returns its place if it is queued.
    pub(super) fn withdraw(&mut self, key: &RequestKey) -> Option<(QueueKind, Place)> {
        if let Some(is_withdrawn) = self.sent.get_mut(key) {
            *is_withdrawn = true;
        }
        self.waiting.remove(key)
    }
}
