//! The `missed` command: the slots without a Job, and why.
//!
//! It lists CronJobs and Jobs once, and only reads.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use super::{
    args::values::parse_since,
    error::CommandError,
    listed::{Question, list, notes, server_clock},
    ui::{Cluster, SourceArgs},
};
use crate::{
    controller::clock::Clock,
    observe::{
        fleet::Fleet,
        missed::{BackfillCommand, Missed, MissedSource},
        observer::source::Source,
        words::thousands,
    },
    schedule::Zone,
};

/// Lists the slots without a Job and why, with the command that starts them.
///
/// It works from the Jobs that exist: without --history, what is older than the Jobs that the cluster keeps is unknown. It
/// only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
/// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars.
#[derive(Args, Debug)]
pub struct MissedArgs {
    /// The cluster, and what of it is listed.
    #[command(flatten)]
    pub source: SourceArgs,
    /// First slot before now, from 1m to 8784h, which is a year
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_since)]
    since: SignedDuration,
    /// History file of cronwheel ui, with runs beyond the Jobs that the cluster keeps. The page must not run meanwhile.
    /// Default: none
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people
    Text,
    /// One JSON object
    Json,
}

/// Lists once and prints the slots. Notes go to `notes`, one per line.
///
/// # Errors
///
/// [`CommandError`] if the objects cannot be listed or the slots cannot be written. A missed slot is no error.
pub async fn run(
    args: &MissedArgs,
    cluster: Cluster,
    clock: &Clock,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let clock = server_clock(&cluster, clock).await;
    let question = Question::of(&args.source, args.history.as_deref(), args.since);
    let observed = list(&cluster, question, &clock, &mut notes).await?;
    let mut source = observed.source();
    source.notes.extend(clock.banner("this list"));
    let missed = missed(args, &observed.fleet(), &source, cluster, clock.now());
    let text = match args.output {
        OutputFormat::Text => missed.to_text(),
        OutputFormat::Json => {
            let document = missed.to_json();
            document.map_err(|error| CommandError::caused("the slots cannot be converted to JSON", error))?
        }
    };
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(CommandError::Write)
}

fn missed(args: &MissedArgs, fleet: &Fleet, source: &Source, cluster: Cluster, now: Timestamp) -> Missed {
    let since = now.saturating_sub(args.since).unwrap_or(now);
    // These are as many as the history limits leave, and none of them is known to be missed.
    let n_unknown: u64 = fleet.cron_jobs().map(|cron_job| cron_job.n_unknown_since(since)).sum();
    let unknown = (n_unknown > 0).then(|| {
        format!(
            "Of {} due slots nothing is known, and they are not listed: nothing watched the cluster then, and it keeps no \
             Jobs of that time.",
            thousands(n_unknown)
        )
    });
    let command = ClusterFlags::of(&args.source, &cluster, args.history.as_deref()).command();
    let origin = MissedSource {
        cluster: cluster.name,
        since,
        now,
        unreadable_namespaces: source.unreadable.iter().map(|one| one.namespace.clone()).collect(),
        notes: notes(fleet, source, (since, now)).into_iter().chain(unknown).collect(),
    };
    let cron_jobs = fleet
        .cron_jobs()
        .map(|cron_job| (cron_job.name().clone(), cron_job.slots()));
    let mut missed = Missed::new(cron_jobs, origin, &command);
    missed.n_unknown += n_unknown;
    missed
}

/// The flags by which a command finds its cluster and reads its schedules.
pub(super) struct ClusterFlags<'a> {
    pub(super) kubeconfig: Option<&'a Path>,
    pub(super) context: Option<&'a str>,
    pub(super) cluster_name: Option<&'a str>,
    pub(super) default_zone: &'a Zone,
    pub(super) history: Option<&'a Path>,
}

impl<'a> ClusterFlags<'a> {
    /// The flags of a command that found this cluster.
    pub(super) fn of(source: &'a SourceArgs, cluster: &'a Cluster, history: Option<&'a Path>) -> ClusterFlags<'a> {
        ClusterFlags {
            kubeconfig: source.kubeconfig.as_deref(),
            context: cluster.context.as_deref(),
            cluster_name: source.cluster_name.as_deref(),
            default_zone: &source.default_time_zone,
            history,
        }
    }

    /// The command with the same flags.
    pub(super) fn command(&self) -> BackfillCommand {
        let path = |path: &Path| path.display().to_string();
        let zone = self.default_zone.name();
        let flags = [
            ("--kubeconfig", self.kubeconfig.map(path)),
            ("--context", self.context.map(str::to_owned)),
            ("--cluster-name", self.cluster_name.map(str::to_owned)),
            ("--default-time-zone", (zone != "UTC").then(|| zone.to_owned())),
            ("--history", self.history.map(path)),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
        given.fold(BackfillCommand::default(), |command, (flag, value)| {
            command.with(flag, value)
        })
    }
}
