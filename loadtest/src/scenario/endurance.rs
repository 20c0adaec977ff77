//! Measures whether memory and open files of replicas stay flat over an hour, while CronJobs run and replicas are replaced.

use std::{
    fmt::{self, Display, Formatter},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use jiff::{SignedDuration, Timestamp};

use super::{
    create_between_slots,
    handovers::{EVEN_WAIT, FLOW_SCHEMA, existing_jobs, fleet::Fleet, slots_between},
    progress, sleep_until, whole_audit_log,
};
use crate::{
    generator::Load,
    measure::{self, ProcessUsage},
    slots::Slot,
    target::Target,
    tracker::Tally,
};

/// The second of a minute at which replicas are measured and replaced: the Jobs of the minute are created, and their
/// statuses written.
const MEASURED_SECOND: SignedDuration = SignedDuration::from_secs(30);

/// How long after the last slot its Jobs may be created.
const SETTLE: SignedDuration = SignedDuration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct EnduranceArguments {
    /// Number of CronJobs `* * * * *`.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Number of replicas.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,
    /// Minutes to measure.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// The oldest replica is replaced each time this many minutes have passed.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    replace_every: u32,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
}

/// Runs the scenario and prints its result.
pub(crate) async fn run(
    arguments: EnduranceArguments,
    run_id: String,
    build: impl FnOnce() -> anyhow::Result<PathBuf>,
    scratch: &Path,
) -> anyhow::Result<ExitCode> {
    let endurance = Endurance {
        load: Load::minutely(run_id, arguments.cronjobs, 5, 3),
        program: arguments.cronwheel.map_or_else(build, Ok)?,
        n_replicas: arguments.replicas.try_into()?,
        n_minutes: arguments.minutes,
        replace_every_minutes: arguments.replace_every,
    };
    let report = endurance.run(&mut Target::start()?, scratch).await?;
    println!("{report}");
    Ok(ExitCode::from(u8::from(!report.tally.is_clean())))
}

/// The parameters of a run.
#[derive(Clone, Debug)]
struct Endurance {
    load: Load,
    /// The executable of cronwheel.
    program: PathBuf,
    n_replicas: usize,
    n_minutes: u32,
    replace_every_minutes: u32,
}

/// What the running replicas use at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    minute: u32,
    /// The most memory of a replica.
    resident_mib: f64,
    /// The most open files of a replica.
    n_open_files: usize,
    /// The processor time of all replicas since their start.
    cpu: Duration,
}

/// The result of a run.
#[derive(Debug)]
struct EnduranceReport {
    machine: String,
    n_replicas: usize,
    n_cron_jobs: u32,
    n_replaced: u32,
    /// One for each minute.
    samples: Vec<Sample>,
    tally: Tally,
}

impl Endurance {
    async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<EnduranceReport> {
        let kubectl = target.kubectl().clone();
        kubectl.apply(&self.load.namespaces_manifest())?;
        kubectl.apply(FLOW_SCHEMA)?;
        let kubeconfig = target.candidate_kubeconfig(scratch)?;
        let mut fleet = Fleet::new(&self.program, &kubeconfig, scratch);
        for _ in 0..self.n_replicas {
            fleet.add("r0")?;
        }
        fleet.wait_until_all_led().await?;
        tokio::time::sleep(EVEN_WAIT).await;
        let first_slot = create_between_slots(&self.load, target).await?;
        let (samples, n_replaced) = self.measure(&mut fleet, first_slot).await?;

        let last_slot = Slot::at_or_after(Timestamp::now()).before(1);
        sleep_until(last_slot.start() + SETTLE).await;
        let existing = existing_jobs(&kubectl, &self.load)?;
        fleet.end_all().await?;
        let requests = whole_audit_log(target, &Target::candidate_user()).await?;
        target.check_audit_log()?;
        let slots = slots_between(first_slot, last_slot);
        Ok(EnduranceReport {
            machine: measure::machine_line(&kubectl, Some(&self.program)),
            n_replicas: self.n_replicas,
            n_cron_jobs: self.load.n_cron_jobs,
            n_replaced,
            samples,
            tally: Tally::of(&self.load.cron_jobs(), &slots, &requests, &existing),
        })
    }

