//! The `loadtest` command creates synthetic CronJobs on a real API server and measures externally how a CronJob
//! controller runs them. Its exit code is the verdict.
#![allow(clippy::disallowed_methods, reason = "a load test is about wall time")]
#![allow(clippy::print_stdout, reason = "a command answers on standard output")]

mod audit;
mod bare_client;
mod clean;
mod controller;
mod exposition;
mod generator;
mod interrupt;
mod measure;
mod own_figures;
mod quotes;
mod report;
mod scenario;
mod slots;
mod target;
mod tracker;
mod watched;

use std::{
    env, fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
};

use anyhow::{Context as _, bail};
use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use testbed::ReferenceLimits;

use crate::{
    clean::CleanArguments,
    controller::Candidate,
    generator::Load,
    report::Report,
    scenario::{
        beside::{self, BesideArguments},
        burst::{self, Burst, BurstReport},
        compare::{self, CompareArguments, floor::BareCreatesArguments},
        endurance::{self, EnduranceArguments},
        handovers::{Handovers, table::HandoverReport},
        minutely::Minutely,
        takeovers::{self, TakeoversArguments},
    },
    target::Target,
};

/// Creates synthetic CronJobs on a real API server and measures how a CronJob controller runs them. Exits with 0 only
/// if each due instant has exactly one Job.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version)]
struct Arguments {
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    /// All CronJobs are due at every full minute.
    Minutely(MinutelyArguments),
    /// Bursts of cronwheel and of a bare client in turn: how much later the last Job is created.
    Burst(BurstArguments),
    /// Replaces and kills replicas of cronwheel that share the CronJobs: how long shards have no leader.
    Handovers(HandoversArguments),
    /// Kills replicas of cronwheel in turn: how long their shards have no leader, and the memory of replicas.
    Takeovers(TakeoversArguments),
    /// Replaces one replica after the other for an hour while CronJobs run: memory and open files of replicas.
    Endurance(EnduranceArguments),
    /// Runs cronwheel beside the built-in controller, which an admission policy keeps out of labelled namespaces.
    Beside(BesideArguments),
    /// Compares the built-in controller, with and without its limits, cronwheel, and bare creates on the same load.
    Compare(CompareArguments),
    /// Regenerates the marked tables in README and docs from the files in loadtest/results.
    Quote,
    /// Removes the leftovers of runs from a cluster, even after a crash.
    Clean(CleanArguments),
    /// Sends one create per CronJob at every full minute, until killed. Part of `compare`.
    #[command(hide = true)]
    BareCreates(BareCreatesArguments),
}

#[derive(Debug, Args)]
struct HandoversArguments {
    /// Number of CronJobs.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Number of suspended Jobs that belong to no CronJob, created before the replicas start.
    #[arg(long, default_value_t = 0)]
    foreign_jobs: u32,
    /// Number of replicas. Three of them are killed and restarted, then two are killed for good.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(4..))]
    replicas: u32,
    /// Number of passes. A pass takes two minutes and replaces ten replicas, at ten times evenly spread over the
    /// minute.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    passes: u32,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct BurstArguments {
    /// Number of CronJobs, and of creates of the bare client.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Number of bursts of cronwheel to measure. The bare client has its turns between them.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    bursts: u32,
    /// Minutes between bursts, a divisor of 60. By default 1 to 5, depending on the number of CronJobs.
    #[arg(long, value_parser = PossibleValuesParser::new(["1", "2", "3", "5", "10"]).map(|text| text.parse::<u32>().unwrap_or(1)))]
    period_minutes: Option<u32>,
    /// Numbers of requests that the bare client keeps in flight, in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 128, 256])]
    in_flight: Vec<usize>,
    /// File for the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
    /// Further arguments of `cronwheel run`.
    #[arg(last = true)]
    cronwheel_arguments: Vec<String>,
}

