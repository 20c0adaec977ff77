//! Since when something has waited in a queue. The task of the queue publishes the instant, and a scrape computes the
//! age, which therefore also grows while the task is stuck.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Register, table::MetricSpec};
use crate::{controller::clock::Clock, shard::BootInstant};

/// The published instant, with the clock that it belongs to. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct WaitingSince(Arc<Mutex<Option<(BootInstant, Clock)>>>);

impl WaitingSince {
    /// Publishes since when something has waited; `None` while nothing waits.
    pub fn publish(&self, since: Option<BootInstant>, clock: &Clock) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since.map(|since| (since, clock.clone()));
    }

    /// The age in seconds; zero while nothing waits.
    pub fn age_secs(&self) -> f64 {
        let published = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let age = published.as_ref().map(|(since, clock)| clock.boot().since(*since));
        age.unwrap_or_default().as_secs_f64()
    }
}

impl Register<'_> {
    /// Creates the gauge of an age, with its value.
    pub(super) fn waiting_since(&self, spec: &MetricSpec, waiting: &WaitingSince) {
        self.float_gauge(spec).set(waiting.age_secs());
    }
}
