//! Thresholds for figures, read from a file. They determine the exit code.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{column::Column, result::ComparisonResult};

/// The thresholds of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slo {
    pub(crate) thresholds: Vec<Threshold>,
}

/// One threshold for the median of a column over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Threshold {
    pub(crate) name: String,
    pub(crate) controller: String,
    pub(crate) column: Column,
    pub(crate) at_most: f64,
}

/// A threshold and the measured figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict<'a> {
    pub(crate) threshold: &'a Threshold,
    /// `None` if no turn of the controller has the figure.
    pub(crate) measured: Option<f64>,
}

impl Verdict<'_> {
    /// Whether the threshold is met. A missing figure does not meet it.
    pub(crate) fn is_met(&self) -> bool {
        self.measured.is_some_and(|measured| measured <= self.threshold.at_most)
    }
}

impl Slo {
    /// Parses YAML. `controllers` are the names that thresholds may refer to.
    pub(crate) fn parse(text: &str, controllers: &[&str]) -> anyhow::Result<Slo> {
        let slo: Slo = serde_saphyr::from_str(text).context("not a file of thresholds")?;
        for threshold in &slo.thresholds {
            anyhow::ensure!(
                controllers.contains(&threshold.controller.as_str()),
                "threshold {:?}: there is no controller {:?}; there are {}",
                threshold.name,
                threshold.controller,
                controllers.join(", ")
            );
        }
        Ok(slo)
    }

    /// Returns each threshold with the median of its column.
    pub(crate) fn verdicts<'a>(&'a self, result: &ComparisonResult) -> Vec<Verdict<'a>> {
        let of = |threshold: &'a Threshold| Verdict {
            threshold,
            measured: result
                .summary(&threshold.controller, threshold.column)
                .map(|summary| summary.median),
        };
        self.thresholds.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::compare::result::tests::result;

    const FILE: &str = "thresholds:\n\
        - {name: on time, controller: cronwheel, column: lateness_p99_ms, at_most: 1000}\n\
        - {name: none missed, controller: cronwheel, column: missed, at_most: 0}\n";

    #[test]
    fn slo_file_is_parsed() {
        let slo = Slo::parse(FILE, &["cronwheel"]).unwrap();
        assert_eq!(slo.thresholds.len(), 2);
        assert_eq!(slo.thresholds[0].column, Column::LatenessP99Ms);
    }

    #[test]
    fn thresholds_that_would_never_apply_are_refused() {
        let check = |text: &str, controllers: &[&str], expected: &str| {
            let error = format!("{:#}", Slo::parse(text, controllers).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        check(
            FILE,
            &["floor", "built-in"],
            "no controller \"cronwheel\"; there are floor, built-in",
        );
        check(&FILE.replace("lateness_p99_ms", "lateness"), &["cronwheel"], "lateness");
        check(&FILE.replace("at_most: 0", "at_least: 0"), &["cronwheel"], "at_least");
    }

    #[test]
    fn threshold_is_met_up_to_its_limit() {
        let check = |p99_ms: &[f64], expected: bool| {
            let result = result(p99_ms, &[]);
            assert_eq!(result.slo.verdicts(&result)[0].is_met(), expected, "{p99_ms:?}");
        };
        check(&[900.0, 1_000.0, 5_000.0], true);
        check(&[900.0, 1_000.1, 5_000.0], false);
        check(&[], false);
    }

    #[test]
    fn shipped_slo_files_are_valid() {
        let controllers = ["floor", "built-in", "built-in-unthrottled", "cronwheel"];
        for text in [
            include_str!("../../../slo.yaml"),
            include_str!("../../../slo-failing-namespaces.yaml"),
            include_str!("../../../slo-slow-tenant.yaml"),
        ] {
            let slo = Slo::parse(text, &controllers).unwrap();
            assert!(!slo.thresholds.is_empty());
        }
    }
}
