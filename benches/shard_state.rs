//! A whole shard: the cost of a burst without I/O, and the memory of its objects.
//!
//! Expected growth: linear in the number of due CronJobs, because a decision reads only its own record. Figures are for
//! one core, from the wake-up at the instant to the last order taken from the outbox, when every CronJob is armed for
//! its next slot. Memory is resident memory with the allocator of the release binary, including all overhead.
//! `--test` runs the smallest size once.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::{hint::black_box, time::Instant};

use cronwheel::{
    kube_api::Decoder,
    schedule::Zone,
    shard::{
        Effect, Input, JobCreator, JobRecord, ResourceVersion, Scope, ShardConfig, ShardState, Uid, WatchedResource,
        naming,
    },
};
use jiff::{SignedDuration, Timestamp};

/// The allocator of the release binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The schedules and zones of the mix. All are due at the full hour.
const SCHEDULES: [(&str, Option<&str>); 5] = [
    ("* * * * *", None),
    ("*/5 * * * *", Some("Europe/Berlin")),
    ("0 * * * *", Some("America/New_York")),
    ("*/15 * * * 1-5", None),
    ("0 */2 * * *", Some("Asia/Tokyo")),
];

/// The Jobs of each CronJob when memory is measured. Its history limit is the same, so all are kept.
const JOBS_PER_CRON_JOB: u32 = 4;

fn main() {
    let is_smoke_test = std::env::args().any(|argument| argument == "--test");
    let sizes: &[u32] = if is_smoke_test { &[1_000] } else { &[100_000, 1_000_000] };
    // Memory is measured first: a burst would leave freed memory behind that is reused.
    memory(if is_smoke_test { 1_000 } else { 100_000 });
    println!("decide and re-arm, all due at one instant");
    println!(
        "{:>10} {:>14} {:>14} {:>14} {:>14}",
        "CronJobs", "decide s", "take s", "ns each", "listed s"
    );
    for &n_cron_jobs in sizes {
        burst(n_cron_jobs);
    }
}

/// Half a minute before the burst. The burst is on a Tuesday at 12:00 UTC, which is 21:00 in Tokyo.
fn start() -> Timestamp {
    "2026-05-05T11:59:30Z".parse().unwrap()
}

fn cron_job(number: u32) -> Input {
    let (schedule, zone) = SCHEDULES[number as usize % SCHEDULES.len()];
    // In Tokyo, even hours are not due at 21:00, so odd hours make all CronJobs due in the burst.
    let (schedule, zone) = if zone == Some("Asia/Tokyo") {
        ("0 1-23/2 * * *", zone)
    } else {
        (schedule, zone)
    };
    let zone = zone.map_or(String::new(), |zone| format!(r#""timeZone":"{zone}","#));
    let text = format!(
        r#"{{"metadata":{{"name":"backup-{number:07}","namespace":"shop-{:03}","uid":"0b1c2d3e-4f50-6172-8394-a5b6{number:08x}","resourceVersion":"{number}","creationTimestamp":"2026-01-02T03:04:05Z","labels":{{"team":"shop"}}}},"spec":{{"schedule":"{schedule}",{zone}"concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":{JOBS_PER_CRON_JOB},"jobTemplate":{{"metadata":{{}},"spec":{{"template":{{"spec":{{"restartPolicy":"Never","containers":[{{"name":"work","image":"example/backup:1","args":["--all"]}}]}}}}}}}}}},"status":{{"lastScheduleTime":"2026-05-05T11:59:00Z"}}}}"#,
        number % 500
    );
    Input::CronJobApplied(Box::new(
        Decoder {
            default_zone: Zone::utc(),
            ..Decoder::default()
        }
        .cron_job(&text)
        .unwrap(),
    ))
}

fn listed(n_cron_jobs: u32) -> ShardState {
    let now = start();
    let mut shard = ShardState::new(
        ShardConfig {
            clock_skew_max: SignedDuration::from_secs(2),
            scopes: vec![Scope::Cluster],
        },
        now,
    );
    shard.lead(now);
    shard.handle(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster), now);
    for number in 0..n_cron_jobs {
        shard.handle(cron_job(number), now);
    }
    shard.handle(Input::list_done(WatchedResource::CronJobs, Scope::Cluster), now);
    shard.handle(Input::list_begun(WatchedResource::Jobs, Scope::Cluster), now);
    shard.handle(Input::list_done(WatchedResource::Jobs, Scope::Cluster), now);
    shard
}

fn burst(n_cron_jobs: u32) {
    let begun = Instant::now();
    let mut shard = listed(n_cron_jobs);
    let listed_secs = begun.elapsed().as_secs_f64();
    let instant = start() + SignedDuration::from_secs(30);
    let begun = Instant::now();
    shard.handle_timeout(instant);
    let decided_secs = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let mut n_orders = 0;
    while let Some(effect) = shard.poll_effect() {
        n_orders += u32::from(matches!(effect, Effect::CreateJob(_)));
        black_box(effect);
    }
    let taken_secs = begun.elapsed().as_secs_f64();
    assert_eq!(n_orders, n_cron_jobs, "each was due");
    assert_eq!(shard.sizes().wheel_entries, n_cron_jobs as usize, "each is armed again");
    let nanos = (decided_secs + taken_secs) * 1e9 / f64::from(n_cron_jobs);
    println!("{n_cron_jobs:>10} {decided_secs:>14.3} {taken_secs:>14.3} {nanos:>14.0} {listed_secs:>14.2}");
}

/// Prints the memory of a CronJob without its template, and of a Job, in a listed shard.
fn memory(n_cron_jobs: u32) {
    let Input::CronJobApplied(record) = cron_job(0) else {
        return;
    };
    let template_bytes = u32::try_from(record.template.body.as_str().map_or(0, str::len)).map_or(0.0, f64::from);
    let before = resident_bytes();
    let mut shard = listed(n_cron_jobs);
    let with_cron_jobs = resident_bytes();
    for number in 0..n_cron_jobs {
        for run in 0..JOBS_PER_CRON_JOB {
            shard.handle(Input::JobApplied(Box::new(job(number, run))), start());
        }
    }
    while shard.poll_effect().is_some() {}
    let with_jobs = resident_bytes();
    let per_cron_job = (with_cron_jobs - before) / f64::from(n_cron_jobs) - template_bytes;
    let per_job = (with_jobs - with_cron_jobs) / f64::from(n_cron_jobs * JOBS_PER_CRON_JOB);
    println!(
        "memory: {per_cron_job:.0} B a CronJob besides its template of {template_bytes:.0} B, {per_job:.0} B a Job"
    );
    black_box(&shard);
}

fn job(number: u32, run: u32) -> JobRecord {
    let slot = start() - SignedDuration::from_secs(30 + 60 * i64::from(run));
    JobRecord {
        uid: Uid::new(&format!("{run:08x}-4f50-6172-8394-a5b6{number:08x}")),
        namespace: format!("shop-{:03}", number % 500).into(),
        name: naming::job_name(&format!("backup-{number:07}"), slot),
        resource_version: ResourceVersion(u64::from(number)),
        controller: Some(Uid::new(&format!("0b1c2d3e-4f50-6172-8394-a5b6{number:08x}"))),
        scheduled: Some(slot),
        finish: Some(cronwheel::shard::Finish::Failed),
        started: Some(slot),
        completed: Some(slot),
        creator: JobCreator::Unknown,
        run_token: None,
    }
}

/// Resident memory in bytes.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0.0);
    pages * 4096.0
}
