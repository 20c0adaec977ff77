//! The whole controller in process: its real tasks, on an in-memory API server, by simulated time, with faults, from one
//! seed.
//!
//! A model that knows nothing of the implementation says which runs must exist. Nothing waits: a day takes as long as
//! its requests. `CRONWHEEL_SIM_SEEDS`, `CRONWHEEL_SIM_SEED` (the first of them) and `CRONWHEEL_SIM_HOURS` run more; each
//! seed prints the command that runs it again. `tests/mutations.py` shows that it can fail.

mod cluster;
mod ledger;
mod model;
mod network;
mod scenario;

use std::{future::pending, time::Duration};

use cronwheel::{
    cluster::WriteConnections,
    runtime::{Connections, clock::Clock, config::RunSettings, run_with},
    schedule::Zone,
    state::Scope,
};

use cluster::Cluster;
use ledger::Ledger;
use network::Network;
use scenario::Scenario;

/// What a simulated stretch came to.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    n_runs: usize,
    n_crashes: usize,
    n_lost_messages: u64,
    /// Of every Job: whose, which slot, when, and what became of it.
    history: String,
}

/// Simulates one seed, and panics where the model does not hold.
fn simulate(seed: u64, length: Duration) -> Summary {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let scenario = Scenario::new(seed, length);
        let cluster = Cluster::new(seed);
        for cron_job in &scenario.cron_jobs {
            cluster.create_cron_job(cron_job).await;
        }
        let network = Network::new(seed, scenario.is_lossy);
        let mut ledger = Ledger::new(&scenario);
        tokio::select! {
            biased;
            never = ledger.keep(&cluster) => match never {},
            () = run_controllers(&scenario, &cluster, &network) => {}
        }
        let mut problems = model::problems(&scenario, &ledger);
        problems.append(&mut ledger.offences);
        problems.extend(model::unsettled(&scenario, &ledger, &cluster).await);
        assert!(problems.is_empty(), "seed {seed}:\n{}", problems.join("\n"));
        Summary {
            n_runs: ledger.n_runs(),
            n_crashes: scenario.crashes.len(),
            n_lost_messages: network.n_lost(),
            history: ledger.history(),
        }
    })
}

/// One controller after the other: each runs until its crash, then nothing does, until the next.
async fn run_controllers(scenario: &Scenario, cluster: &Cluster, network: &Network) {
    for crash in &scenario.crashes {
        run_controller(cluster, network, crash.at).await;
        cluster.stop_at(crash.back_at).await;
    }
    run_controller(cluster, network, scenario.end()).await;
}

async fn run_controller(cluster: &Cluster, network: &Network, until: jiff::Timestamp) {
    let client = || network.client(&cluster.api, "controller");
    let connections = Connections {
        writes: WriteConnections::from_client(client()),
        events: WriteConnections::from_client(client()),
        watches: client(),
    };
    let settings = RunSettings {
        scopes: vec![Scope::Cluster],
        listen: "127.0.0.1:0".parse().unwrap(),
        default_zone: Zone::utc(),
        status_flush_interval: Duration::from_secs(1),
        inflight_max: 64,
    };
    let clock = Clock::simulated(cluster.now());
    tokio::select! {
        biased;
        () = cluster.stop_at(until) => {}
        ended = run_with(settings, clock, connections, async || pending().await) => panic!("it ended: {ended:?}"),
    }
}

#[test]
fn no_run_is_missed_or_doubled() {
    let hours = variable("CRONWHEEL_SIM_HOURS").unwrap_or(1);
    let first = variable("CRONWHEEL_SIM_SEED").unwrap_or(1);
    let n_seeds = variable("CRONWHEEL_SIM_SEEDS").unwrap_or(4);
    for seed in first..first + n_seeds {
        eprintln!(
            "CRONWHEEL_SIM_SEEDS=1 CRONWHEEL_SIM_SEED={seed} CRONWHEEL_SIM_HOURS={hours} cargo test --test it sim::no_run"
        );
        let summary = simulate(seed, Duration::from_hours(hours));
        eprintln!(
            "seed {seed}: {} runs, {} crashes, {} messages lost in {hours} h",
            summary.n_runs, summary.n_crashes, summary.n_lost_messages
        );
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let [one, other] = [(); 2].map(|()| simulate(7, Duration::from_mins(20)));
    assert_eq!(one, other);
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
