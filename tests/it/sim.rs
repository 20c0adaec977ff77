//! Simulation of the whole controller in one process: its real tasks run on an in-memory API server in simulated time,
//! with disruptions and users from one seed.
//!
//! A model that is independent of the implementation determines which runs must exist and which may exist. Waits take
//! no real time, so a simulated day takes only as long as its requests. `CRONWHEEL_SIM_SEEDS`, `CRONWHEEL_SIM_SEED` (the
//! first seed) and `CRONWHEEL_SIM_MINUTES` run more. A failing seed prints the command that repeats it, and
//! `CRONWHEEL_SIM_SHOW=job-07` prints the history of one CronJob. `tests/mutations.py` checks that the simulation fails
//! for broken code.

mod calendar;
mod cluster;
mod controllers;
mod model;
mod options;
mod recorder;
mod scenario;
mod user;
mod world;

use std::{
    cell::RefCell,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use cluster::Cluster;
use scenario::{RUN_SECONDS_MAX, Scenario};
use user::User;
use world::World;

/// The time after the end in which all Jobs finish: the longest run time and a margin. Every CronJob is suspended then.
const SETTLING: Duration = Duration::from_secs(RUN_SECONDS_MAX.unsigned_abs() + 60);

/// The period after the settling in which the controller may not write.
const QUIET: Duration = Duration::from_mins(2);

/// The minimum for each seed. A seed below it has no meaningful result.
const N_RUNS_A_MINUTE_MIN: usize = 30;
const N_DISRUPTIONS_AN_HOUR_MIN: usize = 5;

/// The minimum applies only to simulations of at least this length.
const MINUTES_TO_JUDGE: u64 = 60;

/// The result of a simulation.
#[expect(clippy::struct_field_names, reason = "counts, all of them")]
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    n_runs: usize,
    n_crashes: usize,
    n_disruptions: usize,
    n_lost_messages: u64,
    n_edits: usize,
}

impl Summary {
    /// Describes the count that is below its minimum for this length, if any.
    fn lacks(&self, minutes: usize) -> Option<String> {
        let n_disruptions = self.n_crashes + self.n_disruptions;
        if self.n_runs < N_RUNS_A_MINUTE_MIN * minutes {
            Some(format!("fewer than {N_RUNS_A_MINUTE_MIN} runs a minute"))
        } else if 60 * n_disruptions < N_DISRUPTIONS_AN_HOUR_MIN * minutes {
            Some(format!(
                "fewer than {N_DISRUPTIONS_AN_HOUR_MIN} crashes and disruptions an hour"
            ))
        } else {
            None
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} runs, {} crashes, {} disruptions, {} messages lost, {} edits",
            self.n_runs, self.n_crashes, self.n_disruptions, self.n_lost_messages, self.n_edits
        )
    }
}

/// Simulates one seed, and panics if the model finds a problem. Returns the result and the recorded facts.
fn simulate(seed: u64, length: Duration) -> (Summary, World) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let scenario = Scenario::new(seed, length);
        let cluster = Cluster::new(seed, &scenario);
        let world = RefCell::default();
        let mut problems = tokio::select! {
            biased;
            never = recorder::run(&cluster, &world) => match never {},
            () = cluster.play_disruptions(&scenario) => unreachable!("the disruptions end by waiting forever"),
            () = cluster.run_jobs() => unreachable!("the runner never ends"),
            problems = play(&scenario, &cluster, &world) => problems,
            () = controllers::run(&scenario, &cluster, &world) => unreachable!("the last controller never ends"),
        };
        let world = world.into_inner();
        problems.extend(model::problems(&scenario, &world, cluster.now()));
        problems.extend(cluster.violations());
        if let Ok(name) = std::env::var("CRONWHEEL_SIM_SHOW") {
            eprintln!("{}", world.show(&name, &scenario));
        }
        assert!(problems.is_empty(), "seed {seed}:\n{}", problems.join("\n"));
        let summary = Summary {
            n_runs: world.n_runs(),
            n_crashes: scenario.crashes.len(),
            n_disruptions: scenario.disruptions.len(),
            n_lost_messages: cluster.n_lost(),
            n_edits: scenario.edits.len(),
        };
        (summary, world)
    })
}

