//! One controller after the other: each runs until it crashes or is asked to end, then nothing does, until the next.

use std::{cell::RefCell, future::pending, time::Duration};

use cronwheel::{
    cluster::WriteConnections,
    runtime::{Connections, clock::Clock, config::RunSettings, metrics::Metrics, run_observed},
    schedule::Zone,
    state::Scope,
};
use jiff::Timestamp;

use super::{
    cluster::Cluster,
    scenario::Scenario,
    world::{Life, World},
};

/// Runs the controllers of a scenario, the last one for ever.
pub(super) async fn run(scenario: &Scenario, cluster: &Cluster, world: &RefCell<World>) {
    for crash in &scenario.crashes {
        live(cluster, world, Some((crash.at, crash.is_graceful))).await;
        cluster.stop_at(crash.back_at).await;
    }
    live(cluster, world, None).await;
}

/// The life of one controller, until it ends.
async fn live(cluster: &Cluster, world: &RefCell<World>, end: Option<(Timestamp, bool)>) {
    let number = world.borrow().lives.len();
    let [writes, events, watches] = cluster.controller_clients(number);
    let connections = Connections {
        writes: WriteConnections::from_client(writes),
        events: WriteConnections::from_client(events),
        leases: watches.clone(),
        watches,
    };
    let settings = RunSettings {
        scopes: vec![Scope::Cluster],
        listen: "127.0.0.1:0".parse().unwrap(),
        default_zone: Zone::utc(),
        status_flush_interval: Duration::from_secs(1),
        inflight_max: 64,
        sharding: None,
    };
    let metrics = Metrics::register().unwrap();
    let board = metrics.shard.clone();
    world.borrow_mut().lives.push(Life {
        from: cluster.now(),
        until: Timestamp::MAX,
        board: board.clone(),
    });
    let clock = Clock::of_simulated(cluster.controller_wall.clone());
    let graceful_end = async || {
        match end {
            Some((at, true)) => cluster.stop_at(at).await,
            Some((_, false)) | None => pending().await,
        }
        "SIGTERM"
    };
    let crash = async {
        match end {
            Some((at, false)) => cluster.stop_at(at).await,
            Some((_, true)) | None => pending().await,
        }
    };
    let mut n_signals = 0;
    let signals = async || {
        n_signals += 1;
        if n_signals > 1 {
            pending::<()>().await;
        }
        graceful_end().await
    };
    tokio::select! {
        biased;
        () = crash => {}
        ended = run_observed(settings, clock, connections, metrics, signals) => ended.unwrap(),
    }
    world.borrow_mut().lives[number].until = cluster.now();
}
