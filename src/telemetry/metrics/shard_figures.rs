//! The state that a shard publishes after each turn, and its metrics. A scrape reads all of them from one snapshot, so
//! the account of due instants balances at every scrape.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use prometheus::{
    core::{Collector, Desc},
    proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType},
};

use super::table::{self, MetricKind, MetricSpec};
use crate::shard::{
    BootInstant, InstantOutcome, LedFigures, OutcomeCounts, RefusedFigures, Sizes, TemplateUse, Trouble, TroubleKind,
    TroubleReport,
};

/// The published state of a shard.
#[derive(Clone, Debug, Default)]
pub struct ShardFigures {
    /// The outcome counts of its due instants.
    pub outcome_counts: OutcomeCounts,
    /// The numbers of its objects.
    pub sizes: Sizes,
    /// The figures of the shards that it leads.
    pub led: LedFigures,
    /// The memory that templates and metadata use.
    pub template_use: TemplateUse,
    /// The CronJobs whose creates are refused.
    pub refused: RefusedFigures,
    /// The CronJobs in trouble that are named.
    pub troubles: Arc<TroubleReport>,
    /// Whether every list has been complete once.
    pub is_synced: bool,
    /// The instant of the last turn of the shard task; `None` before the first.
    pub turned: Option<BootInstant>,
}

/// The last published state of a shard; readers get a copy. Clones share the state.
#[derive(Clone, Debug, Default)]
pub struct ShardSnapshot(Arc<Mutex<ShardFigures>>);

impl ShardSnapshot {
    /// Changes the published state atomically.
    pub fn publish(&self, change: impl FnOnce(&mut ShardFigures)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// A copy of the last published state.
    pub fn read(&self) -> ShardFigures {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Collects the metrics that come from [`ShardFigures`].
pub(super) struct ShardCollector {
    snapshot: ShardSnapshot,
    descriptions: Vec<Desc>,
}

const COLLECTED: [&MetricSpec; 15] = [
    &table::DUE_INSTANTS,
    &table::INSTANT_OUTCOMES,
    &table::INSTANTS_OPEN,
    &table::UNEXPECTED_JOBS,
    &table::WHEEL_ENTRIES,
    &table::CRON_JOBS,
    &table::CRON_JOBS_LED,
    &table::LED_RATIO,
    &table::JOBS,
    &table::TEMPLATE_BYTES,
    &table::TEMPLATES_NOT_KEPT,
    &table::CRON_JOBS_REFUSED,
    &table::REFUSALS_IN_TURNS,
    &table::CRON_JOB_TROUBLE,
    &table::CRON_JOB_TROUBLE_OMITTED,
];

impl ShardCollector {
    pub(super) fn new(snapshot: ShardSnapshot) -> Result<ShardCollector, prometheus::Error> {
        let describe = |spec: &&MetricSpec| {
            let labels = spec.labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(spec.name.to_owned(), spec.help.to_owned(), labels, HashMap::new())
        };
        let descriptions = COLLECTED.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(ShardCollector { snapshot, descriptions })
    }
}

impl Collector for ShardCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let ShardFigures {
            outcome_counts,
            sizes,
            led,
            template_use,
            refused,
            troubles,
            ..
        } = self.snapshot.read();
        let outcomes = InstantOutcome::ALL.map(|outcome| {
            let label = label("outcome", outcome.as_str());
            (vec![label], outcome_counts.outcome(outcome))
        });
        let omitted = TroubleKind::ALL.map(|kind| {
            let label = label("kind", kind.as_str());
            (vec![label], troubles.n_omitted[kind as usize])
        });
        vec![
            family(&table::DUE_INSTANTS, [(Vec::new(), outcome_counts.due_instants)]),
            family(&table::INSTANT_OUTCOMES, outcomes),
            family(&table::INSTANTS_OPEN, [(Vec::new(), outcome_counts.open_instants)]),
            family(&table::UNEXPECTED_JOBS, [(Vec::new(), outcome_counts.unexpected_jobs)]),
            family(&table::WHEEL_ENTRIES, [(Vec::new(), sizes.wheel_entries as u64)]),
            family(&table::CRON_JOBS, [(Vec::new(), sizes.cron_jobs as u64)]),
            family(&table::CRON_JOBS_LED, [(Vec::new(), led.cron_jobs as u64)]),
            ratio(&table::LED_RATIO, led.ratio()),
            family(&table::JOBS, [(Vec::new(), sizes.jobs as u64)]),
            family(&table::TEMPLATE_BYTES, [(Vec::new(), template_use.n_bytes)]),
            family(&table::TEMPLATES_NOT_KEPT, [(Vec::new(), template_use.n_not_kept)]),
            family(&table::CRON_JOBS_REFUSED, [(Vec::new(), refused.n_cron_jobs)]),
            family(&table::REFUSALS_IN_TURNS, [(Vec::new(), refused.n_in_turns)]),
            family(&table::CRON_JOB_TROUBLE, troubles.named.iter().map(named)),
            family(&table::CRON_JOB_TROUBLE_OMITTED, omitted),
        ]
    }
}

/// A series of [`table::CRON_JOB_TROUBLE`], with its labels in the order of their names.
fn named(trouble: &Trouble) -> (Vec<LabelPair>, u64) {
    let labels = [
        ("cronjob", &*trouble.cron_job.name),
        ("kind", trouble.kind.as_str()),
        ("namespace", &*trouble.cron_job.namespace),
    ];
    (labels.map(|(name, value)| label(name, value)).into(), 1)
}

fn label(name: &str, value: &str) -> LabelPair {
    let mut label = LabelPair::default();
    label.set_name(name.to_owned());
    label.set_value(value.to_owned());
    label
}

/// A gauge whose value is no whole number.
fn ratio(spec: &MetricSpec, value: f64) -> MetricFamily {
    let mut gauge = Gauge::default();
    gauge.set_value(value);
    let mut metric = Metric::default();
    metric.set_gauge(gauge);
    let mut family = empty_family(spec);
    family.set_metric(vec![metric]);
    family
}

fn empty_family(spec: &MetricSpec) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(spec.name.to_owned());
    family.set_help(spec.help.to_owned());
    family.set_field_type(match spec.kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Gauge => MetricType::GAUGE,
        MetricKind::Histogram => MetricType::HISTOGRAM,
    });
    family
}

pub(super) fn family(spec: &MetricSpec, values: impl IntoIterator<Item = (Vec<LabelPair>, u64)>) -> MetricFamily {
    let mut family = empty_family(spec);
    let metrics = values
        .into_iter()
        .map(|(labels, value)| metric(spec.kind, labels, value));
    family.set_metric(metrics.collect());
    family
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the text format has floats; counts stay below 2^53"
)]
fn metric(kind: MetricKind, labels: Vec<LabelPair>, value: u64) -> Metric {
    let value = value as f64;
    let mut metric = Metric::from_label(labels);
    match kind {
        MetricKind::Counter => {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        }
        MetricKind::Gauge | MetricKind::Histogram => {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
    }
    metric
}
