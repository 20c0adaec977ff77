//! The rounds of a comparison: every controller has one turn in each, and the order is reversed from round to round, so
//! that what changes with time changes for all.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use jiff::Timestamp;
use testbed::Binaries;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    arguments::CompareArguments,
    contestant::Contestant,
    difference::Difference,
    output::{self, Output},
    progress::Progress,
    result::{ComparisonResult, Environment, FORMAT, Plan},
    slo::{Slo, Verdict},
    table::Table,
    turn,
};
use crate::{generator::Load, measure};

impl Plan {
    pub(super) fn load(&self) -> Load {
        Load {
            run_id: "load".to_owned(),
            n_cron_jobs: self.cronjobs,
            n_namespaces: self.namespaces,
            job_seconds: self.job_seconds,
        }
    }

    /// Which of `n` controllers have their turns in `round`, counted from 1.
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

/// Compares two results, or runs all rounds and prints the table. The exit code is 1 where a threshold is not met and 2 where turns are missing.
pub(crate) async fn run(
    arguments: CompareArguments,
    build: impl FnOnce() -> anyhow::Result<PathBuf>,
    scratch: &Path,
) -> anyhow::Result<ExitCode> {
    if let Some((old, new)) = arguments.results() {
        let (old, new) = (&output::read(old)?, &output::read(new)?);
        println!("{}", Difference { old, new });
        return Ok(ExitCode::SUCCESS);
    }
    let slo = arguments.thresholds()?;
    let contestants = arguments.contestants(build)?;
    let mut result = begin(arguments.plan(), slo, &contestants)?;
    let output = arguments.output();
    // A file that cannot be written is found now, and not after the measurement.
    output.write(&result)?;
    let ended = tokio::select! {
        ended = play(&contestants, &mut result, &output, scratch) => ended,
        interruption = interrupted() => interruption.and_then(|signal| bail!("interrupted by {signal}")),
    };
    result.incomplete = ended.err().map(|error| format!("{error:#}"));
    output.write(&result)?;
    println!("{}", Table(&result));
    Ok(ExitCode::from(exit_code(&result)))
}

fn exit_code(result: &ComparisonResult) -> u8 {
    if result.incomplete.is_some() {
        return 2;
    }
    u8::from(!result.slo.verdicts(result).iter().all(Verdict::is_met))
}

/// The name of the signal by which this process is asked to end.
async fn interrupted() -> anyhow::Result<&'static str> {
    let mut termination = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => Ok("SIGINT"),
        _ = termination.recv() => Ok("SIGTERM"),
    }
}

/// A result without turns.
fn begin(plan: Plan, slo: Slo, contestants: &[Contestant]) -> anyhow::Result<ComparisonResult> {
    let kubernetes = measure::program_version(&Binaries::find_or_build()?.kube_apiserver);
    Ok(ComparisonResult {
        format: FORMAT,
        incomplete: Some("it has not ended".to_owned()),
        started: Timestamp::now(),
        command: CompareArguments::command(),
        plan,
        controllers: contestants.iter().map(|one| one.info(&kubernetes)).collect(),
        environment: Environment::of_this_machine(kubernetes),
        slo,
        turns: Vec::new(),
    })
}

/// Plays all turns of the plan and adds each to the result.
async fn play(
    contestants: &[Contestant],
    result: &mut ComparisonResult,
    output: &Output,
    scratch: &Path,
) -> anyhow::Result<()> {
    let plan = result.plan;
    let mut progress = Progress::new();
    for round in 1..=plan.rounds {
        for position in plan.order(round, contestants.len()) {
            let contestant = &contestants[position];
            let n_turns = contestants.len() * usize::try_from(plan.rounds)?;
            progress.turn(result.turns.len() + 1, n_turns, contestant.name());
            let turn = turn::run(&plan, contestant, round, scratch, &mut progress).await;
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
    fn the_order_is_reversed_from_round_to_round_and_turned_by_the_seed() {
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

    #[test]
    fn the_exit_code_is_that_of_the_thresholds_unless_turns_are_missing() {
        let code = |p99_ms: f64, incomplete: Option<&str>| {
            let mut result = result(&[p99_ms], &[1.0]);
            result.incomplete = incomplete.map(str::to_owned);
            exit_code(&result)
        };
        assert_eq!(code(900.0, None), 0);
        assert_eq!(code(2_000.0, None), 1);
        assert_eq!(code(900.0, Some("interrupted")), 2);
    }
}
