//! The rounds of a comparison. Every controller has one turn per round, and the order is reversed from round to round,
//! so that changes over time affect all controllers.

use std::path::Path;

use jiff::Timestamp;
use testbed::Binaries;

use super::{
    contestant::Contestant,
    output::Output,
    progress::Progress,
    result::{ComparisonResult, Environment, FORMAT, Plan},
    slo::Slo,
    turn,
};
use crate::{
    generator::Load,
    measure,
    slots::Slot,
    target::{TargetKind, TargetOptions},
};

impl Plan {
    /// The load of a turn. Its id is unique on the API server.
    pub(super) fn load(&self, run_id: String, first: Slot) -> Load {
        Load {
            variety: self.scenario.variety(self.seed, first),
            spread: None,
            ..Load::minutely(run_id, self.cronjobs, self.namespaces, self.job_seconds)
        }
    }

    /// The order of `n` controllers in `round`, counted from 1.
    fn order(&self, round: u32, n: usize) -> Vec<usize> {
        let begin = usize::try_from(self.seed).unwrap_or_default();
        let mut order: Vec<usize> = (0..n).map(|position| (begin + position) % n).collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        order
    }
}

impl Environment {
    fn of_this_machine(kubernetes: String) -> Environment {
        Environment {
            cores: u32::try_from(measure::n_cores()).unwrap_or_default(),
            processor: measure::processor(),
            memory_mib: measure::memory_mib(),
            kernel: measure::kernel(),
            kubernetes,
        }
    }
}

/// Creates a result without turns.
pub(super) fn begin(plan: Plan, slo: Slo, contestants: &[Contestant]) -> anyhow::Result<ComparisonResult> {
    let kubernetes = match plan.target {
        TargetKind::Testbed | TargetKind::ServerDefaults => {
            measure::program_version(&Binaries::find_or_build()?.kube_apiserver)
        }
        TargetKind::Apisim | TargetKind::Cluster => "unknown version of Kubernetes".to_owned(),
    };
    Ok(ComparisonResult {
        format: FORMAT,
        incomplete: Some("it has not ended".to_owned()),
        started: Timestamp::now(),
        revision: measure::revision(),
        command: measure::command(),
        plan,
        controllers: contestants.iter().map(|one| one.info(&kubernetes)).collect(),
        environment: Environment::of_this_machine(kubernetes),
        slo,
        turns: Vec::new(),
    })
}

/// Runs all turns of the plan and adds them to the result.
pub(super) async fn run(
    contestants: &[Contestant],
    result: &mut ComparisonResult,
    options: &TargetOptions,
    output: &Output,
    scratch: &Path,
) -> anyhow::Result<()> {
    let plan = result.plan;
    let mut progress = Progress::new(contestants.len() * usize::try_from(plan.rounds)?);
    for round in 1..=plan.rounds {
        for position in plan.order(round, contestants.len()) {
            let contestant = &contestants[position];
            progress.turn(result.turns.len() + 1, contestant.name());
            let turn = turn::run(&plan, options, contestant, round, scratch, &mut progress).await;
            progress.end();
            result.turns.push(turn?);
            output.write(result)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::compare::result::tests::result;

    #[test]
    fn order_is_reversed_each_round_and_rotated_by_the_seed() {
        let order = |seed: u32, round: u32| {
            Plan {
                seed,
                ..result(&[], &[]).plan
            }
            .order(round, 4)
        };
        assert_eq!(order(0, 1), [0, 1, 2, 3]);
        assert_eq!(order(0, 2), [3, 2, 1, 0]);
        assert_eq!(order(0, 3), [0, 1, 2, 3]);
        assert_eq!(order(6, 1), [2, 3, 0, 1]);
        assert_eq!(order(6, 2), [1, 0, 3, 2]);
    }
}
