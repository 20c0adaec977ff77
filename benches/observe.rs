//! The fleet of the read-only view: the first lists, a minute of events, each view, and memory.
//!
//! Expected growth: all figures are proportional to the number of CronJobs. Figures are for one core. `--test` runs the
//! smallest size once, and `--day` also a day of events: what the page has learned after it ran that long.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::time::{Duration, Instant};

use cronwheel::{
    observe::{
        facts::{Creator, CronJobFacts, Run, RunResult},
        fleet::{Fleet, FleetConfig},
        view::{CronJobName, Filter},
    },
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone},
    shard::{Uid, naming},
};
use jiff::{SignedDuration, Timestamp};

/// The allocator of the release binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const N_NAMESPACES: usize = 500;
const N_SLOTS_MAX: usize = 50;
const JOBS_PER_CRON_JOB: usize = 4;
const ZONE: &str = "Europe/Berlin";
/// The history takes the records each second.
const RECORDS_TAKEN_EACH: usize = 1_000;
const SCHEDULES: [&str; 5] = [
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "*/15 * * * 1-5",
    "0 1-23/2 * * *",
];

fn main() {
    let is_smoke_test = std::env::args().any(|argument| argument == "--test");
    let n_cron_jobs = if is_smoke_test { 500 } else { 20_000 };
    println!("usual schedules, {n_cron_jobs} CronJobs with {JOBS_PER_CRON_JOB} Jobs each");
    measure(n_cron_jobs, &SCHEDULES, 1);
    println!("every minute, {n_cron_jobs} CronJobs, {N_SLOTS_MAX} slots each");
    measure(n_cron_jobs, &SCHEDULES[..1], if is_smoke_test { 2 } else { 50 });
    if std::env::args().any(|argument| argument == "--day") {
        println!("usual schedules after a day, {n_cron_jobs} CronJobs");
        measure(n_cron_jobs, &SCHEDULES, 24 * 60);
    }
}

fn measure(n_cron_jobs: usize, schedules: &[&str], n_minutes: i64) {
    let memory_before = resident_bytes();
    let mut now: Timestamp = "2026-05-05T10:00:30Z".parse().unwrap();
    let mut fleet = Fleet::new(FleetConfig::of_slots(N_SLOTS_MAX), now);
    let start = Instant::now();
    for number in 0..n_cron_jobs {
        let mut facts = facts(number, schedules[number % schedules.len()], now);
        let runs = kept_runs(number, &facts, now);
        facts.last_schedule_time = runs.last().and_then(|run| run.slot);
        fleet.apply_cron_job(facts, now);
        for run in runs {
            fleet.apply_run(run, now);
        }
        if number % RECORDS_TAKEN_EACH == 0 {
            fleet.take_records();
        }
    }
    row("the first lists, applied", start.elapsed());
    println!("{:<34} {:>9.1} MB", "memory", megabytes(memory_before));
    let start = Instant::now();
    fleet.set_watches_current(true, now);
    row("the first lists, judged", start.elapsed());
    fleet.take_records();
    println!("{:<34} {:>9.1} MB", "memory", megabytes(memory_before));
    let mut calendars: Vec<Calendar> = schedules.iter().map(|schedule| Calendar::new(schedule, now)).collect();
    let mut longest = Duration::ZERO;
    let start = Instant::now();
    for _ in 0..n_minutes {
        now += SignedDuration::from_mins(1);
        let step = Instant::now();
        minute(&mut fleet, n_cron_jobs, &mut calendars, now);
        longest = longest.max(step.elapsed());
    }
    row("a minute of events, longest", longest);
    row("all minutes", start.elapsed());
    println!("{:<34} {:>9.1} MB", "memory", megabytes(memory_before));
    views(&fleet, now);
}

/// The slots of one schedule, with the Jobs that the cluster keeps.
struct Calendar {
    schedule: CronJobSchedule,
    kept: Vec<Timestamp>,
}

impl Calendar {
    fn new(schedule: &str, now: Timestamp) -> Calendar {
        let schedule = CronJobSchedule::new(schedule, Some(ZONE), &Zone::utc());
        let kept = last_slots(&schedule, now);
        Calendar { schedule, kept }
    }
}

/// A minute: of the CronJobs that are due, a Job starts and ends, and the oldest one is deleted.
fn minute(fleet: &mut Fleet, n_cron_jobs: usize, calendars: &mut [Calendar], now: Timestamp) {
    let slot = Timestamp::from_second(now.as_second() / 60 * 60).unwrap();
    fleet.advance(slot);
    let n_calendars = calendars.len();
    for (place, calendar) in calendars.iter_mut().enumerate() {
        if calendar.schedule.next_run(slot, slot - SignedDuration::from_secs(1)) != Some(slot) {
            continue;
        }
        let oldest = calendar.kept.remove(0);
        calendar.kept.push(slot);
        for number in (place..n_cron_jobs).step_by(n_calendars) {
            let mut run = run(number, slot);
            (run.result, run.finished) = (RunResult::Running, None);
            fleet.apply_run(run.clone(), slot);
            (run.result, run.finished) = (RunResult::Succeeded, Some(now));
            fleet.apply_run(run, now);
            fleet.remove_run(&uid(number, oldest.as_second()), now);
        }
    }
    fleet.advance(now);
    fleet.take_records();
}

