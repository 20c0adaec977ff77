//! What a process counts before its first scrape.
//!
//! Prometheus computes an increase from the first value of a series that it has. A new process catches up on missed runs
//! within milliseconds, long before its first scrape, so these runs would be in no increase. The same is true of what the
//! first list brings out. Therefore Prometheus first gets these counters without what is counted at its first scrape, and two
//! minutes later with it.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use prometheus::proto::{Bucket, Counter, Histogram, Metric, MetricFamily};

use super::table::{self, MetricSpec};

/// Counters that are held back, besides the account of due instants.
const FAULTS: [MetricSpec; 2] = [table::UNDECODABLE_OBJECTS, table::PANICS];

/// How long the counts are held back: every Prometheus that scrapes at least once a minute has scraped by then.
const HELD_BACK: SignedDuration = SignedDuration::from_mins(2);

/// The counts at the first scrape. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstScrape(Arc<Mutex<Option<Counts>>>);

#[derive(Clone, Debug)]
struct Counts {
    at: Timestamp,
    lateness: Histogram,
    /// Ended instants, by outcome, in the order of the metric.
    outcomes: Vec<f64>,
    /// The counts of [`FAULTS`], in the order of each metric.
    faults: [Vec<f64>; 2],
}

impl FirstScrape {
    /// Takes the counts of the first scrape out of the families, unless it is long ago. The account of due instants still
    /// balances.
    pub(super) fn hold_back(&self, families: &mut [MetricFamily], now: Timestamp) {
        let counts = {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| Counts::of(families, now)).clone()
        };
        // A clock that was set back must not prolong the time.
        if now.duration_since(counts.at).abs() >= HELD_BACK {
            return;
        }
        for family in families {
            let name = family.name().to_owned();
            let metrics = family.mut_metric();
            let fault = FAULTS.iter().position(|spec| spec.name == name);
            if let Some(fault) = fault {
                for (metric, counted) in metrics.iter_mut().zip(&counts.faults[fault]) {
                    subtract(metric, *counted);
                }
            } else if name == table::LATENESS.name {
                for metric in metrics {
                    let left = subtracted(metric.get_histogram(), &counts.lateness);
                    metric.set_histogram(left);
                }
            } else if name == table::INSTANT_OUTCOMES.name {
                for (metric, ended) in metrics.iter_mut().zip(&counts.outcomes) {
                    subtract(metric, *ended);
                }
            } else if name == table::DUE_INSTANTS.name {
                for metric in metrics {
                    subtract(metric, counts.outcomes.iter().sum());
                }
            }
        }
    }
}

impl Counts {
    fn of(families: &[MetricFamily], at: Timestamp) -> Counts {
        let metrics_of = |name: &str| {
            let family = families.iter().find(|family| family.name() == name);
            family.map(MetricFamily::get_metric).unwrap_or_default()
        };
        let lateness = metrics_of(table::LATENESS.name).first();
        let counters = |spec: &MetricSpec| {
            let metrics = metrics_of(spec.name).iter();
            metrics.map(|metric| metric.get_counter().get_value()).collect()
        };
        Counts {
            at,
            lateness: lateness
                .map(|metric| metric.get_histogram().clone())
                .unwrap_or_default(),
            outcomes: counters(&table::INSTANT_OUTCOMES),
            faults: FAULTS.each_ref().map(counters),
        }
    }
}

fn subtract(metric: &mut Metric, held_back: f64) {
    let mut counter = Counter::default();
    counter.set_value(metric.get_counter().get_value() - held_back);
    metric.set_counter(counter);
}

fn subtracted(all: &Histogram, held_back: &Histogram) -> Histogram {
    let buckets = all.get_bucket().iter().zip(held_back.get_bucket());
    let buckets = buckets.map(|(all, held_back)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(all.upper_bound());
        bucket.set_cumulative_count(all.cumulative_count().saturating_sub(held_back.cumulative_count()));
        bucket
    });
    let mut left = Histogram::default();
    left.set_bucket(buckets.collect());
    left.set_sample_count(all.get_sample_count().saturating_sub(held_back.get_sample_count()));
    left.set_sample_sum(all.get_sample_sum() - held_back.get_sample_sum());
    left
}
