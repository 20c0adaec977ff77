//! Expiry of Events: an Event is removed an hour after its last write, as in the API server's storage.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::{Moment, Registry};
use crate::{
    Resource,
    store::{Key, Stored},
};

/// The lifetime of an Event.
const EVENT_TTL: Duration = Duration::from_hours(1);

/// The writes of Events in order. An Event that was written several times has several entries.
#[derive(Default)]
pub(super) struct Expiry {
    written: VecDeque<(Instant, Key, u64)>,
}

impl Registry {
    /// Records a write, and removes expired Events.
    pub(super) fn record_write(&mut self, resource: Resource, stored: &Stored, moment: Moment) {
        if resource != Resource::Event {
            return;
        }
        let written = &mut self.expiry.written;
        written.push_back((moment.at, stored.key.clone(), stored.version));
        while let Some((at, key, version)) = self.expiry.written.front()
            && moment.at.duration_since(*at) >= EVENT_TTL
        {
            let is_last_write = self
                .store
                .get(resource, key)
                .is_some_and(|stored| stored.version == *version);
            let expired = is_last_write.then(|| key.clone());
            self.expiry.written.pop_front();
            if let Some(key) = expired {
                self.remove(resource, &key, moment);
            }
        }
    }
}
