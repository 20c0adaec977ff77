//! The result of a run of bursts, as JSON, as text and as a table row.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs,
    path::Path,
};

use anyhow::Context as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{controller::Candidate, measure, target::Target};

/// The maximum ratio of cronwheel's time to the bare client's best time.
const RATIO_MAX: f64 = 1.10;

/// The result. Times are seconds from the instant to the response to the last create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BurstReport {
    ended: Timestamp,
    machine: String,
    revision: String,
    /// The command that repeats the run.
    command: Vec<String>,
    n_cron_jobs: u32,
    controller_seconds: Vec<f64>,
    /// By number of requests in flight.
    bare_seconds: BTreeMap<usize, Vec<f64>>,
    /// Other writes of the controller during the turns of the bare client.
    n_beside_bare: usize,
}

impl BurstReport {
    pub(super) fn new(
        target: &Target,
        candidate: &Candidate,
        n_cron_jobs: u32,
        controller_seconds: Vec<f64>,
        bare_seconds: BTreeMap<usize, Vec<f64>>,
        n_beside_bare: usize,
    ) -> BurstReport {
        BurstReport {
            ended: Timestamp::now(),
            machine: measure::machine_line(target.kubectl(), candidate.program()),
            revision: measure::revision(),
            command: measure::command(),
            n_cron_jobs,
            controller_seconds,
            bare_seconds,
            n_beside_bare,
        }
    }

    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The number of requests in flight with which the bare client was fastest, and its median.
    fn best_bare(&self) -> Option<(usize, f64)> {
        let medians = self.bare_seconds.iter();
        let medians = medians.filter_map(|(n_in_flight, seconds)| Some((*n_in_flight, median(seconds)?)));
        medians.min_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The ratio of the controller's time to the bare client's best time.
    fn ratio(&self) -> Option<f64> {
        Some(median(&self.controller_seconds)? / self.best_bare()?.1)
    }

    fn row(&self) -> Option<String> {
        let (n_in_flight, best) = self.best_bare()?;
        let (controller, ratio) = (median(&self.controller_seconds)?, self.ratio()?);
        let missed = if ratio > RATIO_MAX { ": **missed**" } else { "" };
        let n_turns = self.bare_seconds.get(&n_in_flight).map_or(0, Vec::len);
        Some(format!(
            "| {} | {controller:.2} s of {} | {best:.2} s of {n_turns}, {n_in_flight} in flight | {ratio:.2} | {RATIO_MAX:.2}{missed} |\n",
            self.n_cron_jobs,
            self.controller_seconds.len(),
        ))
    }
}

/// A table with a row for each file.
pub(crate) fn quoted(files: &[impl AsRef<Path>]) -> anyhow::Result<String> {
    let mut table = "| Creates | cronwheel, median | Bare client at its best, median | Ratio | Aim, at most |\n\
                     |---|---|---|---|---|\n"
        .to_owned();
    for file in files {
        let file = file.as_ref();
        let context = || format!("cannot read the bursts {}", file.display());
        let text = fs::read_to_string(file).with_context(context)?;
        let report: BurstReport = serde_json::from_str(&text).with_context(context)?;
        table += &report.row().with_context(context)?;
    }
    Ok(table)
}

fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(lower, upper))
}

impl Display for BurstReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "{} creates at once, seconds until the last is answered",
            self.n_cron_jobs
        )?;
        let row = |f: &mut Formatter<'_>, name: &str, seconds: &[f64]| {
            let all: Vec<String> = seconds.iter().map(|one| format!("{one:.3}")).collect();
            let median = median(seconds).unwrap_or(f64::NAN);
            writeln!(f, "  {name:<20} median {median:.3} of {}", all.join(" "))
        };
        row(f, "controller", &self.controller_seconds)?;
        for (n_in_flight, seconds) in &self.bare_seconds {
            row(f, &format!("bare, {n_in_flight} in flight"), seconds)?;
        }
        writeln!(
            f,
            "  {} writes of the controller in the bare client's turns",
            self.n_beside_bare
        )?;
        if let Some(ratio) = self.ratio() {
            writeln!(f, "controller to the best of bare: {ratio:.2}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_compares_medians_with_the_best_of_the_bare_client() {
        let report = BurstReport {
            ended: Timestamp::UNIX_EPOCH,
            machine: String::new(),
            revision: String::new(),
            command: Vec::new(),
            n_cron_jobs: 1_000,
            controller_seconds: vec![1.2, 9.0, 1.0],
            bare_seconds: BTreeMap::from([(8, vec![2.0, 2.0]), (16, vec![0.9, 1.1, 1.0, 7.0]), (64, vec![1.5])]),
            n_beside_bare: 0,
        };
        assert!((report.ratio().unwrap() - 1.2 / 1.05).abs() < 1e-9);
        assert_eq!(median(&[]), None);
        assert!(
            report.to_string().contains("controller to the best of bare: 1.14"),
            "{report}"
        );
        assert_eq!(
            report.row().unwrap(),
            "| 1000 | 1.20 s of 3 | 1.05 s of 4, 16 in flight | 1.14 | 1.10: **missed** |\n"
        );
    }
}
