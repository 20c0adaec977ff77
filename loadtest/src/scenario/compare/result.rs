//! The result of a comparison, as stored in its JSON file.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{column::Column, scenario::Scenario, slo::Slo, statistics::Summary};
use crate::target::TargetKind;

/// The version of the file format. Files with another version are refused.
pub(crate) const FORMAT: u32 = 1;

/// With fewer rounds, the spread of the figures is unknown.
pub(crate) const ROUNDS_FOR_VERDICT: u32 = 3;

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ComparisonResult {
    pub(crate) format: u32,
    /// Why turns are missing. `None` if the result is complete.
    pub(crate) incomplete: Option<String>,
    pub(crate) started: Timestamp,
    /// The commit of the working tree, with `-dirty` if it had changes. Empty without git.
    pub(crate) revision: String,
    /// The command that repeats the comparison.
    pub(crate) command: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) environment: Environment,
    pub(crate) controllers: Vec<ControllerInfo>,
    pub(crate) slo: Slo,
    pub(crate) turns: Vec<Turn>,
}

/// The plan of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) is_quick: bool,
    #[serde(default)]
    pub(crate) scenario: Scenario,
    #[serde(default)]
    pub(crate) target: TargetKind,
    pub(crate) rounds: u32,
    /// Determines which controller starts, and the CronJobs of a mix.
    pub(crate) seed: u32,
    pub(crate) cronjobs: u32,
    pub(crate) namespaces: u32,
    /// How many of the namespaces have their creates refused.
    #[serde(default)]
    pub(crate) failing_namespaces: u32,
    pub(crate) job_seconds: u32,
    pub(crate) warm_up_minutes: u32,
    pub(crate) minutes: u32,
    /// How long after the last minute a run may still start.
    pub(crate) settle_seconds: u32,
}

/// Where the figures were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) cores: u32,
    pub(crate) processor: String,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) kubernetes: String,
}

/// A compared controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControllerInfo {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) replicas: u32,
    pub(crate) flags: Vec<String>,
}

/// The turn of one controller in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: u32,
    pub(crate) controller: String,
    /// The first instant, including the warm-up. Seconds below count from here.
    pub(crate) started: Timestamp,
    /// Due instants of the measured minutes.
    pub(crate) expected: usize,
    pub(crate) figures: BTreeMap<Column, f64>,
    /// By verb and resource, such as `create jobs`, and by status code if they failed.
    pub(crate) writes_per_run: BTreeMap<String, f64>,
    /// Creates of the measured minutes, by full seconds after their instant. The last entry counts those a minute late
    /// or later.
    pub(crate) creates_by_second: Vec<u32>,
    /// Lateness in milliseconds at each percent of the runs and at p99.9.
    pub(crate) lateness_curve: Vec<(f64, f64)>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) phases: Vec<Phase>,
    /// Actions on controllers and API server.
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    /// Reasons to doubt the figures.
    pub(crate) warnings: Vec<String>,
}

/// The combined usage of all processes of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) second: f64,
    /// Processor time since the start of the controller.
    pub(crate) cpu_ms: f64,
    pub(crate) memory_mib: f64,
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) name: String,
    pub(crate) begin_second: f64,
    pub(crate) end_second: f64,
}

/// An action at one moment of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) second: f64,
}

impl ComparisonResult {
    /// Whether there are enough rounds to distinguish differences from chance.
    pub(crate) fn has_verdict(&self) -> bool {
        self.incomplete.is_none() && !self.plan.is_quick && self.plan.rounds >= ROUNDS_FOR_VERDICT
    }

    pub(crate) fn turns_of<'a>(&'a self, controller: &'a str) -> impl Iterator<Item = &'a Turn> {
        self.turns.iter().filter(move |turn| turn.controller == controller)
    }

    /// A column of a controller over all rounds. `None` if it was not measured.
    pub(crate) fn summary(&self, controller: &str, column: Column) -> Option<Summary> {
        let figures: Vec<f64> = self
            .turns_of(controller)
            .filter_map(|turn| turn.figures.get(&column).copied())
            .collect();
        Summary::of(&figures)
    }

    /// Writes of one kind per run, over all rounds.
    pub(crate) fn write_summary(&self, controller: &str, kind: &str) -> Option<Summary> {
        let of = |turn: &Turn| turn.writes_per_run.get(kind).copied().unwrap_or_default();
        Summary::of(&self.turns_of(controller).map(of).collect::<Vec<f64>>())
    }
}

#[cfg(test)]
#[path = "result/tests.rs"]
pub(crate) mod tests;
