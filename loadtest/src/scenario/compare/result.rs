//! What a comparison has shown, as its JSON file holds it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{column::Column, scenario::Scenario, slo::Slo, statistics::Summary};
use crate::target::TargetKind;

/// The form of the file; a file of another form is refused.
pub(crate) const FORMAT: u32 = 1;

/// Fewer rounds say nothing about how figures scatter.
pub(crate) const ROUNDS_FOR_VERDICT: u32 = 3;

/// Everything about one comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ComparisonResult {
    pub(crate) format: u32,
    /// None where every turn of the plan is there; otherwise why not.
    pub(crate) incomplete: Option<String>,
    pub(crate) started: Timestamp,
    /// The commit of the working tree, with `-dirty` where it had changes; empty where git is not there.
    pub(crate) revision: String,
    /// The arguments that run it again.
    pub(crate) command: Vec<String>,
    pub(crate) plan: Plan,
    pub(crate) environment: Environment,
    pub(crate) controllers: Vec<ControllerInfo>,
    pub(crate) slo: Slo,
    pub(crate) turns: Vec<Turn>,
}

/// What was to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) is_quick: bool,
    #[serde(default)]
    pub(crate) scenario: Scenario,
    #[serde(default)]
    pub(crate) target: TargetKind,
    pub(crate) rounds: u32,
    /// Decides which controller begins, and what is in a mix.
    pub(crate) seed: u32,
    pub(crate) cronjobs: u32,
    pub(crate) namespaces: u32,
    pub(crate) job_seconds: u32,
    pub(crate) warm_up_minutes: u32,
    pub(crate) minutes: u32,
    /// How long after the last minute a run may still come.
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

/// One of those compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ControllerInfo {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) replicas: u32,
    pub(crate) flags: Vec<String>,
}

/// One controller in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: u32,
    pub(crate) controller: String,
    /// The first instant, of the warm-up where there is one. Seconds below count from here.
    pub(crate) started: Timestamp,
    /// Due instants of the measured minutes.
    pub(crate) expected: usize,
    pub(crate) figures: BTreeMap<Column, f64>,
    /// By verb and resource, as `create jobs`, and by status where they were refused.
    pub(crate) writes_per_run: BTreeMap<String, f64>,
    /// Creates of the measured minutes by whole seconds after their instant; those of a minute and later come last.
    pub(crate) creates_by_second: Vec<u32>,
    /// Lateness at each hundredth of the runs and at p99.9, in milliseconds.
    pub(crate) lateness_curve: Vec<(f64, f64)>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) phases: Vec<Phase>,
    /// What was done to controllers and API server.
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    /// What makes the figures doubtful.
    pub(crate) warnings: Vec<String>,
}

/// What all processes of the controller used together.
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

/// Something that was done at one moment of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) name: String,
    pub(crate) second: f64,
}

impl ComparisonResult {
    /// Whether the ranges of figures can be told from chance.
    pub(crate) fn has_verdict(&self) -> bool {
        self.incomplete.is_none() && !self.plan.is_quick && self.plan.rounds >= ROUNDS_FOR_VERDICT
    }

    pub(crate) fn turns_of<'a>(&'a self, controller: &'a str) -> impl Iterator<Item = &'a Turn> {
        self.turns.iter().filter(move |turn| turn.controller == controller)
    }

    /// A column of a controller over all rounds; none where it was not measured.
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
