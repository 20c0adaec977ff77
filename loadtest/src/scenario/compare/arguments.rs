//! The command line of `loadtest compare`.

use std::{env, fs, path::PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;

use super::{
    contestant::{Contestant, NAMES, is_alone},
    output::Output,
    result::Plan,
    slo::Slo,
};

/// How long after the last minute a run may still come: the built-in controller at its default limits needs most of it.
const SETTLE_SECONDS: u32 = 60;
/// The same with `--quick`, so that four turns fit in ten minutes.
const QUICK_SETTLE_SECONDS: u32 = 30;

/// The arguments of a measurement that a result which is there already does not need.
const MEASUREMENT: [&str; 9] = [
    "quick",
    "rounds",
    "seed",
    "cronjobs",
    "warm_up_minutes",
    "minutes",
    "replicas",
    "slo",
    "json",
];

#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArguments {
    /// Results to print in place of a measurement, JSON files of earlier ones: a single one, or two side by side, the
    /// older first.
    #[arg(num_args = 1..=2, value_name = "RESULT", conflicts_with_all = MEASUREMENT)]
    results: Vec<PathBuf>,
    /// One round of one minute without warm-up, within ten minutes in all: indicative.
    #[arg(long, conflicts_with_all = ["rounds", "minutes", "warm_up_minutes"])]
    quick: bool,
    /// Rounds, in each of which every controller has one turn; the order is reversed from round to round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Decides which controller begins.
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// How many CronJobs, all due at every whole minute.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Over how many namespaces they are spread.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    namespaces: u32,
    /// How long a Job runs.
    #[arg(long, default_value_t = 3)]
    job_seconds: u32,
    /// Whole minutes of a turn before those that are measured.
    #[arg(long, default_value_t = 1)]
    warm_up_minutes: u32,
    /// Whole minutes of a turn that are measured.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Requests that the bare creates have in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: u32,
    /// Replicas of cronwheel.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,
    /// Thresholds for medians, a YAML file such as loadtest/slo.yaml; exits with 1 where one is not met.
    #[arg(long, value_name = "FILE")]
    slo: Option<PathBuf>,
    /// Where to write the result as JSON, anew after each turn.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where to write the result as a page with drawings; one file that needs nothing from elsewhere.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The executable of cronwheel; without it the release build of this workspace, brought up to date first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
    /// Further arguments of `cronwheel run`; without any, a single replica runs with `--alone`.
    #[arg(last = true)]
    cronwheel_arguments: Vec<String>,
}

impl CompareArguments {
    /// The results to print, where no measurement is asked for.
    pub(super) fn results(&self) -> &[PathBuf] {
        &self.results
    }

    pub(super) fn plan(&self) -> Plan {
        Plan {
            is_quick: self.quick,
            rounds: if self.quick { 1 } else { self.rounds },
            seed: self.seed,
            cronjobs: self.cronjobs,
            namespaces: self.namespaces,
            job_seconds: self.job_seconds,
            warm_up_minutes: if self.quick { 0 } else { self.warm_up_minutes },
            minutes: if self.quick { 1 } else { self.minutes },
            settle_seconds: if self.quick {
                QUICK_SETTLE_SECONDS
            } else {
                SETTLE_SECONDS
            },
        }
    }

    /// Those compared, in the order of the table. `build` makes the executable of cronwheel where none is named.
    pub(super) fn contestants(
        &self,
        build: impl FnOnce() -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Vec<Contestant>> {
        let mut arguments = self.cronwheel_arguments.clone();
        if self.replicas == 1 && arguments.is_empty() {
            arguments.push("--alone".to_owned());
        }
        ensure!(
            self.replicas == 1 || !is_alone(&arguments),
            "--alone is for a single replica, and there are {}",
            self.replicas
        );
        Ok(vec![
            Contestant::Floor {
                in_flight: self.in_flight,
            },
            Contestant::BuiltIn,
            Contestant::BuiltInUnthrottled,
            Contestant::Cronwheel {
                program: self.cronwheel.clone().map_or_else(build, Ok)?,
                replicas: self.replicas,
                arguments,
            },
        ])
    }

    pub(super) fn output(&self) -> Output {
        Output {
            json: self.json.clone(),
            html: self.html.clone(),
        }
    }

    /// The thresholds; none without a file.
    pub(super) fn thresholds(&self) -> anyhow::Result<Slo> {
        let Some(path) = &self.slo else {
            return Ok(Slo::default());
        };
        let context = || format!("cannot read the thresholds {}", path.display());
        let text = fs::read_to_string(path).with_context(context)?;
        Slo::parse(&text, &NAMES).with_context(context)
    }

    /// The arguments that run it again.
    pub(super) fn command() -> Vec<String> {
        let arguments = env::args().skip(1);
        ["cargo", "run", "--release", "--package", "loadtest", "--"]
            .map(str::to_owned)
            .into_iter()
            .chain(arguments)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        arguments: CompareArguments,
    }

    fn arguments(line: &str) -> CompareArguments {
        let words = ["compare"].into_iter().chain(line.split_ascii_whitespace());
        Command::try_parse_from(words).unwrap().arguments
    }

    fn cronwheel_arguments(line: &str) -> anyhow::Result<Vec<String>> {
        let contestants = arguments(line).contestants(|| Ok("/cronwheel".into()))?;
        match &contestants[3] {
            Contestant::Cronwheel { arguments, .. } => Ok(arguments.clone()),
            Contestant::Floor { .. } | Contestant::BuiltIn | Contestant::BuiltInUnthrottled => unreachable!(),
        }
    }

    #[test]
    fn quick_is_one_round_of_one_minute() {
        let plan = arguments("--quick --cronjobs 50").plan();
        assert_eq!(
            (plan.rounds, plan.warm_up_minutes, plan.minutes, plan.cronjobs),
            (1, 0, 1, 50)
        );
        let plan = arguments("").plan();
        assert_eq!(
            (plan.rounds, plan.warm_up_minutes, plan.minutes, plan.is_quick),
            (3, 1, 2, false)
        );
        assert!(Command::try_parse_from(["compare", "--quick", "--rounds", "3"]).is_err());
    }

    #[test]
    fn a_single_replica_is_alone_unless_its_arguments_are_given() {
        let check = |line: &str, expected: &[&str]| assert_eq!(cronwheel_arguments(line).unwrap(), expected, "{line}");
        check("", &["--alone"]);
        check("-- --shards=16", &["--shards=16"]);
        check("--replicas 3", &[]);
        check("--replicas 3 -- --shards=16", &["--shards=16"]);
        assert!(cronwheel_arguments("--replicas 3 -- --alone").is_err());
    }

    #[test]
    fn results_are_printed_without_a_measurement() {
        assert_eq!(arguments("a.json b.json").results().len(), 2);
        assert_eq!(arguments("a.json --html a.html").results(), [PathBuf::from("a.json")]);
        assert!(arguments("--quick").results().is_empty());
        for line in [
            "compare a.json b.json c.json",
            "compare a.json --quick",
            "compare a.json --json b.json",
        ] {
            assert!(Command::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
