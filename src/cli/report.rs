//! The `report` command: how punctual the CronJobs of a cluster were, what was lost and failed, and what could be better.
//!
//! It lists CronJobs and Jobs once, and only reads.

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use super::{
    args::values::parse_since,
    error::CommandError,
    listed::{Question, list, notes, server_clock},
    missed::ClusterFlags,
    ui::{Cluster, SourceArgs},
};
use crate::{
    controller::clock::Clock,
    observe::{
        advice::{CronJobAdviceInput, advice},
        fleet::Fleet,
        forecast::Forecast,
        missed::BackfillCommand,
        observer::source::Source,
        report::{CronJobHistory, Report, ReportSource},
    },
    schedule::after,
};

/// Prints how punctual the CronJobs of a cluster were, what was lost and failed, and what would change with cronwheel.
///
/// It works from the Jobs that exist: without --history, what is older than the Jobs that the cluster keeps is unknown. It
/// only reads: the account needs get, list and watch on cronjobs and jobs. With the same on
/// namespaces and configmaps, it knows freezes, defaults of namespaces and calendars.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The cluster, and what of it is shown.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Start of the report before now, from 1m to 8784h, which is a year
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
    /// GitHub-flavoured Markdown, for a ticket
    Markdown,
    /// One JSON object
    Json,
    /// One HTML page without scripts
    Html,
}

/// How far the report looks ahead.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// Lists once and prints the report. Notes go to `notes`, one per line.
///
/// # Errors
///
/// [`CommandError`] if the objects cannot be listed or the report cannot be written. What the report says is no error.
pub async fn run(
    args: &ReportArgs,
    cluster: Cluster,
    clock: &Clock,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let clock = server_clock(&cluster, clock).await;
    let question = Question::of(&args.source, args.history.as_deref(), args.since);
    let observed = list(&cluster, question, &clock, &mut notes).await?;
    let mut source = observed.source();
    source.notes.extend(clock.banner("this report"));
    let command = ClusterFlags::of(&args.source, &cluster, args.history.as_deref()).command();
    let report = report(
        &observed.fleet(),
        &source,
        (cluster.name, command),
        args.since,
        clock.now(),
    );
    let text = match args.output {
        OutputFormat::Text => report.to_text(),
        OutputFormat::Markdown => report.to_markdown(),
        OutputFormat::Html => report.to_html(),
        OutputFormat::Json => {
            let document = report.to_json();
            document.map_err(|error| CommandError::caused("the report cannot be converted to JSON", error))?
        }
    };
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(CommandError::Write)
}

fn report(
    fleet: &Fleet,
    source: &Source,
    (cluster, command): (String, BackfillCommand),
    since: SignedDuration,
    now: Timestamp,
) -> Report {
    let overview = fleet.overview(now);
    let begin = now.saturating_sub(since).unwrap_or(now);
    let origin = ReportSource {
        cluster,
        command,
        since: begin,
        now,
        known_since: overview.known_since,
        unreadable_namespaces: source.unreadable.iter().map(|one| one.namespace.clone()).collect(),
        controllers: overview.controllers,
        notes: notes(fleet, source, (begin, now)),
    };
    let forecast = Forecast::new(fleet.cron_jobs(), now, after(now, AHEAD));
    let histories = fleet.cron_jobs().map(|cron_job| CronJobHistory::new(&cron_job, begin));
    let inputs = fleet.cron_jobs().map(|cron_job| CronJobAdviceInput::from(&cron_job));
    let advice = advice(inputs, &forecast, now);
    Report::new(histories, origin, &forecast, &advice)
}
