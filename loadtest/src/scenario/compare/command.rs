//! The command: measures and prints, or prints existing results.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{bail, ensure};

use super::{
    arguments::CompareArguments,
    difference::Difference,
    output::{self, Output},
    result::ComparisonResult,
    rounds,
    slo::Verdict,
    table::Table,
};
use crate::{interrupt, target::TargetOptions};

/// Prints results, or runs all rounds and prints theirs. The exit code is 1 if a threshold is not met and 2 if turns
/// are missing.
pub(crate) async fn run(
    arguments: CompareArguments,
    build: impl FnOnce() -> anyhow::Result<PathBuf>,
    scratch: &Path,
) -> anyhow::Result<ExitCode> {
    if !arguments.results().is_empty() {
        return print(arguments.results(), &arguments.output());
    }
    let slo = arguments.thresholds()?;
    let options = arguments.target();
    let contestants = arguments.contestants(build)?;
    let mut result = rounds::begin(arguments.plan(), slo, &contestants)?;
    let output = arguments.output();
    // Detects before the measurement that a file cannot be written.
    output.write(&result)?;
    let ended = tokio::select! {
        ended = rounds::run(&contestants, &mut result, &options, &output, scratch) => ended,
        interruption = interrupt::received() => interruption.and_then(|signal| bail!("interrupted by {signal}")),
    };
    result.incomplete = ended.err().map(|error| format!("{error:#}").trim_end().to_owned());
    output.write(&result)?;
    println!("{}", Table(&result));
    if let (Some(_), TargetOptions::Running { kubeconfig, .. }) = (&result.incomplete, &options) {
        println!(
            "What is left on the cluster: loadtest clean --kubeconfig {}",
            kubeconfig.display()
        );
    }
    Ok(ExitCode::from(exit_code(&result)))
}

/// Prints one result, or compares two.
fn print(results: &[PathBuf], output: &Output) -> anyhow::Result<ExitCode> {
    let results: Vec<ComparisonResult> = results
        .iter()
        .map(|path| output::read(path))
        .collect::<Result<_, _>>()?;
    match &results[..] {
        [result] => {
            output.write(result)?;
            println!("{}", Table(result));
        }
        [old, new] => {
            ensure!(output.html.is_none(), "a page is of one result, and there are two");
            println!("{}", Difference { old, new });
        }
        _ => bail!("one result can be printed, or two"),
    }
    Ok(ExitCode::SUCCESS)
}

fn exit_code(result: &ComparisonResult) -> u8 {
    if result.incomplete.is_some() {
        return 2;
    }
    u8::from(!result.slo.verdicts(result).iter().all(Verdict::is_met))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::compare::result::tests::result;

    #[test]
    fn exit_code_reflects_thresholds_and_missing_turns() {
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
