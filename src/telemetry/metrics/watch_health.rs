//! The silence of each watch. The shard cannot distinguish a watch without events from a dead one.
//!
//! Anything that arrives in a successful response is a sign of life: events, pages of a list, and the bookmarks that an
//! API server sends about once a minute while a watch is idle.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{Register, gauge_value, table};
use crate::{
    controller::clock::Clock,
    shard::{BootInstant, Scope},
};

/// The health of one watch. Clones share the state.
#[derive(Clone, Debug)]
pub struct WatchHealth {
    /// The resource that is watched.
    pub resource: &'static str,
    /// The scope of the watch.
    pub scope: Scope,
    /// The clock of the replica, also for the timestamps of Events.
    pub clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    last_activity: BootInstant,
    /// The last error since then.
    error: Option<String>,
}

impl WatchHealth {
    /// Records a sign of life.
    pub fn note_activity(&self) {
        *self.state() = State {
            last_activity: self.clock.boot(),
            error: None,
        };
    }

    /// Records an error.
    pub fn failed(&self, error: String) {
        self.state().error = Some(error);
    }

    /// The time since the last sign of life.
    pub fn silence(&self) -> Duration {
        self.clock.boot().since(self.state().last_activity)
    }

    /// The lock is held for one assignment or copy.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The health of all watches. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct WatchHealths(Arc<Mutex<Vec<WatchHealth>>>);

impl WatchHealths {
    /// Adds a watch, whose silence counts from this instant.
    pub fn begin(&self, resource: &'static str, scope: Scope, clock: Clock) -> WatchHealth {
        let state = State {
            last_activity: clock.boot(),
            error: None,
        };
        let health = WatchHealth {
            resource,
            scope,
            clock,
            state: Arc::new(Mutex::new(state)),
        };
        self.list().push(health.clone());
        health
    }

    /// The watches that have been silent for longer than `bound`.
    pub fn silent_for(&self, bound: Duration) -> Vec<WatchHealth> {
        let mut silent = self.list().clone();
        silent.retain(|health| health.silence() > bound);
        silent
    }

    /// The watches that failed without a sign of life since, with their errors.
    pub fn failing(&self) -> Vec<(WatchHealth, String)> {
        let with_error = |health: &WatchHealth| Some((health.clone(), health.state().error.clone()?));
        self.list().iter().filter_map(with_error).collect()
    }

    /// The list is consistent after every statement, so a panic elsewhere does not corrupt it.
    fn list(&self) -> MutexGuard<'_, Vec<WatchHealth>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Register<'_> {
    /// Creates the gauge with the longest silence of each resource.
    pub(super) fn watch_silence(&self, watches: &WatchHealths) {
        let longest = self.gauges(&table::WATCH_SILENCE);
        for health in &*watches.list() {
            let gauge = longest.with_label_values(&[health.resource]);
            let secs = gauge_value(health.silence().as_secs());
            gauge.set(secs.max(gauge.get()));
        }
    }
}
