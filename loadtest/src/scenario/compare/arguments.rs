//! The command line of `loadtest compare`.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, ensure};
use clap::Args;

use super::{
    contestant::{Contestant, NAMES},
    output::Output,
    result::Plan,
    scenario::Scenario,
    slo::Slo,
};
use crate::target::{TargetKind, TargetOptions};

/// How long after the last minute a run may still start. The built-in controller at its default limits needs most of
/// it.
const SETTLE_SECONDS: u32 = 60;
/// The settle time with `--quick`, so that four turns fit into ten minutes.
const QUICK_SETTLE_SECONDS: u32 = 30;

/// The number of namespaces, unless the command line sets it. Failing namespaces are additional.
const NAMESPACES: u32 = 5;

/// The arguments of a measurement, which are not allowed when printing existing results.
const MEASUREMENT: [&str; 15] = [
    "scenario",
    "controllers",
    "target",
    "in_kubeconfig",
    "audit_log",
    "quick",
    "rounds",
    "seed",
    "cronjobs",
    "failing_namespaces",
    "warm_up_minutes",
    "minutes",
    "replicas",
    "slo",
    "json",
];

#[derive(Clone, Debug, Args)]
pub(crate) struct CompareArguments {
    /// Result files to print instead of measuring: a single one, or two to compare, the older first.
    #[arg(num_args = 1..=2, value_name = "RESULT", conflicts_with_all = MEASUREMENT)]
    results: Vec<PathBuf>,
    /// What happens in a turn.
    #[arg(long, value_enum, default_value_t)]
    scenario: Scenario,
    /// Controllers, separated by commas. By default, all that the scenario and the API server allow.
    #[arg(long, value_delimiter = ',', value_parser = NAMES)]
    controllers: Vec<String>,
    /// API server to use.
    #[arg(long, value_enum, default_value_t)]
    target: TargetKind,
    /// Administrator's kubeconfig of a running cluster, instead of starting an API server. Nothing else in the cluster
    /// may create Jobs of CronJobs, and something must complete them.
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    in_kubeconfig: Option<PathBuf>,
    /// Audit log of that cluster, on this machine. Without it Jobs are watched, which gives fewer figures.
    #[arg(long, value_name = "FILE", requires = "in_kubeconfig")]
    audit_log: Option<PathBuf>,
    /// One round of one minute without warm-up, within ten minutes in total. The figures are indicative.
    #[arg(long, conflicts_with_all = ["rounds", "minutes", "warm_up_minutes"])]
    quick: bool,
    /// Number of rounds. Every controller has one turn per round, and the order is reversed from round to round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Determines which controller starts, and the CronJobs of a mix.
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Number of CronJobs. By default 1000 in the scenario failing-namespaces, otherwise 500.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: Option<u32>,
    /// Number of namespaces that the CronJobs are distributed over. By default five, and those that fail in addition.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    namespaces: Option<u32>,
    /// How many of the namespaces fail in the scenario failing-namespaces.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    failing_namespaces: u32,
    /// Run time of a Job.
    #[arg(long, default_value_t = 3)]
    job_seconds: u32,
    /// Full minutes of a turn before the measured ones.
    #[arg(long, default_value_t = 1)]
    warm_up_minutes: u32,
    /// Measured full minutes of a turn.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Requests that the bare creates keep in flight.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    in_flight: u32,
    /// Replicas of cronwheel. By default three in scenarios that need several, otherwise one.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    replicas: Option<u32>,
    /// YAML file with thresholds for medians, such as loadtest/slo.yaml. Exits with 1 if one is not met.
    #[arg(long, value_name = "FILE")]
    slo: Option<PathBuf>,
    /// File for the result as JSON, rewritten after each turn.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// File for the result as a self-contained HTML page with charts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
    /// Further arguments of `cronwheel run`.
    #[arg(last = true)]
    cronwheel_arguments: Vec<String>,
}

impl CompareArguments {
    /// The results to print. Empty for a measurement.
    pub(super) fn results(&self) -> &[PathBuf] {
        &self.results
    }

    pub(super) fn plan(&self) -> Plan {
        let failing_namespaces = self.scenario.n_failing(self.failing_namespaces);
        Plan {
            is_quick: self.quick,
            scenario: self.scenario,
            target: self.target_kind(),
            rounds: if self.quick { 1 } else { self.rounds },
            seed: self.seed,
            cronjobs: self.cronjobs.unwrap_or_else(|| self.scenario.cron_jobs()),
            namespaces: self.namespaces.unwrap_or(NAMESPACES + failing_namespaces),
            failing_namespaces,
            job_seconds: self.job_seconds,
            warm_up_minutes: self
                .scenario
                .warm_up_minutes(if self.quick { 0 } else { self.warm_up_minutes }),
            minutes: self.scenario.minutes(if self.quick { 1 } else { self.minutes }),
            settle_seconds: if self.quick {
                QUICK_SETTLE_SECONDS
            } else {
                SETTLE_SECONDS
            },
        }
    }

