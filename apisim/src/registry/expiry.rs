//! Events do not stay: an hour after it was last written, one is gone, as in the API server's storage.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use super::{Moment, Registry};
use crate::{
    resource::Resource,
    store::{Key, Stored},
};

/// How long an Event stays.
const EVENT_TTL: Duration = Duration::from_hours(1);

/// The Events in the order of their writes. One that was written again stands there once for each.
#[derive(Default)]
pub(super) struct Expiry {
    written: VecDeque<(Instant, Key, u64)>,
}

impl Registry {
    /// Notes a write, and takes out what has stayed long enough.
    pub(super) fn note_written(&mut self, resource: Resource, stored: &Stored, moment: Moment) {
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