    /// Measures the replicas in each minute, and replaces the oldest in some.
    async fn measure(&self, fleet: &mut Fleet, first: Slot) -> anyhow::Result<(Vec<Sample>, u32)> {
        let mut samples = Vec::new();
        let mut n_replaced = 0;
        for minute in 1..=self.n_minutes {
            sleep_until(first.before(1 - i64::from(minute)).start() + MEASURED_SECOND).await;
            samples.push(sample(fleet, minute)?);
            progress(&format!("{:?}", samples.last()));
            if minute.is_multiple_of(self.replace_every_minutes) {
                let new = fleet.add("r0")?;
                fleet.wait_until_ready(new).await?;
                fleet.drain_oldest().await?;
                n_replaced += 1;
            }
        }
        Ok((samples, n_replaced))
    }
}

fn sample(fleet: &Fleet, minute: u32) -> anyhow::Result<Sample> {
    let mut sample = Sample {
        minute,
        ..Sample::default()
    };
    for pid in fleet.pids() {
        let usage = ProcessUsage::of(pid)?;
        #[expect(clippy::cast_precision_loss, reason = "memory in KiB is far below 2^52")]
        let resident_mib = usage.resident_kib as f64 / 1_024.0;
        sample.resident_mib = sample.resident_mib.max(resident_mib);
        sample.cpu += usage.cpu;
        sample.n_open_files = sample.n_open_files.max(n_open_files(pid)?);
    }
    Ok(sample)
}

fn n_open_files(pid: u32) -> anyhow::Result<usize> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    Ok(entries
        .with_context(|| format!("cannot read the open files of process {pid}"))?
        .count())
}

impl EnduranceReport {
    /// Unknown if a replica was replaced, whose time is then no longer counted.
    fn cpu_ms_per_run(&self) -> Option<f64> {
        let (first, last) = (self.samples.first()?, self.samples.last()?);
        let n_runs = (last.minute - first.minute) * self.n_cron_jobs;
        let cpu = last.cpu.checked_sub(first.cpu)?;
        (self.n_replaced == 0 && n_runs > 0).then(|| cpu.as_secs_f64() * 1e3 / f64::from(n_runs))
    }
}

impl Display for EnduranceReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} replicas, {} CronJobs `* * * * *`, {} replicas replaced; {}\n",
            self.n_replicas, self.n_cron_jobs, self.n_replaced, self.machine
        )?;
        writeln!(
            f,
            "| Minutes | memory of a replica, most | open files of a replica, most |\n|---|---|---|"
        )?;
        for ten in self.samples.chunks(10) {
            let resident_mib = ten.iter().map(|sample| sample.resident_mib).fold(0.0, f64::max);
            let n_open_files = ten.iter().map(|sample| sample.n_open_files).max().unwrap_or_default();
            let first = ten.first().map_or(0, |sample| sample.minute);
            let last = ten.last().map_or(0, |sample| sample.minute);
            writeln!(f, "| {first} to {last} | {resident_mib:.0} MiB | {n_open_files} |")?;
        }
        if let Some(ms) = self.cpu_ms_per_run() {
            writeln!(f, "\nProcessor time of all replicas: {ms:.2} ms for each run.")?;
        }
        let tally = &self.tally;
        let verdict = if tally.is_clean() { "clean" } else { "NOT CLEAN" };
        write!(
            f,
            "\nJobs expected {}, created {}, missed {}, doubled {}.\n\nVerdict: {verdict}",
            tally.n_expected,
            tally.n_created,
            tally.missed.len(),
            tally.doubled.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_a_row_for_each_ten_minutes() {
        let sample = |minute| Sample {
            minute,
            resident_mib: 20.0 + f64::from(minute),
            n_open_files: 30,
            cpu: Duration::from_secs(u64::from(minute)),
        };
        let mut report = EnduranceReport {
            machine: "2 cores".to_owned(),
            n_replicas: 3,
            n_cron_jobs: 500,
            n_replaced: 2,
            samples: (1..=12).map(sample).collect(),
            tally: Tally::default(),
        };
        let expected = "\
3 replicas, 500 CronJobs `* * * * *`, 2 replicas replaced; 2 cores

| Minutes | memory of a replica, most | open files of a replica, most |
|---|---|---|
| 1 to 10 | 30 MiB | 30 |
| 11 to 12 | 32 MiB | 30 |

Jobs expected 0, created 0, missed 0, doubled 0.

Verdict: clean";
        assert_eq!(report.to_string(), expected);

        report.n_replaced = 0;
        assert_eq!(report.cpu_ms_per_run(), Some(2.0));
    }

    #[test]
    fn open_files_of_this_process_are_counted() {
        assert!(n_open_files(std::process::id()).unwrap() >= 3);
    }
}
