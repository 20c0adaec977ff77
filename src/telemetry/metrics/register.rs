//! Creates metrics from their rows in the table.

use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    core::Collector,
};

use super::table::MetricSpec;

/// Creates metrics in a registry.
pub(super) struct Register<'a>(pub(super) &'a Registry);

impl Register<'_> {
    pub(super) fn counters(&self, spec: &MetricSpec) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(spec.name, spec.help), spec.labels))
    }

    pub(super) fn counter(&self, spec: &MetricSpec) -> IntCounter {
        self.add(IntCounter::new(spec.name, spec.help))
    }

    pub(super) fn gauge(&self, spec: &MetricSpec) -> IntGauge {
        self.add(IntGauge::new(spec.name, spec.help))
    }

    /// Creates a gauge with its value.
    pub(super) fn set_gauge(&self, spec: &MetricSpec, number: impl TryInto<i64>) {
        self.gauge(spec).set(gauge_value(number));
    }

    pub(super) fn float_gauge(&self, spec: &MetricSpec) -> Gauge {
        self.add(Gauge::new(spec.name, spec.help))
    }

    pub(super) fn gauges(&self, spec: &MetricSpec) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(spec.name, spec.help), spec.labels))
    }

    pub(super) fn histogram(&self, spec: &MetricSpec, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts::new(spec.name, spec.help).buckets(buckets.to_vec());
        self.add(Histogram::with_opts(options))
    }

    pub(super) fn histograms(&self, spec: &MetricSpec, buckets: &[f64]) -> HistogramVec {
        let options = HistogramOpts::new(spec.name, spec.help).buckets(buckets.to_vec());
        self.add(HistogramVec::new(options, spec.labels))
    }

    /// Registers a metric. Each row of the table is valid and is registered once, which a test checks.
    fn add<C: Collector + Clone + 'static>(&self, metric: prometheus::Result<C>) -> C {
        let metric = metric.expect("each metric is valid");
        let registered = self.0.register(Box::new(metric.clone()));
        assert!(registered.is_ok(), "{registered:?}: {}", metric.desc()[0].fq_name);
        metric
    }
}

/// Returns the value of a gauge that shows a number.
pub fn gauge_value(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