#[derive(Debug, Args)]
struct MinutelyArguments {
    /// Number of CronJobs.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Number of namespaces that the CronJobs are distributed over.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    namespaces: u32,
    /// Full minutes to measure.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Full minutes before the measurement, whose Jobs must exist as well.
    #[arg(long, default_value_t = 1)]
    warm_up_minutes: u32,
    /// Run time of a Job.
    #[arg(long, default_value_t = 3)]
    job_seconds: u32,
    /// The option `spread` of all CronJobs, such as 50s: the starts spread over this window after each minute.
    #[arg(long, value_name = "WINDOW", conflicts_with = "reference")]
    spread: Option<String>,
    /// Administrator's kubeconfig of a running API server, instead of starting one. kwok must complete its Jobs.
    #[arg(long, requires = "audit_log", conflicts_with = "reference")]
    in_kubeconfig: Option<PathBuf>,
    /// Audit log of that API server, on this machine.
    #[arg(long, requires = "in_kubeconfig")]
    audit_log: Option<PathBuf>,
    /// Measure the CronJob controller of kube-controller-manager instead of cronwheel.
    #[arg(long)]
    reference: bool,
    #[command(flatten)]
    reference_limits: ReferenceLimits,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long, conflicts_with = "reference")]
    cronwheel: Option<PathBuf>,
    /// Further arguments of `cronwheel run`.
    #[arg(last = true)]
    cronwheel_arguments: Vec<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { scenario } = Arguments::parse();
    let keeps_its_result = matches!(scenario, Scenario::Compare(_));
    // Dropping the future stops everything that the run has started.
    tokio::select! {
        verdict = execute(scenario) => verdict,
        name = interrupt::received(), if !keeps_its_result => bail!("interrupted by {}", name?),
    }
}

