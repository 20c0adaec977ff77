//! The last state of the election that its task published, for readiness and for metrics at a scrape.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus::{
    core::{Collector, Desc},
    proto::{LabelPair, MetricFamily},
};

use super::{
    shard_figures::family,
    table::{self, MetricSpec},
};
use crate::{controller::clock::Clock, coordination::Overview};

/// The published state of an election.
#[derive(Clone, Debug)]
pub struct ElectionFigures {
    /// The summary of the election.
    pub overview: Overview,
    /// The missing permission on Leases, and how to grant it; `None` while nothing is refused.
    pub refusal: Option<String>,
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
    fn unowned_age(&self) -> Duration {
        let now = self.clock.boot();
        let ages = self.overview.unowned.values().map(|since| now.since(*since));
        ages.max().unwrap_or_default()
    }
}

/// The last published state of the election; empty if shards are not shared. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct ElectionSnapshot(Arc<Mutex<Option<ElectionFigures>>>);

impl ElectionSnapshot {
    /// Replaces the published state.
    pub fn publish(&self, figures: ElectionFigures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
    }

    /// The last published state.
    pub fn read(&self) -> Option<ElectionFigures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Collects the metrics that come from [`ElectionFigures`].
pub(super) struct ElectionCollector {
    snapshot: ElectionSnapshot,
    descriptions: Vec<Desc>,
}

const COLLECTED: [&MetricSpec; 5] = [
    &table::TAKES_NO_SHARDS,
    &table::SHARDS_UNOWNED,
    &table::SHARDS_UNOWNED_AGE,
    &table::SHARDS_QUARANTINED,
    &table::LEASE_RENEW_AGE,
];

impl ElectionCollector {
    pub(super) fn new(snapshot: ElectionSnapshot) -> Result<ElectionCollector, prometheus::Error> {
        let describe = |spec: &&MetricSpec| {
            let labels = spec.labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(spec.name.to_owned(), spec.help.to_owned(), labels, HashMap::new())
        };
        let descriptions = COLLECTED.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(ElectionCollector { snapshot, descriptions })
    }
}

impl Collector for ElectionCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Some(figures) = self.snapshot.read() else {
            return Vec::new();
        };
        let gauge = |spec, value: u64| family(spec, [(Vec::new(), value)]);
        let overview = &figures.overview;
        let reason = overview.not_owning.iter().map(|reason| {
            let mut label = LabelPair::default();
            label.set_name("reason".to_owned());
            label.set_value(reason.name().to_owned());
            (vec![label], 1)
        });
        let mut families = vec![
            family(&table::TAKES_NO_SHARDS, reason),
            gauge(&table::SHARDS_UNOWNED, overview.unowned.len() as u64),
            gauge(&table::SHARDS_UNOWNED_AGE, figures.unowned_age().as_secs()),
            gauge(&table::SHARDS_QUARANTINED, overview.quarantined.len() as u64),
        ];
        families.extend(
            figures
                .renew_age()
                .map(|age| gauge(&table::LEASE_RENEW_AGE, age.as_secs())),
        );
        families
    }
}