/// Plays the actions of users, from the first CronJob to the end. Returns the problems.
async fn play(scenario: &Scenario, cluster: &Cluster, world: &RefCell<World>) -> Vec<String> {
    let user = User { cluster, world };
    user.begin(scenario).await;
    user.edit(scenario).await;
    cluster.stop_at(scenario.end).await;
    user.suspend_all().await;
    tokio::time::sleep(SETTLING).await;
    let objects = cluster.list("cronjobs").await;
    let mut problems = model::unsettled(&world.borrow(), &objects);
    let events = cluster.events().await;
    world.borrow_mut().missing_reports = events.iter().filter_map(recorder::missing_job_report).collect();
    let n_writes = cluster.n_writes();
    tokio::time::sleep(QUIET).await;
    let n_late = cluster.n_writes() - n_writes;
    if n_late > 0 {
        problems.push(format!("{n_late} writes in the quiet period"));
    }
    problems
}

#[test]
fn no_run_is_missed_or_doubled() {
    let minutes = variable("CRONWHEEL_SIM_MINUTES").unwrap_or(20);
    let first = variable("CRONWHEEL_SIM_SEED").unwrap_or(1);
    let n_seeds = variable("CRONWHEEL_SIM_SEEDS").unwrap_or(15);
    let next = AtomicU64::new(first);
    let ended: Vec<(u64, Option<Summary>)> = std::thread::scope(|scope| {
        let work = || {
            let mut ended = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + n_seeds {
                    return ended;
                }
                ended.push((seed, try_seed(seed, minutes)));
            }
        };
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        ended.collect()
    });
    let (green, red): (Vec<_>, Vec<_>) = ended.into_iter().partition(|(_, summary)| summary.is_some());
    let thin: Vec<u64> = green
        .iter()
        .filter(|ended| is_thin(ended, minutes))
        .map(|(seed, _)| *seed)
        .collect();
    print_total(&green.into_iter().filter_map(|(_, summary)| summary).collect::<Vec<_>>());
    let red: Vec<u64> = red.into_iter().map(|(seed, _)| seed).collect();
    assert!(red.is_empty(), "red: {red:?}");
    assert!(
        thin.is_empty() || minutes < MINUTES_TO_JUDGE,
        "too little happened in {thin:?}"
    );
}

fn is_thin((_, summary): &(u64, Option<Summary>), minutes: u64) -> bool {
    let lacks = |summary: &Summary| summary.lacks(minutes.try_into().unwrap());
    summary.as_ref().is_some_and(|summary| lacks(summary).is_some())
}

/// Simulates one seed. Prints the result, or the command that repeats a failure.
fn try_seed(seed: u64, minutes: u64) -> Option<Summary> {
    let Ok((summary, _)) = catch_unwind(AssertUnwindSafe(|| simulate(seed, Duration::from_mins(minutes)))) else {
        eprintln!(
            "again: make simulate SEED={seed} SEEDS=1 MINUTES={minutes}{}",
            with_assertions()
        );
        return None;
    };
    let lacks = summary.lacks(minutes.try_into().unwrap());
    let lacks = lacks.map(|lacks| format!(", {lacks}")).unwrap_or_default();
    eprintln!("seed {seed}: {summary} in {minutes} min{lacks}");
    Some(summary)
}

/// The build of `make simulate` has no debug assertions.
fn with_assertions() -> &'static str {
    if cfg!(debug_assertions) {
        ", or, where an assertion failed, the same with `cargo test --profile sim` in the place of the Makefile's"
    } else {
        ""
    }
}

fn print_total(green: &[Summary]) {
    let total = Summary {
        n_runs: green.iter().map(|summary| summary.n_runs).sum(),
        n_crashes: green.iter().map(|summary| summary.n_crashes).sum(),
        n_disruptions: green.iter().map(|summary| summary.n_disruptions).sum(),
        n_lost_messages: green.iter().map(|summary| summary.n_lost_messages).sum(),
        n_edits: green.iter().map(|summary| summary.n_edits).sum(),
    };
    let least_runs = green.iter().map(|summary| summary.n_runs).min().unwrap_or_default();
    let faults = green.iter().map(|summary| summary.n_crashes + summary.n_disruptions);
    let least_faults = faults.min().unwrap_or_default();
    eprintln!(
        "{} green: {total}; each at least {least_runs} runs, {least_faults} crashes and disruptions",
        green.len()
    );
}

#[test]
fn same_seed_gives_the_same_run() {
    let [one, other] = [(); 2].map(|()| {
        let (summary, world) = simulate(7, Duration::from_mins(20));
        (summary, world.history())
    });
    assert_eq!(one, other);
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