    /// The contestants, in the order of the table. `build` builds cronwheel if no executable is given.
    pub(super) fn contestants(
        &self,
        build: impl FnOnce() -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Vec<Contestant>> {
        let plan = self.plan();
        ensure!(
            plan.failing_namespaces < plan.namespaces,
            "of {} namespaces, {} cannot fail beside others",
            plan.namespaces,
            plan.failing_namespaces
        );
        let names = self.controller_names()?;
        let mut contestants = Vec::new();
        if names.contains(&NAMES[0]) {
            contestants.push(Contestant::Floor {
                in_flight: self.in_flight,
            });
        }
        if names.contains(&NAMES[1]) {
            contestants.push(Contestant::BuiltIn);
        }
        if names.contains(&NAMES[2]) {
            contestants.push(Contestant::BuiltInUnthrottled);
        }
        if names.contains(&NAMES[3]) {
            contestants.push(Contestant::Cronwheel {
                program: self.cronwheel.clone().map_or_else(build, Ok)?,
                replicas: self.cronwheel_replicas(),
                arguments: self.cronwheel_arguments.clone(),
            });
        }
        Ok(contestants)
    }

    /// The number of replicas of cronwheel.
    fn cronwheel_replicas(&self) -> u32 {
        self.replicas.unwrap_or_else(|| self.scenario.replicas())
    }

    /// The names of the controllers, in the order of the table.
    fn controller_names(&self) -> anyhow::Result<Vec<&'static str>> {
        let is_own = matches!(self.target_kind(), TargetKind::Testbed | TargetKind::ServerDefaults);
        ensure!(
            is_own || !self.scenario.needs_own_server(),
            "this scenario disturbs the API server, so it runs on the test bed alone"
        );
        let is_possible = |name: &str| match name {
            "floor" => self.scenario.has_floor(),
            "cronwheel" => true,
            _ => is_own,
        };
        let wanted = |name: &&str| match &self.controllers[..] {
            [] => is_possible(name),
            controllers => controllers.iter().any(|one| one == name),
        };
        let names: Vec<&str> = NAMES.into_iter().filter(wanted).collect();
        for name in &names {
            ensure!(
                is_possible(name),
                "{name} cannot be measured in this scenario on this API server"
            );
        }
        Ok(names)
    }

    fn target_kind(&self) -> TargetKind {
        match &self.in_kubeconfig {
            Some(_) => TargetKind::Cluster,
            None => self.target,
        }
    }

    /// The API server to use.
    pub(super) fn target(&self) -> TargetOptions {
        match (&self.in_kubeconfig, self.target) {
            (Some(kubeconfig), _) => TargetOptions::Running {
                kubeconfig: kubeconfig.clone(),
                audit_log: self.audit_log.clone(),
            },
            (None, TargetKind::Apisim) => TargetOptions::InMemory,
            (None, kind) => TargetOptions::Testbed {
                server_defaults: kind == TargetKind::ServerDefaults,
            },
        }
    }

    pub(super) fn output(&self) -> Output {
        Output {
            json: self.json.clone(),
            html: self.html.clone(),
        }
    }

    /// The thresholds. Empty without a file.
    pub(super) fn thresholds(&self) -> anyhow::Result<Slo> {
        let Some(path) = &self.slo else {
            return Ok(Slo::default());
        };
        let context = || format!("cannot read the thresholds {}", path.display());
        let text = fs::read_to_string(path).with_context(context)?;
        Slo::parse(&text, &NAMES).with_context(context)
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

    #[test]
    fn scenario_and_target_limit_the_controllers() {
        let check = |line: &str, expected: Option<&[&str]>| {
            let names = arguments(line).controller_names().ok();
            assert_eq!(names.as_deref(), expected, "{line}");
        };
        check("", Some(&NAMES));
        check("--controllers cronwheel,floor", Some(&["floor", "cronwheel"]));
        check("--scenario mixed", Some(&NAMES[1..]));
        check("--scenario mixed --controllers floor", None);
        check("--target apisim", Some(&["floor", "cronwheel"]));
        check("--in-kubeconfig a --controllers built-in", None);
        check("--target apisim --scenario api-server-away", None);
        assert!(Command::try_parse_from(["compare", "--controllers", "other"]).is_err());
    }

    #[test]
    fn scenarios_that_kill_replicas_default_to_three() {
        let check = |line: &str, expected: u32| {
            assert_eq!(arguments(line).cronwheel_replicas(), expected, "{line}");
        };
        check("--scenario leader-killed", 3);
        check("--scenario leader-killed --replicas 5", 5);
        check("--scenario slow-tenant", 1);
    }

    #[test]
    fn failing_namespaces_need_other_namespaces() {
        let check = |line: &str, expected: Option<[u32; 3]>| {
            let arguments = arguments(line);
            let plan = arguments.plan();
            let is_possible = arguments.contestants(|| Ok(PathBuf::from("cronwheel"))).is_ok();
            let sizes = [plan.cronjobs, plan.namespaces, plan.failing_namespaces];
            assert_eq!(is_possible.then_some(sizes), expected, "{line}");
        };
        check("", Some([500, 5, 0]));
        check("--scenario failing-namespaces", Some([1_000, 15, 10]));
        check(
            "--scenario failing-namespaces --failing-namespaces 2",
            Some([1_000, 7, 2]),
        );
        check(
            "--scenario failing-namespaces --cronjobs 11000 --namespaces 11",
            Some([11_000, 11, 10]),
        );
        check("--scenario failing-namespaces --namespaces 10", None);
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
    fn replicas_get_the_arguments_after_the_dashes() {
        let check = |line: &str, expected: &[&str]| assert_eq!(arguments(line).cronwheel_arguments, expected, "{line}");
        check("", &[]);
        check("-- --max-inflight=16", &["--max-inflight=16"]);
        check("--replicas 3 -- --max-inflight=16", &["--max-inflight=16"]);
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
