//! The steps of the survey of CronJobs in trouble. They run in the shard task, so a due slot waits until a step ends.
//!
//! Expected growth: a step examines a fixed number of objects, so its duration is independent of the number of
//! CronJobs. The first pass computes the activations of each schedule and stores them; later passes read them. Figures
//! are for one core. `--test` runs the smallest size once.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use cronwheel::{
    kube_api::Decoder,
    schedule::Zone,
    shard::{
        BootInstant, Clocks, Entry, Finish, HeldShards, Input, JobCreator, JobRecord, ResourceVersion,
        ResourceVersions, Scope, ShardCommand, ShardCount, ShardTerm, Term, Uid, WatchedResource, naming,
    },
};
use jiff::{SignedDuration, Timestamp};

/// The allocator of the release binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USUAL: [&str; 5] = [
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "*/15 * * * 1-5",
    "0 1-23/2 * * *",
];

/// The next three activations take twelve years, or do not exist.
const RARE: [&str; 2] = ["0 0 29 2 *", "0 0 30 2 *"];

/// The time between two passes.
const PASS_INTERVAL: Duration = Duration::from_secs(10);

/// A set of similar CronJobs.
#[derive(Clone, Copy)]
struct Population {
    name: &'static str,
    n_cron_jobs: u32,
    n_namespaces: u32,
    jobs_per_cron_job: u32,
    schedules: &'static [&'static str],
    /// Whether the last Job of each CronJob failed. A pass examines them in the order of their failures, latest first.
    /// The report prefers early failures, so each CronJob replaces another one in it.
    are_failing: bool,
}

fn main() {
    let is_smoke_test = std::env::args().any(|argument| argument == "--test");
    let n_cron_jobs = if is_smoke_test { 1_000 } else { 20_000 };
    let usual = Population {
        name: "usual",
        n_cron_jobs,
        n_namespaces: 500,
        jobs_per_cron_job: 4,
        schedules: &USUAL,
        are_failing: false,
    };
    println!("durations of steps in microseconds, median and longest; nanoseconds for each CronJob and Job");
    println!(
        "{:<34} {:>8} {:>6} {:>16} {:>16} {:>12}",
        "", "objects", "steps", "first pass", "second pass", "ns each"
    );
    for population in [
        Population {
            name: "no Jobs",
            jobs_per_cron_job: 0,
            ..usual
        },
        Population {
            name: "rare schedules, no Jobs",
            jobs_per_cron_job: 0,
            schedules: &RARE,
            ..usual
        },
        Population {
            name: "all failing, one namespace",
            n_namespaces: 1,
            are_failing: true,
            jobs_per_cron_job: 1,
            ..usual
        },
        Population {
            name: "all failing, 500 namespaces",
            are_failing: true,
            jobs_per_cron_job: 1,
            ..usual
        },
        Population {
            name: "all failing, one namespace each",
            n_namespaces: n_cron_jobs,
            are_failing: true,
            jobs_per_cron_job: 1,
            ..usual
        },
        Population {
            name: "1,000 Jobs each",
            n_cron_jobs: n_cron_jobs / 200,
            jobs_per_cron_job: 1_000,
            ..usual
        },
        usual,
    ] {
        population.measure();
    }
}

fn start() -> Timestamp {
    "2026-05-05T11:59:30Z".parse().unwrap()
}

/// Leads every shard of a replica whose lists are complete.
fn lead_all(shards: &mut HeldShards, now: Timestamp) {
    let clocks = Clocks {
        wall: now,
        boot: BootInstant::after_boot(Duration::from_mins(1)),
    };
    for shard in ShardCount::default().shards() {
        let command = ShardCommand::Lead {
            shard_term: ShardTerm { shard, term: Term(1) },
            entry: Entry::Watch(ResourceVersions::default()),
            fired_through: None,
        };
        shards.command(command, clocks);
    }
}

impl Population {
    fn measure(&self) {
        let mut shards = self.listed();
        let mut now = Clocks {
            wall: start(),
            boot: BootInstant::after_boot(Duration::from_mins(1)),
        };
        let first = pass(&mut shards, &mut now);
        let second = pass(&mut shards, &mut now);
        let report = shards.trouble_report();
        let n_in_trouble = report.named.len() as u64 + report.n_omitted.iter().sum::<u64>();
        assert_eq!(
            n_in_trouble > 0,
            self.are_failing || self.schedules == RARE,
            "{}",
            self.name
        );
        let n_objects = self.n_cron_jobs * (1 + self.jobs_per_cron_job);
        let nanos = first.iter().sum::<Duration>().as_secs_f64() * 1e9 / f64::from(n_objects);
        println!(
            "{:<34} {n_objects:>8} {:>6} {:>16} {:>16} {nanos:>12.0}",
            self.name,
            first.len(),
            median_and_max(first),
            median_and_max(second)
        );
    }

