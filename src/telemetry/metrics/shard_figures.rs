//! The state that the shard task publishes after each iteration of its loop, and its metrics. A scrape reads all of them
//! from one copy, so the account of due instants balances at every scrape.

use std::sync::Arc;

use super::{Register, gauge_value, table};
use crate::shard::{
    BootInstant, InstantOutcome, LedFigures, OutcomeCounts, RunNowResult, Sizes, TemplateUse, TroubleKind,
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
    pub n_refused: u64,
    /// The namespaces of these CronJobs.
    pub n_namespaces_refused: usize,
    /// The contained panics.
    pub n_panics: u64,
    /// The CronJobs on which cronwheel panicked and that have not changed since.
    pub n_cron_jobs_panicked: u64,
    /// The CronJobs in trouble that are named.
    pub troubles: Arc<TroubleReport>,
    /// The number of managed namespaces; `None` if all are.
    pub n_namespaces: Option<usize>,
    /// What to do while no namespace is managed; `None` otherwise.
    pub no_namespace_advice: Option<Arc<str>>,
    /// Whether every list has been complete once.
    pub is_synced: bool,
    /// The instant of the last iteration of the shard task; `None` before the first.
    pub last_iteration: Option<BootInstant>,
}

impl Register<'_> {
    /// Creates the metrics of a published state, with their values.
    pub(super) fn shard_figures(&self, figures: &ShardFigures) {
        self.outcome_counts(&figures.outcome_counts);
        let ShardFigures {
            sizes,
            led,
            template_use,
            n_refused,
            n_namespaces_refused,
            n_panics,
            n_cron_jobs_panicked,
            n_namespaces,
            ..
        } = figures;
        if let Some(n_namespaces) = n_namespaces {
            self.set_gauge(&table::MANAGED_NAMESPACES, *n_namespaces);
        }
        self.set_gauge(&table::WHEEL_ENTRIES, sizes.wheel_entries);
        self.set_gauge(&table::CRON_JOBS, sizes.cron_jobs);
        self.set_gauge(&table::JOBS, sizes.jobs);
        self.set_gauge(&table::CRON_JOBS_LED, led.cron_jobs);
        self.float_gauge(&table::LED_RATIO).set(led.ratio());
        self.set_gauge(&table::TEMPLATE_BYTES, template_use.n_bytes);
        self.set_gauge(&table::TEMPLATES_NOT_KEPT, template_use.n_not_kept);
        self.set_gauge(&table::CRON_JOBS_REFUSED, *n_refused);
        self.set_gauge(&table::NAMESPACES_REFUSED, *n_namespaces_refused);
        self.counter(&table::PANICS).inc_by(*n_panics);
        self.set_gauge(&table::CRON_JOBS_PANICKED, *n_cron_jobs_panicked);
        self.troubles(&figures.troubles);
    }

    fn outcome_counts(&self, counts: &OutcomeCounts) {
        self.counter(&table::DUE_INSTANTS).inc_by(counts.due_instants);
        let outcomes = self.counters(&table::INSTANT_OUTCOMES);
        for outcome in InstantOutcome::ALL {
            let ended = outcomes.with_label_values(&[outcome.as_str()]);
            ended.inc_by(counts.outcome(outcome));
        }
        self.set_gauge(&table::INSTANTS_OPEN, counts.open_instants);
        let runs = self.counters(&table::RUNS_ASKED_FOR);
        for result in RunNowResult::ALL {
            let n_runs = counts.runs_asked_for[result as usize];
            runs.with_label_values(&[result.as_str()]).inc_by(n_runs);
        }
        self.counter(&table::UNEXPECTED_JOBS).inc_by(counts.unexpected_jobs);
    }

    fn troubles(&self, report: &TroubleReport) {
        let named = self.gauges(&table::CRON_JOB_TROUBLE);
        let since = self.gauges(&table::CRON_JOB_TROUBLE_SINCE);
        for trouble in &report.named {
            let cron_job = &trouble.cron_job;
            let owner = trouble.owner.as_deref().unwrap_or_default();
            let labels = [&*cron_job.namespace, &*cron_job.name, trouble.kind.as_str(), owner];
            named.with_label_values(&labels).set(1);
            since.with_label_values(&labels[..3]).set(trouble.since.as_second());
        }
        let omitted = self.gauges(&table::CRON_JOB_TROUBLE_OMITTED);
        for kind in TroubleKind::ALL {
            let n_omitted = report.n_omitted[kind as usize];
            omitted.with_label_values(&[kind.as_str()]).set(gauge_value(n_omitted));
        }
    }
}
