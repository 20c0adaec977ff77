//! The `backfill` command: starts the slots of one CronJob that have no Job.
//!
//! Each Job is that of the controller, so its name is the lock: a slot whose Job exists does not start again, whoever
//! created it. The slots are found as `missed` finds them.

mod console;
mod plan;
mod runs;
mod target;
mod window;

use std::{io::Write, path::PathBuf, pin::pin, sync::Arc};

use clap::{Args, value_parser};
use jiff::SignedDuration;

pub use self::console::Console;
use self::{
    plan::{Known, Plan, counted},
    runs::{Ending, Runs, Tally},
    target::Target,
    window::{Moment, Window, parse_moment},
};
use super::{
    args::values::{parse_namespace, parse_zone},
    error::CommandError,
    explain::parse_cron_job_name,
    freeze::present_freeze,
    listed::{Question, list, server_clock},
    missed::ClusterFlags,
    ui::Cluster,
};
use crate::{
    controller::clock::Clock,
    kube_api::{ApiClient, JsonApi},
    observe::{
        facts::CronJobFacts,
        fleet::{CronJobView, Fleet},
        missed::BackfillCommand,
        view::CronJobName,
    },
    schedule::{ConcurrencyPolicy, Zone},
    shard::{CronJobIdentity, Scope},
};

/// Maximum number of slots of one call: a week at one each minute.
const SLOTS_MAX: usize = 10_000;

/// More slots than this start only after a confirmation.
const UNCONFIRMED_MAX: usize = 20;

/// Maximum number of Jobs at a time. Each is looked at every second.
const PARALLEL_MAX: i64 = 50;

/// Starts the slots of one CronJob that have no Job, the oldest first.
///
/// Each Job is the one that the controller would have created, also for slots that Forbid, suspend or the starting deadline
/// held back. In a frozen namespace nothing starts, if the account may get the namespace. A slot whose Job exists does not start again, so the command can be interrupted and repeated. The account
/// needs get, list and watch on cronjobs and jobs, and create on jobs, in the namespace. Exit code 1 means that a Job
/// failed or was not started.
#[derive(Args, Debug)]
pub struct BackfillArgs {
    /// Name of the CronJob; also as cronjob/NAME
    #[arg(value_parser = parse_cron_job_name)]
    name: String,
    /// Namespace of the CronJob. Default: that of the context or of the service account
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// First slot: an instant in RFC 3339, e.g. 2026-11-27T02:00:00Z, or a duration before now, e.g. 6h
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    from: Moment,
    /// Last slot, like --from; not in the future. Default: now
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    to: Option<Moment>,
    /// Number of Jobs that run at the same time. Under Forbid and Replace, other Jobs of the CronJob that run at the start
    /// count too
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u32).range(1..=PARALLEL_MAX))]
    parallel: u32,
    /// Also start slots that may have had a Job: the cluster keeps no Job of that time
    #[arg(long)]
    include_unknown: bool,
    /// Print what would start, and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Start more than 20 Jobs without a question
    #[arg(short, long)]
    yes: bool,
    /// Kubeconfig file. Default: the service account in a Pod, otherwise KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig. Default: the current context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Name of the cluster in the history. Default: the context of the kubeconfig; in a Pod, the address of the API server
    #[arg(long, value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// Time zone of CronJobs without spec.timeZone, as their controller has it, e.g. Europe/Berlin
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = parse_zone)]
    default_time_zone: Zone,
    /// History file of cronwheel ui, with runs beyond the Jobs that the cluster keeps. The page must not run meanwhile.
    /// Default: none
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

/// What a backfill uses.
pub struct Sources {
    /// The cluster, for the list.
    pub cluster: Cluster,
    /// The client that creates Jobs.
    pub writes: ApiClient,
    /// The client that reads the namespace.
    pub namespaces: JsonApi,
    /// The namespace if none is given.
    pub namespace: String,
}

/// Lists once, asks if there is a lot to do, and starts what is missing. `listen` is called when Jobs begin to start; its
/// future completes when the command is to end. Notes go to `notes`, one per line.
///
/// # Errors
///
/// [`CommandError`] if nothing may start, if a Job cannot be created, if one failed, or after an interruption.
pub async fn run<F: Future<Output = ()>>(
    args: &BackfillArgs,
    sources: Sources,
    clock: &Clock,
    listen: impl FnOnce() -> Result<F, CommandError>,
    mut console: Console<'_, impl Write>,
    mut notes: impl Write,
) -> Result<(), CommandError> {
    let clock = server_clock(&sources.cluster, clock).await;
    if let Some(note) = clock.banner("backfill") {
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: {note}");
    }
    let window = Window::new(args.from, args.to, clock.now()).map_err(CommandError::from)?;
    let name = CronJobName {
        namespace: args.namespace.as_ref().unwrap_or(&sources.namespace).as_str().into(),
        name: args.name.as_str().into(),
    };
    let question = Question {
        scopes: vec![Scope::Namespace(name.namespace.as_ref().into())],
        default_zone: &args.default_time_zone,
        history: args.history.as_deref(),
        since: clock.now().duration_since(window.from).max(SignedDuration::ZERO),
    };
    let observed = list(&sources.cluster, question, &clock, &mut notes).await?;
    let (plan, target) = planned(args, &observed.fleet(), (&name, sources.writes), window, &mut notes)?;
    drop(observed);
    let (from, to) = (window.from, window.to);
    console.line(&format!(
        "{}/{} from {from} to {to}: {}",
        name.namespace,
        name.name,
        plan.summary()
    ))?;
    if args.dry_run {
        return plan.lines().try_for_each(|line| console.line(&line));
    }
    if plan.start.is_empty() {
        return Ok(());
    }
    if let Some(frozen) = present_freeze(&sources.namespaces, &name.namespace, clock.now()).await {
        let thaw = format!("wait for its end, or end it: cronwheel thaw {}", name.namespace);
        return Err(format!("{frozen}; {thaw}").into());
    }
    confirm(args, &name, plan.start.len(), &mut console)?;
    let interrupted = pin!(listen()?);
    let runs = Runs {
        target: &target,
        n_parallel: args.parallel as usize,
        console: &mut console,
        interrupted,
    };
    let ended = runs.perform(&plan).await;
    console.end_progress()?;
    let command = command(args, sources.cluster.context.as_deref());
    match ended? {
        Ending::Done(tally) => done(tally, &mut console),
        Ending::Interrupted(tally, next) => {
            let rest = plan.rest(next, to).map(|slots| command.line(&name, slots));
            Err(interruption(tally, rest).into())
        }
    }
}

