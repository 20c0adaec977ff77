//! A front end: one of several API servers on the shared store. Its watch cache may lag behind the store.
//!
//! Invariant: a change that was visible once stays visible, however the lag changes.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{Resource, store::Store};

/// The watch cache of one API server.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrontEnd {
    lag: Duration,
    /// How far the clock of this server is ahead of the right time.
    pub(crate) clock_ahead: SignedDuration,
    /// The last version of each kind that was visible.
    visible: [u64; Resource::COUNT],
}

/// The position of a watch cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last visible version.
    pub(crate) version: u64,
    /// When the next stored change becomes visible.
    pub(crate) next_at: Option<Instant>,
}

impl FrontEnd {
    /// Simulates a restart of the process: the cache is empty.
    pub(crate) fn restart(&mut self) {
        self.visible = [0; Resource::COUNT];
    }

    pub(crate) fn set_lag(&mut self, lag: Duration, store: &Store, now: Instant) {
        for resource in Resource::ALL {
            self.progress(resource, store, now);
        }
        self.lag = lag;
    }

    /// Returns which changes of a kind are visible now.
    pub(crate) fn progress(&mut self, resource: Resource, store: &Store, now: Instant) -> Progress {
        let table = store.table(resource);
        let hidden = match now.checked_sub(self.lag) {
            Some(at) => table.first_change_after(at),
            None => table.first_change(),
        };
        let version = hidden.map_or(store.version(), |change| change.object.version - 1);
        let visible = &mut self.visible[resource.index()];
        *visible = version.max(*visible);
        Progress {
            version: *visible,
            next_at: hidden.map(|change| change.at + self.lag),
        }
    }
}