async fn execute(scenario: Scenario) -> anyhow::Result<ExitCode> {
    match scenario {
        Scenario::Minutely(arguments) => {
            let report = run(arguments).await?;
            println!("{report}");
            Ok(ExitCode::from(u8::from(!report.is_clean())))
        }
        Scenario::Handovers(arguments) => {
            let report = run_handovers(arguments).await?;
            println!("{report}");
            Ok(ExitCode::from(u8::from(!report.is_clean())))
        }
        Scenario::Takeovers(arguments) => {
            takeovers::run(arguments, run_id(), build_cronwheel, &Scratch::new()?.0).await
        }
        Scenario::Endurance(arguments) => {
            endurance::run(arguments, run_id(), build_cronwheel, &Scratch::new()?.0).await
        }
        Scenario::Beside(arguments) => beside::run(arguments, &run_id(), build_cronwheel, &Scratch::new()?.0).await,
        Scenario::Burst(arguments) => {
            let json = arguments.json.clone();
            let report = run_burst(arguments).await?;
            println!("{report}");
            if let Some(path) = json {
                report.write(&path)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Scenario::Compare(arguments) => {
            let scratch = Scratch::new()?;
            compare::run(arguments, build_cronwheel, &scratch.0).await
        }
        Scenario::Quote => {
            for page in quotes::run()? {
                println!("{page} is written");
            }
            Ok(ExitCode::SUCCESS)
        }
        Scenario::Clean(arguments) => {
            let n_namespaces = clean::run(&arguments.kubeconfig, arguments.run_id.as_deref()).await?;
            println!("{n_namespaces} namespaces are being deleted");
            Ok(ExitCode::SUCCESS)
        }
        Scenario::BareCreates(arguments) => compare::floor::run(arguments).await.map(|()| ExitCode::SUCCESS),
    }
}

async fn run_burst(arguments: BurstArguments) -> anyhow::Result<BurstReport> {
    let scratch = Scratch::new()?;
    let n_cron_jobs = arguments.cronjobs;
    let period_minutes = arguments
        .period_minutes
        .unwrap_or_else(|| burst::period_minutes(n_cron_jobs));
    let burst = Burst {
        load: burst::load(run_id(), n_cron_jobs, period_minutes),
        candidate: Candidate::Cronwheel {
            program: arguments.cronwheel.map_or_else(build_cronwheel, Ok)?,
            arguments: arguments.cronwheel_arguments,
        },
        n_bursts: arguments.bursts,
        period_minutes,
        in_flight: arguments.in_flight,
    };
    burst.run(&mut Target::start()?, &scratch.0).await
}

async fn run_handovers(arguments: HandoversArguments) -> anyhow::Result<HandoverReport> {
    let scratch = Scratch::new()?;
    let handovers = Handovers {
        load: Load::minutely(run_id(), arguments.cronjobs, 5, 3),
        n_foreign_jobs: arguments.foreign_jobs,
        program: arguments.cronwheel.map_or_else(build_cronwheel, Ok)?,
        n_replicas: arguments.replicas.try_into()?,
        n_passes: arguments.passes,
    };
    let mut target = Target::start()?;
    handovers.run(&mut target, &scratch.0).await
}

async fn run(arguments: MinutelyArguments) -> anyhow::Result<Report> {
    let candidate = if arguments.reference {
        Candidate::Reference(arguments.reference_limits)
    } else {
        let program = arguments.cronwheel.map_or_else(build_cronwheel, Ok)?;
        Candidate::Cronwheel {
            program,
            arguments: arguments.cronwheel_arguments,
        }
    };
    let scratch = Scratch::new()?;
    let mut target = match (arguments.in_kubeconfig, arguments.audit_log) {
        (Some(kubeconfig), Some(audit_log)) => Target::running(kubeconfig, Some(audit_log), &scratch.0)?,
        _ => Target::start()?,
    };
    let scenario = Minutely {
        load: Load {
            spread: arguments.spread,
            ..Load::minutely(
                run_id(),
                arguments.cronjobs,
                arguments.namespaces,
                arguments.job_seconds,
            )
        },
        candidate,
        n_warm_up_minutes: arguments.warm_up_minutes,
        n_minutes: arguments.minutes,
    };
    scenario.run(&mut target, &scratch.0).await
}

/// Identifies the run on the API server.
fn run_id() -> String {
    format!("load-{}", std::process::id())
}

/// Builds the release executable, which is quick if nothing has changed. Otherwise a stale one could be measured
/// unnoticed.
fn build_cronwheel() -> anyhow::Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = testbed::cargo()
        .args([
            "build",
            "--release",
            "--package",
            "cronwheel",
            "--message-format",
            "json-render-diagnostics",
        ])
        .current_dir(workspace)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo to build cronwheel; --cronwheel names an executable")?;
    if !output.status.success() {
        bail!("cronwheel does not build ({})", output.status);
    }
    executable_in(&String::from_utf8_lossy(&output.stdout)).context("the build has made no executable of cronwheel")
}

/// Finds the executable in cargo's messages, which are one JSON object per line.
fn executable_in(messages: &str) -> Option<PathBuf> {
    let mut messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let executable = |message: serde_json::Value| {
        let is_cronwheel = message.get("target")?.get("name")? == "cronwheel";
        if is_cronwheel {
            Some(PathBuf::from(message.get("executable")?.as_str()?))
        } else {
            None
        }
    };
    messages.find_map(executable)
}

/// A private folder for tokens and logs, which is removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Scratch> {
        let path = env::temp_dir().join(format!("cronwheel-loadtest-{}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("loadtest: {} was not removed: {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_read_from_the_messages_of_cargo() {
        let messages = "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"cronwheel\"},\"executable\":null}\n\
             {\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"cronwheel\"},\"executable\":\"/t/cronwheel\"}\n\
             {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable_in(messages), Some("/t/cronwheel".into()));
        assert_eq!(executable_in(""), None);
    }

    #[test]
    fn arguments_are_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }
}