/// What to start, and the CronJob that owns it.
fn planned(
    args: &BackfillArgs,
    fleet: &Fleet,
    (name, client): (&CronJobName, ApiClient),
    window: Window,
    notes: &mut impl Write,
) -> Result<(Plan, Target), CommandError> {
    let CronJobName { namespace, name: short } = name;
    let cron_job = fleet.cron_job(name).ok_or_else(|| {
        format!("CronJob {namespace}/{short} is not in the cluster; check the name and give the namespace by -n")
    })?;
    if cron_job.facts.is_deleting {
        return Err(
            format!("CronJob {namespace}/{short} is being deleted, and its Jobs with it; nothing starts").into(),
        );
    }
    let plan = plan(args, &cron_job, window)?;
    for note in remarks(cron_job.facts, &plan) {
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: {note}");
    }
    let identity = CronJobIdentity {
        namespace: namespace.clone(),
        name: short.clone(),
        uid: cron_job.facts.uid.clone(),
    };
    let target = Target {
        client,
        cron_job: Arc::new(identity),
        cursor: cron_job.facts.last_schedule_time,
    };
    Ok((plan, target))
}

fn plan(args: &BackfillArgs, cron_job: &CronJobView<'_>, window: Window) -> Result<Plan, CommandError> {
    let slots = cron_job
        .slots_between(window.from, window.to, SLOTS_MAX)
        .ok_or_else(|| {
            format!(
                "{} to {} has more than {SLOTS_MAX} slots; give a shorter time, and the rest in another call",
                window.from, window.to
            )
        })?;
    Ok(Plan::new(&Known {
        name: &cron_job.facts.name,
        slots: &slots,
        running: &cron_job.running_jobs(),
        policy: cron_job.facts.concurrency_policy,
        cursor: cron_job.facts.last_schedule_time,
        has_seconds: cron_job.facts.schedule.has_seconds() && !cron_job.ignores_options(),
        has_unknown: args.include_unknown,
    }))
}

/// What the user must know before Jobs start.
fn remarks(facts: &CronJobFacts, plan: &Plan) -> Vec<String> {
    let n_start = plan.start.len();
    let limit = facts.successful_jobs_history_limit as usize;
    let limited = (n_start > limit).then(|| {
        format!(
            "successfulJobsHistoryLimit is {limit}: the controller deletes older Jobs of this backfill when they have \
             succeeded, and other finished Jobs too"
        )
    });
    let replaced = (n_start > 0 && facts.concurrency_policy == ConcurrencyPolicy::Replace).then(|| {
        "concurrencyPolicy is Replace: when the next slot is due, the controller may delete a Job of this backfill that \
         still runs"
            .to_owned()
    });
    limited.into_iter().chain(replaced).collect()
}

/// Asks before many Jobs start.
fn confirm(
    args: &BackfillArgs,
    name: &CronJobName,
    n_start: usize,
    console: &mut Console<'_, impl Write>,
) -> Result<(), CommandError> {
    if args.yes || n_start <= UNCONFIRMED_MAX {
        return Ok(());
    }
    let jobs = counted(n_start, "Job");
    match console.ask(&format!("Start {jobs} of CronJob {}/{}?", name.namespace, name.name))? {
        Some(true) => Ok(()),
        Some(false) => Err("not confirmed; nothing was started".to_owned().into()),
        None => Err(format!(
            "{jobs} are more than {UNCONFIRMED_MAX}, and standard input is no terminal to ask for a confirmation; add --yes"
        )
        .into()),
    }
}

/// The command that goes on after an interruption.
fn command(args: &BackfillArgs, context: Option<&str>) -> BackfillCommand {
    let flags = ClusterFlags {
        kubeconfig: args.kubeconfig.as_deref(),
        context,
        cluster_name: args.cluster_name.as_deref(),
        default_zone: &args.default_time_zone,
        history: args.history.as_deref(),
    };
    let parallel = (args.parallel > 1).then(|| args.parallel.to_string());
    let command = flags.command();
    parallel.map_or_else(|| command.clone(), |n| command.clone().with("--parallel", n))
}

fn done(tally: Tally, console: &mut Console<'_, impl Write>) -> Result<(), CommandError> {
    console.line(&tally.summary())?;
    match tally.failed + tally.foreign {
        0 => Ok(()),
        n => Err(format!("{} failed or not started", counted(n, "Job")).into()),
    }
}

/// The text of the error after an interruption. `rest` is the command that goes on, if a slot is left.
fn interruption(tally: Tally, rest: Option<String>) -> String {
    let summary = tally.summary();
    match rest {
        Some(command) => format!("interrupted: {summary}. Jobs that run go on. To continue: {command}"),
        None => format!("interrupted: {summary}. Every slot has its Job, and Jobs that run go on"),
    }
}

#[cfg(test)]
mod tests;
