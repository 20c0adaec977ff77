//! The command line: flags to typed configuration. Invalid values are refused with the flag and the remedy.

pub(super) mod values;

use std::{env, ffi::OsString, path::Path, sync::LazyLock};

use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::PossibleValuesParser,
    error::{ContextKind, ContextValue},
};
use clap_complete::Shell;

#[cfg(feature = "dev")]
use super::dev::DevArgs;
use super::{
    backfill::BackfillArgs,
    check::CheckArgs,
    explain::ExplainArgs,
    freeze::{FreezeArgs, ThawArgs},
    missed::MissedArgs,
    next::NextArgs,
    report::ReportArgs,
    run_args::RunArgs,
    shards::ShardsArgs,
    trigger::TriggerArgs,
    ui::UiArgs,
};
use crate::schedule::zone::tzdb_version;

/// The commit of a release build, or the one in the variable `CRONWHEEL_COMMIT` of any build.
const COMMIT: &str = match option_env!("CRONWHEEL_BUILD_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (version, data) = (env!("CARGO_PKG_VERSION"), tzdb_version());
    format!("{version} (commit {COMMIT}, time zone data {data})")
});

/// The file name with which kubectl finds the program as its plugin.
const PLUGIN: &str = "kubectl-cronwheel";

/// A CronJob controller for Kubernetes that starts every Job on time.
#[derive(Debug, Parser)]
#[command(name = "cronwheel", version = VERSION.as_str(), max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments of this process. A wrong argument ends the process with the reason and a remedy.
    pub fn of_process() -> Cli {
        Cli::of(env::args_os().collect()).unwrap_or_else(|error| with_remedy(error).exit())
    }

    /// Parses a command line that starts with the path of the program. The help of a kubectl plugin shows the command that
    /// its user types.
    fn of(line: Vec<OsString>) -> Result<Cli, clap::Error> {
        let mut command = Cli::command();
        let program = line.first().and_then(|path| Path::new(path).file_stem());
        if program.is_some_and(|name| name == PLUGIN) {
            command = command.bin_name("kubectl cronwheel");
        }
        let mut matches = command.try_get_matches_from_mut(line)?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// The remedy for `--alone`, which early builds had.
const ALONE_REMEDY: &str = "leave it out: a replica without others runs every CronJob. It needs the Role cronwheel-leases \
                            of deploy/manifests/rbac.yaml in the namespace of its Leases (--lease-namespace)";

fn with_remedy(mut error: clap::Error) -> clap::Error {
    let is_alone = |argument: &ContextValue| matches!(argument, ContextValue::String(text) if text == "--alone");
    if error.get(ContextKind::InvalidArg).is_some_and(is_alone) {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![ALONE_REMEDY.into()]),
        );
    }
    error
}

/// The commands with a man page of their own.
const COMMANDS: &[&str] = &[
    "run",
    #[cfg(feature = "dev")]
    "dev",
    "next",
    "explain",
    "check",
    "shards",
    "ui",
    "report",
    "missed",
    "backfill",
    "trigger",
    "freeze",
    "thaw",
];

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the CronJobs of a cluster
    Run(RunArgs),
    /// Run cronwheel on an API server in memory, for kubectl: no cluster needed
    #[cfg(feature = "dev")]
    Dev(DevArgs),
    /// Print the next activations of a schedule
    Next(NextArgs),
    /// Explain what the controller would do with a CronJob now
    Explain(ExplainArgs),
    /// Check an installation, a cluster before the switch and its CronJobs, or that the built-in controller is stopped
    ///
    /// Prints one line for each check: ✓ is fine, ! is to be read, ✗ has failed. Exit code 1 means that a check failed.
    /// For a running installation, the account needs list on leases, namespaces, cronjobs, jobs, validatingadmissionpolicies
    /// and validatingadmissionpolicybindings, of the last two at least get on those of the release; with --canary, create and
    /// delete on namespaces, create and list on cronjobs, and list on jobs, events and leases. A check names the right that its
    /// account lacks
    Check(CheckArgs),
    /// List replicas, shards and their leaders, and other controllers of the same CronJobs
    Shards(ShardsArgs),
    /// Serve a page with the CronJobs of a cluster: what ran, what is late, failed or lost and why, what is due
    ///
    /// It works beside any controller and only reads: the account needs get, list and watch on cronjobs and jobs. With the
    /// same on namespaces and configmaps, it knows freezes, defaults of namespaces and calendars. A namespace of --namespace
    /// that the account may not read is named, and the others are shown
    Ui(UiArgs),
    /// Print how punctual the CronJobs of a cluster were, what was lost and failed, and what could be better
    ///
    /// It works beside any controller, from the Jobs that exist: without --history, what is older than the Jobs that the
    /// cluster keeps is unknown. It only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
    /// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars
    Report(ReportArgs),
    /// List the slots without a Job and why, with the command that starts them
    ///
    /// It works beside any controller, from the Jobs that exist: without --history, what is older than the Jobs that the
    /// cluster keeps is unknown. It only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
    /// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars
    Missed(MissedArgs),
    /// Start the slots of one CronJob that have no Job
    ///
    /// Each Job is the one that the controller would have created: name, annotation, template and owner. So a slot never
    /// starts twice while its Job exists, and the command can be interrupted and repeated. It works beside any controller.
    /// The account needs get, list and watch on cronjobs and jobs, and create on jobs, in the namespace
    Backfill(BackfillArgs),
    /// Start one run of a CronJob now, beside its schedule
    ///
    /// The command sets the annotation cronwheel.dev/run-now of the CronJob, and cronwheel creates the Job, which counts as
    /// active and for the history limits. Forbid refuses the run while a Job runs, Replace deletes that Job first, and a
    /// suspended CronJob runs too. The command waits until the Job is created or refused, for at most ten seconds, and with
    /// --wait until the Job has ended. Exit code 1 means that the run was refused, not taken up, or failed. The account needs
    /// get and patch on cronjobs, and get on jobs; list on events, so that the command prints the reason of a refusal
    Trigger(TriggerArgs),
    /// Let nothing start in a namespace before an instant
    ///
    /// No CronJob is changed, and Jobs that run already go on. The command sets the annotations cronwheel.dev/freeze-until
    /// and freeze-reason of the namespace. Replicas read them if they select namespaces by label (--namespace-selector),
    /// which is the default of the chart; otherwise the freeze has no effect. The account needs patch on namespaces
    Freeze(FreezeArgs),
    /// End the freeze of a namespace
    ///
    /// The command removes the annotations cronwheel.dev/freeze-until and freeze-reason of the namespace. The annotation
    /// cronwheel.dev/on-resume of each CronJob determines what starts then; without it, cronwheel.dev/missed-runs; without both, its latest slot starts at once. The
    /// account needs get and patch on namespaces
    Thaw(ThawArgs),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the man page of cronwheel or of one command
    Man {
        /// The command
        #[arg(value_parser = PossibleValuesParser::new(COMMANDS))]
        command: Option<String>,
    },
}

#[cfg(test)]
mod tests;
