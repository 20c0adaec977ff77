//! The figures that a controller reports about itself, from two scrapes of its metrics.

use std::collections::BTreeMap;

use crate::exposition::{Exposition, Histogram};

/// The names of the metrics with a controller's own figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetricNames {
    /// A histogram, in seconds.
    lateness: &'static str,
    /// The counters of due instants and their outcomes, if the controller has them.
    instants: Option<InstantNames>,
}

#[derive(Clone, Copy, Debug)]
struct InstantNames {
    due: &'static str,
    outcomes: &'static str,
    open: &'static str,
}

/// The metrics of cronwheel.
pub(crate) const CRONWHEEL: MetricNames = MetricNames {
    lateness: "cronwheel_lateness_seconds",
    instants: Some(InstantNames {
        due: "cronwheel_due_instants_total",
        outcomes: "cronwheel_instant_outcomes_total",
        open: "cronwheel_instants_open",
    }),
};

/// The metrics of the built-in controller: one histogram, no counters of instants.
pub(crate) const REFERENCE: MetricNames = MetricNames {
    lateness: "cronjob_controller_job_creation_skew_duration_seconds",
    instants: None,
};

/// A controller's own figures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OwnFigures {
    /// Lateness in the measured period.
    pub(crate) lateness: Option<Histogram>,
    /// The balance of instants since the start of the controller.
    pub(crate) balance: Option<InstantBalance>,
}

/// The counts of due instants. Each must have an outcome or be open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InstantBalance {
    pub(crate) n_due: f64,
    pub(crate) outcomes: BTreeMap<String, f64>,
    pub(crate) n_open: f64,
}

impl InstantBalance {
    /// Whether every instant is accounted for. Counts are integers, so 0.5 is a safe margin.
    pub(crate) fn agrees(&self) -> bool {
        (self.n_due - self.outcomes.values().sum::<f64>() - self.n_open).abs() < 0.5
    }
}

impl OwnFigures {
    /// Computes the figures from one scrape at the start of the measured period and one at its end.
    pub(crate) fn of(names: &MetricNames, begin: &Exposition, end: &Exposition) -> OwnFigures {
        let lateness = end
            .histogram(names.lateness)
            .map(|at_end| match begin.histogram(names.lateness) {
                Some(at_begin) => at_end.since(&at_begin),
                None => at_end,
            });
        let balance = names.instants.and_then(|names| {
            let mut outcomes = BTreeMap::new();
            for sample in end.named(names.outcomes) {
                let outcome = sample.labels.get("outcome").cloned().unwrap_or_default();
                *outcomes.entry(outcome).or_default() += sample.value;
            }
            Some(InstantBalance {
                n_due: end.total(names.due)?,
                outcomes,
                n_open: end.total(names.open)?,
            })
        });
        OwnFigures { lateness, balance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposition(n_created: u32, n_open: u32) -> Exposition {
        Exposition::parse(&format!(
            "cronwheel_lateness_seconds_bucket{{le=\"0.01\"}} {n_created}\n\
             cronwheel_lateness_seconds_bucket{{le=\"+Inf\"}} {n_created}\n\
             cronwheel_due_instants_total 10\n\
             cronwheel_instant_outcomes_total{{outcome=\"created\"}} {n_created}\n\
             cronwheel_instant_outcomes_total{{outcome=\"suspended\"}} 1\n\
             cronwheel_instants_open {n_open}\n"
        ))
    }

    fn balance(n_created: u32, n_open: u32) -> InstantBalance {
        OwnFigures::of(&CRONWHEEL, &Exposition::default(), &exposition(n_created, n_open))
            .balance
            .unwrap()
    }

    #[test]
    fn due_instants_equal_outcomes_plus_open_instants() {
        assert!(balance(9, 0).agrees());
        assert!(balance(7, 2).agrees());
        assert!(!balance(8, 0).agrees());
        assert!(!balance(9, 1).agrees());
        assert!((balance(9, 0).outcomes["suspended"] - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn lateness_covers_only_the_measured_time() {
        let figures = OwnFigures::of(&CRONWHEEL, &exposition(3, 0), &exposition(9, 0));
        assert!((figures.lateness.unwrap().n_observations() - 6.0).abs() < f64::EPSILON);
    }

    #[test]
    fn controller_without_metrics_has_no_figures() {
        let nothing = OwnFigures::of(&CRONWHEEL, &Exposition::default(), &Exposition::default());
        assert_eq!(
            nothing,
            OwnFigures {
                lateness: None,
                balance: None
            }
        );
        assert_eq!(
            OwnFigures::of(&REFERENCE, &exposition(3, 0), &exposition(9, 0)).balance,
            None
        );
    }
}