fn views(fleet: &Fleet, now: Timestamp) {
    let day = SignedDuration::from_hours(24);
    let timed = |name: &str, view: &dyn Fn()| {
        let start = Instant::now();
        view();
        row(name, start.elapsed());
    };
    timed("overview", &|| assert!(fleet.overview(now).tiles.n_cron_jobs > 0));
    timed("strip of two days", &|| {
        assert!(!fleet.strip(now - day, now + day, 20, now).rows.is_empty());
    });
    let filter = Filter {
        text: "job-7 payments".to_owned(),
        limit: 100,
        ..Filter::default()
    };
    timed("rows by text", &|| assert!(fleet.rows(&filter, now).n_all > 0));
    let filter = Filter {
        slots_between: Some((now, now + SignedDuration::from_mins(5))),
        limit: 100,
        ..Filter::default()
    };
    timed("rows by time of the next start", &|| {
        assert!(fleet.rows(&filter, now).n_matching > 0);
    });
    let name = CronJobName {
        namespace: "namespace-7".into(),
        name: "payments-job-7".into(),
    };
    timed("detail", &|| assert!(fleet.detail(&name, now).is_some()));
    timed("all slots, for the report", &|| {
        let n_slots: usize = fleet.cron_jobs().map(|cron_job| cron_job.slots().len()).sum();
        assert!(n_slots > 0);
    });
}

fn facts(number: usize, schedule: &str, now: Timestamp) -> CronJobFacts {
    CronJobFacts {
        uid: uid(number, 0),
        namespace: format!("namespace-{}", number % N_NAMESPACES).into(),
        name: format!("payments-job-{number}").into(),
        labels: [
            ("app.kubernetes.io/name".into(), "payments".into()),
            ("team".into(), format!("team-{}", number % 40).into()),
        ]
        .into_iter()
        .collect(),
        created: now - SignedDuration::from_hours(24 * 30),
        is_deleting: false,
        schedule: CronJobSchedule::new(schedule, Some(ZONE), &Zone::utc()),
        starting_deadline_seconds: None,
        concurrency_policy: ConcurrencyPolicy::Forbid,
        is_suspended: false,
        successful_jobs_history_limit: 3,
        failed_jobs_history_limit: 1,
        has_active_deadline: false,
        ttl_seconds_after_finished: None,
        last_schedule_time: None,
        last_successful_time: Some(now),
        spec_changed: None,
        resumption: None,
    }
}

/// The last Jobs of a CronJob: three that succeeded, and one that failed a day ago.
fn kept_runs(number: usize, facts: &CronJobFacts, now: Timestamp) -> Vec<Run> {
    let mut slots = Vec::new();
    let day_ago = now - SignedDuration::from_hours(20);
    slots.extend(facts.schedule.next_run(facts.created, day_ago));
    slots.extend(last_slots(&facts.schedule, now));
    slots.into_iter().map(|slot| run(number, slot)).collect()
}

/// The last slots, all but one as many as the Jobs that the cluster keeps.
fn last_slots(schedule: &CronJobSchedule, now: Timestamp) -> Vec<Timestamp> {
    let recent = schedule.next_run(now, now - SignedDuration::from_hours(8));
    let chain = std::iter::successors(recent, |slot| schedule.next_run(now, *slot));
    let mut due: Vec<Timestamp> = chain.take_while(|slot| *slot <= now).collect();
    due.split_off(due.len().saturating_sub(JOBS_PER_CRON_JOB - 1))
}

fn run(number: usize, slot: Timestamp) -> Run {
    Run {
        job_uid: uid(number, slot.as_second()),
        job_name: naming::job_name(&format!("payments-job-{number}"), slot),
        cron_job: uid(number, 0),
        slot: Some(slot),
        created: slot + SignedDuration::from_secs(1),
        started: None,
        finished: Some(slot + SignedDuration::from_secs(20)),
        result: RunResult::Succeeded,
        creator: Creator::BuiltIn,
        hindrance: None,
    }
}

fn uid(number: usize, slot: i64) -> Uid {
    Uid::new(&format!("{number:08x}-0000-4000-8000-{slot:012x}"))
}

fn row(name: &str, took: Duration) {
    println!("{name:<34} {:>9.1} ms", took.as_secs_f64() * 1e3);
}

fn megabytes(before: usize) -> f64 {
    let bytes = u32::try_from((resident_bytes().saturating_sub(before)) >> 10).unwrap_or(u32::MAX);
    f64::from(bytes) / 1024.0
}

/// Memory of this process, in use and not given back.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or_default() * 4_096
}
