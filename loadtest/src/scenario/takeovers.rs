//! Measures the time from the kill or freeze of a replica until all shards are led, with CronJobs that are not due, and how much
//! memory replicas use.

mod ended_jobs;

use std::{
    fmt::{self, Display, Formatter},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use k8s_openapi::api::batch::v1::CronJob;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde::Serialize;
use serde_json::json;

use super::{
    client,
    handovers::{EVEN_WAIT, FLOW_SCHEMA, fleet::Fleet, table::Quantiles, time_until_all_led},
    progress,
};
use crate::{
    generator::{Load, Variety},
    measure,
    slots::Due,
    target::Target,
};

#[derive(Debug, Args)]
pub(crate) struct TakeoversArguments {
    /// Number of CronJobs. None of them is due.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Number of completed Jobs of each CronJob, created before the replicas start.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=100))]
    jobs_per_cronjob: u32,
    /// Number of replicas.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..))]
    replicas: u32,
    /// Number of kills. Each takes about a minute.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32))]
    kills: u32,
    /// Changes of CronJobs in a second, by a user. With 0, no CronJob changes.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1_000))]
    changes_per_second: u32,
    /// Freeze the replicas instead of killing them.
    #[arg(long)]
    freeze: bool,
    /// File for the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
}

/// Runs the scenario and prints its result.
pub(crate) async fn run(
    arguments: TakeoversArguments,
    run_id: String,
    build: impl FnOnce() -> anyhow::Result<PathBuf>,
    scratch: &Path,
) -> anyhow::Result<ExitCode> {
    let json = arguments.json.clone();
    let takeovers = Takeovers {
        load: Load {
            variety: Variety::Same(Due::Never),
            spread: None,
            history_limit: arguments.jobs_per_cronjob.max(1),
            ..Load::minutely(run_id, arguments.cronjobs, 5, 3)
        },
        program: arguments.cronwheel.map_or_else(build, Ok)?,
        n_jobs_each: arguments.jobs_per_cronjob,
        n_replicas: arguments.replicas.try_into()?,
        n_kills: arguments.kills,
        changes_per_second: arguments.changes_per_second,
        freeze: arguments.freeze,
    };
    let mut target = Target::start()?;
    let user = client(target.kubeconfig()).await?;
    let report = tokio::select! {
        report = takeovers.run(&mut target, scratch) => report?,
        failed = takeovers.change_cron_jobs(user) => failed?,
    };
    println!("{report}");
    if let Some(path) = json {
        report.write(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The parameters of a run.
#[derive(Clone, Debug)]
struct Takeovers {
    load: Load,
    /// The executable of cronwheel.
    program: PathBuf,
    /// The number of completed Jobs of each CronJob.
    n_jobs_each: u32,
    n_replicas: usize,
    n_kills: u32,
    changes_per_second: u32,
    /// Whether replicas are frozen instead of killed.
    freeze: bool,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
struct TakeoversReport {
    /// The command that repeats the run.
    command: Vec<String>,
    revision: String,
    machine: String,
    n_replicas: usize,
    n_cron_jobs: u32,
    /// The number of completed Jobs of each CronJob.
    n_jobs_each: u32,
    changes_per_second: u32,
    /// Whether replicas were frozen instead of killed.
    freeze: bool,
    /// Seconds from each kill until all shards were led.
    seconds: Vec<f64>,
    /// The most memory of a replica until the shards were spread evenly. The first replica that is ready leads all shards until
    /// the others take their part.
    first_resident_max_mib: f64,
    /// The most memory of a replica at that time.
    resident_mib: f64,
    /// The most memory of a replica after that.
    resident_max_mib: f64,
}

impl Takeovers {
    async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<TakeoversReport> {
        let kubectl = target.kubectl().clone();
        kubectl.apply(&self.load.namespaces_manifest())?;
        kubectl.apply(FLOW_SCHEMA)?;
        let kubeconfig = target.candidate_kubeconfig(scratch)?;
        progress(&format!("creating {} CronJobs", self.load.n_cron_jobs));
        self.load.create(target.kubeconfig()).await?;
        if self.n_jobs_each > 0 {
            progress(&format!("creating {} Jobs of each", self.n_jobs_each));
            let client = client(target.kubeconfig()).await?;
            ended_jobs::create(&client, &self.load.namespaces(), self.n_jobs_each).await?;
        }
        let mut report = TakeoversReport {
            command: measure::command(),
            revision: measure::revision(),
            machine: measure::machine_line(&kubectl, Some(&self.program)),
            n_replicas: self.n_replicas,
            n_cron_jobs: self.load.n_cron_jobs,
            n_jobs_each: self.n_jobs_each,
            changes_per_second: self.changes_per_second,
            freeze: self.freeze,
            seconds: Vec::new(),
            first_resident_max_mib: 0.0,
            resident_mib: 0.0,
            resident_max_mib: 0.0,
        };
        let fleet = Fleet::new(&self.program, &kubeconfig, scratch);
        self.kill(fleet, &mut report).await?;
        Ok(report)
    }

    /// Starts all replicas and kills some, one after the other. Each is replaced after its shards have new leaders.
    async fn kill(&self, mut fleet: Fleet, report: &mut TakeoversReport) -> anyhow::Result<()> {
        for _ in 0..self.n_replicas {
            fleet.add("r0")?;
        }
        fleet.wait_until_all_led().await?;
        tokio::time::sleep(EVEN_WAIT).await;
        report.first_resident_max_mib = fleet.take_resident_max_mib()?;
        report.resident_mib = fleet.resident_mib()?;
        for _ in 0..self.n_kills {
            let (since, event) = if self.freeze {
                (fleet.freeze_oldest()?, "freeze")
            } else {
                (fleet.kill_oldest()?, "kill")
            };
            let took = time_until_all_led(&fleet, since).await?;
            fleet.kill_frozen()?;
            report.seconds.push(took.as_secs_f64());
            progress(&format!(
                "{event} {}: all shards led after {took:.1?}",
                report.seconds.len()
            ));
            let new = fleet.add("r0")?;
            fleet.wait_until_ready(new).await?;
            tokio::time::sleep(EVEN_WAIT).await;
            report.resident_max_mib = report.resident_max_mib.max(fleet.take_resident_max_mib()?);
        }
        fleet.end_all().await.map(drop)
    }
}

impl Takeovers {
    /// Changes an annotation of one CronJob after the other. Ends only with an error.
    async fn change_cron_jobs(&self, user: Client) -> anyhow::Result<TakeoversReport> {
        if self.changes_per_second == 0 {
            return std::future::pending().await;
        }
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.changes_per_second);
        let cron_jobs = self.load.cron_jobs();
        for (number, cron_job) in cron_jobs.iter().cycle().enumerate() {
            ticks.tick().await;
            let api: Api<CronJob> = Api::namespaced(user.clone(), &cron_job.namespace);
            let change = json!({"metadata": {"annotations": {"change": number.to_string()}}});
            match api
                .patch(&cron_job.name, &PatchParams::default(), &Patch::Merge(change))
                .await
            {
                // It is not created yet.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                changed => drop(changed.with_context(|| format!("cannot change {}", cron_job.name))?),
            }
        }
        std::future::pending().await
    }
}

impl TakeoversReport {
    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Display for TakeoversReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let quantiles = Quantiles::of(self.seconds.iter().map(|seconds| Duration::from_secs_f64(*seconds)));
        let seconds = |share| quantiles.ms(share).unwrap_or_default() / 1e3;
        writeln!(
            f,
            "{} replicas, {} CronJobs that are not due with {} Jobs each, {} changes a second; {}\n",
            self.n_replicas, self.n_cron_jobs, self.n_jobs_each, self.changes_per_second, self.machine
        )?;
        writeln!(
            f,
            "| {} | all shards led, p50 | most | memory of a replica, most | memory at the first start, most | and after it |",
            if self.freeze { "freezes" } else { "kills" }
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        write!(
            f,
            "| {} | {:.1} s | {:.1} s | {:.0} MiB | {:.0} MiB | {:.0} MiB |",
            self.seconds.len(),
            seconds(0.5),
            seconds(1.0),
            self.resident_max_mib,
            self.first_resident_max_mib,
            self.resident_mib
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_a_row() {
        let report = TakeoversReport {
            command: Vec::new(),
            revision: String::new(),
            machine: "2 cores".to_owned(),
            n_replicas: 3,
            n_cron_jobs: 20_000,
            n_jobs_each: 4,
            changes_per_second: 1,
            freeze: false,
            seconds: vec![10.2, 11.0, 10.4],
            first_resident_max_mib: 100.2,
            resident_mib: 80.1,
            resident_max_mib: 84.4,
        };
        let expected = "\
3 replicas, 20000 CronJobs that are not due with 4 Jobs each, 1 changes a second; 2 cores

| kills | all shards led, p50 | most | memory of a replica, most | memory at the first start, most | and after it |
|---|---|---|---|---|---|
| 3 | 10.4 s | 11.0 s | 84 MiB | 100 MiB | 80 MiB |";
        assert_eq!(report.to_string(), expected);
    }
}
