//! An API server as one of several on one store: what its watch cache shows, which may lag behind.
//!
//! Invariant: what was shown once is not hidden again, whatever becomes of the lag.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use crate::{resource::Resource, store::Store};

/// One API server's watch cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrontEnd {
    lag: Duration,
    /// How far its clock is ahead of the right time.
    pub(crate) clock_ahead: SignedDuration,
    /// Whether `shardSelector` selects.
    pub(crate) serves_shard_selectors: bool,
    shown: [u64; Resource::COUNT],
}

/// How far a watch cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The last version that is shown.
    pub(crate) version: u64,
    /// When the next change that is there already will be shown.
    pub(crate) next_at: Option<Instant>,
}

impl FrontEnd {
    pub(crate) fn new(serves_shard_selectors: bool) -> FrontEnd {
        FrontEnd {
            serves_shard_selectors,
            ..FrontEnd::default()
        }
    }

    /// The process begins anew, with a cache that has shown nothing.
    pub(crate) fn restart(&mut self) {
        self.shown = [0; Resource::COUNT];
    }

    pub(crate) fn set_lag(&mut self, lag: Duration, store: &Store, now: Instant) {
        for resource in Resource::ALL {
            self.progress(resource, store, now);
        }
        self.lag = lag;
    }

    /// What is shown of a kind now.
    pub(crate) fn progress(&mut self, resource: Resource, store: &Store, now: Instant) -> Progress {
        let table = store.table(resource);
        let hidden = match now.checked_sub(self.lag) {
            Some(at) => table.first_change_after(at),
            None => table.first_change(),
        };
        let version = hidden.map_or(store.version(), |change| change.object.version - 1);
        let shown = &mut self.shown[resource.index()];
        *shown = version.max(*shown);
        Progress {
            version: *shown,
            next_at: hidden.map(|change| change.at + self.lag),
        }
    }
}
