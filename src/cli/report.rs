//! The `report` command: how punctual the CronJobs of a cluster were, what was lost and failed, and what could be better.
//!
//! It lists CronJobs and Jobs once, and only reads.

use std::{io::Write, path::PathBuf};

use clap::{Args, ValueEnum};
use jiff::{SignedDuration, Timestamp};

use super::{
    args::values::parse_since,
    error::CommandError,
    ui::{Cluster, SLOTS_MAX, SourceArgs, past},
};
use crate::{
    controller::clock::Clock,
    observe::{
        advice::{CronJobAdviceInput, advice},
        fleet::{Fleet, FleetConfig, KEPT_SLOTS_MAX},
        forecast::Forecast,
        history::ClusterId,
        observer::{NoHistory, Observed, Observer, Settings, source::Source},
        report::{CronJobHistory, Report, ReportSource},
        words::thousands,
    },
    schedule::after,
};

/// Prints how punctual the CronJobs of a cluster were, what was lost and failed, and what would change with cronwheel.
///
/// It works from the Jobs that exist: without --history, what is older than the Jobs that the cluster keeps is unknown. It
/// only reads: the account needs get, list and watch on cronjobs and jobs.
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
    let now = || clock.wall();
    let mut fleet = Fleet::new(FleetConfig { n_slots_max: SLOTS_MAX }, now());
    fleet.keep_since(now().saturating_sub(args.since).unwrap_or(Timestamp::MIN));
    fleet.set_scopes(&args.source.scopes());
    if let Some(path) = &args.history {
        let id = ClusterId::new(&cluster.name, &cluster.address);
        let read = past::read(&mut fleet, path, &id, args.since, now());
        read.map_err(|error| CommandError::from(format!("--history: {error}")))?;
    }
    let observed = Observed::new(fleet);
    let settings = Settings {
        client: cluster.client,
        scopes: args.source.scopes(),
        default_zone: args.source.default_time_zone.clone(),
        now,
    };
    Observer::new(settings, observed.clone(), NoHistory).list().await?;
    let source = observed.source();
    for one in &source.unreadable {
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: namespace {}: {}", one.namespace, one.problem);
    }
    let report = report(
        &observed.fleet(),
        &source,
        (cluster.name, cluster.context),
        args.since,
        now(),
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
    (cluster, context): (String, Option<String>),
    since: SignedDuration,
    now: Timestamp,
) -> Report {
    let overview = fleet.overview(now);
    let begin = now.saturating_sub(since).unwrap_or(now);
    let origin = ReportSource {
        cluster,
        context,
        since: begin,
        now,
        known_since: overview.known_since,
        unreadable_namespaces: source.unreadable.iter().map(|one| one.namespace.clone()).collect(),
        controllers: overview.controllers,
        notes: notes(fleet, source, begin),
    };
    let forecast = Forecast::new(fleet.cron_jobs(), now, after(now, AHEAD));
    let histories = fleet.cron_jobs().map(|cron_job| CronJobHistory::from(&cron_job));
    let inputs = fleet.cron_jobs().map(|cron_job| CronJobAdviceInput::from(&cron_job));
    let advice = advice(inputs, &forecast, now);
    Report::new(histories, origin, &forecast, &advice)
}

/// What the reader must know about the report.
fn notes(fleet: &Fleet, source: &Source, since: Timestamp) -> Vec<String> {
    let undecodable = source.last_undecodable.as_ref().map(|last| {
        let n_undecodable = source.n_undecodable;
        format!(
            "{n_undecodable} objects have a field that cannot be decoded and counts as absent; the last one: {last}."
        )
    });
    let n_cut = fleet
        .cron_jobs()
        .filter(|cron_job| cron_job.is_cut_after(since))
        .count();
    let cut = (n_cut > 0).then(|| {
        let n_slots = thousands(KEPT_SLOTS_MAX as u64);
        let cron_jobs = if n_cut == 1 { "CronJob" } else { "CronJobs" };
        format!("Of {n_cut} {cron_jobs} with more slots in this time, only the latest {n_slots} are in this report.")
    });
    undecodable.into_iter().chain(cut).collect()
}
