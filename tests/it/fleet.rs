//! Fleets: several replicas that share CronJobs, in one process and on one virtual clock, against the in-memory API
//! server. A seed determines everything that happens to the replicas.
//!
//! A replica is a whole controller without HTTP endpoints, on a simulated machine. Its clock can be wrong, stepped or
//! fast. Its connection to the API server can be cut. Its process can be killed (the run is dropped), terminated, or
//! frozen. While it is frozen, none of its tasks is polled although time goes on: the controller passes every task that
//! it spawns through [`SimulatedWall::freeze`](cronwheel::controller::clock::SimulatedWall::freeze). Requests
//! that are already in the network still arrive, even if their sender is gone, until the deadline in the request
//! (`?timeout=`). A cut connection drops all traffic without an error.
//!
//! One oracle ([`oracle`]) judges every scenario by the records of the API server. Each due instant has exactly one Job.
//! Forbid never overlaps. No write of a shard's term follows one of a later term, and terms only grow. No shard has two
//! leaders at any instant. No replica requests a write for a shard that another replica has held for 100 ms. A
//! short-lived Job may be missing if an Event reports it. In random fleets, some CronJobs have options, and users ask for
//! runs: each starts once, or Forbid refuses it.
//! `CRONWHEEL_FLEET_SEED` and `CRONWHEEL_FLEET_SEEDS` run more of the random fleets.
//!
//! The fleets do not cover real durations, nor kernel sockets that deliver buffered data after a process was stopped or
//! cut off (`TCP_USER_TIMEOUT`, linger).

mod cluster;
mod connection;
mod drawn;
mod load;
mod options;
mod oracle;
mod pod;
mod recorder;
mod records;
mod scenarios;

use tokio::task::LocalSet;

use self::cluster::{Fleet, Size};

/// Runs a scenario with a fleet without replicas. The oracle judges the result.
fn play<T>(seed: u64, size: Size, scenario: impl AsyncFnOnce(&mut Fleet) -> T) -> T {
    play_recorded(seed, size, scenario).0
}

/// Runs a scenario like `play`. Also returns a record of all events, down to versions and instants.
fn play_recorded<T>(seed: u64, size: Size, scenario: impl AsyncFnOnce(&mut Fleet) -> T) -> (T, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let mut fleet = Fleet::new(seed, size).await;
        let (recorder, job_runner, leader_check) = (fleet.run_recorder(), fleet.run_jobs(), fleet.check_leaders());
        let scenario = async {
            let result = scenario(&mut fleet).await;
            fleet.end().await;
            result
        };
        tokio::select! {
            biased;
            never = recorder => match never {},
            () = job_runner => unreachable!("the runner never ends"),
            never = leader_check => match never {},
            result = scenario => {
                fleet.judge();
                (result, format!("{:#?}", fleet.records()))
            }
        }
    })
}
