//! How long each watch has been silent: a watch that brings nothing and one that is dead look alike to the shard.
//!
//! A sign of life is anything that comes of an answer that is no refusal: events, pages of a list, and the bookmarks
//! that an API server sends about once a minute when there is nothing else to say.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prometheus::{
    core::{Collector, Desc},
    proto::{LabelPair, MetricFamily},
};

use super::{shard_figures::family, table};
use crate::{
    controller::clock::Clock,
    shard::{BootInstant, Scope},
};

/// The pulse of one watch. Clones are one pulse.
#[derive(Clone, Debug)]
pub struct WatchHealth {
    resource: &'static str,
    scope: Scope,
    clock: Clock,
    /// When it was heard of last, in milliseconds since the boot.
    heard_ms: Arc<AtomicU64>,
    /// What it failed with since then.
    error: Arc<Mutex<Option<String>>>,
}

impl WatchHealth {
    /// Takes note of a sign of life.
    pub fn heard(&self) {
        let now_ms = self.clock.boot().since_boot().as_millis();
        self.heard_ms
            .store(now_ms.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        *self.lock_error() = None;
    }

    /// Takes note that it failed.
    pub fn failed(&self, error: String) {
        *self.lock_error() = Some(error);
    }

    /// What it failed with last, where there was no sign of life since.
    pub fn error(&self) -> Option<String> {
        self.lock_error().clone()
    }

    /// How long there has been none.
    pub fn silence(&self) -> Duration {
        let heard = BootInstant::after_boot(Duration::from_millis(self.heard_ms.load(Ordering::Relaxed)));
        self.clock.boot().since(heard)
    }

    /// Held for one assignment or copy.
    fn lock_error(&self) -> MutexGuard<'_, Option<String>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The resource that is watched.
    pub fn resource(&self) -> &'static str {
        self.resource
    }

    /// Where it is watched.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// The pulses of all watches. Clones are one list.
#[derive(Clone, Debug, Default)]
pub struct WatchHealths(Arc<Mutex<Vec<WatchHealth>>>);

impl WatchHealths {
    /// One more watch, whose silence counts from here.
    pub fn begin(&self, resource: &'static str, scope: Scope, clock: Clock) -> WatchHealth {
        let health = WatchHealth {
            resource,
            scope,
            clock,
            heard_ms: Arc::default(),
            error: Arc::default(),
        };
        health.heard();
        self.list().push(health.clone());
        health
    }

    /// Forgets all watches; others take their place.
    pub fn forget_all(&self) {
        self.list().clear();
    }

    /// Those that have been silent for longer than `bound`.
    pub fn silent_for(&self, bound: Duration) -> Vec<WatchHealth> {
        let mut silent = self.list().clone();
        silent.retain(|health| health.silence() > bound);
        silent
    }

    /// Those that have failed, and not been heard of since.
    pub fn failing(&self) -> Vec<(WatchHealth, String)> {
        let with_error = |health: &WatchHealth| Some((health.clone(), health.error()?));
        self.list().iter().filter_map(with_error).collect()
    }

    /// The longest silence of each resource, in whole seconds.
    fn longest_secs(&self) -> Vec<(&'static str, u64)> {
        let mut longest: Vec<(&'static str, u64)> = Vec::new();
        for health in &*self.list() {
            let secs = health.silence().as_secs();
            match longest.iter_mut().find(|(resource, _)| *resource == health.resource) {
                Some((_, known)) => *known = secs.max(*known),
                None => longest.push((health.resource, secs)),
            }
        }
        longest
    }

    /// The list is consistent after every statement, so a panic elsewhere does not spoil it.
    fn list(&self) -> MutexGuard<'_, Vec<WatchHealth>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the silences at a scrape.
pub(super) struct WatchCollector {
    health: WatchHealths,
    description: Desc,
}

impl WatchCollector {
    pub(super) fn new(health: WatchHealths) -> Result<WatchCollector, prometheus::Error> {
        let spec = &table::WATCH_SILENCE;
        let labels = spec.labels.iter().map(|&label| label.to_owned()).collect();
        Ok(WatchCollector {
            health,
            description: Desc::new(spec.name.to_owned(), spec.help.to_owned(), labels, HashMap::new())?,
        })
    }
}

impl Collector for WatchCollector {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let silences = self.health.longest_secs().into_iter().map(|(resource, secs)| {
            let mut label = LabelPair::default();
            label.set_name("resource".to_owned());
            label.set_value(resource.to_owned());
            (vec![label], secs)
        });
        vec![family(&table::WATCH_SILENCE, silences)]
    }
}
