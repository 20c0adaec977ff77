//! Fleets: several replicas that share CronJobs, in one process and by one virtual clock, on the in-memory API server, with
//! everything that can happen to replicas, from a seed.
//!
//! A replica is a whole controller without endpoints on a simulated machine of its own: its clock can be wrong, stepped or fast, its
//! way to the API server cut, its process killed (the run is dropped), asked to end, or frozen. Frozen means that no task
//! of it is polled while time goes on: [`SimulatedWall::freeze`](cronwheel::controller::clock::SimulatedWall::freeze), through
//! which `runtime.rs` passes every task that it spawns. What was handed to the network before arrives all the same, also
//! when its sender is gone, until the server's own time for it (`?timeout=`) is over. A cut line is a black hole, not an error.
//!
//! One oracle judges every scenario by what the API server saw ([`oracle`]): each instant that was due has one Job, ever;
//! none is missed; Forbid never overlaps; no write of a term of a shard comes after one of a later term; terms only grow;
//! no shard is led twice at any instant, and nobody asks for a write of a shard that has been another's for 100 ms. `CRONWHEEL_FLEET_SEED` and `CRONWHEEL_FLEET_SEEDS` run more of what is drawn.
//!
//! What this cannot show: sockets of a kernel that deliver what was buffered in them before a process was stopped or cut off
//! (`TCP_USER_TIMEOUT`, linger) and the admission policy that refuses such a late create; how long anything takes.

mod books;
mod cluster;
mod drawn;
mod ledger;
mod line;
mod load;
mod oracle;
mod pod;
mod scenarios;

use tokio::task::LocalSet;

use self::cluster::{Fleet, Size};

/// Plays a scenario with a fleet that has no replica yet, and lets the oracle judge what came of it.
fn play<T>(seed: u64, size: Size, scenario: impl AsyncFnOnce(&mut Fleet) -> T) -> T {
    play_recorded(seed, size, scenario).0
}

/// The same; and everything that was seen to happen, to the last version and instant.
fn play_recorded<T>(seed: u64, size: Size, scenario: impl AsyncFnOnce(&mut Fleet) -> T) -> (T, String) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let mut fleet = Fleet::new(seed, size).await;
        let (keeping, running, watching) = (fleet.keep_ledger(), fleet.run_jobs(), fleet.watch_leaders());
        let playing = async {
            let result = scenario(&mut fleet).await;
            fleet.end().await;
            result
        };
        tokio::select! {
            biased;
            never = keeping => match never {},
            () = running => unreachable!("the runner never ends"),
            never = watching => match never {},
            result = playing => {
                fleet.judge();
                (result, format!("{:#?}", fleet.books()))
            }
        }
    })
}
