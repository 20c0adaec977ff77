//! How long replicas take to drain, with an API server that selects CronJobs by shard and one that does not: whoever is to
//! take their shards loads them first.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kube::Api;
use testbed::replica::{Replica, ReplicaSetup};
use tokio::time::{Instant, sleep};

use super::{CronJob, create, measured::n_cron_jobs, on_a_control_plane};
use crate::{controller::free_port, exchange};

const N_SHARDS: u32 = 64;
const N_REPLICAS: u32 = 5;
/// What each leads at least before one drains.
const LED_MIN: u32 = 3;
const POLL: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_mins(3);

fn start(kubeconfig: &Path, number: u32) -> Replica {
    let setup = ReplicaSetup {
        program: env!("CARGO_BIN_EXE_cronwheel").into(),
        kubeconfig: kubeconfig.to_owned(),
        lease_namespace: "default".to_owned(),
        n_shards: N_SHARDS,
        pod_name: format!("cw-{number}"),
        pod_uid: format!("uid-{number}"),
        revision: "r1".to_owned(),
        address: format!("127.0.0.1:{}", free_port()),
        arguments: vec!["--namespace=default".to_owned()],
        log: log(kubeconfig, number),
    };
    Replica::start(setup).expect("a process")
}

fn log(kubeconfig: &Path, number: u32) -> PathBuf {
    kubeconfig.with_file_name(format!("replica-{number}.log"))
}

/// How many shards it leads.
async fn n_led(replica: &Replica) -> u32 {
    let text = exchange::get(&replica.setup().address, "/metrics").await;
    let text = text.unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("cronwheel_leader "));
    line.map_or(0, |number| number.parse().expect("a number"))
}

/// Waits until all is led, and some of it by each.
async fn shared_out(replicas: &[Replica]) {
    let limit = Instant::now() + PATIENCE;
    loop {
        let mut led = Vec::new();
        for replica in replicas {
            led.push(n_led(replica).await);
        }
        if led.iter().sum::<u32>() == N_SHARDS && led.iter().all(|n_led| *n_led >= LED_MIN) {
            return;
        }
        assert!(Instant::now() < limit, "{led:?}");
        sleep(POLL * 20).await;
    }
}

/// Asks one after the other to end; how long each took.
async fn drains(kubeconfig: &Path) -> Vec<Duration> {
    let mut replicas: Vec<Replica> = (0..N_REPLICAS).map(|number| start(kubeconfig, number)).collect();
    let mut took = Vec::new();
    while replicas.len() > 2 {
        let begun = Instant::now();
        shared_out(&replicas).await;
        eprintln!("shared out after {:.1?}", begun.elapsed());
        let mut leaving = replicas.remove(0);
        let begun = Instant::now();
        leaving.ask_to_end().expect("a signal");
        while leaving.ending().expect("a status").is_none() {
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            sleep(POLL).await;
        }
        took.push(begun.elapsed());
    }
    took
}

pub(super) fn how_long_a_drain_takes_is_measured() {
    let n_cron_jobs = n_cron_jobs();
    // Each of five processes lists all of them again and again where the server does not select.
    let n_cron_jobs = n_cron_jobs / 4;
    for (what, gates) in [("with", &["ShardedListAndWatch=true"][..]), ("without", &[][..])] {
        on_a_control_plane(gates, async |kubeconfig| {
            create(
                &Api::<CronJob>::default_namespaced(super::client(kubeconfig).await),
                n_cron_jobs,
            )
            .await;
            let took = drains(kubeconfig).await;
            eprintln!("{n_cron_jobs} CronJobs, {what}: drained, of five, four and three replicas: {took:.2?}");
        });
    }
}