    fn listed(&self) -> HeldShards {
        let now = start();
        let clock_skew_max = SignedDuration::from_secs(2);
        let mut shards = HeldShards::new(ShardCount::default(), vec![Scope::Cluster], clock_skew_max, now);
        shards.survey_cron_jobs(true);
        for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            shards.handle(Input::list_begun(kind, Scope::Cluster), now);
        }
        for number in 0..self.n_cron_jobs {
            shards.handle(self.cron_job(number), now);
            for run in 0..self.jobs_per_cron_job {
                shards.handle(Input::JobApplied(Box::new(self.job(number, run))), now);
            }
        }
        for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            shards.handle(Input::list_done(kind, Scope::Cluster), now);
        }
        lead_all(&mut shards, now);
        while shards.poll_effect().is_some() {}
        shards
    }

    fn namespace(&self, number: u32) -> String {
        format!("shop-{:05}", number % self.n_namespaces)
    }

    fn cron_job(&self, number: u32) -> Input {
        let schedule = self.schedules[number as usize % self.schedules.len()];
        let succeeded = if self.are_failing { "10:00" } else { "11:59" };
        let text = format!(
            r#"{{"metadata":{{"name":"backup-{number:07}","namespace":"{}","uid":"{}","resourceVersion":"{number}","creationTimestamp":"2026-01-02T03:04:05Z"}},"spec":{{"schedule":"{schedule}","concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":1000,"failedJobsHistoryLimit":1000,"jobTemplate":{{"metadata":{{}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"work","image":"example/backup:1"}}]}}}}}}}}}},"status":{{"lastScheduleTime":"2026-05-05T11:59:00Z","lastSuccessfulTime":"2026-05-05T{succeeded}:00Z"}}}}"#,
            self.namespace(number),
            uid(number)
        );
        let decoder = Decoder {
            default_zone: Zone::utc(),
            ..Decoder::default()
        };
        Input::CronJobApplied(Box::new(decoder.cron_job(&text).unwrap()))
    }

    fn job(&self, number: u32, run: u32) -> JobRecord {
        let slot = start() - SignedDuration::from_secs(30 + 60 * i64::from(run));
        let since_start = SignedDuration::from_millis(i64::from(number) * 100);
        let is_failed = self.are_failing && run == 0;
        JobRecord {
            uid: Uid::new(&format!("{run:08x}-4f50-6172-8394-a5b6{number:08x}")),
            namespace: self.namespace(number).into(),
            name: naming::job_name(&format!("backup-{number:07}"), slot),
            resource_version: ResourceVersion(u64::from(number)),
            controller: Some(Uid::new(&uid(number))),
            scheduled: Some(slot),
            finish: Some(if is_failed { Finish::Failed } else { Finish::Complete }),
            started: Some(slot - since_start),
            completed: Some(slot),
            creator: JobCreator::Unknown,
            run_token: None,
        }
    }
}

fn uid(number: u32) -> String {
    let mut text = String::from("0b1c2d3e-4f50-6172-8394-a5b6");
    // Writing to a string cannot fail.
    let _ = write!(text, "{number:08x}");
    text
}

/// Makes all steps of a pass. Returns their durations.
fn pass(shards: &mut HeldShards, now: &mut Clocks) -> Vec<Duration> {
    let mut steps = Vec::new();
    loop {
        let begun = Instant::now();
        shards.survey(*now);
        steps.push(begun.elapsed());
        let Some(next) = shards.next_survey() else {
            now.boot = now.boot + PASS_INTERVAL;
            return steps;
        };
        now.boot = next;
    }
}

/// The median and the maximum, in microseconds.
fn median_and_max(mut steps: Vec<Duration>) -> String {
    steps.sort_unstable();
    let micros = |step: Duration| step.as_micros();
    let longest = steps.last().copied().unwrap_or_default();
    format!("{} {}", micros(steps[steps.len() / 2]), micros(longest))
}
