//! The last state of the election that its task published, for readiness and for metrics at a scrape.

use std::time::Duration;

use super::{Register, table};
use crate::{controller::clock::Clock, coordination::Overview};

/// The published state of an election.
#[derive(Clone, Debug)]
pub struct ElectionFigures {
    /// The summary of the election.
    pub overview: Overview,
    /// From a renewal to the fence.
    pub fence_after: Duration,
    /// The clock by which ages are computed.
    pub clock: Clock,
}

impl ElectionFigures {
    /// The age of the renewal on which the current leadership rests; `None` without one.
    fn renew_age(&self) -> Option<Duration> {
        let (until, now) = (self.overview.act_until?, self.clock.boot());
        Some((self.fence_after + now.since(until)).saturating_sub(until.since(now)))
    }

    /// The longest time for which a shard has been without a leader.
    fn vacant_age(&self) -> Duration {
        let now = self.clock.boot();
        let ages = self.overview.vacant.values().map(|since| now.since(*since));
        ages.max().unwrap_or_default()
    }
}

impl Register<'_> {
    /// Creates the metrics of a published state, with their values.
    pub(super) fn election_figures(&self, figures: &ElectionFigures) {
        let overview = &figures.overview;
        let takes_no_shards = self.gauges(&table::TAKES_NO_SHARDS);
        if let Some(reason) = &overview.no_shards_reason {
            takes_no_shards.with_label_values(&[reason.name()]).set(1);
        }
        self.set_gauge(&table::SHARDS_UNOWNED, overview.vacant.len());
        self.set_gauge(&table::SHARDS_UNOWNED_AGE, figures.vacant_age().as_secs());
        if let Some(age) = figures.renew_age() {
            self.set_gauge(&table::LEASE_RENEW_AGE, age.as_secs());
        }
    }
}
