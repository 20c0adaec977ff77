//! Runs controllers one after the other. Each runs until it crashes or terminates. No controller runs until the next
//! start.

use std::{
    cell::RefCell,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cronwheel::{
    controller::{
        Connections, Controller,
        clock::Clock,
        event_task::EventBudget,
        settings::{CronJobMetrics, LogRuns, Membership, RunSettings},
    },
    coordination::{InstallationName, PROTOCOL_VERSION, Timing},
    kube_api::{ApiClient, WriteConnections},
    schedule::Zone,
    shard::{Scope, ShardCount, TemplateMemory},
    telemetry::metrics::Metrics,
};
use jiff::Timestamp;

use super::{
    cluster::{Cluster, MANAGED, NAMESPACE},
    scenario::{Crash, Scenario},
    world::{Life, World},
};

/// Runs the controllers of a scenario. The last controller runs forever.
pub(super) async fn run(scenario: &Scenario, cluster: &Cluster, world: &RefCell<World>) {
    for crash in &scenario.crashes {
        run_one(cluster, world, Some(crash)).await;
        cluster.stop_at(crash.back_at).await;
    }
    run_one(cluster, world, None).await;
}

/// Runs one controller until its end.
async fn run_one(cluster: &Cluster, world: &RefCell<World>, end: Option<&Crash>) {
    let number = world.borrow().lives.len();
    let metrics = Metrics::register();
    let is_graceful = end.is_some_and(|end| end.is_graceful);
    world.borrow_mut().lives.push(Life {
        from: cluster.now(),
        until: Timestamp::MAX,
        is_graceful,
        snapshot: metrics.shard.clone(),
    });
    let clock = Clock::of_simulated(cluster.controller_wall.clone());
    let mut termination = end.filter(|_| is_graceful);
    let next_signal = async || {
        wait_for(cluster, termination.take()).await;
        "SIGTERM"
    };
    let controller = Controller {
        settings: settings(number),
        clock,
        connections: connections(cluster, number),
        metrics,
    };
    tokio::select! {
        biased;
        () = wait_for(cluster, end.filter(|_| !is_graceful)) => {}
        ended = controller.run(None, Vec::new(), next_signal) => ended.unwrap(),
    }
    world.borrow_mut().lives[number].until = cluster.now();
}

/// Waits until the time of an end. Waits forever if there is none.
async fn wait_for(cluster: &Cluster, end: Option<&Crash>) {
    match end {
        Some(end) => cluster.stop_at(end.at).await,
        None => pending().await,
    }
}

/// Every second controller caches no templates.
fn settings(number: usize) -> RunSettings {
    RunSettings {
        scopes: vec![Scope::Cluster],
        // Only namespaces that are selected are read, with their freezes.
        namespace_selector: Some(format!("{}={}", MANAGED.0, MANAGED.1).parse().unwrap()),
        default_zone: Zone::utc(),
        status_flush_interval: Duration::from_secs(1),
        in_flight_max: 64,
        template_memory_mib: if number % 2 == 1 {
            0
        } else {
            TemplateMemory::MIB_DEFAULT
        },
        missed_runs_per_second: 5,
        freeze: None,
        reads_calendars: true,
        built_in_policies: Vec::new(),
        events: EventBudget::default(),
        cron_job_metrics: CronJobMetrics::default(),
        trouble_label: None,
        log_runs: LogRuns::default(),
        membership: membership(number),
    }
}

/// Each controller is the next process of one Pod.
fn membership(number: usize) -> Membership {
    let n_incarnations = AtomicU64::new(1_000 * number as u64);
    Membership {
        installation: InstallationName::default(),
        namespace: NAMESPACE.into(),
        pod_name: "controller".into(),
        pod_uid: "uid-controller".into(),
        owner: None,
        revision: "1".into(),
        shard_count: ShardCount::MIN,
        protocol: PROTOCOL_VERSION,
        timing: Timing::DEFAULT,
        incarnations: Arc::new(move || n_incarnations.fetch_add(1, Ordering::Relaxed)),
    }
}

fn connections(cluster: &Cluster, number: usize) -> Connections {
    let [writes, events, watches, leases] = cluster.controller_clients(number);
    Connections {
        writes: ApiClient::new(WriteConnections::from_clients(vec![writes])),
        events: ApiClient::new(WriteConnections::from_clients(vec![events])),
        leases,
        watches,
        api_server: None,
    }
}
