//! The savings by selection, as JSON and as text.

use std::{
    fmt::{self, Display, Formatter},
    fs,
    path::Path,
};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// A figure without selection and with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Saving {
    pub(super) what: String,
    pub(super) unit: String,
    pub(super) without: f64,
    pub(super) with: f64,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SelectionReport {
    /// The command that repeats the run.
    pub(super) command: Vec<String>,
    pub(super) revision: String,
    pub(super) n_cron_jobs: usize,
    pub(super) costs: Vec<Saving>,
    pub(super) n_cron_jobs_drained: usize,
    /// Drain times with five, four and three replicas: without the feature gate, then with it.
    pub(super) drain_seconds: Vec<Vec<f64>>,
}

impl SelectionReport {
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Display for SelectionReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} CronJobs\n", self.n_cron_jobs)?;
        writeln!(f, "| | Without | With | Ratio |\n|---|---|---|---|")?;
        for saving in &self.costs {
            let Saving {
                what,
                unit,
                without,
                with,
            } = saving;
            writeln!(
                f,
                "| {what} | {without:.1} {unit} | {with:.1} {unit} | {:.3} |",
                with / without
            )?;
        }
        writeln!(
            f,
            "\n{} CronJobs, drains of one of five, four and three replicas",
            self.n_cron_jobs_drained
        )?;
        for (gate, seconds) in ["without", "with"].into_iter().zip(&self.drain_seconds) {
            let seconds: Vec<String> = seconds.iter().map(|one| format!("{one:.3} s")).collect();
            writeln!(f, "  {gate}: {}", seconds.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saving_is_a_row_with_its_ratio() {
        let report = SelectionReport {
            command: Vec::new(),
            revision: String::new(),
            n_cron_jobs: 8,
            costs: vec![Saving {
                what: "list".into(),
                unit: "ms".into(),
                without: 800.0,
                with: 20.0,
            }],
            n_cron_jobs_drained: 2,
            drain_seconds: vec![vec![0.08], vec![0.2]],
        };
        let text = report.to_string();
        assert!(text.contains("| list | 800.0 ms | 20.0 ms | 0.025 |"), "{text}");
        assert!(text.contains("  with: 0.200 s"), "{text}");
    }
}
