//! The `shards` command: replicas, shards and their leaders according to the Leases, with the CronJobs of each shard.
//!
//! The command only reads. `listing` computes the rows, and `text`, `json` and `changes` print them.

mod changes;
mod cron_job;
mod cron_job_name;
mod json;
mod known;
mod listing;
mod text;
mod watch;

use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};

use self::{cron_job_name::CronJobName, text::Form, watch::Gathering};
pub(super) use self::{
    known::Known,
    listing::{Listing, MemberRow, MemberState},
};
use super::{
    args::values::{parse_installation, parse_namespace, parse_zone},
    error::CommandError,
};
use crate::{
    controller::clock::Clock,
    coordination::{Installation, InstallationName},
    kube_api::{LeaseApi, LeaseError, other_controllers::DECAY},
    schedule::Zone,
    shard::ShardCount,
};

/// Timeout of a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Lists replicas, shards and their leaders, and other controllers of the same CronJobs.
#[derive(Args, Debug)]
pub struct ShardsArgs {
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of the Leases. Default: that of the context or of the service account, otherwise kube-system
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE", value_parser = parse_namespace)]
    pub lease_namespace: Option<String>,
    /// Name of the installation, as given to its replicas
    #[arg(long, value_name = "NAME", value_parser = parse_installation, default_value_t)]
    installation: InstallationName,
    /// Time zone of CronJobs without spec.timeZone, as given to the replicas, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    default_time_zone: Zone,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    output: OutputFormat,
    /// List all shards as text, not only those in trouble
    #[arg(short, long)]
    all: bool,
    /// Print the shard of one CronJob, its leader and the next run instead
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = cron_job_name::parse, conflicts_with_all = ["all", "watch"])]
    cronjob: Option<CronJobName>,
    /// Continue and print every change
    #[arg(short, long)]
    watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Text for people
    Text,
    /// Text with incarnations, revisions and protocol versions of members
    Wide,
    /// One JSON object; with --watch, one more per change, each on its own line
    Json,
}

/// The error of Leases that cannot be read.
fn cannot_read_leases(error: LeaseError) -> CommandError {
    let right = if let LeaseError::Refused { code: 403, .. } = error {
        "; the account needs list and watch on leases in the namespace"
    } else {
        ""
    };
    CommandError::caused(format!("cannot read the shards{right}"), error)
}

/// The clients of the command.
pub struct Sources {
    /// The client for Leases.
    pub leases: kube::Client,
    /// The client for CronJobs.
    pub cron_jobs: kube::Client,
    /// The namespaces to search; the first one with Leases counts.
    pub namespaces: Vec<String>,
}

/// Returns the namespaces to search: that of the flag, otherwise the one that `run` would use, and the one of the
/// chart.
pub fn namespaces(flag: Option<&str>, of_context: &str) -> Vec<String> {
    let mut namespaces = match flag {
        Some(flag) => vec![flag.to_owned()],
        None => vec![of_context.to_owned(), "kube-system".to_owned()],
    };
    namespaces.dedup();
    namespaces
}

/// Prints the listing, and with `--watch` every change. Notes go to `notes`, one per line.
pub async fn run(
    args: &ShardsArgs,
    sources: Sources,
    clock: &Clock,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let Sources {
        leases,
        cron_jobs,
        namespaces,
    } = sources;
    let (api, known) = find(&leases, &args.installation, namespaces).await?;
    let installation = format!("{}/{}", api.namespace(), args.installation);
    let begun = clock.now() - DECAY;
    known.other_controllers.begin(begun, installation.into());
    let (zone, wanted) = (args.default_time_zone.clone(), args.cronjob.as_ref());
    let mut gathering = Gathering::begin(api, cron_jobs, zone, wanted, known).await?;
    if let Some(denial) = gathering.denial.take() {
        if wanted.is_some() {
            return Err(denial.into());
        }
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: {denial}");
    }
    let answer = match wanted {
        Some(wanted) => answer(args.output, wanted, &gathering.known, clock)?,
        None => listing(args, &gathering.known, clock),
    };
    write(&mut output, &answer).map_err(CommandError::Write)?;
    if args.watch {
        follow(args.output, &mut gathering, clock, output, notes).await?;
    }
    Ok(())
}

/// Finds the first of these namespaces with Leases of the installation.
async fn find(
    client: &kube::Client,
    name: &InstallationName,
    namespaces: Vec<String>,
) -> Result<(LeaseApi, Known), CommandError> {
    let found = search(client, name, &namespaces).await.map_err(cannot_read_leases)?;
    found.ok_or_else(|| {
        format!(
            "no replica has a Lease in namespace {}; give --lease-namespace, or --installation where it has another name. \
             cronwheel dev has no Leases",
            namespaces.join(" or ")
        )
        .into()
    })
}

/// Reads the Leases of the installation. The first of these namespaces with Leases counts. A refused read is an error only
/// if no other namespace has Leases.
pub(super) async fn search(
    client: &kube::Client,
    name: &InstallationName,
    namespaces: &[String],
) -> Result<Option<(LeaseApi, Known)>, LeaseError> {
    let count = ShardCount::default();
    let mut denied = None;
    for namespace in namespaces {
        let api = LeaseApi::new(client.clone(), namespace, count, None).of_installation(name.clone());
        let list = match api.list(ANSWER_TIMEOUT).await {
            Ok(list) => list,
            Err(error @ LeaseError::Refused { code: 403, .. }) => {
                denied.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if !list.leases.is_empty() {
            let mut known = Known::new(namespace, Installation::of(count));
            known.list_leases(list.leases);
            return Ok(Some((api, known)));
        }
    }
    denied.map_or(Ok(None), Err)
}

/// Prints changes until the output is closed.
async fn follow(
    format: OutputFormat,
    gathering: &mut Gathering,
    clock: &Clock,
    mut output: impl Write,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let mut before = Listing::of(&gathering.known);
    loop {
        if let Some(trouble) = gathering.next().await {
            // Standard error may be closed.
            let _ = writeln!(notes, "cronwheel: {trouble}; trying again");
        }
        let after = Listing::of(&gathering.known);
        for change in changes::between(&before, &after) {
            let line = match format {
                OutputFormat::Text | OutputFormat::Wide => change.to_text(clock.now()),
                OutputFormat::Json => change.to_json(clock.now()),
            };
            write(&mut output, &line).map_err(CommandError::Write)?;
        }
        before = after;
    }
}

fn answer(format: OutputFormat, wanted: &CronJobName, known: &Known, clock: &Clock) -> Result<String, CommandError> {
    let answer = match format {
        OutputFormat::Text | OutputFormat::Wide => cron_job::text(known, wanted, clock.now()),
        OutputFormat::Json => cron_job::document(known, wanted, clock.now()),
    };
    answer.ok_or_else(|| {
        let CronJobName { namespace, name } = wanted;
        format!("CronJob {namespace}/{name} is not in the cluster, or cannot be decoded; check namespace and name")
            .into()
    })
}

fn listing(args: &ShardsArgs, known: &Known, clock: &Clock) -> String {
    let now = clock.now();
    let next_runs = known.next_runs(now);
    if args.output == OutputFormat::Json {
        return json::document(known, &next_runs, now);
    }
    let form = Form {
        is_wide: args.output == OutputFormat::Wide,
        has_all_shards: args.all,
    };
    text::listing(known, &next_runs, form, now)
}

fn write(output: &mut impl Write, text: &str) -> io::Result<()> {
    output.write_all(text.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests;
